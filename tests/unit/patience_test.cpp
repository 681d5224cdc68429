#include "engine/patience.hpp"

#include <cstdint>

#include "support/catch.hpp"

using namespace hocket;
using namespace hocket::engine;
using namespace std::chrono_literals;

namespace {

/// Waits in each of which one has to sleep.
void sleep(Patience& patience, int times) {
  for (int i = 0; i < times; ++i) patience.note(true);
}

}  // namespace

TEST_CASE("who had to sleep three times running looks briefly") {
  Patience patience(100us);
  sleep(patience, 2);
  CHECK(patience.before_sleep() == 100us);
  patience.note(false);
  sleep(patience, 2);
  CHECK(patience.before_sleep() == 100us);
  sleep(patience, 1);
  CHECK(patience.before_sleep() == 5us);
}

TEST_CASE("now and then one looks for long, and goes on with it where that was worth it") {
  Patience patience(100us);
  sleep(patience, 31);
  CHECK(patience.before_sleep() == 5us);
  sleep(patience, 1);
  CHECK(patience.before_sleep() == 100us);
  sleep(patience, 1);
  CHECK(patience.before_sleep() == 5us);
  sleep(patience, 31);
  CHECK(patience.before_sleep() == 100us);
  patience.note(false);
  CHECK(patience.before_sleep() == 100us);
}

TEST_CASE("what came while one looked briefly says nothing of looking for long") {
  Patience patience(100us);
  sleep(patience, 3);
  for (int i = 0; i < 28; ++i) patience.note(false);
  CHECK(patience.before_sleep() == 5us);
  patience.note(false);
  CHECK(patience.before_sleep() == 100us);
}

TEST_CASE("nobody looks for longer than told") {
  Patience patience(2us);
  sleep(patience, 5);
  CHECK(patience.before_sleep() == 2us);
}

TEST_CASE("a wait was idle if it was long and the turns of others short") {
  const auto is_idle = [](Duration looked, std::uint32_t looks, bool slept) {
    return Wait{.last_look = Instant() + looked, .looks = looks, .slept = slept}.was_idle();
  };
  CHECK(is_idle(200us, 100, false));
  CHECK_FALSE(is_idle(50us, 25, false));  // it was short
  CHECK(is_idle(5us, 3, true));           // and would have been longer
  CHECK_FALSE(is_idle(200us, 4, false));  // others have work
  CHECK_FALSE(is_idle(50us, 2, true));
}
