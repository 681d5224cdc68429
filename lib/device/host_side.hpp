// The hosts of a communicator's ranks, as its staged operations use them.
#pragma once

#include <cstddef>

#include "hocket/collective.hpp"
#include "hocket/status.hpp"
#include "hocket/transport.hpp"

#include "base/clock.hpp"
#include "engine/engine.hpp"
#include "engine/work.hpp"

namespace hocket::device {

struct Operation;

class HostSide {
 public:
  HostSide() = default;
  HostSide(const HostSide&) = delete;
  HostSide& operator=(const HostSide&) = delete;
  virtual ~HostSide() = default;

  [[nodiscard]] virtual engine::Engine& engine() = 0;

  /// Begins a collective on memory of the host, behind those that were begun before; or, if its
  /// options say so, on memory of the device that is registered. The caller waits for its work and
  /// moves the engine. `slot`: the index of the staging slot; no other collective in flight has it.
  [[nodiscard]] virtual Status start(const Collective& collective, std::size_t slot,
                                     engine::Work& work, Deadline deadline) = 0;

  /// With the adapters by which the other ranks are reached, if there are; see Transport.
  [[nodiscard]] virtual Status register_device_memory(const RegisteredMemory& memory,
                                                      int dma_buf) = 0;

  /// From now on loss() knows when other ranks are gone.
  [[nodiscard]] virtual Status watch() = 0;
  /// Of a rank that died, or failed, or left, once what it had done before has had the time to
  /// arrive; success while there is none. Looks at intervals, so that it can be asked all the time.
  [[nodiscard]] virtual Status loss(Instant now) = 0;

  /// A call has its number, one more than the last. Gives it its tag (engine/tag.hpp). If this
  /// throws, the communicator must fail.
  virtual void note_call(Operation& operation) = 0;
  /// Asks another rank, at intervals, whether its call of that number is the same as here: kernels
  /// do not find out. If it is not, the communicator fails.
  virtual void compare_call(std::uint64_t number, Instant now) noexcept = 0;

  /// Records an operation that the offload carries out. Returns what end_record() wants.
  [[nodiscard]] virtual std::uint64_t begin_record(const Operation& operation,
                                                   Instant now) noexcept = 0;
  virtual void end_record(std::uint64_t record, bool is_done) noexcept = 0;

  /// Ends all operations of the communicator, these and the user's, here and at other ranks.
  virtual void fail(const Status& why) = 0;
};

}  // namespace hocket::device
