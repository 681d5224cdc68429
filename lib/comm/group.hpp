// The inside of a communicator: its membership, and the paths that run its operations.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "hocket/communicator.hpp"
#include "hocket/status.hpp"

#include "base/fd.hpp"
#include "comm/batch.hpp"
#include "comm/context.hpp"
#include "comm/group_core.hpp"
#include "comm/host_path.hpp"
#include "comm/mail.hpp"
#include "comm/membership.hpp"
#include "comm/operation.hpp"

namespace hocket::comm {

class DevicePath;

/// Which path runs a collective, and on which device.
struct Route {
  CollectivePath& path;
  int device = -1;  // on which its memory is; -1: it is the host's
};

/// Any thread may call it. Make it with make_group(). Only the constructor and those that say so
/// throw; if memory or threads run out, the communicator fails.
class Group {
 public:
  Group(const std::shared_ptr<Context>& context, Membership members, Duration timeout);
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group();

  /// Throws in a child made by fork(), before anything here waits for a lock.
  void check_process() const {
    if (origin_.is_inherited()) [[unlikely]]
      throw_error(inherited());
  }
  [[nodiscard]] bool is_inherited() const noexcept { return origin_.is_inherited(); }
  [[nodiscard]] static Status inherited();

  [[nodiscard]] const Position& position() const noexcept { return core_.position(); }
  [[nodiscard]] const Context& context() const noexcept { return *core_.context(); }
  [[nodiscard]] engine::Engine& engine() const noexcept { return core_.engine(); }
  [[nodiscard]] GroupCore& core() noexcept { return core_; }
  [[nodiscard]] HostPath& host_path() noexcept { return host_path_; }
  [[nodiscard]] Mail& mail() noexcept { return mail_; }
  [[nodiscard]] Batch& batch() noexcept { return batch_; }

  /// The ranks of this communicator on this host, and which of them this one is.
  [[nodiscard]] Position local_position() const noexcept;
  // These throw InvalidArgument for a rank that does not exist.
  [[nodiscard]] const std::string& host_of(int rank) const;
  /// -1 if it is no rank of the other, which must be of the same world.
  [[nodiscard]] int rank_in(const Group& other, int rank) const;

  /// Chooses the path of a collective. Fails if its memory and its stream do not belong together.
  [[nodiscard]] Result<Route> route_of(const Collective& collective);
  [[nodiscard]] Status run(const Collective& collective);

  /// Meets in the store. If a rank does not come, only this call fails, not the communicator.
  [[nodiscard]] Status monitored_barrier(std::optional<Duration> timeout);
  [[nodiscard]] Result<std::shared_ptr<Group>> split(int color, int key);
  /// If it fails, this communicator does not. Throws std::bad_alloc if memory runs out.
  [[nodiscard]] Result<std::shared_ptr<Group>> group(std::span<const int> ranks,
                                                     std::string_view name,
                                                     std::optional<Duration> timeout);

  void abort(std::string_view reason) noexcept { core_.abort(reason); }
  [[nodiscard]] OperationPool& operation_pool() noexcept { return operation_pool_; }

 private:
  /// With the core's lock.
  [[nodiscard]] DevicePath& device_path();
  [[nodiscard]] Status meet(std::uint64_t number, Duration timeout);
  [[nodiscard]] Result<std::shared_ptr<Group>> divide(int color, int key);
  [[nodiscard]] std::shared_ptr<Group> make_part(std::uint64_t id,
                                                 std::span<const std::uint32_t> ranks);
  [[nodiscard]] Status split_devices(int color, int key, Group* child);

  const Origin origin_;
  GroupCore core_;
  HostPath host_path_;
  Mail mail_;
  Batch batch_;
  std::unique_ptr<DevicePath> device_path_;  // from the first operation on device memory on
  std::atomic<std::uint64_t> monitored_barriers_ = 0;  // begun
  OperationPool operation_pool_;
};

/// A child made by fork() does not run its destructor.
template <class... Arguments>
[[nodiscard]] std::shared_ptr<Group> make_group(Arguments&&... arguments) {
  auto group = std::make_unique<Group>(std::forward<Arguments>(arguments)...);
  return {group.release(), [](const Group* each) {
            if (each->is_inherited()) return abandon(static_cast<const void*>(each));
            delete each;
          }};
}

}  // namespace hocket::comm
