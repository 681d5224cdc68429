// What a store holds, and what each request does to it: a state machine without clock, thread or
// socket. The server, the store of a process and the store in a file all drive one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "base/limits.hpp"
#include "store/message.hpp"

namespace hocket::store {

/// The name, given by the driver, of a request that may have to wait.
using Ticket = std::uint64_t;

struct Completion {
  Ticket ticket = 0;
  Reply reply;
};

class Keyspace {
 public:
  explicit Keyspace(std::size_t bytes_max = limits::store_bytes_max) : bytes_max_(bytes_max) {}

  /// Serves the request, which passed check(), or parks it under its ticket, which is not in use,
  /// and gives nothing; then its reply comes out of take_completions.
  [[nodiscard]] std::optional<Reply> execute(Ticket ticket, Request request, Instant now);

  /// Forgets a request that is parked. Nothing is taken from a queue for it and no barrier counts
  /// it, unless its reply was taken already.
  void cancel(Ticket ticket);

  /// Completes every parked request whose time has run out.
  void expire(Instant now);

  /// When the first of them does.
  [[nodiscard]] Deadline next_deadline() const noexcept;

  /// The replies that have become ready, in that order.
  [[nodiscard]] std::vector<Completion> take_completions();

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t parked() const noexcept { return parked_.size(); }

 private:
  // (being written)
};

}  // namespace hocket::store
