#include "world/runs.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/rng.hpp"
#include "base/text.hpp"
#include "wire/fault.hpp"
#include "world/number.hpp"

namespace hocket::world {
namespace {

using namespace std::chrono_literals;

/// Between looks for a new run, at first and later.
constexpr Duration run_look = 20ms;
constexpr Duration run_look_max = 320ms;
/// For rank 0 to be started again, where something went wrong before this rank came: the longer of
/// this and a part of the time that is left. Perhaps it goes wrong right now, and no rank will be
/// started again.
constexpr Duration restart_patience = 30s;
constexpr int restart_part = 4;

class Runs {
 public:
  Runs(store::Store& store, Entry& who, Deadline deadline)
      : store_(store),
        who_(who),
        deadline_(deadline),
        time_(left()),
        key_(entry_key(who.world, "run")) {}

  /// As rank 0.
  Result<LocalRank> begin();
  Result<LocalRank> follow();

 private:
  [[nodiscard]] Duration left() const { return deadline_.remaining(monotonic_clock().now()); }
  [[nodiscard]] WorldId in(const std::string& run) const {
    WorldId world = who_.world;
    world.run = run;
    return world;
  }
  /// Empty if there is none.
  Result<std::string> value_of(const std::string& key);

  /// Returns the run before it, if any.
  Result<std::string> publish(const std::string& run);
  Status end_runs_from(std::string run);

  /// What came of this rank's place in a run before it came. `until`: so long it waits for another.
  struct Found {
    Status why = {};
    Deadline until = {};
  };
  Result<Found> look_into(const std::string& run);
  /// Empty if none comes.
  Result<std::string> run_after(const std::string& known, Deadline until);
  Status no_rank_0() const;

  store::Store& store_;
  Entry& who_;
  Deadline deadline_;
  Duration time_;    // all that there was at first
  std::string key_;  // of the newest run
};

Result<std::string> Runs::value_of(const std::string& key) {
  const Result<bool> is_there = store_.check({key}, left());
  if (!is_there.ok()) return is_there.status();
  return *is_there ? store_.get(key, left()) : std::string();
}

Result<LocalRank> Runs::begin() {
  const std::string run = random_hex(8);
  Result<std::string> earlier = publish(run);
  if (!earlier.ok()) return earlier.status();
  who_.world.run = run;
  if (Status status = end_runs_from(*earlier); !status.ok()) return status;
  Result<LocalRank> local = enter(store_, who_, deadline_);
  if (local.ok() || earlier->empty() || local.status().code() != StatusCode::timeout) return local;
  // Perhaps that one is the right one.
  const Result<std::string> before = value_of(rank_key(in(*earlier), 0));
  if (!before.ok() || before->empty() || *before == who_.process) return local;
  return Status(local.status())
      .caused_by(Status(
          StatusCode::already_exists,
          fmt::format("another process was rank 0{} before: {}", describe(who_.world), *before)));
}

/// One behind the other, so that each is ended by the next.
Result<std::string> Runs::publish(const std::string& run) {
  Status status = store_.set(entry_key(in(run), "size"), opinion_of(who_), left());
  std::string earlier;
  while (status.ok() && left() > Duration::zero()) {
    status = store_.set(entry_key(in(run), "before"), earlier, left());
    if (!status.ok()) break;
    Result<Swap> swap = store_.compare_set(key_, earlier, run, left());
    if (!swap.ok()) return swap.status();
    if (swap->is_set) return earlier;
    std::string now = swap->value.value_or("");
    if (now == earlier) {
      return Status(StatusCode::protocol_error,
                    fmt::format("the store does not set {}, although it holds what was expected",
                                quote(key_)))
          .with_hint("its compare_set must set a missing key when the expected value is empty");
    }
    earlier = std::move(now);
  }
  if (!status.ok()) return status;
  return Status(StatusCode::timeout, "other processes keep starting this world as rank 0");
}

/// Calls away who waits there; and in the run before it, if its rank 0 had no time to do that: it
/// comes to its own run afterwards.
Status Runs::end_runs_from(std::string run) {
  const Status fault =
      Status(StatusCode::already_exists,
             fmt::format("another process is rank 0{}: {}", describe(who_.world), who_.process))
          .with_peer(0)
          .with_hint("give each process a RANK of its own");
  while (!run.empty()) {
    const Result<Swap> swap =
        store_.compare_set(entry_key(in(run), "verdict"), "", wire::encode_fault(fault), left());
    if (!swap.ok()) return swap.status();
    const Result<std::string> rank_0 = value_of(rank_key(in(run), 0));
    if (!rank_0.ok()) return rank_0.status();
    if (!rank_0->empty()) break;
    Result<std::string> before = value_of(entry_key(in(run), "before"));
    if (!before.ok()) return before.status();
    run = *std::move(before);
  }
  return {};
}

Result<LocalRank> Runs::follow() {
  Status why = no_rank_0();
  bool has_failed = false;  // in a run: that is what there is to tell, also if the store goes now
  const auto broken = [&](Status status) {
    return has_failed ? Status(why).caused_by(std::move(status)) : status;
  };
  std::string run;
  Deadline until = deadline_;
  for (;;) {
    Result<std::string> next = run_after(run, until);
    if (!next.ok()) return broken(next.status());
    if (next->empty()) return why;
    run = *std::move(next);
    who_.world.run = run;
    Result<Found> found = look_into(run);
    if (!found.ok()) return broken(found.status());
    until = found->until;
    if (!found->why.ok()) {
      why = found->why;
      continue;
    }
    Result<LocalRank> local = enter(store_, who_, deadline_);
    if (local.ok()) return local;
    why = local.status();
    has_failed = true;
    // Rank 0 may have called this one away, or be about to. Who has little time left would end the
    // next run for all.
    if (left() < time_ / 2) return why;
    until = Deadline::after(monotonic_clock(), limits::entry_farewell).or_sooner(deadline_);
  }
}

Result<Runs::Found> Runs::look_into(const std::string& run) {
  const WorldId world = in(run);
  const Result<std::string> same = value_of(rank_key(world, who_.rank));
  if (!same.ok()) return same.status();
  const Result<std::string> size = value_of(entry_key(world, "size"));
  if (!size.ok()) return size.status();
  const Result<std::string> verdict = value_of(entry_key(world, "verdict"));
  if (!verdict.ok()) return verdict.status();
  const Duration patience = std::max(restart_patience, left() / restart_part);
  const Deadline soon = Deadline::after(monotonic_clock(), patience).or_sooner(deadline_);
  const bool is_complete = is_go(*verdict);
  const bool is_failed = !verdict->empty() && !is_complete;
  if (is_failed) return Found{.why = wire::decode_fault(*verdict), .until = soon};
  if (*same == who_.process) return Found{.why = no_rank_0(), .until = deadline_};
  if (!same->empty() || is_complete) {
    const std::string what =
        same->empty()
            ? fmt::format("all ranks{} came before", describe(who_.world))
            : fmt::format("rank {}{} was {} before", who_.rank, describe(who_.world), *same);
    return Found{.why = Status(StatusCode::already_exists,
                               fmt::format("{}, and rank 0 has not come again; {} waits no longer",
                                           what, who_.process))
                            .with_peer(0)
                            .with_hint("give each process a RANK of its own, and start all of them "
                                       "again"),
                 .until = deadline_};
  }
  if (size->empty() || is_size(*size, who_.size)) return Found{};
  // Those who wait there, if they live, are to know that too.
  Status fault = size_fault(who_, *size);
  const Result<Swap> told =
      store_.compare_set(entry_key(world, "verdict"), "", wire::encode_fault(fault), left());
  if (!told.ok()) return told.status();
  return Found{.why = std::move(fault), .until = soon};
}

Result<std::string> Runs::run_after(const std::string& known, Deadline until) {
  for (Duration pause = run_look;; pause = std::min(2 * pause, run_look_max)) {
    const Duration to_wait = until.remaining(monotonic_clock().now());
    if (to_wait <= Duration::zero()) return std::string();
    Result<std::string> run = store_.get(key_, to_wait);
    const bool is_missing = !run.ok() && run.status().code() == StatusCode::timeout;
    if (is_missing) return std::string();
    if (!run.ok() || *run != known) return run;
    std::this_thread::sleep_for(std::min(pause, to_wait));
  }
}

Status Runs::no_rank_0() const {
  return Status(StatusCode::timeout,
                fmt::format("rank 0{} is missing; rank {} ({}) waits no longer",
                            describe(who_.world), who_.rank, who_.process))
      .with_peer(0)
      .with_hint(
          "look at the output of rank 0: was it started, with the same store, and does it join as "
          "many worlds?");
}

}  // namespace

Result<LocalRank> enter_run(store::Store& store, Entry& who, Deadline deadline) {
  Runs runs(store, who, deadline);
  Result<LocalRank> local = who.rank == 0 ? runs.begin() : runs.follow();
  if (!local.ok()) return local.status().with_rank(who.rank);
  return local;
}

}  // namespace hocket::world
