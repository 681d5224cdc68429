// Operations that report their ends to a queue, which an event loop can watch.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "hocket/export.h"
#include "hocket/message.hpp"
#include "hocket/status.hpp"

// Inside the library.
namespace hocket::comm {
class Reports;
}

namespace hocket::inline v1 {

/// The end of an operation.
struct Completion {
  std::uint64_t tag = 0;  // OperationOptions::queue_tag
  Status status = {};     // success, or why it failed, as Work::wait() would throw it
  std::optional<Received> received = {};  // what a receive got that went well
};

/// A queue to which operations report when they have ended (OperationOptions::queue). They may
/// belong to any communicators. Any thread may call any function. The queue must outlive operations
/// that were prepared with it. A child made by fork() can't use it.
class HOCKET_API CompletionQueue {
 public:
  /// Throws if the system has no descriptor or memory for it.
  CompletionQueue();
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;
  /// Waits until all operations that report here have ended. No other thread may be in next().
  ~CompletionQueue();

  /// Returns the completion of an operation that has ended, the oldest first. Waits at most
  /// `timeout` for one; no value means for ever, and zero or less means not at all. Returns nothing
  /// if the time is over.
  ///
  /// The waiting thread makes progress on operations on host memory. Threads of the library do so
  /// for device memory, and those completions may come some milliseconds late. If an operation has
  /// failed, the call may take up to 0.2 s to find out why, whatever the timeout.
  [[nodiscard]] std::optional<Completion> next(
      std::optional<std::chrono::nanoseconds> timeout = {});

  /// A descriptor for poll(), epoll or an event loop. It is readable while a completion can be
  /// taken; then call next() with zero until it returns nothing. The queue owns it: do not read,
  /// write or close it.
  [[nodiscard]] int fd() const noexcept;

 private:
  friend class comm::Reports;
  std::unique_ptr<comm::Reports> reports_;
};

}  // namespace hocket::inline v1
