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

  // Of the engine. After finish() the work may be gone.
  void begin() noexcept {
    status_ = {};
    over_.store(false, std::memory_order_relaxed);
  }
  void finish(Status status) noexcept {
    status_ = std::move(status);
    over_.store(true, std::memory_order_release);
  }

 private:
  std::atomic<bool> over_ = true;
  Status status_;
};

}  // namespace hocket::engine
