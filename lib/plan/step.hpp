// One step of a plan: what a rank does with a range of blocks. Nothing here knows of bytes, data
// types, pointers or networks.
#pragma once

#include <cstdint>

namespace hocket::plan {

enum class Buffer : std::uint8_t {
  in,       // what the caller gives; never written
  out,      // what the caller gets
  scratch,  // the engine's, for as long as the plan runs; undefined at first
};

/// Blocks one after the other. Past the end of the buffer it goes on at the buffer's beginning; of
/// one that is several vectors (scratch, and `in` of several contributions), at the beginning of
/// that vector.
struct Range {
  Buffer buffer = Buffer::in;
  std::uint32_t first = 0;
  std::uint32_t count = 0;

  friend bool operator==(const Range&, const Range&) = default;
};

enum class StepKind : std::uint8_t {
  send,         // from → peer
  recv,         // peer → to
  recv_reduce,  // to = from op what comes from the peer
  copy,         // to = from
  reduce,       // to = to op from
};

/// Sends to one peer on one lane go in the order of the plan, and so do receives from it: the first
/// receive gets what the first send sent. Otherwise a step waits for those that it names in
/// Plan::after, and for nothing else.
struct Step {
  StepKind kind = StepKind::send;
  Buffer from_buffer = Buffer::in;
  Buffer to_buffer = Buffer::in;
  std::uint8_t lane : 7 = 0;
  /// Of one that combines: the operands change places, so that what comes, or what is read of a
  /// `reduce`, is the left one.
  bool is_reversed : 1 = false;
  std::uint32_t peer = 0;
  std::uint32_t from = 0;  // first blocks
  std::uint32_t to = 0;
  std::uint32_t count = 0;        // blocks
  std::uint32_t after_first = 0;  // those it waits for: in Plan::after
  std::uint32_t after_count = 0;

  [[nodiscard]] bool sends() const noexcept { return kind == StepKind::send; }
  [[nodiscard]] bool receives() const noexcept {
    return kind == StepKind::recv || kind == StepKind::recv_reduce;
  }
  [[nodiscard]] bool communicates() const noexcept { return kind <= StepKind::recv_reduce; }
  [[nodiscard]] bool has_source() const noexcept { return kind != StepKind::recv; }
  [[nodiscard]] bool has_target() const noexcept { return kind != StepKind::send; }
  [[nodiscard]] bool combines() const noexcept {
    return kind == StepKind::recv_reduce || kind == StepKind::reduce;
  }
  [[nodiscard]] Range source() const noexcept { return {from_buffer, from, count}; }
  [[nodiscard]] Range target() const noexcept { return {to_buffer, to, count}; }

  friend bool operator==(const Step&, const Step&) = default;
};
static_assert(sizeof(Step) <= 32);

}  // namespace hocket::plan
