// A communicator from inside: who is in it, and the paths on which its operations are run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "hocket/communicator.hpp"
#include "hocket/status.hpp"

#include "base/fd.hpp"
#include "comm/bond.hpp"
#include "comm/context.hpp"
#include "comm/host_path.hpp"
#include "comm/mail.hpp"
#include "comm/membership.hpp"
#include "comm/operation.hpp"

namespace hocket::comm {

class DevicePath;

/// The way of one collective.
struct Route {
  CollectivePath& path;
  int device = -1;  // on which its memory is; -1: it is the host's
};

/// One thread at a time. Made by make_group(). Nothing here throws but the constructor: where
/// memory or threads run out, the communicator fails.
class Group {
 public:
  Group(std::shared_ptr<Context> context, Membership members, Duration timeout);
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

  [[nodiscard]] const Place& place() const noexcept { return bond_.place(); }
  [[nodiscard]] const Context& context() const noexcept { return *bond_.context(); }
  [[nodiscard]] engine::Engine& engine() const noexcept { return bond_.engine(); }
  [[nodiscard]] Bond& bond() noexcept { return bond_; }
  [[nodiscard]] Mail& mail() noexcept { return mail_; }

  /// How a collective is run. Fails where its memory and its stream don't go together.
  [[nodiscard]] Result<Route> route_of(const Collective& collective);
  [[nodiscard]] Status run(const Collective& collective);

  /// Over the store: a rank that does not come ends nothing else.
  [[nodiscard]] Status monitored_barrier(std::optional<Duration> timeout);
  [[nodiscard]] Result<std::shared_ptr<Group>> split(int color, int key);

  /// Any thread, also while others are at work here.
  void abort(std::string_view reason) noexcept { bond_.abort(reason); }
  /// Any thread.
  [[nodiscard]] OperationPool& operations() noexcept { return operations_; }

 private:
  [[nodiscard]] DevicePath& device_path();
  [[nodiscard]] Status meet(std::uint64_t number, Duration timeout);
  [[nodiscard]] Result<std::shared_ptr<Group>> divide(int color, int key);
  [[nodiscard]] Status split_devices(int color, int key, Group* child);

  const Origin origin_;
  Bond bond_;
  HostPath host_path_;
  Mail mail_;
  std::unique_ptr<DevicePath> device_path_;  // from the first operation on device memory on
  std::uint64_t monitored_barriers_ = 0;     // begun
  OperationPool operations_;
};

/// A child made by fork() never destroys it.
template <class... Arguments>
[[nodiscard]] std::shared_ptr<Group> make_group(Arguments&&... arguments) {
  auto group = std::make_unique<Group>(std::forward<Arguments>(arguments)...);
  return {group.release(), [](const Group* each) {
            if (each->is_inherited()) return abandon(static_cast<const void*>(each));
            delete each;
          }};
}

}  // namespace hocket::comm
