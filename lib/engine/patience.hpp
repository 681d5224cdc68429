// How long to look again and again for what one waits for, before one sleeps.
//
// Where both ends run, a message takes a few microseconds, and to be woken takes as long as many of
// them: so one looks. But where looking is in vain, it only takes time from others: what comes may
// take far longer than that, or who sends it may need this very processor, because other programs
// run on the others. So a rank that had to sleep a few times running looks briefly from then on.
// Now and then it looks for long even so: two ranks that each sleep while the other wakes up would
// never find out that they need not.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/clock.hpp"

namespace hocket::engine {

/// Of a leader, for anything to move.
struct Wait {
  Instant begin = {};
  Instant last_look = {};  // before it slept
  std::uint32_t looks = 0;
  bool slept = false;

  /// Where ranks take turns on a processor: whether it was long, and the turns of the others short,
  /// so that none of them had work.
  [[nodiscard]] constexpr bool was_idle() const noexcept {
    constexpr Duration working_turn = std::chrono::microseconds(10);
    constexpr Duration worth_looking = std::chrono::microseconds(100);
    const Duration looked = last_look - begin;
    return (slept || looked > worth_looking) && looked < working_turn * looks;
  }
};

class Patience {
 public:
  explicit constexpr Patience(Duration most) noexcept : most_(most) {}

  [[nodiscard]] constexpr Duration before_sleep() const noexcept {
    return looks_long() ? most_ : std::min(most_, brief);
  }
  /// After a wait.
  constexpr void note(bool was_in_vain) noexcept {
    in_vain_ = !was_in_vain && looks_long() ? 0 : in_vain_ + 1;
  }

 private:
  static constexpr Duration brief = std::chrono::microseconds(5);
  static constexpr std::uint32_t in_vain_max = 3;
  static constexpr std::uint32_t now_and_then = 32;

  [[nodiscard]] constexpr bool looks_long() const noexcept {
    return in_vain_ < in_vain_max || in_vain_ % now_and_then == 0;
  }

  Duration most_;
  std::uint32_t in_vain_ = 0;  // waits since looking for long has last been worth it
};

}  // namespace hocket::engine
