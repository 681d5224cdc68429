// A collective on device memory, from its start until nobody asks for it any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "hocket/collective.hpp"

#include "base/clock.hpp"
#include "device/runtime.hpp"
#include "engine/tag.hpp"
#include "engine/work.hpp"

namespace hocket::device {

/// Belongs to the communicator's DeviceSide, which uses it again and again.
struct Operation {
  /// Borrows from the three lists below, and the memory that it is for.
  Collective collective = {};
  std::vector<std::size_t> counts = {};
  std::vector<std::size_t> counts_from = {};
  std::vector<Piece> pieces = {};
  Deadline deadline = {};
  std::uint64_t number = 0;         // among those of its communicator
  engine::Tag tag = {};             // what the other ranks must call, too
  std::string_view way = "staged";  // or the offload's name

  engine::Work work = {};
  Event ready = {};          // behind what must be done before, if has_ready
  void* stream = nullptr;    // offloaded: on which it runs
  Event done = {};           // offloaded: behind it, in the stream on which it runs
  std::uint64_t record = 0;  // offloaded: its sequence number in the recorder
  bool has_ready = false;
  bool is_offloaded = false;
  bool is_released = false;  // nobody has a handle of it
};

}  // namespace hocket::device
