#include "store/outbox.hpp"

#include <algorithm>
#include <utility>

#include "wire/frame.hpp"

namespace hocket::store {
namespace {

/// Larger values are not copied.
constexpr std::size_t copied_bytes_max = 16 << 10;
constexpr std::size_t piece_bytes_max = 64 << 10;
/// The memory of one piece as small as this stays for the next reply.
constexpr std::size_t kept_bytes_max = 128;
/// In pieces; the rest stays in letters.
constexpr std::size_t opened_bytes_max = 64 << 10;

}  // namespace

std::string& Outbox::tail() {
  if (pieces_.empty() || pieces_.back().value || pieces_.back().bytes.size() >= piece_bytes_max) {
    pieces_.emplace_back();
  }
  return pieces_.back().bytes;
}

void Outbox::push(std::uint64_t id, Reply reply) {
  if (letters_.empty() && reply.values.empty()) return write_head(id, reply, tail());
  Letter letter;
  write_head(id, reply, letter.head);
  letter.values = std::move(reply.values);
  letters_.push_back(std::move(letter));
}

/// Only protocols that have no letters come here, so that pieces are in order.
void Outbox::push(std::string_view bytes) {
  tail().append(bytes);
  bytes_ += bytes.size();
}

void Outbox::push(Value value) { bytes_ += add(std::move(value)); }

std::size_t Outbox::own_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const Piece& piece : pieces_) bytes += piece.bytes.size();
  return bytes;
}

void Outbox::write_head(std::uint64_t id, const Reply& reply, std::string& to) {
  const std::size_t values_bytes = value_bytes(reply) + reply.values.size() * sizeof(std::uint32_t);
  const std::size_t before = to.size();
  std::size_t start = 0;
  try {
    start = wire::open_frame(to);
    encode_head(reply, to);
  } catch (...) {
    to.resize(before);  // or others would have the beginning of it in front of theirs
    throw;
  }
  wire::close_frame(to, start, id, values_bytes);
  bytes_ += to.size() - start + values_bytes;
}

void Outbox::open_letters() {
  std::size_t opened = 0;
  for (const Piece& piece : pieces_) opened += piece.view().size();
  while (!letters_.empty() && opened < opened_bytes_max) {
    Letter& letter = letters_.front();
    opened += letter.head.size();
    tail().append(std::exchange(letter.head, {}));
    if (letter.next == letter.values.size()) {
      letters_.pop_front();
    } else {
      opened += open(std::move(letter.values[letter.next++]));
    }
  }
}

std::size_t Outbox::open(Value value) {
  encode_value_head(value, tail());
  return value == nullptr ? 0 : add(std::move(value));
}

std::size_t Outbox::add(Value value) {
  const std::size_t bytes = value->size();
  if (bytes > copied_bytes_max) {
    pieces_.push_back({.value = std::move(value)});
  } else {
    tail().append(*value);
  }
  return bytes;
}

std::size_t Outbox::front(std::span<std::string_view> to) {
  open_letters();
  const std::size_t count = std::min(pieces_.size(), to.size());
  for (std::size_t i = 0; i < count; ++i) to[i] = pieces_[i].view().substr(i == 0 ? sent_ : 0);
  return count;
}

std::string_view Outbox::first(std::size_t bytes_max) {
  open_letters();
  return pieces_.front().view().substr(sent_, bytes_max);
}

void Outbox::pop(std::size_t bytes) {
  bytes_ -= bytes;
  sent_ += bytes;
  while (!pieces_.empty() && sent_ >= pieces_.front().view().size()) {
    sent_ -= pieces_.front().view().size();
    Piece& piece = pieces_.front();
    if (pieces_.size() == 1 && !piece.value && piece.bytes.capacity() <= kept_bytes_max) {
      return piece.bytes.clear();
    }
    pieces_.pop_front();
  }
}

}  // namespace hocket::store
