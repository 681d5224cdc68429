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

/// Any thread may call anything.
class Reports {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Reports>> make();
  [[nodiscard]] static Reports& of(CompletionQueue& queue) noexcept { return *queue.reports_; }
  Reports(const Reports&) = delete;
  Reports& operator=(const Reports&) = delete;
  ~Reports() = default;

  [[nodiscard]] bool is_inherited() const noexcept { return origin_.is_inherited(); }
  [[nodiscard]] static Status inherited() { return inherited_status("a completion queue"); }
  /// From the first call on it is kept readable while the list is not empty.
  [[nodiscard]] int fd() noexcept;

  /// An operation of this world is going to report here; or it could not begin. If it ends silently
  /// (Path), those who wait must look for it. Throws if memory runs out.
  void expect(const std::shared_ptr<Context>& world, bool ends_silently);
  void expect_no_more() noexcept;
  /// What is called at its end; its context is the operation.
  static void note(void* operation, StatusCode status) noexcept;
  /// It has begun, and may be taken from here once it has ended. Returns whether it has: then those
  /// that wait must be woken (Engine::wake).
  [[nodiscard]] static bool publish(Operation& operation) noexcept;

  /// Of the operation that ended first. Its hold becomes the caller's. Null if the time is over.
  [[nodiscard]] Operation* take(Deadline deadline);
  /// Whether there is, or will be, something to take.
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
  std::size_t expected_ = 0;          // that have not been taken
  std::shared_ptr<Context> world_;    // of the last one; null if there is none
  bool must_look_ = false;            // some are of another world, or end silently
  std::vector<engine::Work*> bells_;  // of threads that wait
};

/// What is called at the end of an operation in the background, as its options say. Throws if
/// memory or threads run out.
[[nodiscard]] Callbacks::Note note_of(Context& context, Operation& operation,
                                      const Options& options);

}  // namespace hocket::comm
