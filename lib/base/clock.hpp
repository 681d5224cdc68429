// Time. Whoever needs it is given a Clock, so that a simulated world can run on virtual time.
#pragma once

#include <chrono>
#include <cstdint>

namespace hocket {

using Duration = std::chrono::nanoseconds;

/// A point on a Clock's time line; it means nothing on another clock.
using Instant = std::chrono::time_point<std::chrono::steady_clock, Duration>;

class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  /// Never goes back. Any thread.
  [[nodiscard]] virtual Instant now() const noexcept = 0;
};

/// The machine's monotonic clock. Lives as long as the process.
[[nodiscard]] const Clock& monotonic_clock() noexcept;

/// The moment by which something must have happened.
class Deadline {
 public:
  /// Never passes.
  Deadline() noexcept = default;
  explicit Deadline(Instant at) noexcept : at_(at) {}

  /// `timeout` from now. A negative timeout has passed already, as zero has; one too long to add
  /// never passes.
  [[nodiscard]] static Deadline after(const Clock& clock, Duration timeout) noexcept {
    return after(clock.now(), timeout);
  }
  [[nodiscard]] static Deadline after(Instant now, Duration timeout) noexcept;
  [[nodiscard]] static Deadline never() noexcept { return {}; }

  [[nodiscard]] bool is_never() const noexcept { return at_ == Instant::max(); }
  [[nodiscard]] bool passed(Instant now) const noexcept { return !is_never() && now >= at_; }

  /// Not below zero; Duration::max() for never.
  [[nodiscard]] Duration remaining(Instant now) const noexcept;

  [[nodiscard]] Instant at() const noexcept { return at_; }

  /// The sooner of the two.
  [[nodiscard]] Deadline or_sooner(Deadline other) const noexcept;

 private:
  Instant at_ = Instant::max();
};

/// Nanoseconds since 1970, UTC: to put what different processes have noted into an order, as far as
/// the clocks of their hosts agree. Not for measuring.
[[nodiscard]] std::int64_t universal_time() noexcept;

/// The time of day, for people to read in a log: "14:03:59.123". Not for measuring.
struct TimeOfDay {
  int hours = 0;
  int minutes = 0;
  int seconds = 0;
  int milliseconds = 0;
};
[[nodiscard]] TimeOfDay local_time_of_day() noexcept;

}  // namespace hocket
