// Messages of one size between pairs of ranks: their memory, their check, their times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hocket/hocket.hpp"

#include "base/clock.hpp"
#include "pattern.hpp"

namespace hocket::bench {

/// Each rank of the first half of a world has its partner in the other one. All ranks call the same
/// functions; the last one of an odd number has no partner and does nothing in them.
class Exchange {
 public:
  /// Borrows the communicator.
  Exchange(Communicator& world, std::size_t bytes);

  [[nodiscard]] int pairs() const noexcept { return pairs_; }
  /// How many messages stream() has under way at once.
  [[nodiscard]] std::size_t window() const noexcept { return window_; }

  /// Both ways and in a stream, fresh data into memory that is poisoned: how many bytes are wrong
  /// at this rank.
  [[nodiscard]] std::size_t check();
  /// There and back so often: half of what each took, at this rank.
  [[nodiscard]] std::vector<Duration> time_trips(std::size_t count);
  /// So many windows of messages one way, each answered by an empty message: what that took.
  [[nodiscard]] Duration stream(std::size_t windows);

 private:
  [[nodiscard]] bool is_first() const noexcept { return world_.rank() < pairs_; }
  [[nodiscard]] bool has_partner() const noexcept { return partner_ < world_.size(); }
  [[nodiscard]] std::span<std::byte> received(std::size_t i) noexcept {
    return std::span(received_).subspan(i * bytes_, bytes_);
  }
  [[nodiscard]] Message message(MessageKind kind, std::span<std::byte> memory) const;
  void send();
  void receive();
  void answer();
  [[nodiscard]] std::size_t count_wrong(const Pattern& pattern, std::size_t messages);

  Communicator& world_;
  const std::size_t bytes_;
  const int pairs_;
  const int partner_;
  const std::size_t window_;
  std::vector<std::byte> sent_;
  std::vector<std::byte> received_;  // a window
  std::vector<Work> works_;
  std::uint64_t salt_ = 0;
};

}  // namespace hocket::bench
