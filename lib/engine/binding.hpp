// A program with sizes: which bytes each step moves, in buffers whose addresses come later.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hocket/transport.hpp"

#include "engine/program.hpp"
#include "plan/layout.hpp"

namespace hocket::engine {

/// A range of blocks in bytes. Past `before_wrap` bytes it goes on at `wrap`.
struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t before_wrap = 0;
  std::uint64_t wrap = 0;

  [[nodiscard]] std::uint64_t at(std::uint64_t position) const noexcept {
    return position < before_wrap ? begin + position : wrap + (position - before_wrap);
  }
  /// Bytes from a position on that lie in a row, at most so many.
  [[nodiscard]] std::uint64_t in_a_row(std::uint64_t position, std::uint64_t most) const noexcept {
    if (position >= before_wrap || before_wrap - position >= most) return most;
    return before_wrap - position;
  }
};

struct Extent {
  std::uint64_t bytes = 0;
  ByteRange from = {};
  ByteRange to = {};
};

class Binding {
 public:
  /// Borrows the program. `channels`: by port. `element_bytes` at least 1.
  Binding(const Program& program, plan::ChunkSizes sizes, std::uint64_t element_bytes,
          std::vector<ChannelId> channels);

  [[nodiscard]] const Program& program() const noexcept { return program_; }
  [[nodiscard]] std::uint64_t element_bytes() const noexcept { return element_bytes_; }
  [[nodiscard]] std::uint64_t in_bytes() const noexcept { return in_bytes_; }
  [[nodiscard]] std::uint64_t out_bytes() const noexcept { return out_bytes_; }
  [[nodiscard]] std::uint64_t scratch_bytes() const noexcept { return scratch_bytes_; }
  [[nodiscard]] std::uint64_t step_bytes_max() const noexcept { return step_bytes_max_; }
  [[nodiscard]] const Extent& extent(std::uint32_t step) const noexcept { return extents_[step]; }
  [[nodiscard]] std::span<const ChannelId> channels() const noexcept { return channels_; }
  [[nodiscard]] ChannelId channel(std::uint32_t port) const noexcept { return channels_[port]; }

 private:
  const Program& program_;
  std::uint64_t element_bytes_;
  std::uint64_t in_bytes_ = 0;
  std::uint64_t out_bytes_ = 0;
  std::uint64_t scratch_bytes_ = 0;
  std::uint64_t step_bytes_max_ = 0;
  std::vector<Extent> extents_;  // by step
  std::vector<ChannelId> channels_;
};

}  // namespace hocket::engine
