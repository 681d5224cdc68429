#include "world/roll_call.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"
#include "store/hash_store.hpp"
#include "support/catch.hpp"

namespace hocket::world::testing {
namespace {

using namespace std::chrono_literals;

constexpr auto soon = 10ms;
constexpr auto long_time = 100s;

/// A store that can be made to fail.
class Failing final : public store::Store {
 public:
  void fail(int requests, StatusCode code) {
    code_ = code;
    left_ = requests;
  }
  [[nodiscard]] Result<std::unique_ptr<Store>> clone() override { return inner_.clone(); }
  [[nodiscard]] std::string describe() const override { return "the store"; }
  [[nodiscard]] store::Reply perform(store::Request request) override {
    if (left_ > 0 && left_-- > 0) return {.status = Status(code_, "no answer")};
    return inner_.perform(std::move(request));
  }

 private:
  store::HashStore inner_;
  std::atomic<StatusCode> code_ = StatusCode::timeout;
  std::atomic<int> left_ = 0;
};

class Hall {
 public:
  /// On a thread of its own.
  std::future<Status> call(std::uint32_t rank, Duration timeout, Status loss = {}) {
    return std::async(std::launch::async, [this, rank, timeout, loss] {
      RollCall roll = roll_of(rank, timeout);
      roll.loss = [loss] { return loss; };
      return call_roll(roll).status();
    });
  }
  /// With a card.
  std::future<Result<std::string>> say(std::uint32_t rank, const std::string& card) {
    return std::async(std::launch::async, [this, rank, card] {
      RollCall roll = roll_of(rank, long_time);
      roll.card = card;
      roll.is_binding = true;
      roll.disagreement = "say different things";
      roll.grant = [this](Duration) -> Result<std::string> { return std::to_string(++granted_); };
      return call_roll(roll);
    });
  }
  /// Memory runs out when all have come; or the store fails.
  std::future<Result<std::string>> fail_alone(std::uint32_t rank, bool is_of_store) {
    return std::async(std::launch::async, [this, rank, is_of_store] {
      RollCall roll = roll_of(rank, long_time);
      roll.is_binding = true;
      roll.grant = [is_of_store](Duration) -> Result<std::string> {
        if (is_of_store) return Status(StatusCode::protocol_error, "the store fails");
        throw std::bad_alloc();
      };
      return call_roll(roll);
    });
  }
  std::int64_t keys_left() { return store_.num_keys().value(); }
  /// The store fails so many requests from now on, or answers none of them in time.
  void fail(int requests, StatusCode code) { store_.fail(requests, code); }
  /// Until that rank has said that it is there.
  void wait_for(std::uint32_t rank) {
    const std::string name = fmt::format("{}:", rank);
    while (store_.get("roll/1/came", long_time).value().find(name) == std::string::npos) {
      std::this_thread::yield();
    }
  }

 private:
  RollCall roll_of(std::uint32_t rank, Duration timeout) {
    return {.store = store_,
            .keys = "roll/1/",
            .rank = rank,
            .size = 4,
            .timeout = timeout,
            .list = [](std::span<const int> ranks) { return joined(ranks, " and "); },
            .loss = [] { return Status(); }};
  }

  Failing store_;
  std::atomic<int> granted_ = 0;
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
  hall.wait_for(2);
  const Status first = hall.call(0, soon).get();
  CHECK(first.code() == StatusCode::timeout);
  CHECK(first.peer() == 1);
  CHECK(first.what() == "2 of 4 ranks of the communicator have not come within 10ms: 1 and 3");
  CHECK(patient.get().what() == first.what());
  CHECK(hall.call(1, long_time).get().what() == first.what());
  CHECK(hall.keys_left() > 0);
  CHECK(hall.call(3, long_time).get().what() == first.what());
  CHECK(hall.keys_left() == 0);
}

TEST_CASE("without time a barrier only looks") {
  Hall hall;
  CHECK(hall.call(3, 0s).get().what() ==
        "3 of 4 ranks of the communicator have not come within 0s: 0 and 1 and 2");
}

TEST_CASE("all get one and the same, where several may have seen that all have come") {
  for (int round = 0; round < 20; ++round) {
    Hall hall;
    std::vector<std::future<Result<std::string>>> ranks;
    for (std::uint32_t rank = 0; rank < 4; ++rank) ranks.push_back(hall.say(rank, "one"));
    const std::string granted = ranks.front().get().value();
    for (std::size_t rank = 1; rank < 4; ++rank) CHECK(ranks[rank].get().value() == granted);
    CHECK(hall.keys_left() == 0);
  }
}

TEST_CASE("two that say different things are named to all, and each hears of another") {
  Hall hall;
  auto first = hall.say(1, "one");
  hall.wait_for(1);
  const Status last = hall.say(3, "other").get().status();
  CHECK(last.code() == StatusCode::mismatch);
  CHECK(last.what() == "1 and 3 say different things");
  CHECK(last.peer() == 1);
  CHECK(first.get().status().peer() == 3);
  CHECK(hall.say(0, "one").get().status().what() == last.what());
  CHECK(hall.say(2, "one").get().status().what() == last.what());
  CHECK(hall.keys_left() == 0);
}

TEST_CASE("a rank that fails by itself tells the others") {
  for (const bool is_of_store : {false, true}) {
    Hall hall;
    std::vector<std::future<Result<std::string>>> ranks;
    for (std::uint32_t rank = 0; rank < 3; ++rank) ranks.push_back(hall.say(rank, ""));
    for (std::uint32_t rank = 0; rank < 3; ++rank) hall.wait_for(rank);
    const Status own = hall.fail_alone(3, is_of_store).get().status();
    CHECK(own.code() == (is_of_store ? StatusCode::protocol_error : StatusCode::limit_exceeded));
    for (auto& rank : ranks) {
      const Status status = rank.get().status();
      CHECK(status.code() == StatusCode::aborted);
      CHECK(status.peer() == 3);
      CHECK(status.what() == "3 could not take part");
    }
  }
}

TEST_CASE("a loss ends the waiting, of this rank alone") {
  Hall hall;
  auto other = hall.call(1, 2s);
  hall.wait_for(1);
  const Status lost = hall.call(0, long_time, Status(StatusCode::peer_lost, "gone")).get();
  CHECK(lost.what() == "gone");
  CHECK(other.get().what() == "2 of 4 ranks of the communicator have not come within 2s: 2 and 3");
}

TEST_CASE("a store that does not answer for a while holds the barrier up, and no more") {
  for (int requests = 1; requests < 12; ++requests) {
    Hall hall;
    std::vector<std::future<Status>> ranks;
    for (std::uint32_t rank = 0; rank < 3; ++rank) ranks.push_back(hall.call(rank, long_time));
    for (std::uint32_t rank = 0; rank < 3; ++rank) hall.wait_for(rank);
    hall.fail(requests, StatusCode::timeout);
    ranks.push_back(hall.call(3, long_time));
    for (auto& rank : ranks) CHECK(rank.get().to_string() == "ok");
  }
}

TEST_CASE("a store that never answers is no rank that is missing") {
  Hall hall;
  hall.fail(1'000'000'000, StatusCode::timeout);
  CHECK(hall.call(0, soon).get().code() == StatusCode::system_error);
  hall.fail(1'000'000'000, StatusCode::peer_lost);
  CHECK(hall.call(0, long_time).get().code() == StatusCode::peer_lost);
}

}  // namespace
}  // namespace hocket::world::testing
