#include "comm/roll_call.hpp"

#include <algorithm>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"

namespace hocket::comm {
namespace {

using namespace std::chrono_literals;

/// How often to check whether the communicator has failed.
constexpr Duration look_pause = 100ms;
/// For a request that the store answers at once, before the next look.
constexpr Duration request_patience = 1s;
/// Behind the timeout: for the verdict to be read or written.
constexpr Duration verdict_patience = 5s;
/// For all ranks, which have come, to read the verdict.
constexpr Duration farewell_patience = 2s;
/// The verdict if nobody is missing. Otherwise it is the lowest missing rank, a space and the
/// error's text.
constexpr std::string_view nobody_missing = "all";

struct Keys {
  explicit Keys(const std::string& prefix)
      : came(prefix + "came"),
        verdict(prefix + "verdict"),
        left(prefix + "left"),
        all_left(prefix + "all_left") {}

  std::string came;      // the ranks that have come, each followed by a space
  std::string verdict;   // the first one written counts
  std::string left;      // how many ranks have read the verdict
  std::string all_left;  // set when all have, if rank 0 waits for that
};

std::vector<int> missing(std::string_view came, std::uint32_t size) {
  std::vector<bool> is_there(size);
  while (!came.empty()) {
    const auto rank = parse_integer(take_until(came, " "));
    if (rank && *rank >= 0 && *rank < size) is_there[static_cast<std::size_t>(*rank)] = true;
  }
  std::vector<int> ranks;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    if (!is_there[rank]) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

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

Result<std::vector<int>> missing_ranks(const RollCall& call, const Keys& keys, Deadline deadline) {
  const auto came = insist(call, deadline,
                           [&](Duration patience) { return call.store.get(keys.came, patience); });
  if (!came.ok()) return came.status();
  return missing(*came, call.place.size);
}

/// After the timeout: decides who is missing.
Result<std::string> decide_who_is_missing(const RollCall& call, const Keys& keys) {
  const Deadline deadline = Deadline::after(monotonic_clock(), verdict_patience);
  const auto ranks = missing_ranks(call, keys, deadline);
  if (!ranks.ok()) return ranks.status();
  if (ranks->empty()) return decide(call, keys, deadline, nobody_missing);
  const std::string words =
      fmt::format("{} of {} ranks of the communicator {} not come within {}: {}", ranks->size(),
                  call.place.size, ranks->size() == 1 ? "has" : "have",
                  format_duration(call.timeout), call.list(*ranks));
  return decide(call, keys, deadline, fmt::format("{} {}", ranks->front(), words));
}

Result<std::string> find_verdict(const RollCall& call, const Keys& keys) {
  const Deadline deadline = Deadline::after(monotonic_clock(), call.timeout);
  const std::string name = fmt::format("{} ", call.place.rank);
  const auto told = insist(call, deadline, [&](Duration patience) -> Result<bool> {
    const Status status = call.store.append(keys.came, name, patience);
    return status.ok() ? Result<bool>(true) : status;
  });
  if (!told.ok()) return told.status();
  const auto ranks = missing_ranks(call, keys, deadline);
  if (!ranks.ok()) return ranks.status();
  if (ranks->empty()) return decide(call, keys, deadline, nobody_missing);
  for (;;) {
    const Duration left = deadline.remaining(monotonic_clock().now());
    auto verdict = call.store.get(keys.verdict, std::min(left, look_pause));
    if (verdict.ok() || verdict.status().code() != StatusCode::timeout) return verdict;
    if (Status loss = call.loss(); !loss.ok()) return loss;
    if (left <= Duration::zero()) return decide_who_is_missing(call, keys);
  }
}

void delete_all(const RollCall& call, const Keys& keys) {
  for (const std::string* key : {&keys.came, &keys.verdict, &keys.left, &keys.all_left}) {
    if (!call.store.delete_key(*key, request_patience).ok()) return;
  }
}

/// The last rank to read the verdict deletes the barrier's keys. Where all have come, rank 0 does,
/// and waits for it: it may be the one that serves the store, and end behind the barrier.
void leave(const RollCall& call, const Keys& keys, bool all_have_come) {
  const auto left = call.store.add(keys.left, 1, request_patience);
  if (!left.ok()) return;
  const bool is_last = *left == call.place.size;
  if (is_last && (call.place.rank == 0 || !all_have_come)) return delete_all(call, keys);
  if (is_last) {
    static_cast<void>(call.store.set(keys.all_left, ""));
  } else if (call.place.rank == 0 && all_have_come) {
    static_cast<void>(call.store.wait({keys.all_left}, farewell_patience));
    delete_all(call, keys);
  }
}

}  // namespace

Status call_roll(const RollCall& call) {
  const Keys keys(call.keys);
  const auto verdict = find_verdict(call, keys);
  if (!verdict.ok()) return verdict.status();
  const bool all_have_come = *verdict == nobody_missing;
  leave(call, keys, all_have_come);
  if (all_have_come) return {};
  std::string_view words = *verdict;
  const auto first = parse_integer(take_until(words, " "));
  return Status(StatusCode::timeout, std::string(words))
      .with_peer(static_cast<int>(first.value_or(-1)))
      .with_hint("check what the named ranks are doing; the communicator can still be used");
}

}  // namespace hocket::comm
