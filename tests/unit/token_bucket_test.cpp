#include "net/token_bucket.hpp"

#include <chrono>

#include "support/catch.hpp"
#include "support/manual_clock.hpp"

using namespace std::chrono_literals;
using hocket::TokenBucket;
using hocket::testing::ManualClock;

namespace {

int take_all(TokenBucket& bucket, const ManualClock& clock) {
  int taken = 0;
  while (bucket.take(clock.now())) ++taken;
  return taken;
}

}  // namespace

TEST_CASE("a bucket is full at first, and again after a long time") {
  ManualClock clock;
  TokenBucket bucket(10, 100);
  REQUIRE(bucket.is_full(clock.now()));
  REQUIRE(take_all(bucket, clock) == 10);
  REQUIRE_FALSE(bucket.is_full(clock.now()));
  clock.advance(24h);
  REQUIRE(bucket.is_full(clock.now()));
  REQUIRE(take_all(bucket, clock) == 10);
}

TEST_CASE("tokens come one by one, and no time is lost between looks") {
  ManualClock clock;
  TokenBucket bucket(10, 100);
  REQUIRE(take_all(bucket, clock) == 10);
  clock.advance(9ms);
  REQUIRE(take_all(bucket, clock) == 0);
  clock.advance(1ms);
  REQUIRE(take_all(bucket, clock) == 1);
  int taken = 0;
  for (int i = 0; i < 1000; ++i) {
    clock.advance(3ms);
    taken += take_all(bucket, clock);
  }
  REQUIRE(taken == 300);
}

TEST_CASE("a flood gets its first burst, and then the rate") {
  ManualClock clock;
  TokenBucket bucket(128, 128);
  int taken = 0;
  for (int ms = 0; ms < 10'000; ++ms) {
    taken += take_all(bucket, clock);
    clock.advance(1ms);
  }
  REQUIRE(taken >= 128 + 1270);
  REQUIRE(taken <= 128 + 1280);
}

TEST_CASE("what is given back counts at once, and never beyond the capacity") {
  ManualClock clock;
  TokenBucket bucket(2, 1);
  REQUIRE(bucket.take(clock.now()));
  bucket.give_back();
  bucket.give_back();
  REQUIRE(take_all(bucket, clock) == 2);
  bucket.give_back();
  REQUIRE(take_all(bucket, clock) == 1);
}

TEST_CASE("a bucket says when there will be so many") {
  ManualClock clock;
  TokenBucket bucket(32, 128);
  REQUIRE(bucket.when(16, clock.now()) == clock.now());
  REQUIRE(take_all(bucket, clock) == 32);
  const auto then = bucket.when(16, clock.now());
  REQUIRE(then == clock.now() + 125ms);
  clock.advance(then - clock.now() - 1ns);
  REQUIRE(take_all(bucket, clock) == 15);
  clock.advance(1ns);
  REQUIRE(take_all(bucket, clock) == 1);
}
