#include "base/clock.hpp"

#include <algorithm>
#include <ctime>

namespace hocket {
namespace {

class MonotonicClock final : public Clock {
 public:
  [[nodiscard]] Instant now() const noexcept override { return std::chrono::steady_clock::now(); }
};

}  // namespace

const Clock& monotonic_clock() noexcept {
  static const MonotonicClock clock;
  return clock;
}

Deadline Deadline::after(Instant now, Duration timeout) noexcept {
  if (timeout > Instant::max() - now) return never();
  return Deadline(now + std::max(timeout, Duration::zero()));
}

Duration Deadline::remaining(Instant now) const noexcept {
  if (is_never()) return Duration::max();
  return passed(now) ? Duration::zero() : at_ - now;
}

Deadline Deadline::or_sooner(Deadline other) const noexcept {
  return Deadline(std::min(at_, other.at_));
}

std::int64_t universal_time() noexcept {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<Duration>(since_1970).count();
}

TimeOfDay local_time_of_day() noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  localtime_r(&now.tv_sec, &parts);
  return {parts.tm_hour, parts.tm_min, parts.tm_sec, static_cast<int>(now.tv_nsec / 1'000'000)};
}

}  // namespace hocket
