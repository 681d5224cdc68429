// Frames: how messages stand one after the other on a connection. A frame is the number of bytes
// behind this field (32 bits), an id that ties a reply to its request (64 bits), and a message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "hocket/status.hpp"

namespace hocket::wire {

inline constexpr std::size_t frame_head_bytes = sizeof(std::uint32_t) + sizeof(std::uint64_t);

/// Makes room for a frame's head at the end of `to`; gives where it is, for close_frame.
[[nodiscard]] std::size_t open_frame(std::string& to);

/// Writes the head of the frame that goes from `start` to the end of `to`, and `more` bytes on.
void close_frame(std::string& to, std::size_t start, std::uint64_t id,
                 std::size_t more = 0) noexcept;

struct Frame {
  std::uint64_t id = 0;
  std::string_view message = {};
};

/// Bytes as they come in, and the whole frames among them.
class FrameBuffer {
 public:
  explicit FrameBuffer(std::size_t message_bytes_max) noexcept
      : message_bytes_max_(message_bytes_max) {}

  void append(std::string_view bytes);

  /// Takes the next frame, which is valid until append; nothing while it is not complete. Fails for
  /// one that is too long, before it has come in.
  [[nodiscard]] Result<std::optional<Frame>> next();

  /// Gives back the memory of frames that were taken. The last one is not valid any more.
  void compact();

  /// Bytes that were not taken yet.
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size() - taken_; }

 private:
  std::size_t message_bytes_max_;
  std::string bytes_;
  std::size_t taken_ = 0;
};

}  // namespace hocket::wire
