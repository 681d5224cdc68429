// A communicator from inside: who is in it, its channels, and its operations.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hocket/communicator.hpp"
#include "hocket/status.hpp"

#include "base/fd.hpp"
#include "comm/context.hpp"
#include "comm/membership.hpp"
#include "comm/planner.hpp"
#include "comm/started.hpp"
#include "device/group.hpp"

namespace hocket::comm {

struct Devices;

/// For people: "recv from 0 with tag 3".
[[nodiscard]] std::string describe(const engine::Parcel& parcel);

[[nodiscard]] Received received_of(const Message& message,
                                   const engine::Received& received) noexcept;

/// One thread at a time. Made by make_group(). Nothing here throws but the constructor: where
/// memory or threads run out, the communicator fails.
class Group final : private engine::GroupObserver {
 public:
  Group(std::shared_ptr<Context> context, Membership members, Duration timeout);
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group() override;

  /// Throws in a child made by fork(), before anything here waits for a lock.
  void check_process() const {
    if (origin_.is_inherited()) [[unlikely]]
      throw_error(inherited());
  }
  [[nodiscard]] bool is_inherited() const noexcept { return origin_.is_inherited(); }
  [[nodiscard]] static Status inherited();

  [[nodiscard]] const Membership& members() const noexcept { return members_; }
  [[nodiscard]] const Place& place() const noexcept { return members_.place(); }
  [[nodiscard]] const Context& context() const noexcept { return *context_; }
  [[nodiscard]] engine::Engine& engine() const noexcept { return *context_->engine; }

  /// Calls begin(), which gives a Status or a Result. What it throws becomes its failure, and the
  /// communicator's: other ranks may have begun what this one can't do.
  template <class Name, class Begin>
  [[nodiscard]] auto guarded(const Name& operation, const Begin& begin) noexcept
      -> decltype(begin()) {
    try {
      return begin();
    } catch (...) {
      return fail_by_exception(operation);
    }
  }

  /// All but the work and its deadline. Fails, with the operation's name, when this rank alone can
  /// tell that it can't be. Of device memory it must be what the transport was told of.
  [[nodiscard]] Status set_up(const Collective& collective, Operation& operation);
  /// Counts it, and says when it must be over.
  void number(const Collective& collective, Operation& operation);

  [[nodiscard]] Status run(const Collective& collective);
  [[nodiscard]] Status run(const Collective& collective, Operation& operation);
  /// What a failure of an operation is to the caller.
  [[nodiscard]] Status explain(const Operation& operation, const Status& why) const noexcept;

  /// Of a message, all that the engine needs but its work and where to say what was received. Fails
  /// when it can't be.
  [[nodiscard]] Result<engine::Parcel> parcel_of(const Message& message);
  [[nodiscard]] Result<Received> run(const Message& message);
  [[nodiscard]] engine::Group& engine_group() noexcept { return group_; }
  /// So that the engine knows when other ranks are gone: all of a few, some of many.
  [[nodiscard]] Status open_watch();
  [[nodiscard]] Status explain(const Message& message, const Status& why) const noexcept;

  /// The device that a collective is for; -1: it is for the host.
  [[nodiscard]] Result<int> device_of(const Collective& collective);
  [[nodiscard]] Result<device::Operation*> start_on_device(const Collective& collective, int device,
                                                           device::Group::Order order,
                                                           bool is_awaited);
  [[nodiscard]] Status run_on_device(const Collective& collective, int device);
  [[nodiscard]] device::Group& devices();
  [[nodiscard]] Status explain(const device::Operation& operation,
                               const Status& why) const noexcept;

  /// Over the store: a rank that does not come ends nothing else.
  [[nodiscard]] Status monitored_barrier(std::optional<Duration> timeout);
  [[nodiscard]] Result<std::shared_ptr<Group>> split(int color, int key);

  /// Any thread, also while others are at work here.
  void abort(std::string_view reason) noexcept;
  /// Any thread.
  [[nodiscard]] StartedPool& started() noexcept { return started_; }

 private:
  void on_failure(const engine::Failure& failure) noexcept override;
  void on_stall(const engine::Stall& stall) noexcept override;
  [[nodiscard]] Status in_world(const engine::Failure& failure) const;
  /// Fails if this rank has called something else.
  void compare(const health::Question& question);
  /// Why the communicator failed, as all its ranks are told; `why` itself if it is this rank's own
  /// affair, is not found out in a moment, or the communicator has not failed.
  [[nodiscard]] Status cause_of(const Status& why, bool expects_failure = false) const noexcept;

  [[nodiscard]] Status fail_by_exception(std::string_view operation) noexcept;
  [[nodiscard]] Status fail_by_exception(CollectiveKind kind) noexcept {
    return fail_by_exception(name(kind));
  }
  /// A failure as explain() has it, or without memory for that `why` itself.
  template <class Explain>
  [[nodiscard]] static Status explained(const Status& why, const Explain& explain) noexcept {
    try {
      return explain();
    } catch (...) {
      return why;
    }
  }

  [[nodiscard]] Status plan(const Collective& collective, Operation& operation);
  [[nodiscard]] Result<engine::Parcel> parcel(const Message& message);
  [[nodiscard]] Status watch_all();
  [[nodiscard]] Status meet(std::uint64_t number, Duration timeout);
  [[nodiscard]] Result<std::shared_ptr<Group>> divide(int color, int key);
  [[nodiscard]] Result<ChannelId> open(const engine::Port& port);
  [[nodiscard]] Status open_mail(std::uint32_t peer);
  [[nodiscard]] Deadline deadline_of(const Options& options, Instant now) const;
  [[nodiscard]] Result<device::Operation*> begin_on_device(const Collective& collective, int device,
                                                           device::Group::Order order,
                                                           bool is_awaited);
  [[nodiscard]] Status split_devices(int color, int key, Group* child);

  const Origin origin_;
  const std::shared_ptr<Context> context_;
  const Membership members_;
  const Duration timeout_;
  std::uint64_t operations_ = 0;              // begun
  std::uint64_t monitored_barriers_ = 0;      // likewise
  std::uint64_t warned_of_ = 0;               // the operation whose stall was reported
  std::unique_ptr<engine::Mailbox> mailbox_;  // from the first message on
  engine::Group group_;
  std::unique_ptr<health::WatchedGroup> watched_;  // of the monitor, if there is one
  std::byte token_[2] = {};  // what ranks tell each other at a barrier: nothing
  std::unordered_map<std::uint64_t, ChannelId> channels_;  // by peer and lane
  Planner planner_;
  StartedPool started_;
  std::unique_ptr<Devices> devices_;  // from the first operation on device memory on
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
