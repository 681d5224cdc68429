#include "comm/roll_call.hpp"

#include <chrono>
#include <cstdint>
#include <future>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "store/hash_store.hpp"
#include "support/catch.hpp"

namespace hocket::comm::testing {
namespace {

using namespace std::chrono_literals;

constexpr auto soon = 10ms;
constexpr auto long_time = 100s;

class Hall {
 public:
  /// On a thread of its own.
  std::future<Status> call(std::uint32_t rank, Duration timeout, Status loss = {}) {
    return std::async(std::launch::async, [this, rank, timeout, loss] {
      return call_roll({.store = store_,
                        .keys = "roll/1/",
                        .place = {.rank = rank, .size = 4},
                        .timeout = timeout,
                        .list =
                            [](std::span<const int> ranks) {
                              return fmt::format("{}", fmt::join(ranks, " and "));
                            },
                        .loss = [loss] { return loss; }});
    });
  }
  std::int64_t keys_left() { return store_.num_keys().value(); }

 private:
  store::HashStore store_;
};

TEST_CASE("all come, and leave nothing behind") {
  Hall hall;
  for (int round = 0; round < 3; ++round) {
    std::vector<std::future<Status>> ranks;
    for (std::uint32_t rank = 0; rank < 4; ++rank) ranks.push_back(hall.call(rank, long_time));
    for (auto& rank : ranks) CHECK(rank.get().to_string() == "ok");
    CHECK(hall.keys_left() == 0);
  }
}

TEST_CASE("all are told in the same words who is missing, latecomers too") {
  Hall hall;
  auto patient = hall.call(2, long_time);
  const Status first = hall.call(0, soon).get();
  CHECK(first.code() == StatusCode::timeout);
  CHECK(first.peer() == 1);
  CHECK(first.what() == "2 of 4 ranks have not come within 10ms: 1 and 3");
  CHECK(patient.get().what() == first.what());
  CHECK(hall.call(1, long_time).get().what() == first.what());
  CHECK(hall.keys_left() > 0);
  CHECK(hall.call(3, long_time).get().what() == first.what());
  CHECK(hall.keys_left() == 0);
}

TEST_CASE("without time a barrier only looks") {
  Hall hall;
  CHECK(hall.call(3, 0s).get().what() == "3 of 4 ranks have not come within 0s: 0 and 1 and 2");
}

TEST_CASE("a loss ends the waiting, of this rank alone") {
  Hall hall;
  auto other = hall.call(1, 2s);
  const Status lost = hall.call(0, long_time, Status(StatusCode::peer_lost, "gone")).get();
  CHECK(lost.what() == "gone");
  CHECK(other.get().what() == "2 of 4 ranks have not come within 2s: 2 and 3");
}

}  // namespace
}  // namespace hocket::comm::testing
