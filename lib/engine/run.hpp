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
#include "engine/scattered.hpp"
#include "engine/space.hpp"
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
  bool pieces_are_apart = false;                    // or else no piece overlaps the other side
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
  void finish() const {
    if (!task.out_pieces.empty() || (task.reduction && task.reduction->finishes())) finish_out();
  }

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
    if (it.wraps || is_scattered) return fill_both_parts(op, step, begin, bytes);
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
  bool is_scattered = false;    // `in` or `out` is left in its pieces
  bool has_arrived = false;     // a segment of another rank
  Status failure = {};
  bool is_cause = false;          // the group has failed because of this operation
  int failed_step = -1;           // whose message failed or was late; -1: unknown
  bool meets_later_call = false;  // the other rank has called something else before (Failure)

  // Whether it gets on.
  std::uint64_t completed = 0;  // messages, of this run and those before it in its place
  std::uint64_t looked_at = 0;  // what that was at the last look
  Instant next_look = {};
  Duration stall_pause = {};

 private:
  void take_pieces();
  [[nodiscard]] bool stays_in_pieces(plan::Buffer buffer) const noexcept;
  void prepare();
  void finish_out() const;
  /// What lies in a row from a position of the range on, at most so many bytes.
  [[nodiscard]] MemoryPart stretch(plan::Buffer buffer, const ByteRange& range,
                                   std::uint64_t position, std::uint64_t most) const noexcept;
  [[nodiscard]] MemoryPart stretch_of_message(std::uint32_t step, std::uint64_t position,
                                              std::uint64_t most) const noexcept;
  void fill_both_parts(TransportOp& op, std::uint32_t step, std::uint64_t begin,
                       std::uint64_t bytes) const noexcept;
  template <class Work>
  void for_each_row(std::uint32_t step, std::uint64_t begin, std::uint64_t bytes,
                    const Work& work) const;
  /// to = own op read, or the other way round.
  void combine(const Instruction& it, std::byte* to, const std::byte* own, const std::byte* read,
               std::uint64_t bytes) const;
  void reduce_message_in_rows(std::uint32_t step, std::uint64_t begin, std::uint64_t bytes,
                              const std::byte* message) const;
  void work_on_row(const Instruction& it, const std::byte* from, std::byte* to,
                   std::uint64_t bytes) const;
  [[nodiscard]] std::byte* memory_of(plan::Buffer buffer) const noexcept {
    return memory_[static_cast<std::size_t>(buffer)];
  }

  std::array<std::byte*, 3> memory_ = {};    // by Buffer
  std::array<Scattered, 2> scattered_ = {};  // likewise, of the caller's
  const Follower* followers_ = nullptr;      // of all steps
  Space scratch_ = {};
  Space gathered_in_ = {};   // what pieces give
  Space gathered_out_ = {};  // what they get; in place, also what they give
  Space prepared_ = {};      // what is reduced in place of in
};

}  // namespace hocket::engine
