// The functions of Store that a program's store need not override.
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "hocket/store.hpp"

#include "base/clock.hpp"
#include "base/text.hpp"

namespace hocket::inline v1 {
namespace {

constexpr auto append_pause = std::chrono::microseconds(100);

/// Counts down a call's timeout.
class TimeLeft {
 public:
  explicit TimeLeft(Duration timeout) : deadline_(Deadline::after(monotonic_clock(), timeout)) {}
  [[nodiscard]] Duration operator()() const { return deadline_.remaining(monotonic_clock().now()); }

 private:
  Deadline deadline_;
};

[[noreturn]] void refuse(std::string_view function) {
  throw_error(Status(StatusCode::unsupported,
                     fmt::format("{}: the program's store does not support it", function)));
}

}  // namespace

Store::~Store() = default;

void Store::append(std::string_view key, std::string_view more, TimeLimit timeout) {
  const TimeLeft left(timeout.value_or(this->timeout()));
  std::string expected;
  for (int attempt = 1;; ++attempt) {
    const Swap swap = compare_set(key, expected, expected + std::string(more), left());
    if (swap.is_set) return;
    expected = swap.value.value_or("");
    if (attempt == 1) continue;  // now the value is known
    if (left() <= Duration::zero()) {
      throw_error(Status(StatusCode::timeout, "append: others kept changing the value"));
    }
    std::this_thread::sleep_for(append_pause);
  }
}

void Store::multi_set(std::span<const std::string> keys, std::span<const std::string> values,
                      TimeLimit timeout) {
  if (keys.size() != values.size()) {
    throw_error(Status(StatusCode::invalid_argument, fmt::format("multi_set: {} keys and {} values",
                                                                 keys.size(), values.size())));
  }
  const TimeLeft left(timeout.value_or(this->timeout()));
  for (std::size_t i = 0; i < keys.size(); ++i) set(keys[i], values[i], left());
}

std::vector<std::string> Store::multi_get(std::span<const std::string> keys, TimeLimit timeout) {
  const TimeLeft left(timeout.value_or(this->timeout()));
  std::vector<std::string> values;
  for (const std::string& each : keys) {
    const Duration time = left();
    const bool is_late = time <= Duration::zero() && !values.empty();  // for some, zero is no limit
    if (is_late && !check(std::span(&each, 1))) {
      throw_error(Status(StatusCode::timeout, fmt::format("multi_get: no key {}", quote(each))));
    }
    values.push_back(is_late ? get(each) : get(each, time));
  }
  return values;
}

void Store::barrier(std::string_view name, std::int64_t size, TimeLimit timeout) {
  if (size < 1) {
    throw_error(Status(StatusCode::invalid_argument, "barrier: the size must be at least 1"));
  }
  const TimeLeft left(timeout.value_or(this->timeout()));
  const std::int64_t came = add(fmt::format("{}/came", name), 1, left());
  const std::string round = fmt::format("{}/round {}", name, (came - 1) / size);
  if (came % size == 0) return set(round, "", left());
  wait(std::span(&round, 1), left());
}

std::int64_t Store::num_keys(TimeLimit /*timeout*/) { refuse("num_keys"); }
std::vector<std::string> Store::keys(std::string_view /*prefix*/, TimeLimit /*timeout*/) {
  refuse("keys");
}
void Store::queue_push(std::string_view /*key*/, std::string_view /*value*/,
                       TimeLimit /*timeout*/) {
  refuse("queue_push");
}
std::string Store::queue_pop(std::string_view /*key*/, TimeLimit /*timeout*/) {
  refuse("queue_pop");
}
std::int64_t Store::queue_length(std::string_view /*key*/, TimeLimit /*timeout*/) {
  refuse("queue_length");
}

std::string Store::describe() const { return "the program's store"; }

void Store::set_timeout(std::chrono::nanoseconds timeout) noexcept {
  timeout_ns_ = timeout.count();
}

std::chrono::nanoseconds Store::timeout() const noexcept {
  return std::chrono::nanoseconds(timeout_ns_);
}

}  // namespace hocket::inline v1
