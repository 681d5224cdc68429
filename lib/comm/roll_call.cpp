#include "comm/roll_call.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"

namespace hocket::comm {
namespace {

using namespace std::chrono_literals;

/// Between two looks for a loss.
constexpr Duration look_pause = 100ms;
/// For the store to do what needs no waiting.
constexpr Duration store_patience = 5s;
/// The verdict where nobody is missing; any other is the first that is, a space, and the words.
constexpr std::string_view all = "all";

struct Keys {
  explicit Keys(const std::string& prefix)
      : came(prefix + "came"),
        count(prefix + "count"),
        verdict(prefix + "verdict"),
        left(prefix + "left") {}

  std::string came;     // the ranks that have, each with a space behind it
  std::string count;    // of them
  std::string verdict;  // the first to be written holds
  std::string left;     // how many ranks know the verdict
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

/// Writes it unless there is one. The one that holds.
Result<std::string> decide(const RollCall& call, const Keys& keys, std::string_view verdict) {
  auto swap = call.store.compare_set(keys.verdict, "", verdict, store_patience);
  if (!swap.ok()) return swap.status();
  return swap->is_set ? std::string(verdict) : swap->value.value_or("");
}

/// The time is over.
Result<std::string> decide_who_is_missing(const RollCall& call, const Keys& keys) {
  const auto came = call.store.get(keys.came, Duration::zero());
  if (!came.ok()) return came.status();
  const std::vector<int> ranks = missing(*came, call.place.size);
  if (ranks.empty()) return decide(call, keys, all);
  const std::string words = fmt::format("{} of {} ranks {} not come within {}: {}", ranks.size(),
                                        call.place.size, ranks.size() == 1 ? "has" : "have",
                                        format_duration(call.timeout), call.list(ranks));
  return decide(call, keys, fmt::format("{} {}", ranks.front(), words));
}

Result<std::string> find_verdict(const RollCall& call, const Keys& keys) {
  const Deadline deadline = Deadline::after(monotonic_clock(), call.timeout);
  if (Status status =
          call.store.append(keys.came, fmt::format("{} ", call.place.rank), store_patience);
      !status.ok()) {
    return status;
  }
  const auto count = call.store.add(keys.count, 1, store_patience);
  if (!count.ok()) return count.status();
  if (*count == call.place.size) return decide(call, keys, all);
  for (;;) {
    const Duration left = deadline.remaining(monotonic_clock().now());
    auto verdict = call.store.get(keys.verdict, std::min(left, look_pause));
    if (verdict.ok() || verdict.status().code() != StatusCode::timeout) return verdict;
    if (Status loss = call.loss(); !loss.ok()) return loss;
    if (left <= Duration::zero()) return decide_who_is_missing(call, keys);
  }
}

/// The last one to know the verdict leaves nothing behind.
void leave(const RollCall& call, const Keys& keys) {
  const auto left = call.store.add(keys.left, 1, store_patience);
  if (!left.ok() || *left != call.place.size) return;
  for (const std::string* key : {&keys.came, &keys.count, &keys.verdict, &keys.left}) {
    static_cast<void>(call.store.delete_key(*key));
  }
}

}  // namespace

Status call_roll(const RollCall& call) {
  const Keys keys(call.keys);
  const auto verdict = find_verdict(call, keys);
  if (!verdict.ok()) return verdict.status();
  leave(call, keys);
  if (*verdict == all) return {};
  std::string_view words = *verdict;
  const auto first = parse_integer(take_until(words, " "));
  return Status(StatusCode::timeout, std::string(words))
      .with_peer(static_cast<int>(first.value_or(-1)))
      .with_hint("see what these ranks do; the communicator goes on without this barrier");
}

}  // namespace hocket::comm
