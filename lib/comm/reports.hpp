// The inside of a CompletionQueue: operations that have ended, and those that will.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "hocket/queue.hpp"
#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "comm/callbacks.hpp"
#include "comm/operation.hpp"
#include "engine/work.hpp"

namespace hocket::comm {

struct Context;

/// Any thread may call any function.
class Reports {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Reports>> make();
  [[nodiscard]] static Reports& of(CompletionQueue& queue) noexcept { return *queue.reports_; }
  Reports(const Reports&) = delete;
  Reports& operator=(const Reports&) = delete;
  ~Reports() = default;

  [[nodiscard]] bool is_inherited() const noexcept { return origin_.is_inherited(); }
  [[nodiscard]] static Status inherited() { return inherited_status("a completion queue"); }
  /// After the first call, the descriptor is readable while the list is not empty.
  [[nodiscard]] int fd() noexcept;

  /// Announces an operation of this world, which will report here. If it ends silently (path.hpp),
  /// waiting threads must look for it. Throws if memory runs out.
  void expect(const std::shared_ptr<Context>& world, bool ends_silently);
  /// Takes that back, because the operation could not begin.
  void expect_no_more() noexcept;
  /// The engine calls it when the operation, its context, has ended.
  static void note(void* operation, StatusCode status) noexcept;
  /// Says that the operation has begun, so it can be taken once it has ended. Returns whether it
  /// has ended already; then the caller must wake waiting threads (Engine::wake).
  [[nodiscard]] static bool publish(Operation& operation) noexcept;

  /// Returns the operation that ended first, or null if the deadline passes. The caller takes over
  /// the hold on it (let_go() in path.hpp).
  [[nodiscard]] Operation* take(Deadline deadline);
  /// Returns whether an operation has ended or is in flight that was not taken yet.
  [[nodiscard]] bool expects_any();

 private:
  explicit Reports(Fd event) noexcept : event_(std::move(event)) {}
  struct Former;
  void announce() const noexcept;
  void lead(std::shared_ptr<Context> world, Former& former) noexcept;
  void ring() noexcept;
  void push(Operation& operation) noexcept;
  [[nodiscard]] Operation* pop(Former& former) noexcept;
  void wait(std::unique_lock<std::mutex>& lock, Deadline deadline);

  const Origin origin_;
  const Fd event_;  // an eventfd
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_watched_ = false;  // somebody has the descriptor
  Operation* first_ = nullptr;
  Operation* last_ = nullptr;
  std::size_t expected_ = 0;          // operations that have not been taken
  std::shared_ptr<Context> world_;    // of the operation announced last; null if none is expected
  bool must_look_ = false;            // some operations are of another world, or end silently
  std::vector<engine::Work*> bells_;  // of waiting threads
};

/// Returns what the engine calls at the end of an operation in the background: for its queue, or
/// for its on_end. Without an operation there is no queue. Throws if memory or threads run out.
[[nodiscard]] engine::EndNote note_of(Context& context, Operation* operation,
                                      const OperationOptions& options);

}  // namespace hocket::comm
