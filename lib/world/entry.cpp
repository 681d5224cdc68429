#include "world/entry.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "wire/fault.hpp"

namespace hocket::world {
namespace {

constexpr std::string_view go = "go";

bool is_first(const Entry& who) { return describe(who.world).empty(); }

}  // namespace

Status size_fault(const Entry& who, std::string_view first) {
  return Status(StatusCode::mismatch,
                fmt::format("ranks disagree on the size{}: {}, but {} for rank {} ({})",
                            is_first(who) ? " of the world" : describe(who.world), first, who.size,
                            who.rank, who.process))
      .with_peer(who.rank)
      .with_hint("start all ranks with the same size (WORLD_SIZE)");
}

namespace {

Status duplicate_fault(const Entry& who, std::string_view first) {
  return Status(StatusCode::already_exists,
                fmt::format("two processes are rank {}{}: {} and {}", who.rank, describe(who.world),
                            first, who.process))
      .with_peer(who.rank)
      .with_hint(
          "give each process a RANK of its own; does the store, or its file, still hold an earlier "
          "run? Give each run HOCKET_ATTEMPT or a name of its own then");
}

Status loopback_fault(std::string_view lonely) {
  return Status(StatusCode::invalid_argument,
                fmt::format("the ranks are on several hosts, and {} has only a loopback address",
                            lonely))
      .with_hint(
          "let MASTER_ADDR be a name or address that other hosts reach, or choose with "
          "HOCKET_INTERFACE");
}

// --- coming in ---

std::string key_of(const Entry& who, std::string_view name) { return entry_key(who.world, name); }

/// "17" of "entry/0/rank/17".
std::optional<int> last_number(std::string_view key) {
  const auto number = parse_integer(key.substr(key.rfind('/') + 1));
  return number && *number >= 0 && *number < limits::world_size_max
             ? std::optional(static_cast<int>(*number))
             : std::nullopt;
}

/// Begins what stands for a card that there is not; cards begin with a length.
constexpr std::string_view no_card = "fault:";

/// The others are told so by the store, should this process end too early.
Status lost_fault(const Entry& who, std::string_view how) {
  return Status(StatusCode::peer_lost,
                fmt::format("rank {} ({}) is lost: {}", who.rank, who.process, how))
      .with_peer(who.rank)
      .with_hint("see the output of that rank: why did its process end?");
}

/// The rest is for finding out who is missing, and for telling the others.
Duration without_rest(Duration left) {
  return left - std::min<Duration>(left / 8, limits::entry_farewell);
}

class Porch {
 public:
  Porch(store::Store& store, const Entry& who) : store_(store), who_(who) {}

  Result<LocalRank> enter(Deadline deadline);

 private:
  [[nodiscard]] std::string key(std::string_view name) const { return key_of(who_, name); }

  Status leave_will();
  Status claim_rank();
  Status take_seat();
  /// Who is to decide knows the outcome then: the last to arrive, or rank 0 of a run.
  Result<std::optional<LocalRank>> announce_arrival(Deadline deadline);
  Result<std::optional<LocalRank>> decide();
  Result<std::optional<LocalRank>> decide_when_all_came(Deadline deadline);
  /// What all ranks are told: the first verdict that anybody has.
  Result<std::string> propose(const std::string& verdict);
  Status blame(const Status& fault);
  Result<LocalRank> wait_for_verdict(Deadline deadline);
  Result<LocalRank> give_up(Deadline deadline);
  Result<LocalRank> find_local_rank();
  [[nodiscard]] LocalRank local_rank_in(std::string_view list) const;

  store::Store& store_;
  const Entry& who_;
};

Status Porch::leave_will() {
  const Status missing =
      lost_fault(who_, "its connection to the store ended before all ranks had come");
  const Status without_card = lost_fault(who_, "its process ended before it could be reached");
  Status status =
      store_.leave_will({key("verdict"), keys_of(who_.world) + '/' + card_key(who_.rank)},
                        {wire::encode_fault(missing), card_of_none(without_card)},
                        {.rank = who_.rank, .size = who_.size});
  return status.code() == StatusCode::unsupported ? Status() : status;
}

Status Porch::claim_rank() {
  Result<Swap> size = store_.compare_set(key("size"), "", opinion_of(who_));
  if (!size.ok()) return size.status();
  const std::string first = size->value.value_or("");
  if (!is_size(first, who_.size)) return blame(size_fault(who_, first));

  Result<Swap> rank = store_.compare_set(rank_key(who_.world, who_.rank), "", who_.process);
  if (!rank.ok()) return rank.status();
  if (!rank->is_set) return blame(duplicate_fault(who_, rank->value.value_or("")));
  return who_.fault.ok() ? Status() : blame(wire::fault_of(who_.rank, who_.process, who_.fault));
}

Status Porch::take_seat() {
  if (who_.is_loopback) {
    Result<Swap> set =
        store_.compare_set(key("loopback"), "",
                           fmt::format("rank {} ({}, {})", who_.rank, who_.process, who_.address));
    if (!set.ok()) return set.status();
  }
  return store_.append(key("host/" + who_.host), fmt::format("{} ", who_.rank));
}

Result<std::optional<LocalRank>> Porch::announce_arrival(Deadline deadline) {
  Result<std::int64_t> arrived = store_.add(key("arrived"), 1);
  if (!arrived.ok()) return arrived.status();
  const bool is_last = *arrived == who_.size;
  if (who_.world.run.empty()) return is_last ? decide() : std::optional<LocalRank>();
  // The others may be those of an earlier run, in which this rank was the one that was missing. Of
  // rank 0 it is known that it lives: it decides.
  if (who_.rank == 0) return is_last ? decide() : decide_when_all_came(deadline);
  if (!is_last) return std::optional<LocalRank>();
  const Status told = store_.set(key("all"), "1");
  return told.ok() ? std::optional<LocalRank>() : Result<std::optional<LocalRank>>(told);
}

Result<std::optional<LocalRank>> Porch::decide_when_all_came(Deadline deadline) {
  constexpr Duration pause_max = std::chrono::seconds(1);
  Duration pause = std::chrono::milliseconds(100);  // between looks for a fault
  const Duration to_wait = without_rest(deadline.remaining(monotonic_clock().now()));
  const Deadline end = Deadline::after(monotonic_clock(), to_wait);
  while (!end.passed(monotonic_clock().now())) {
    const Deadline look = Deadline::after(monotonic_clock(), pause).or_sooner(end);
    const Status all = store_.wait({key("all")}, look.remaining(monotonic_clock().now()));
    if (all.ok()) return decide();
    if (all.code() != StatusCode::timeout) return all;
    const Result<bool> is_decided =
        store_.check({key("verdict")}, end.remaining(monotonic_clock().now()));
    if (is_decided.ok() && *is_decided) return std::optional<LocalRank>();
    // Some stores give up early.
    std::this_thread::sleep_for(look.remaining(monotonic_clock().now()));
    pause = std::min(2 * pause, pause_max);
  }
  const Result<LocalRank> local = give_up(deadline);
  return local.ok() ? std::optional(*local) : Result<std::optional<LocalRank>>(local.status());
}

Result<std::optional<LocalRank>> Porch::decide() {
  // All have written what they say of themselves.
  Result<LocalRank> local = find_local_rank();
  if (!local.ok()) return local.status();
  if (local->local_size < who_.size) {
    Result<bool> is_lonely = store_.check({key("loopback")});
    if (!is_lonely.ok()) return is_lonely.status();
    if (*is_lonely) {
      Result<std::string> lonely = store_.get(key("loopback"));
      return lonely.ok() ? blame(loopback_fault(*lonely)) : lonely.status();
    }
  }
  Result<std::string> verdict = propose(std::string(go));
  if (!verdict.ok()) return verdict.status();
  // Not another word: the others may go on, and rank 0 may end and take the store with it.
  if (*verdict != go) return wire::decode_fault(*verdict);
  return std::optional(*local);
}

Result<std::string> Porch::propose(const std::string& verdict) {
  Result<Swap> swap = store_.compare_set(key("verdict"), "", verdict);
  if (!swap.ok()) return swap.status();
  return swap->value.value_or("");
}

/// The fault, or one found earlier; ours alone when the world is complete without us.
Status Porch::blame(const Status& fault) {
  Result<std::string> verdict = propose(wire::encode_fault(fault));
  if (!verdict.ok() || *verdict == go) return fault;
  return wire::decode_fault(*verdict);
}

Result<LocalRank> Porch::give_up(Deadline deadline) {
  const std::string who = fmt::format("rank {} ({}) waits no longer", who_.rank, who_.process);
  store_.set_timeout(deadline.remaining(monotonic_clock().now()));
  const Result<std::vector<int>> ranks = missing_ranks(store_, who_);
  if (!ranks.ok()) {
    return Status(StatusCode::timeout, fmt::format("the store does not answer; {}", who))
        .with_hint("see whether the process that serves it, rank 0 or the launcher, is stopped")
        .caused_by(ranks.status());
  }
  const Status fault =
      ranks->empty()
          ? Status(StatusCode::timeout,
                   fmt::format("all {} ranks came, but one stopped before it had joined; {}",
                               who_.size, who))
                .with_hint("look at the output of all ranks: did one end early?")
          : Status(StatusCode::timeout,
                   fmt::format("{} of {} ranks{} {} missing: {}; {}", ranks->size(), who_.size,
                               describe(who_.world), ranks->size() == 1 ? "is" : "are",
                               list_ranks(*ranks), who))
                .with_hint(
                    is_first(who_)
                        ? "look at the output of those ranks: were they started, and with the same "
                          "MASTER_ADDR and MASTER_PORT? HOCKET_STORE_TIMEOUT waits longer"
                        : "look at the output of those ranks: do all ranks join the same worlds, "
                          "and those of one name in the same order? HOCKET_STORE_TIMEOUT waits "
                          "longer");
  Result<std::string> verdict = propose(wire::encode_fault(fault));
  if (!verdict.ok()) return fault;
  if (*verdict == go) return find_local_rank();
  return wire::decode_fault(*verdict);
}

Result<LocalRank> Porch::wait_for_verdict(Deadline deadline) {
  const Duration to_wait = without_rest(deadline.remaining(monotonic_clock().now()));
  // Both at once: after the verdict rank 0 may go on, end, and take the store with it.
  auto both = store_.multi_get({key("verdict"), key("host/" + who_.host)}, to_wait);
  if (!both.ok())
    return both.status().code() == StatusCode::timeout ? give_up(deadline) : both.status();
  if (both->front() != go) return wire::decode_fault(both->front());
  return local_rank_in(both->back());
}

Result<LocalRank> Porch::find_local_rank() {
  Result<std::string> list = store_.get(key("host/" + who_.host));
  if (!list.ok()) return list.status();
  return local_rank_in(*list);
}

LocalRank Porch::local_rank_in(std::string_view list) const {
  LocalRank local = {.local_rank = 0, .local_size = 0};
  while (!list.empty()) {
    const std::string_view number = list.substr(0, list.find(' '));
    list.remove_prefix(std::min(list.size(), number.size() + 1));
    local.local_rank += parse_integer(number).value_or(who_.size) < who_.rank ? 1 : 0;
    ++local.local_size;
  }
  return local;
}

Result<LocalRank> Porch::enter(Deadline deadline) {
  Status status = leave_will();
  if (status.ok()) status = claim_rank();
  if (status.ok()) status = take_seat();
  if (!status.ok()) return std::move(status).with_rank(who_.rank);
  Result<std::optional<LocalRank>> decided = announce_arrival(deadline);
  if (!decided.ok()) return decided.status().with_rank(who_.rank);
  if (*decided) return **decided;
  Result<LocalRank> local = wait_for_verdict(deadline);
  if (!local.ok()) return local.status().with_rank(who_.rank);
  return local;
}

/// Finds the missing ranks in [first, end), for stores that can't list keys. It halves the range,
/// so it needs one request if no rank is missing and a few for each that is.
Status add_missing(store::Store& store, const Entry& who, int first, int end,
                   std::vector<int>& ranks) {
  std::vector<std::string> keys;
  for (int rank = first; rank < end; ++rank) keys.push_back(rank_key(who.world, rank));
  const Result<bool> are_there = store.check(std::move(keys));
  if (!are_there.ok() || *are_there) return are_there.status();
  if (end - first == 1) {
    ranks.push_back(first);
    return {};
  }
  const int middle = first + (end - first) / 2;
  Status status = add_missing(store, who, first, middle, ranks);
  return status.ok() ? add_missing(store, who, middle, end, ranks) : status;
}

/// Gives a store another timeout for as long as it lives.
class TimeoutScope {
 public:
  TimeoutScope(store::Store& store, Duration timeout) : store_(store), before_(store.timeout()) {
    store.set_timeout(timeout);
  }
  TimeoutScope(const TimeoutScope&) = delete;
  TimeoutScope& operator=(const TimeoutScope&) = delete;
  ~TimeoutScope() { store_.set_timeout(before_); }

 private:
  store::Store& store_;
  Duration before_;
};

std::string read_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

Entry describe_process() {
  char hostname[256] = {};
  if (::gethostname(hostname, sizeof hostname - 1) != 0) hostname[0] = '?';
  struct stat network {};
  const bool is_known = ::stat("/proc/self/ns/net", &network) == 0;
  return {
      .host = fmt::format("{}-{}", read_line("/proc/sys/kernel/random/boot_id"),
                          is_known ? network.st_ino : 0),
      .process = fmt::format("pid {} on {}", ::getpid(), hostname),
  };
}

bool is_go(std::string_view verdict) { return verdict == go; }

std::string opinion_of(const Entry& who) {
  return fmt::format("{} for rank {} ({})", who.size, who.rank, who.process);
}

bool is_size(std::string_view opinion, int size) {
  return opinion.starts_with(fmt::format("{} ", size));
}

std::string keys_of(const WorldId& world) { return "world/" + scope_of(world); }

std::string card_key(int rank) { return fmt::format("card/{}", rank); }

std::string card_of_none(const Status& why) {
  return std::string(no_card) + wire::encode_fault(why);
}

Status why_no_card(std::string_view card) {
  return card.starts_with(no_card) ? wire::decode_fault(card.substr(no_card.size())) : Status();
}

Result<LocalRank> enter(store::Store& store, const Entry& who, Deadline deadline) {
  const Duration left = deadline.remaining(monotonic_clock().now());
  const TimeoutScope scope(store, std::min(left, store.timeout()));
  return Porch(store, who).enter(deadline);
}

Status report_end(store::Store& store, int attempt, int rank, std::string_view what) {
  const Status fault =
      Status(StatusCode::peer_lost, std::string(what))
          .with_peer(rank)
          .with_hint("every rank of the world must join it; see the output of that rank");
  // The first world of the attempt, and those with a number or a name.
  for (const char behind : {'/', '.'}) {
    const std::string prefix = fmt::format("entry/{}{}", attempt, behind);
    Status status = store.report_absence(prefix, rank, wire::encode_fault(fault));
    if (!status.ok()) return status;
  }
  return {};
}

Result<std::vector<int>> missing_ranks(store::Store& store, const Entry& who) {
  Result<std::vector<std::string>> keys = store.keys(key_of(who, "rank/"));
  if (keys.status().code() == StatusCode::unsupported) {
    std::vector<int> ranks;
    Status status = add_missing(store, who, 0, who.size, ranks);
    return status.ok() ? Result<std::vector<int>>(std::move(ranks)) : status;
  }
  if (!keys.ok()) return keys.status();
  std::vector<bool> is_there(static_cast<std::size_t>(who.size));
  for (const std::string& each : *keys) {
    const auto rank = last_number(each);
    if (rank && *rank < who.size) is_there[static_cast<std::size_t>(*rank)] = true;
  }
  std::vector<int> ranks;
  for (int rank = 0; rank < who.size; ++rank) {
    if (!is_there[static_cast<std::size_t>(rank)]) ranks.push_back(rank);
  }
  return ranks;
}

std::string list_ranks(const std::vector<int>& sorted) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t end = i + 1;
    while (end < sorted.size() && sorted[end] == sorted[end - 1] + 1) ++end;
    if (end - i > 2) {
      parts.push_back(fmt::format("{}-{}", sorted[i], sorted[end - 1]));
    } else {
      for (std::size_t j = i; j < end; ++j) parts.push_back(fmt::format("{}", sorted[j]));
    }
    i = end;
  }
  return cut(joined(parts, ", "), limits::rank_list_bytes_max);
}

}  // namespace hocket::world
