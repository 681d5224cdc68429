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

namespace hocket::inline v0 {

/// The end of an operation.
struct Completion {
  std::uint64_t tag = 0;  // Options::queue_tag
  Status status = {};     // success, or why it failed, as Work::wait() would throw it
  std::optional<Received> received = {};  // what a receive got that went well
};

/// Operations report here when they have ended (Options::queue), of any communicators. Any thread
/// may call any function. The queue must outlive what is prepared with it.
class HOCKET_API CompletionQueue {
 public:
  /// Throws if the system has no descriptor or memory for it.
  CompletionQueue();
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;
  /// Waits until all operations that report here have ended. No other thread may be in next().
  ~CompletionQueue();

  /// Returns the completion of an operation that has ended, the oldest first. Waits for one, at
  /// most so long; no value: for ever; zero or less: not at all. Returns nothing if the time is
  /// over.
  ///
  /// The thread that waits moves operations on host memory on. Those on device memory are moved on
  /// by threads of the library, so that their completions may come some milliseconds late. To find
  /// out why an operation failed can take 0.2 s, also without a timeout.
  [[nodiscard]] std::optional<Completion> next(
      std::optional<std::chrono::nanoseconds> timeout = {});

  /// A descriptor that is readable while a completion can be taken, for poll(), epoll or an event
  /// loop. It belongs to the queue: only watch it. Then call next() with zero until it returns
  /// nothing.
  [[nodiscard]] int fd() const noexcept;

 private:
  friend class comm::Reports;
  std::unique_ptr<comm::Reports> reports_;
};

}  // namespace hocket::inline v0
