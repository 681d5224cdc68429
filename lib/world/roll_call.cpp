#include "world/roll_call.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/exception.hpp"
#include "base/text.hpp"

namespace hocket::world {
namespace {

using namespace std::chrono_literals;

/// How often to check whether the communicator has failed.
constexpr Duration look_pause = 100ms;
/// For a request that the store answers at once, before the next look.
constexpr Duration request_patience = 1s;
/// Behind the timeout: for the verdict to be read or written.
constexpr Duration verdict_patience = 5s;
/// Between attempts to withdraw, while there is no memory.
constexpr Duration memory_pause = 1ms;
/// For all ranks, which have come, to read the verdict.
constexpr Duration farewell_patience = 2s;
// The verdict is one of these words and what is said below, with spaces between.
constexpr std::string_view all_have_come = "all";         // what is granted
constexpr std::string_view some_are_missing = "missing";  // the lowest of them, the error's text
constexpr std::string_view two_disagree = "disagree";     // both of them, the error's text
constexpr std::string_view one_has_failed = "failed";     // that one, the error's text

struct Keys {
  explicit Keys(const std::string& prefix)
      : came(prefix + "came"),
        verdict(prefix + "verdict"),
        left(prefix + "left"),
        all_left(prefix + "all_left") {}

  std::string came;      // of each rank that has come: the rank, ":", its card and a space
  std::string verdict;   // the first one written counts
  std::string left;      // how many ranks have read the verdict
  std::string all_left;  // set when all have, if rank 0 waits for that
};

/// The ranks that have come.
class Attendance {
 public:
  Attendance(std::string_view came, std::uint32_t size) : cards_(size) {
    while (!came.empty()) {
      std::string_view entry = hocket::take_until(came, " ");
      const auto rank = parse_integer(hocket::take_until(entry, ":"));
      if (rank && *rank >= 0 && *rank < size) cards_[static_cast<std::size_t>(*rank)] = entry;
    }
  }

  [[nodiscard]] std::vector<int> missing() const {
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < cards_.size(); ++rank) {
      if (!cards_[rank]) ranks.push_back(static_cast<int>(rank));
    }
    return ranks;
  }
  /// The first two that say different things; nothing if there are none.
  [[nodiscard]] std::vector<int> at_odds() const {
    const auto is_there = [](const auto& card) { return card.has_value(); };
    const auto first = std::ranges::find_if(cards_, is_there);
    const auto other = std::find_if(first, cards_.end(),
                                    [&](const auto& card) { return card && *card != **first; });
    if (other == cards_.end()) return {};
    return {static_cast<int>(first - cards_.begin()), static_cast<int>(other - cards_.begin())};
  }

 private:
  std::vector<std::optional<std::string_view>> cards_;
};

/// Makes a request that may be made twice until the store answers, the communicator fails, or the
/// deadline passes. Never fails with `timeout`, which is the code of the verdict.
template <class Request>
std::invoke_result_t<Request, Duration> insist(const RollCall& call, Deadline deadline,
                                               const Request& request) {
  for (;;) {
    auto answer = request(request_patience);
    if (answer.ok()) return answer;
    const Status status = answer.status();
    if (status.code() != StatusCode::timeout) return answer;
    if (Status loss = call.loss(); !loss.ok()) return loss;
    if (!deadline.passed(monotonic_clock().now())) continue;
    return Status(StatusCode::system_error, std::string(status.what()))
        .with_hint(
            "see whether the process that serves the store, rank 0 or the launcher, is stopped");
  }
}

/// Writes the verdict unless there is one already. Returns the verdict that counts.
Result<std::string> decide(const RollCall& call, const Keys& keys, Deadline deadline,
                           std::string_view verdict) {
  auto swap = insist(call, deadline, [&](Duration patience) {
    return call.store.compare_set(keys.verdict, "", verdict, patience);
  });
  if (!swap.ok()) return swap.status();
  return swap->is_set ? std::string(verdict) : swap->value.value_or("");
}

/// What can be said of those that have come. Nothing if others are waited for.
Result<std::optional<std::string>> verdict_on(const RollCall& call, const Attendance& attendance,
                                              Deadline deadline, bool is_time_over) {
  if (const std::vector<int> two = attendance.at_odds(); !two.empty()) {
    return std::optional(fmt::format("{} {} {} {} {}", two_disagree, two[0], two[1], call.list(two),
                                     call.disagreement));
  }
  const std::vector<int> missing = attendance.missing();
  if (missing.empty()) {
    const auto granted = insist(call, deadline, call.grant);
    if (!granted.ok()) return granted.status();
    return std::optional(fmt::format("{} {}", all_have_come, *granted));
  }
  if (!is_time_over) return std::optional<std::string>();
  const std::string words = fmt::format(
      "{} of {} ranks of the communicator {} not come within {}: {}", missing.size(), call.size,
      missing.size() == 1 ? "has" : "have", format_duration(call.timeout), call.list(missing));
  return std::optional(fmt::format("{} {} {}", some_are_missing, missing.front(), words));
}

/// Decides if that can be done: the verdict that counts, or nothing.
Result<std::optional<std::string>> try_to_decide(const RollCall& call, const Keys& keys,
                                                 Deadline deadline, bool is_time_over) {
  const auto came = insist(call, deadline,
                           [&](Duration patience) { return call.store.get(keys.came, patience); });
  if (!came.ok()) return came.status();
  auto verdict = verdict_on(call, Attendance(*came, call.size), deadline, is_time_over);
  if (!verdict.ok() || !*verdict) return verdict;
  auto counts = decide(call, keys, deadline, **verdict);
  return counts.ok() ? std::optional(std::move(*counts))
                     : Result<std::optional<std::string>>(counts.status());
}

Result<std::string> find_verdict(const RollCall& call, const Keys& keys) {
  const Deadline deadline = Deadline::after(monotonic_clock(), call.timeout);
  const std::string entry = fmt::format("{}:{} ", call.rank, call.card);
  const auto told = insist(call, deadline, [&](Duration patience) -> Result<bool> {
    const Status status = call.store.append(keys.came, entry, patience);
    return status.ok() ? Result<bool>(true) : status;
  });
  if (!told.ok()) return told.status();
  // A decision that has begun is not given up for want of time.
  const Duration patience = std::max(deadline.remaining(monotonic_clock().now()), verdict_patience);
  auto decided = try_to_decide(call, keys, Deadline::after(monotonic_clock(), patience), false);
  while (decided.ok() && !*decided) {
    const Duration left = deadline.remaining(monotonic_clock().now());
    auto verdict = call.store.get(keys.verdict, std::min(left, look_pause));
    if (verdict.ok() || verdict.status().code() != StatusCode::timeout) return verdict;
    if (Status loss = call.loss(); !loss.ok()) return loss;
    if (left > Duration::zero()) continue;
    decided = try_to_decide(call, keys, Deadline::after(monotonic_clock(), verdict_patience), true);
  }
  if (!decided.ok()) return decided.status();
  return std::move(**decided);
}

/// In a binding meeting, a rank that fails by itself tells the others; or it goes on with them, if
/// they have decided by then.
Result<std::string> find_verdict_or_withdraw(const RollCall& call, const Keys& keys) {
  const int own[] = {static_cast<int>(call.rank)};
  std::string withdrawal;  // made now, because memory may be short later
  if (call.is_binding) {
    const std::string words = fmt::format("{} could not take part", call.list(own));
    withdrawal = fmt::format("{} {} {}", one_has_failed, own[0], words);
  }
  Status why;
  try {
    auto verdict = find_verdict(call, keys);
    if (verdict.ok()) return verdict;
    why = verdict.status();
  } catch (...) {
    why = status_of_exception();
  }
  // Of a loss the others hear, too.
  if (!call.is_binding || !call.loss().ok()) return why;
  const Deadline deadline = Deadline::after(monotonic_clock(), verdict_patience);
  while (!deadline.passed(monotonic_clock().now())) {
    try {
      auto counts = decide(call, keys, deadline, withdrawal);
      return counts.ok() && *counts != withdrawal ? counts : Result<std::string>(why);
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(memory_pause);
    }
  }
  return why;
}

void delete_all(const RollCall& call, const Keys& keys) {
  for (const std::string* key : {&keys.came, &keys.verdict, &keys.left, &keys.all_left}) {
    if (!call.store.delete_key(*key, request_patience).ok()) return;
  }
}

/// The last rank to read the verdict deletes the meeting's keys; or rank 0 does, where it waits for
/// that.
void leave(const RollCall& call, const Keys& keys, bool have_all_come) {
  const auto left = call.store.add(keys.left, 1, request_patience);
  if (!left.ok()) return;
  const bool is_last = *left == call.size;
  const bool rank_0_waits = !call.is_binding && have_all_come;
  if (is_last && (call.rank == 0 || !rank_0_waits)) return delete_all(call, keys);
  if (is_last) {
    static_cast<void>(call.store.set(keys.all_left, ""));
  } else if (call.rank == 0 && rank_0_waits) {
    static_cast<void>(call.store.wait({keys.all_left}, farewell_patience));
    delete_all(call, keys);
  }
}

/// A number and a space, which are cut off.
int take_rank(std::string_view& text) {
  return static_cast<int>(parse_integer(hocket::take_until(text, " ")).value_or(-1));
}

}  // namespace

Result<std::string> call_roll(const RollCall& call) {
  const Keys keys(call.keys);
  const auto verdict = find_verdict_or_withdraw(call, keys);
  if (!verdict.ok()) return verdict.status();
  std::string_view rest = *verdict;
  const std::string_view word = hocket::take_until(rest, " ");
  static_cast<void>(described([&] {
    leave(call, keys, word == all_have_come);
    return Status();
  }));
  if (word == all_have_come) return std::string(rest);
  const int rank = take_rank(rest);
  if (word == one_has_failed) {
    return Status(StatusCode::aborted, std::string(rest))
        .with_peer(rank)
        .with_hint("see the error of that rank; then let all ranks call it again");
  }
  if (word == two_disagree) {
    const int other = take_rank(rest);
    const bool is_own = static_cast<int>(call.rank) == rank;
    return Status(StatusCode::mismatch, std::string(rest)).with_peer(is_own ? other : rank);
  }
  return Status(StatusCode::timeout, std::string(rest))
      .with_peer(rank)
      .with_hint("check what the named ranks are doing; the communicator can still be used");
}

}  // namespace hocket::world
