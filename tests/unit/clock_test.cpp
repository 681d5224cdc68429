#include "base/clock.hpp"

#include <cstdio>

#include "support/catch.hpp"
#include "support/manual_clock.hpp"

using namespace std::chrono_literals;
using hocket::Deadline;
using hocket::Duration;
using hocket::Instant;
using hocket::testing::ManualClock;

TEST_CASE("the monotonic clock never goes back") {
  const hocket::Clock& clock = hocket::monotonic_clock();
  REQUIRE(&clock == &hocket::monotonic_clock());
  Instant last = clock.now();
  for (int i = 0; i < 1000; ++i) {
    const Instant now = clock.now();
    REQUIRE(now >= last);
    last = now;
  }
}

TEST_CASE("the monotonic clock runs") {
  const hocket::Clock& clock = hocket::monotonic_clock();
  const Instant first = clock.now();
  long looks = 0;
  while (clock.now() == first && looks < 100'000'000) ++looks;
  REQUIRE(clock.now() > first);
}

TEST_CASE("a deadline passes at its instant, not before") {
  ManualClock clock;
  const Deadline deadline = Deadline::after(clock, 10ms);
  REQUIRE(deadline.at() == clock.now() + 10ms);
  REQUIRE_FALSE(deadline.is_never());
  REQUIRE_FALSE(deadline.passed(clock.now()));
  REQUIRE(deadline.remaining(clock.now()) == 10ms);

  clock.advance(10ms - 1ns);
  REQUIRE_FALSE(deadline.passed(clock.now()));
  REQUIRE(deadline.remaining(clock.now()) == 1ns);

  clock.advance(1ns);
  REQUIRE(deadline.passed(clock.now()));
  REQUIRE(deadline.remaining(clock.now()) == 0ns);

  clock.advance(1h);
  REQUIRE(deadline.passed(clock.now()));
  REQUIRE(deadline.remaining(clock.now()) == 0ns);
}

TEST_CASE("a timeout of zero or less has passed already") {
  const ManualClock clock;
  for (const Duration timeout : {Duration(0), Duration(-1), Duration(-5h), Duration::min()}) {
    const Deadline deadline = Deadline::after(clock, timeout);
    REQUIRE(deadline.passed(clock.now()));
    REQUIRE(deadline.remaining(clock.now()) == 0ns);
  }
}

TEST_CASE("a deadline in the most distant past leaves nothing") {
  const Deadline deadline(Instant::min());
  for (const Instant now : {Instant::min(), Instant(), Instant(1ns), Instant::max()}) {
    REQUIRE(deadline.passed(now));
    REQUIRE(deadline.remaining(now) == 0ns);
  }
}

TEST_CASE("never does not pass") {
  for (const Deadline never : {Deadline(), Deadline::never(), Deadline(Instant::max())}) {
    REQUIRE(never.is_never());
    REQUIRE_FALSE(never.passed(Instant::max()));
    REQUIRE(never.remaining(Instant::max()) == Duration::max());
  }
}

TEST_CASE("a timeout too long to add never passes") {
  const ManualClock clock;
  const Duration longest = Instant::max() - clock.now();
  REQUIRE(Deadline::after(clock, Duration::max()).is_never());
  REQUIRE(Deadline::after(clock, longest + 1ns).is_never());
  REQUIRE(Deadline::after(clock, longest).is_never());
  REQUIRE_FALSE(Deadline::after(clock, longest - 1ns).is_never());
}

TEST_CASE("or_sooner takes the sooner deadline") {
  const Deadline soon(Instant(1s));
  const Deadline late(Instant(2s));
  REQUIRE(soon.or_sooner(late).at() == soon.at());
  REQUIRE(late.or_sooner(soon).at() == soon.at());
  REQUIRE(Deadline::never().or_sooner(late).at() == late.at());
  REQUIRE(late.or_sooner(Deadline::never()).at() == late.at());
  REQUIRE(Deadline::never().or_sooner(Deadline::never()).is_never());
}

TEST_CASE("the time of day is the one that others see") {
  FILE* const date = popen("date '+%H %M %S'", "r");
  REQUIRE(date != nullptr);
  int hours = 0;
  int minutes = 0;
  int seconds = 0;
  const int read = std::fscanf(date, "%d %d %d", &hours, &minutes, &seconds);
  pclose(date);
  REQUIRE(read == 3);
  const hocket::TimeOfDay now = hocket::local_time_of_day();
  constexpr int day = 24 * 3600;
  const int ours = (now.hours * 60 + now.minutes) * 60 + now.seconds;
  const int theirs = (hours * 60 + minutes) * 60 + seconds;
  REQUIRE((ours - theirs + day) % day <= 5);
  REQUIRE((now.hours >= 0 && now.hours < 24));
  REQUIRE((now.minutes >= 0 && now.minutes < 60));
  REQUIRE((now.seconds >= 0 && now.seconds <= 60));
  REQUIRE((now.milliseconds >= 0 && now.milliseconds < 1000));
}
