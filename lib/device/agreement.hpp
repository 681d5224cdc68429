// Which way the ranks of a communicator take for device memory: they tell each other what they
// have, and all come to the same.
#pragma once

#include <memory>
#include <string>

#include "hocket/status.hpp"

#include "device/device_slots.hpp"
#include "device/host_side.hpp"
#include "device/offload.hpp"
#include "device/runtime.hpp"
#include "device/windows.hpp"

namespace hocket::device {

struct Way {
  std::unique_ptr<OffloadCommunicator> offload = {};  // null: all is staged
  std::string why_not = {};                           // there is none, for people
};

/// All ranks call it, at their first operation. `host` tells hosts apart. Fails when the ranks
/// can't be reached, or the library can't begin. The side watches from here on, if there is an
/// offload.
[[nodiscard]] Result<Way> agree_on_way(const OffloadKind* kind, const Runtime& runtime, int device,
                                       const std::string& host, const Position& position,
                                       HostSide& side, const Limit& limit);

/// All ranks call it where they begin to stage, with the same bytes: null unless all can have them.
/// `is_wanted`: here. Fails when the ranks can't be reached.
[[nodiscard]] Result<std::unique_ptr<DeviceSlots>> agree_on_device_slots(
    const Runtime& runtime, std::size_t bytes, bool is_wanted, const Position& position,
    HostSide& side, Deadline deadline);

}  // namespace hocket::device
