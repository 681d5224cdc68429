// What holds the ranks of a communicator together: their channels in the engine, and the monitor,
// which finds out why they fail.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "hocket/collective.hpp"
#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "base/exception.hpp"
#include "comm/context.hpp"
#include "comm/membership.hpp"
#include "engine/engine.hpp"
#include "engine/group.hpp"
#include "engine/mailbox.hpp"
#include "engine/program.hpp"
#include "health/watched_groups.hpp"

namespace hocket::comm {

/// One thread at a time, except where a function says otherwise. Only the constructor throws, and
/// functions that say so: where memory or threads run out, the communicator fails.
class Bond final : private engine::GroupObserver {
 public:
  /// `timeout`: of operations that set none.
  Bond(std::shared_ptr<Context> context, Membership members, Duration timeout);
  Bond(const Bond&) = delete;
  Bond& operator=(const Bond&) = delete;
  /// Its operations are over.
  ~Bond() override;

  [[nodiscard]] const Membership& members() const noexcept { return members_; }
  [[nodiscard]] const Place& place() const noexcept { return members_.place(); }
  [[nodiscard]] const std::shared_ptr<Context>& context() const noexcept { return context_; }
  [[nodiscard]] engine::Engine& engine() const noexcept { return *context_->engine; }
  [[nodiscard]] engine::Group& group() noexcept { return group_; }
  [[nodiscard]] Duration timeout() const noexcept { return timeout_; }
  [[nodiscard]] Deadline deadline_of(const Options& options, Instant now) const {
    return Deadline::after(now, options.timeout.value_or(timeout_));
  }

  /// Calls begin(), which returns a Status or a Result. If it throws, the exception becomes its
  /// failure and the communicator's, because other ranks may have begun what this one can't do.
  template <class Name, class Begin>
  [[nodiscard]] auto guarded(const Name& operation, const Begin& begin) noexcept
      -> decltype(begin()) {
    try {
      return begin();
    } catch (...) {
      return fail_by_exception(operation);
    }
  }

  // These two throw without memory.
  /// Opens a channel at the first call for a port, and remembers it.
  [[nodiscard]] Result<ChannelId> open(const engine::Port& port);
  [[nodiscard]] Status open_mail(std::uint32_t peer);

  /// So that the engine knows when other ranks are gone: all of a few, some of many.
  [[nodiscard]] Status open_watch();

  /// Why the communicator failed, as all its ranks are told. Returns `why` if that is this rank's
  /// own affair, if the cause is not found out in a moment, or if the communicator has not failed.
  [[nodiscard]] Status cause_of(const Status& why, bool expects_failure = false) const noexcept;
  /// That rank may have died during this operation: if it has, the story should name it.
  void mention(std::uint32_t peer, std::string operation) const noexcept;

  /// Any thread, also while others are at work here.
  void abort(std::string_view reason) noexcept;

 private:
  void on_failure(const engine::Failure& failure) noexcept override;
  void on_stall(const engine::Stall& stall) noexcept override;
  [[nodiscard]] Status in_world(const engine::Failure& failure) const;
  /// Fails if this rank has called something else.
  void compare(const health::Question& question);
  [[nodiscard]] Status fail_by_exception(std::string_view operation) noexcept;
  [[nodiscard]] Status fail_by_exception(CollectiveKind kind) noexcept {
    return fail_by_exception(name(kind));
  }

  const std::shared_ptr<Context> context_;
  const Membership members_;
  const Duration timeout_;
  std::uint64_t warned_of_ = 0;               // the operation whose stall was reported
  std::unique_ptr<engine::Mailbox> mailbox_;  // from the first message on
  engine::Group group_;
  std::unique_ptr<health::WatchedGroup> watched_;          // of the monitor, if there is one
  std::unordered_map<std::uint64_t, ChannelId> channels_;  // by peer and lane
};

/// A failure as explain() has it, or without memory for that `why` itself.
template <class Explain>
[[nodiscard]] Status explained(const Status& why, const Explain& explain) noexcept {
  try {
    return explain();
  } catch (...) {
    return why;
  }
}

}  // namespace hocket::comm
