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

#include "base/clock.hpp"
#include "engine/binding.hpp"
#include "engine/work.hpp"
#include "reduce/reduction.hpp"

namespace hocket::engine {

struct Group;

/// An operation to be run. What it points to is borrowed until its work is over.
struct Task {
  const Binding* binding = nullptr;
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::optional<reduce::Reduction> reduction = {};  // of operations that reduce
  Group* group = nullptr;
  Work* work = nullptr;
  Deadline deadline = {};  // past it the group fails
};

/// What the operations of one communicator share. They run one after the other, as issued: on one
/// channel all messages of one come before those of the next. When one fails, so do all.
struct Group {
  std::vector<ChannelId> channels = {};
  bool is_busy = false;
  std::vector<Task> queue = {};  // those behind the one that runs
  std::size_t queue_head = 0;
  Status failure = {};
};

struct Run {
  struct StepState {
    std::uint32_t waits = 0;      // for so many steps
    std::uint16_t under_way = 0;  // messages
    bool is_over = false;
    bool is_queued = false;    // to go on with local work
    std::uint64_t posted = 0;  // bytes
    std::uint64_t done = 0;    // bytes, from the beginning on
  };

  Task task = {};
  std::vector<StepState> steps = {};
  std::vector<std::uint32_t> heads = {};  // by port, the step whose turn it is
  std::array<std::byte*, 3> memory = {};  // by Buffer
  std::vector<std::byte> scratch = {};
  std::vector<std::byte> prepared = {};  // what is reduced in place of in
  std::uint32_t steps_left = 0;
  std::uint32_t under_way = 0;  // messages
  bool cuts_through = false;    // some step is more than one segment
  Status failure = {};

  [[nodiscard]] std::byte* at(plan::Buffer buffer, const ByteRange& range,
                              std::uint64_t position) const noexcept {
    return memory[static_cast<std::size_t>(buffer)] + range.at(position);
  }

  /// Ready for its first steps.
  void begin(const Task& new_task, std::uint64_t segment_bytes);
  /// Behind the last step, where all went well.
  void finish() const;

 private:
  void prepare();
};

}  // namespace hocket::engine
