// A library that does whole collectives on device memory, in streams: NCCL. It is found when the
// program runs.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "hocket/collective.hpp"
#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "device/host_side.hpp"
#include "device/runtime.hpp"
#include "device/windows.hpp"

namespace hocket::device {

/// How long a call may wait for other ranks.
struct Limit {
  Deadline deadline = {};
  HostSide* side = nullptr;  // that knows when one is lost; null where nobody asks
};

/// A communicator's presence in the library, on one device. One thread at a time, but abort().
class OffloadCommunicator {
 public:
  OffloadCommunicator() = default;
  OffloadCommunicator(const OffloadCommunicator&) = delete;
  OffloadCommunicator& operator=(const OffloadCommunicator&) = delete;
  /// Its operations are over, or it was aborted.
  virtual ~OffloadCommunicator() = default;

  /// Whether it can do it; the same on all ranks.
  [[nodiscard]] virtual bool can(const Collective& collective) const = 0;

  /// Puts a collective that it can do into a stream, behind what is there.
  [[nodiscard]] virtual Status launch(const Collective& collective, void* stream,
                                      const Limit& limit) = 0;

  /// What went wrong meanwhile, if anything.
  [[nodiscard]] virtual Status check() = 0;

  /// Ends all operations; they don't touch memory any more when it returns. That may take as long
  /// as what is before them in their streams. Any thread, as the last call.
  virtual void abort() = 0;

  /// As Communicator::split: all ranks call it, when no operation is being launched. Null for a
  /// color below zero.
  [[nodiscard]] virtual Result<std::unique_ptr<OffloadCommunicator>> split(int color, int key,
                                                                           const Position& position,
                                                                           const Limit& limit) = 0;

  /// Tells it of memory that is used again and again, which may make that faster. Null where it
  /// has no use for it. An operation has announced memory on all ranks, or on none.
  [[nodiscard]] virtual void* announce(void* memory, std::size_t bytes) = 0;
  /// No operation that has the memory is under way.
  virtual void forget(void* announced) = 0;
};

struct OffloadOptions {
  Position position = {};
  Runtime runtime;
  Limit limit = {};
};

struct OffloadKind {
  std::string_view name;     // "nccl"
  std::string_view summary;  // for people, in one line
  /// The version of the library that is here, as all ranks must have it; else what is missing, and
  /// what would help.
  Result<std::string> (*version)();
  /// What one rank makes and all must have for make().
  Result<std::string> (*make_id)();
  /// All ranks call it, and wait for each other.
  Result<std::unique_ptr<OffloadCommunicator>> (*make)(const OffloadOptions& options,
                                                       std::string_view id);
};

/// Of this build; null for none.
[[nodiscard]] const OffloadKind* built_in_offload() noexcept;

}  // namespace hocket::device
