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

/// What a step reads and writes.
struct Extent {
  ByteRange from = {};
  ByteRange to = {};
};

/// All of a step that the executor needs as a rule, in one line of the cache.
struct alignas(64) Instruction {
  std::uint64_t bytes = 0;
  std::uint64_t from = 0;  // where they begin in their buffer; of a receive the same as `to`
  std::uint64_t to = 0;
  ChannelId channel = 0;  // if it communicates
  std::uint32_t next_on_port = none;
  std::uint32_t first_follower = 0;
  std::uint32_t follower_count = 0;
  plan::StepKind kind = plan::StepKind::copy;
  plan::Buffer from_buffer = plan::Buffer::in;
  plan::Buffer to_buffer = plan::Buffer::in;
  bool is_message = false;  // it communicates, and more than nothing
  bool wraps = false;  // they go on at the beginning of their buffer: where, Binding::extent() says
  bool is_reversed = false;

  [[nodiscard]] bool communicates() const noexcept { return kind <= plan::StepKind::recv_reduce; }
};
static_assert(sizeof(Instruction) == 64);

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
  [[nodiscard]] std::span<const Instruction> code() const noexcept { return code_; }
  [[nodiscard]] const Extent& extent(std::uint32_t step) const noexcept { return extents_[step]; }

 private:
  void add(const plan::Step& step, const Program::Place& place, const Extent& extent,
           std::uint64_t bytes);

  const Program& program_;
  std::uint64_t element_bytes_;
  std::uint64_t in_bytes_ = 0;
  std::uint64_t out_bytes_ = 0;
  std::uint64_t scratch_bytes_ = 0;
  std::uint64_t step_bytes_max_ = 0;
  std::vector<Instruction> code_;  // by step
  std::vector<Extent> extents_;    // likewise
  std::vector<ChannelId> channels_;
};

}  // namespace hocket::engine
