// Replies on their way out of a server, and the pieces of memory that are sent one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/message.hpp"

namespace hocket::store {

/// Values stay where the store has them until they are sent: many
/// clients that are given the same ones at once cost little.
class Outbox {
 public:
  void push(std::uint64_t id, Reply reply);
  /// Bytes of a protocol without frames. An outbox is for one or the other.
  void push(std::string_view bytes);
  void push(Value value);
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// Without the values that this shares with the store.
  [[nodiscard]] std::size_t own_bytes() const noexcept;
  /// Puts the first pieces into `to`, as many as fit; gives how many.
  [[nodiscard]] std::size_t front(std::span<std::string_view> to);
  /// The first piece, or as many bytes of it. Not when it is empty.
  [[nodiscard]] std::string_view first(std::size_t bytes_max);
  void pop(std::size_t bytes);

 private:
  struct Piece {
    std::string bytes = {};
    Value value = {};  // instead of bytes

    [[nodiscard]] std::string_view view() const noexcept { return value ? *value : bytes; }
  };
  struct Letter {
    std::string head = {};  // of its frame and of the reply
    std::vector<Value> values = {};
    std::size_t next = 0;  // of the values
  };
  void write_head(std::uint64_t id, const Reply& reply, std::string& to);
  /// Makes pieces of the first letters, as long as few bytes are in pieces.
  void open_letters();
  std::size_t open(Value value);
  std::size_t add(Value value);
  /// Where small things are appended.
  std::string& tail();

  std::deque<Letter> letters_;  // behind the pieces
  std::deque<Piece> pieces_;
  std::size_t sent_ = 0;  // of the first piece
  std::size_t bytes_ = 0;
};

}  // namespace hocket::store
