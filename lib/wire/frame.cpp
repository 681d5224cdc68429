#include "wire/frame.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "wire/fields.hpp"

namespace hocket::wire {

std::size_t open_frame(std::string& to) {
  constexpr std::size_t small_frame_bytes = 64;  // room for it, or each field would make some more
  const std::size_t start = to.size();
  if (to.capacity() < small_frame_bytes) to.reserve(small_frame_bytes);
  to.resize(start + frame_head_bytes);
  return start;
}

void close_frame(std::string& to, std::size_t start, std::uint64_t id, std::size_t more) noexcept {
  const std::size_t bytes = to.size() + more - start - sizeof(std::uint32_t);
  auto* const head = reinterpret_cast<std::byte*>(to.data() + start);
  store_little_endian(head, static_cast<std::uint32_t>(bytes));
  store_little_endian(head + sizeof(std::uint32_t), id);
}

void FrameBuffer::append(std::string_view bytes) {
  compact();
  bytes_.append(bytes);
}

void FrameBuffer::compact() {
  constexpr std::size_t kept_bytes_max = 4 << 10;
  bytes_.erase(0, std::exchange(taken_, 0));
  if (bytes_.size() < kept_bytes_max && bytes_.capacity() > kept_bytes_max) bytes_.shrink_to_fit();
}

Result<std::optional<Frame>> FrameBuffer::next() {
  FieldReader fields(std::string_view(bytes_).substr(taken_));
  const std::size_t bytes = fields.integer<std::uint32_t>();
  if (!fields.ok()) return std::optional<Frame>();
  if (bytes < sizeof(std::uint64_t) || bytes > sizeof(std::uint64_t) + message_bytes_max_) {
    return Status(StatusCode::protocol_error,
                  fmt::format("a frame of {} bytes; at most {} may come", bytes,
                              sizeof(std::uint64_t) + message_bytes_max_));
  }
  if (fields.remaining() < bytes) return std::optional<Frame>();
  taken_ += sizeof(std::uint32_t) + bytes;
  Frame frame{.id = fields.integer<std::uint64_t>()};
  frame.message = fields.take(bytes - sizeof frame.id);
  return std::optional(frame);
}

}  // namespace hocket::wire
