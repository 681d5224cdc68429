// One operation under way: how far each step of its plan is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "hocket/status.hpp"
#include "hocket/transport.hpp"
#include "hocket/types.hpp"

#include "base/clock.hpp"
#include "engine/binding.hpp"
#include "engine/tag.hpp"
#include "engine/work.hpp"
#include "reduce/reduction.hpp"

namespace hocket::engine {

struct Group;

/// An operation to be run. What it points to is borrowed until its work is over.
struct Task {
  const Binding* binding = nullptr;
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::span<const Piece> in_pieces = {};            // in place of `in`, one behind the other
  std::span<const Piece> out_pieces = {};           // likewise
  bool has_pieces_in_place = false;                 // both are one list, and one vector
  std::optional<reduce::Reduction> reduction = {};  // of operations that reduce
  Tag tag = {};
  std::uint64_t number = 0;  // for people, among those of its communicator
  Group* group = nullptr;
  Work* work = nullptr;
  Instant begun = {};        // when the program called it
  Deadline deadline = {};    // past it the group fails
  std::uint64_t record = 0;  // its sequence number there, if it was recorded before it runs
};

class Run {
 public:
  /// How far a step is that goes in segments.
  struct Pace {
    std::uint64_t posted = 0;     // bytes
    std::uint64_t done = 0;       // bytes, from the beginning on
    std::uint32_t under_way = 0;  // messages
    bool is_queued = false;       // to go on with local work
  };
  static constexpr std::uint32_t over = UINT32_MAX;

  explicit Run(std::uint32_t place) noexcept : number(place) {}

  /// Ready for its first steps. `segment_most`: bytes, at least one element.
  void begin(const Task& new_task, std::uint64_t segment_most);
  /// Behind the last step, where all went well.
  void finish() const;

  [[nodiscard]] const plan::Plan& plan() const noexcept { return task.binding->program().plan(); }
  [[nodiscard]] std::span<const Follower> followers(const Instruction& it) const noexcept {
    return {followers_ + it.first_follower, it.follower_count};
  }
  /// How many bytes of a step may be begun: what it is abreast of is as far.
  [[nodiscard]] std::uint64_t limit_of(std::uint32_t step) const noexcept;

  /// Whether the transport has messages of it.
  [[nodiscard]] bool is_posted(std::uint32_t step) const noexcept {
    if (cuts_through) return paces[step].under_way > 0;
    return waits[step] == 0 && code[step].communicates();
  }

  void end(std::uint32_t step) noexcept {
    waits[step] = over;
    --steps_left;
  }

  // Bytes of a step, from a position on.
  /// Of one that sends or receives: where they are, as the parts of a message.
  void fill_parts(TransportOp& op, std::uint32_t step, std::uint64_t begin,
                  std::uint64_t bytes) const noexcept {
    const Instruction& it = code[step];
    if (it.wraps) return fill_wrapped_parts(op, step, begin, bytes);
    op.first = {memory_of(it.from_buffer) + it.from + begin, bytes};
  }
  /// to = from op message
  void reduce_message(std::uint32_t step, std::uint64_t begin, std::uint64_t bytes,
                      const std::byte* message) const;
  /// Of one that is this rank's own: to = from, or to = to op from
  void work_on(std::uint32_t step, std::uint64_t begin, std::uint64_t bytes) const;

  const std::uint32_t number;  // among those of the executor
  Task task = {};              // without a work: over
  std::span<const Instruction> code = {};
  std::vector<std::uint32_t> waits = {};  // by step: for how many others; or that it is over
  std::vector<Pace> paces = {};           // by step, if it cuts through
  std::uint64_t segment_bytes = 0;        // into which its messages are cut: whole elements
  std::size_t steps_left = 0;
  std::uint32_t under_way = 0;  // messages
  std::uint64_t tag = 0;        // of each of them
  std::uint64_t index = 0;      // among the operations of the group
  std::uint64_t record = 0;     // its sequence number in the recorder
  bool cuts_through = false;    // some step is more than one segment
  bool has_arrived = false;     // a segment of another rank
  Status failure = {};
  int failed_step = -1;  // whose message failed, and the group with it

  // Whether it gets on.
  std::uint64_t completed = 0;  // messages, of this run and those before it in its place
  std::uint64_t looked_at = 0;  // what that was at the last look
  Instant next_look = {};
  Duration stall_pause = {};

 private:
  void gather();
  void prepare();
  void fill_wrapped_parts(TransportOp& op, std::uint32_t step, std::uint64_t begin,
                          std::uint64_t bytes) const noexcept;
  void work_on_row(const Instruction& it, std::uint64_t from, std::uint64_t to,
                   std::uint64_t bytes) const;
  [[nodiscard]] std::byte* memory_of(plan::Buffer buffer) const noexcept {
    return memory_[static_cast<std::size_t>(buffer)];
  }

  std::array<std::byte*, 3> memory_ = {};  // by Buffer
  const Follower* followers_ = nullptr;    // of all steps
  std::vector<std::byte> scratch_ = {};
  std::vector<std::byte> gathered_in_ = {};   // what pieces give
  std::vector<std::byte> gathered_out_ = {};  // what they get; in place, also what they give
  std::vector<std::byte> prepared_ = {};      // what is reduced in place of in
};

}  // namespace hocket::engine
