#include "world/runs.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/rng.hpp"
#include "wire/fault.hpp"
#include "world/number.hpp"

namespace hocket::world {
namespace {

using namespace std::chrono_literals;

/// Between looks for a new run, at first and later.
constexpr Duration run_look = 20ms;
constexpr Duration run_look_max = 320ms;
/// For rank 0 to be started again, where something went wrong in the run that there is. Perhaps it
/// goes wrong right now, and no rank will be started again.
constexpr Duration restart_patience = 30s;

class Runs {
 public:
  Runs(store::Store& store, Entry& who, Deadline deadline)
      : store_(store),
        who_(who),
        deadline_(deadline),
        key_(entry_key(who.world, "run")),
        to_follow_(deadline) {}

  /// As rank 0.
  Result<LocalRank> begin();
  Result<LocalRank> follow();

 private:
  [[nodiscard]] Duration left() const { return deadline_.remaining(monotonic_clock().now()); }

  Status end(const std::string& run);
  Result<std::string> run_after(const std::string& known);
  /// Sets `found_` to what its processes left there, if that keeps this one from taking part.
  Status look_into_run();
  Result<std::string> value_of(const std::string& key);

  store::Store& store_;
  Entry& who_;
  Deadline deadline_;
  std::string key_;     // of the newest run
  Status found_;        // in the last run that this rank looked into
  Deadline to_follow_;  // when it no longer waits for another
};

/// Empty if there is none.
Result<std::string> Runs::value_of(const std::string& key) {
  const Result<bool> is_there = store_.check({key}, left());
  if (!is_there.ok()) return is_there.status();
  return *is_there ? store_.get(key, left()) : std::string();
}

Result<LocalRank> Runs::begin() {
  const Result<std::string> earlier = value_of(key_);
  if (!earlier.ok()) return earlier.status();
  const std::string run = random_hex(8);
  Status status = store_.set(key_, run, left());
  if (status.ok() && !earlier->empty()) status = end(*earlier);
  if (!status.ok()) return status;
  who_.world.run = run;
  return enter(store_, who_, deadline_);
}

/// Calls away who waits there.
Status Runs::end(const std::string& run) {
  WorldId then = who_.world;
  then.run = run;
  const Status fault =
      Status(StatusCode::already_exists,
             fmt::format("another process is rank 0{}: {}", describe(then), who_.process))
          .with_peer(0)
          .with_hint("give each process a RANK of its own");
  return store_.compare_set(entry_key(then, "verdict"), "", wire::encode_fault(fault), left())
      .status();
}

Result<LocalRank> Runs::follow() {
  std::string run;
  for (;;) {
    Result<std::string> next = run_after(run);
    if (!next.ok()) return next.status();
    run = *std::move(next);
    who_.world.run = run;
    if (Status status = look_into_run(); !status.ok()) return status;
    if (!found_.ok()) continue;
    Result<LocalRank> local = enter(store_, who_, deadline_);
    if (local.ok()) return local;
    // Rank 0 may have called us away.
    const Result<std::string> newest = value_of(key_);
    if (!newest.ok() || *newest == run) return local;
  }
}

Status Runs::look_into_run() {
  const Result<std::string> earlier = value_of(rank_key(who_.world, who_.rank));
  if (!earlier.ok()) return earlier.status();
  const Result<std::string> verdict = value_of(entry_key(who_.world, "verdict"));
  if (!verdict.ok()) return verdict.status();
  found_ = Status();
  to_follow_ = deadline_;
  if (!earlier->empty()) {
    found_ = Status(StatusCode::already_exists,
                    fmt::format("rank {}{} was {} before, and rank 0 has not come again; {} waits "
                                "no longer",
                                who_.rank, describe(who_.world), *earlier, who_.process))
                 .with_peer(0)
                 .with_hint("give each process a RANK of its own, and start all of them again");
  } else if (!verdict->empty()) {
    found_ = wire::decode_fault(*verdict);
    to_follow_ = Deadline::after(monotonic_clock(), restart_patience).or_sooner(deadline_);
  }
  return {};
}

/// Waits for another run than the one that is known. If none comes, fails with what was found
/// there.
Result<std::string> Runs::run_after(const std::string& known) {
  for (Duration pause = run_look; !to_follow_.passed(monotonic_clock().now());
       pause = std::min(2 * pause, run_look_max)) {
    Result<std::string> run = store_.get(key_, left());
    const bool is_missing = !run.ok() && run.status().code() == StatusCode::timeout;
    if (is_missing) break;
    if (!run.ok() || *run != known) return run;
    std::this_thread::sleep_for(std::min(pause, to_follow_.remaining(monotonic_clock().now())));
  }
  if (!found_.ok()) return found_;
  return Status(StatusCode::timeout,
                fmt::format("rank 0{} is missing; rank {} ({}) waits no longer",
                            describe(who_.world), who_.rank, who_.process))
      .with_peer(0)
      .with_hint("look at the output of rank 0: was it started, and with the same store?");
}

}  // namespace

Result<LocalRank> enter_run(store::Store& store, Entry& who, Deadline deadline) {
  Runs runs(store, who, deadline);
  Result<LocalRank> local = who.rank == 0 ? runs.begin() : runs.follow();
  if (!local.ok()) return local.status().with_rank(who.rank);
  return local;
}

}  // namespace hocket::world
