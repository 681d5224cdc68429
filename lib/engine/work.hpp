// What became of an operation: one word that its thread writes, and others wait for.
#pragma once

#include <atomic>
#include <utility>

#include "hocket/status.hpp"

namespace hocket::engine {

/// What is called at the end of a work, under a lock: the function must not wait or throw.
struct EndNote {
  void (*function)(void* context, StatusCode status) = nullptr;  // null: nothing is called
  void* context = nullptr;
};

class Work {
 public:
  [[nodiscard]] bool is_over() const noexcept { return over_.load(std::memory_order_acquire); }
  /// Once it is over.
  [[nodiscard]] const Status& status() const noexcept { return status_; }

  /// To be called before the operation begins, or under the lock under which it ends.
  void call_at_end(EndNote note) noexcept { at_end_ = note; }
  [[nodiscard]] EndNote at_end() const noexcept { return at_end_; }

  // Of the engine. After finish() the work may be gone.
  void begin() noexcept {
    status_ = {};
    over_.store(false, std::memory_order_relaxed);
  }
  void finish(Status status) noexcept {
    status_ = std::move(status);
    const EndNote at_end = at_end_;
    const StatusCode code = status_.code();
    over_.store(true, std::memory_order_release);
    if (at_end.function != nullptr) at_end.function(at_end.context, code);
  }

 private:
  std::atomic<bool> over_ = true;
  Status status_;
  EndNote at_end_ = {};
};

}  // namespace hocket::engine
