// A communicator's part that knows of devices, and its twin: a communicator of the same ranks whose
// collectives on memory of the host are the windows of staged ones.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "hocket/collective.hpp"
#include "hocket/status.hpp"

#include "comm/group.hpp"
#include "device/group.hpp"
#include "device/host_side.hpp"

namespace hocket::comm {

class Twin final : public device::HostSide {
 public:
  /// Borrows the user's communicator.
  Twin(Group& users, std::unique_ptr<Group> twin) : users_(users), twin_(std::move(twin)) {}

  [[nodiscard]] engine::Engine& engine() override { return twin_->engine(); }
  [[nodiscard]] Status start(const Collective& collective, std::size_t place, engine::Work& work,
                             Deadline deadline) override;
  [[nodiscard]] Status register_device_memory(const RegisteredMemory& memory,
                                              int dma_buf) override {
    return engine().register_device_memory(memory, dma_buf, twin_->members().others());
  }
  [[nodiscard]] Status watch() override { return twin_->open_watch(); }
  [[nodiscard]] Status loss(Instant now) override;
  void fail(const Status& why) override;

 private:
  Group& users_;
  const std::unique_ptr<Group> twin_;
  std::array<Operation, 8> operations_;  // by place
  Instant next_look_ = {};               // for a loss
  std::uint64_t calls_ = 0;              // of operations
  Instant lost_since_ = Instant::max();
};

struct Devices {
  Devices(Group& users, std::unique_ptr<Group> twin_group, device::GroupOptions options)
      : twin(users, std::move(twin_group)),
        group(*users.context().runtime, twin, std::move(options)) {}

  Twin twin;
  device::Group group;
};

/// The device that a collective's memory and stream are of; -1 for the host's own. Fails when they
/// don't go together.
[[nodiscard]] Result<int> find_device(const device::Runtime& runtime, const Collective& collective);

/// What tells this host apart from others, to those that must not have one device twice.
[[nodiscard]] std::string host_of_devices();

}  // namespace hocket::comm
