// The reason for which a channel is closed, as the other end gets to know it.
#include <cstdint>
#include <string_view>

#include "hocket/transport.hpp"

#include "support/catch.hpp"

namespace hocket::testing {
namespace {

Status told(const Status& reason) { return closed_by_peer(1, pack_reason(reason)); }

TEST_CASE("a reason names the rank that caused it, and its step", "[reason]") {
  for (const StatusCode code : {StatusCode::peer_lost, StatusCode::timeout, StatusCode::mismatch,
                                StatusCode::limit_exceeded, StatusCode::aborted}) {
    CAPTURE(name(code));
    const Status status = told(Status(code, "for some reason").with_peer(5).with_step(17));
    CHECK(status.code() == code);
    CHECK(status.peer() == 5);
    CHECK(status.step() == 17);
    CHECK(status.what().find("rank 1 closed the channel: rank 5 ") == 0);
    CHECK_FALSE(status.hint().empty());
  }
  const Status far = told(Status(StatusCode::peer_lost, "").with_peer((1 << 20) - 1).with_step(0));
  CHECK(far.peer() == (1 << 20) - 1);
  CHECK(far.step() == 0);
}

TEST_CASE("who closes for a reason of its own is named itself", "[reason]") {
  for (const Status& reason : {Status(StatusCode::limit_exceeded, "out of memory"),
                               Status(StatusCode::peer_lost, "left").with_peer(1)}) {
    const Status status = told(reason);
    CHECK(status.code() == reason.code());
    CHECK(status.peer() == 1);
    CHECK(status.step() == -1);
    CHECK(status.what().find("rank 1 closed the channel: it ") == 0);
  }
  CHECK(told(Status(StatusCode::internal, "a defect")).code() == StatusCode::aborted);
}

TEST_CASE("no reason is the loss of who closed", "[reason]") {
  CHECK(pack_reason(Status()) == 0);
  CHECK(closed_by_peer(3, 0).code() == StatusCode::peer_lost);
  CHECK(closed_by_peer(3, 0).peer() == 3);
  CHECK(closed_by_peer(3, 0).what() == "rank 3 closed the channel");
}

TEST_CASE("whatever comes as a reason, it is a failure that names a rank", "[reason]") {
  std::uint64_t reason = 1;
  for (int i = 0; i < 10'000; ++i) {
    reason = reason * 6364136223846793005 + 1442695040888963407;
    const Status status = closed_by_peer(3, reason);
    REQUIRE_FALSE(status.ok());
    REQUIRE(status.peer() >= 0);
    REQUIRE(status.step() >= -1);
  }
}

}  // namespace
}  // namespace hocket::testing
