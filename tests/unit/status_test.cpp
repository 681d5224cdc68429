#include "hocket/status.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "support/catch.hpp"

using hocket::Error;
using hocket::Result;
using hocket::SourceLocation;
using hocket::Status;
using hocket::StatusCode;

static_assert(sizeof(Status) == sizeof(void*));
static_assert(std::is_nothrow_default_constructible_v<Status>);
static_assert(std::is_nothrow_move_constructible_v<Status> &&
              std::is_nothrow_move_assignable_v<Status>);
static_assert(std::is_nothrow_move_constructible_v<Result<int>>);

namespace {

constexpr SourceLocation engine_line{"lib/engine/engine.cpp", 88};

/// A failure with every detail.
Status detailed() {
  return Status(StatusCode::timeout, "no answer", engine_line)
      .with_rank(1)
      .with_peer(3)
      .with_step(4)
      .with_system_error(ENOENT)
      .with_operation("all_reduce #17")
      .with_hint("raise HOCKET_TIMEOUT");
}

/// Whether the pointer that a Status is is null.
bool owns_nothing(const Status& status) {
  return std::ranges::all_of(std::as_bytes(std::span(&status, 1)),
                             [](std::byte each) { return each == std::byte{0}; });
}

template <class Expected>
bool throws(StatusCode code) {
  try {
    hocket::throw_error(Status(code, "x"));
  } catch (const Error& error) {
    return typeid(error) == typeid(Expected) && error.code() == code;
  }
}

}  // namespace

TEST_CASE("success is a null pointer and knows nothing") {
  const Status success;
  const Status spelled(StatusCode::ok, "a long text that would not fit into a short string");
  const Status detailed_success = Status()
                                      .with_rank(1)
                                      .with_peer(2)
                                      .with_step(3)
                                      .with_system_error(4)
                                      .with_operation("x")
                                      .with_hint("y")
                                      .caused_by(detailed());
  for (const Status* status : {&success, &spelled, &detailed_success}) {
    REQUIRE(status->ok());
    REQUIRE(owns_nothing(*status));
    REQUIRE(owns_nothing(Status(*status)));
    REQUIRE(status->code() == StatusCode::ok);
    REQUIRE(status->what() == "");
    REQUIRE(status->rank() == -1);
    REQUIRE(status->peer() == -1);
    REQUIRE(status->step() == -1);
    REQUIRE(status->system_error() == 0);
    REQUIRE(status->operation() == "");
    REQUIRE(status->hint() == "");
    REQUIRE(status->where().line == 0);
    REQUIRE(status->cause() == nullptr);
    REQUIRE(status->to_string() == "ok");
  }
}

TEST_CASE("a failure keeps its details") {
  const Status status = detailed();
  REQUIRE_FALSE(status.ok());
  REQUIRE(status.code() == StatusCode::timeout);
  REQUIRE(status.what() == "no answer");
  REQUIRE(status.rank() == 1);
  REQUIRE(status.peer() == 3);
  REQUIRE(status.step() == 4);
  REQUIRE(status.system_error() == ENOENT);
  REQUIRE(status.operation() == "all_reduce #17");
  REQUIRE(status.hint() == "raise HOCKET_TIMEOUT");
  REQUIRE(status.where().file == engine_line.file);
  REQUIRE(status.where().line == 88);
  REQUIRE(status.cause() == nullptr);
}

TEST_CASE("a system without memory is a limit that was reached") {
  const auto with = [](StatusCode code, int error) {
    return Status(code, "open").with_system_error(error).code();
  };
  CHECK(with(StatusCode::system_error, ENOMEM) == StatusCode::limit_exceeded);
  CHECK(with(StatusCode::system_error, EACCES) == StatusCode::system_error);
  CHECK(with(StatusCode::peer_lost, ENOMEM) == StatusCode::peer_lost);
}

TEST_CASE("a failure tells the line that made it") {
  const auto returned = [](int& line) -> Status {
    line = __LINE__ + 1;
    return {StatusCode::internal, "x"};
  };
  int line = 0;
  const Status status = returned(line);
  REQUIRE(std::string_view(status.where().file).ends_with("tests/unit/status_test.cpp"));
  REQUIRE(status.where().line == line);

  const int here_line = __LINE__ + 1;
  const Status here(StatusCode::internal, "x");
  REQUIRE(here.where().line == here_line);
  REQUIRE(here.to_string() == "internal: x [status_test.cpp:" + std::to_string(here_line) + "]");
}

TEST_CASE("the story names every failure of the chain, with its hint") {
  const auto where = [](const char* file, int line) { return SourceLocation{file, line}; };
  Status status = Status(StatusCode::aborted, "world 2 is gone", where("comm.cpp", 1))
                      .caused_by(detailed().caused_by(
                          Status(StatusCode::system_error, "connect", where("a/b.cpp", 3))
                              .with_hint("try port 7")));
  REQUIRE(status.to_string() ==
          "aborted: world 2 is gone [comm.cpp:1]\n"
          "  because: timeout: no answer: No such file or directory (errno 2)"
          " (rank 1, peer 3, all_reduce #17, step 4) [engine.cpp:88]\n"
          "  hint: raise HOCKET_TIMEOUT\n"
          "  because: system error: connect [b.cpp:3]\n"
          "  hint: try port 7");
  REQUIRE(status.cause()->code() == StatusCode::timeout);
  REQUIRE(status.cause()->cause()->hint() == "try port 7");
}

TEST_CASE("rank, peer and step 0 are told") {
  const Status status =
      Status(StatusCode::internal, "x", engine_line).with_rank(0).with_peer(0).with_step(0);
  REQUIRE(status.to_string() == "internal: x (rank 0, peer 0, step 0) [engine.cpp:88]");
}

TEST_CASE("a success is no cause") { REQUIRE(detailed().caused_by(Status()).cause() == nullptr); }

TEST_CASE("a copy is equal and keeps to itself what is added, a move leaves success") {
  Status original = detailed().caused_by(Status(StatusCode::not_found, "y"));
  const std::string story = original.to_string();
  const Status copy = original;
  const Status changed = Status(original).with_hint("another").with_rank(7).caused_by(
      Status(StatusCode::timeout, "z"));
  REQUIRE(changed.rank() == 7);
  REQUIRE(original.to_string() == story);
  REQUIRE(copy.to_string() == story);

  const Status& left = original;
  const Status moved = std::move(original);
  REQUIRE(left.ok());
  REQUIRE(copy.to_string() == story);
  REQUIRE(moved.to_string() == story);
}

TEST_CASE("assignment replaces, also by oneself and by success") {
  Status status(StatusCode::not_found, "first");
  status = detailed();
  const std::string story = status.to_string();
  const Status& same = status;
  status = same;
  REQUIRE(status.to_string() == story);
  Status other(StatusCode::not_found, "other");
  other = same;
  REQUIRE(other.to_string() == story);
  const Status success;
  other = success;
  REQUIRE(other.ok());
  REQUIRE(status.to_string() == story);
}

TEST_CASE("every code has its number, its name and its class of exception") {
  struct Row {
    StatusCode code;
    int number;
    std::string_view name;
    bool (*throws_its_class)(StatusCode);
  };
  constexpr Row rows[] = {
      {StatusCode::invalid_argument, 1, "invalid argument", throws<hocket::InvalidArgument>},
      {StatusCode::unsupported, 2, "unsupported", throws<hocket::Unsupported>},
      {StatusCode::timeout, 3, "timeout", throws<hocket::Timeout>},
      {StatusCode::peer_lost, 4, "peer lost", throws<hocket::PeerLost>},
      {StatusCode::aborted, 5, "aborted", throws<hocket::Aborted>},
      {StatusCode::mismatch, 6, "mismatch", throws<hocket::Mismatch>},
      {StatusCode::permission_denied, 7, "permission denied", throws<hocket::PermissionDenied>},
      {StatusCode::limit_exceeded, 8, "limit exceeded", throws<hocket::LimitExceeded>},
      {StatusCode::system_error, 9, "system error", throws<Error>},
      {StatusCode::protocol_error, 10, "protocol error", throws<Error>},
      {StatusCode::not_found, 11, "not found", throws<Error>},
      {StatusCode::already_exists, 12, "already exists", throws<Error>},
      {StatusCode::internal, 13, "internal", throws<Error>},
      {StatusCode::in_progress, 14, "in progress", throws<Error>},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    REQUIRE(static_cast<int>(row.code) == row.number);
    REQUIRE(name(row.code) == row.name);
    REQUIRE(row.throws_its_class(row.code));
  }
  REQUIRE(name(StatusCode::ok) == "ok");
  REQUIRE(name(static_cast<StatusCode>(-1)) == "unknown");
  REQUIRE(name(static_cast<StatusCode>(15)) == "unknown");
}

TEST_CASE("an exception has the story and its status") {
  const Error error(detailed());
  const Error copy = error;
  for (const Error* each : {&error, &copy}) {
    REQUIRE(each->what() == detailed().to_string());
    REQUIRE(each->code() == StatusCode::timeout);
    REQUIRE(each->rank() == 1);
    REQUIRE(each->peer() == 3);
    REQUIRE(each->operation() == "all_reduce #17");
    REQUIRE(each->hint() == "raise HOCKET_TIMEOUT");
    REQUIRE(each->status().step() == 4);
  }
}

TEST_CASE("a result is a value or the reason why there is none") {
  Result<std::string> value = std::string("abc");
  REQUIRE(value.ok());
  REQUIRE(value.status().ok());
  REQUIRE(*value == "abc");
  REQUIRE(value->size() == 3);
  const std::string taken = std::move(value).value();
  REQUIRE(taken == "abc");

  Result<std::string> failure = detailed();
  REQUIRE_FALSE(failure.ok());
  REQUIRE(failure.status().to_string() == detailed().to_string());
  REQUIRE_THROWS_AS(std::move(failure).value(), hocket::Timeout);
}

TEST_CASE("a success in place of a failure is a defect of ours") {
  const Result<int> result = Status();
  REQUIRE_FALSE(result.ok());
  REQUIRE(result.status().code() == StatusCode::internal);
  REQUIRE_THROWS_WITH(hocket::throw_error(Status()), Catch::Matchers::StartsWith("internal: "));
}

TEST_CASE("a result hands over what can't be copied") {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
  const std::unique_ptr<int> taken = *std::move(result);
  REQUIRE(*taken == 7);
}
