// A mailbox whose transport is this test: what a peer that dies or lies does to it.
#include "engine/mailbox.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "engine/op_list.hpp"
#include "support/catch.hpp"

namespace hocket::testing {
namespace {

constexpr std::uint32_t message = 0, credit = 3, push = 4;
constexpr std::uint64_t letter_bytes = 24;
constexpr std::uint64_t pushed_bytes = 20'000;

/// Rank 0 of two. What it posted is in the lists, in its order.
struct Box {
  Box() {
    engine::OpList outgoing;
    mailbox.open(1, 0, 1, outgoing);
    note(outgoing);
  }

  void note(const engine::OpList& outgoing) {
    for (const TransportOp& op : outgoing.ops()) {
      std::vector<TransportOp>& list = op.kind == TransportOp::Kind::send ? sends
                                       : op.channel == 0                  ? letters
                                                                          : payloads;
      list.push_back(op);
    }
  }
  Status complete(const TransportOp& op, std::uint64_t bytes, const Status& status = {}) {
    engine::OpList outgoing;
    Status result =
        mailbox.complete(static_cast<std::uint32_t>(op.token),
                         {.token = op.token, .bytes = bytes, .status = status}, outgoing);
    note(outgoing);
    return result;
  }
  /// From rank 1.
  Status take_letter(std::uint32_t kind, std::uint64_t bytes, std::uint64_t number = 0) {
    const TransportOp op = letters.front();
    letters.erase(letters.begin());
    store_little_endian(op.first.data, kind | std::uint32_t{1} << 16);  // u8
    store_little_endian(op.first.data + 4, std::uint32_t{7});
    store_little_endian(op.first.data + 8, bytes);
    store_little_endian(op.first.data + 16, number);
    return complete(op, letter_bytes + (kind == message ? bytes : 0));
  }
  Status start(bool is_sent, std::uint64_t bytes) {
    engine::OpList outgoing;
    Status result = mailbox.start({.sends = is_sent,
                                   .peer = 1,
                                   .tag = 7,
                                   .memory = memory.data(),
                                   .bytes = bytes,
                                   .work = &work,
                                   .received = &received},
                                  outgoing);
    note(outgoing);
    return result;
  }

  engine::Mailbox mailbox{0, 2};
  std::vector<TransportOp> sends, letters, payloads;
  std::vector<std::byte> memory = std::vector<std::byte>(100'000);
  engine::Work work;
  engine::Received received;
};

const Status died(StatusCode::peer_lost, "it died");

}  // namespace

TEST_CASE("a message behind one that was lost does not take its place") {
  Box box;
  REQUIRE(box.take_letter(push, pushed_bytes).ok());
  REQUIRE(box.take_letter(message, 8).ok());
  CHECK(box.complete(box.payloads.front(), 0, died).ok());  // nobody waits for it so far
  CHECK(box.start(false, pushed_bytes).code() == StatusCode::peer_lost);
}

TEST_CASE("what is pushed is kept until somebody wants it") {
  Box box;
  REQUIRE(box.take_letter(push, pushed_bytes).ok());
  std::memset(box.payloads.front().first.data, 5, pushed_bytes);
  SECTION("that comes first") { REQUIRE(box.complete(box.payloads.front(), pushed_bytes).ok()); }
  REQUIRE(box.start(false, pushed_bytes).ok());
  if (!box.work.is_over()) REQUIRE(box.complete(box.payloads.front(), pushed_bytes).ok());
  CHECK(box.work.is_over());
  CHECK(box.received.bytes == pushed_bytes);
  CHECK(box.memory[pushed_bytes - 1] == std::byte{5});
}

TEST_CASE("a pushed message is sent when its letter is, too") {
  for (const bool letter_first : {false, true}) {
    Box box;
    REQUIRE(box.start(true, pushed_bytes).ok());
    REQUIRE(box.sends.size() == 2);
    REQUIRE(box.complete(box.sends[letter_first ? 0 : 1], 0).ok());
    CHECK_FALSE(box.work.is_over());
    REQUIRE(box.complete(box.sends[letter_first ? 1 : 0], 0).ok());
    CHECK(box.work.is_over());
  }
}

TEST_CASE("a peer that does not keep to the rules is told of") {
  Box box;
  Status told;
  SECTION("less than it announced") {
    REQUIRE(box.take_letter(push, pushed_bytes).ok());
    told = box.complete(box.payloads.front(), 10);
  }
  SECTION("less than it announced, to who waits") {
    REQUIRE(box.start(false, pushed_bytes).ok());
    REQUIRE(box.take_letter(push, pushed_bytes).ok());
    told = box.complete(box.payloads.front(), 10);
  }
  SECTION("more than it has credit for") {
    for (int i = 0; i < 256 && told.ok(); ++i) told = box.take_letter(push, pushed_bytes);
  }
  SECTION("more credit than there is") { told = box.take_letter(credit, 0, 1); }
  SECTION("a push of any size") { told = box.take_letter(push, std::uint64_t{1} << 40); }
  CHECK(told.code() == StatusCode::protocol_error);
  CHECK(told.peer() == 1);
}

TEST_CASE("who takes all and leaves is no failure for those that need nothing of it") {
  Box box;
  REQUIRE(box.start(false, 8).ok());
  for (int i = 0; i < 128; ++i) {  // until credit is given
    REQUIRE(box.take_letter(message, 8).ok());
    if (box.sends.empty()) REQUIRE(box.start(false, 8).ok());
  }
  REQUIRE(box.sends.size() == 1);
  CHECK(box.complete(box.sends.front(), 0, died).ok());
}

}  // namespace hocket::testing
