// What all operations of a communicator share: its membership, its channels in the engine, its
// timeout, and the monitor, which finds out why ranks fail.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "hocket/collective.hpp"
#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "base/exception.hpp"
#include "base/limits.hpp"
#include "comm/context.hpp"
#include "comm/membership.hpp"
#include "engine/engine.hpp"
#include "engine/group.hpp"
#include "engine/mailbox.hpp"
#include "engine/program.hpp"
#include "health/watched_groups.hpp"

namespace hocket::comm {

/// Any thread may call it. The constructor, open() and open_mail() throw std::bad_alloc if memory
/// runs out; other functions do not throw.
class GroupCore final : private engine::GroupObserver {
 public:
  /// `timeout` is for operations that set none; `overlap` of them may be under way at once.
  GroupCore(std::shared_ptr<Context> context, Membership members, Duration timeout,
            std::uint32_t overlap);
  GroupCore(const GroupCore&) = delete;
  GroupCore& operator=(const GroupCore&) = delete;
  /// All operations of the communicator must have ended.
  ~GroupCore() override;

  [[nodiscard]] const Membership& members() const noexcept { return members_; }
  [[nodiscard]] const Position& position() const noexcept { return members_.position(); }
  [[nodiscard]] const std::shared_ptr<Context>& context() const noexcept { return context_; }
  [[nodiscard]] engine::Engine& engine() const noexcept { return *context_->engine; }
  [[nodiscard]] engine::Group& group() noexcept { return group_; }
  [[nodiscard]] Duration timeout() const noexcept { return timeout_; }
  [[nodiscard]] std::uint32_t overlap() const noexcept { return group_.overlap; }
  [[nodiscard]] Deadline deadline_of(const OperationOptions& options, Instant now) const {
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

  /// To be held while an operation begins, so that it is numbered and given to the engine as one
  /// step, before or after those of other threads.
  [[nodiscard]] std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }

  // With the lock.
  /// Returns the channel of a port in a bank, and opens it at the first call.
  [[nodiscard]] Result<ChannelId> open(const engine::Port& port, std::uint32_t bank);
  [[nodiscard]] Status open_mail(std::uint32_t peer);

  /// Opens channels to other ranks, so that the engine notices when one is gone: to all ranks in
  /// small communicators, else to those at distances 1, 2, 4, …
  [[nodiscard]] Status open_watch();

  /// Returns why the communicator failed, the same on all its ranks. Returns `why` itself if the
  /// failure concerns this rank alone, if no cause is found in time, or if the communicator has not
  /// failed.
  [[nodiscard]] Status cause_of(const Status& why, bool expects_failure = false) const noexcept;
  /// Names the operation in which that rank may have died, for the monitor's report.
  void mention(std::uint32_t peer, std::string operation) const noexcept;

  /// Builds the error that the caller gets: "WHAT failed on rank R of N", with its operation and
  /// its cause. Returns `why` itself if there is no memory for that.
  template <class Describe>
  [[nodiscard]] Status failure(const Status& why, const Describe& describe) const noexcept {
    try {
      const auto [what, operation] = describe();
      return failure(why, what, operation);
    } catch (...) {
      return why;
    }
  }

  /// The same for an operation that could not begin, because the communicator had failed.
  [[nodiscard]] Status failure_before(std::string_view operation, const Status& why) const noexcept;

  /// The failure, with ranks of the world, if it is known what this rank called, and the other rank
  /// called something else.
  [[nodiscard]] Status compare(std::optional<std::uint64_t> ours,
                               const health::Question& question) const;

  void abort(std::string_view reason) noexcept;

 private:
  [[nodiscard]] Status failure(const Status& why, std::string_view what,
                               std::string_view operation) const;
  bool on_failure(const engine::Failure& failure) noexcept override;
  void ask(const health::Question& question) noexcept;
  void on_stall(const engine::Stall& stall) noexcept override;
  void warn_that_others_wait(const health::Question& question);
  [[nodiscard]] Status in_world(const engine::Failure& failure) const;
  [[nodiscard]] Status with_size(Status why) const;
  [[nodiscard]] Status fail_by_exception(std::string_view operation) noexcept;
  [[nodiscard]] Status fail_by_exception(CollectiveKind kind) noexcept {
    return fail_by_exception(name(kind));
  }

  const std::shared_ptr<Context> context_;
  const Membership members_;
  const Duration timeout_;
  std::array<std::uint64_t, limits::overlap_max> warned_of_ = {};  // by bank: whose stall was told
  std::uint64_t said_late_ = 0;  // behind the last call of which it was said that others wait in it
  std::unique_ptr<engine::Mailbox> mailbox_;  // from the first message on
  std::mutex mutex_;
  engine::Group group_;
  std::unique_ptr<health::WatchedGroup> watched_;          // of the monitor, if there is one
  std::unordered_map<std::uint64_t, ChannelId> channels_;  // by peer and lane
};

}  // namespace hocket::comm
