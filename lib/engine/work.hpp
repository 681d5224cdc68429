// What became of an operation: one word that its thread writes, and others wait for.
#pragma once

#include <atomic>
#include <utility>

#include "hocket/status.hpp"

namespace hocket::engine {

class Work {
 public:
  [[nodiscard]] bool is_over() const noexcept { return over_.load(std::memory_order_acquire); }
  /// Once it is over.
  [[nodiscard]] const Status& status() const noexcept { return status_; }

  /// To be called before the operation begins. finish() calls the function under a lock, so it must
  /// not wait or throw.
  void call_at_end(void (*function)(void* context, StatusCode status), void* context) noexcept {
    at_end_ = function;
    context_ = context;
  }

  // Of the engine. After finish() the work may be gone.
  void begin() noexcept {
    status_ = {};
    over_.store(false, std::memory_order_relaxed);
  }
  void finish(Status status) noexcept {
    status_ = std::move(status);
    const auto at_end = at_end_;
    void* const context = context_;
    const StatusCode code = status_.code();
    over_.store(true, std::memory_order_release);
    if (at_end != nullptr) at_end(context, code);
  }

 private:
  std::atomic<bool> over_ = true;
  Status status_;
  void (*at_end_)(void* context, StatusCode status) = nullptr;
  void* context_ = nullptr;
};

}  // namespace hocket::engine
