// Calls the program's functions when operations have ended. It has threads of its own, so these
// functions may wait and call Hocket.
#pragma once

#include <functional>
#include <memory>

#include "hocket/collective.hpp"
#include "hocket/status.hpp"

#include "engine/work.hpp"

namespace hocket::comm {

/// Any thread may call any function.
class Callbacks {
 public:
  Callbacks();
  Callbacks(const Callbacks&) = delete;
  Callbacks& operator=(const Callbacks&) = delete;
  /// Returns at once. Functions of operations that have ended are still called.
  ~Callbacks();

  class Threads;

  /// A function that is to be called, and its place in the queue.
  struct Call {
    std::function<void(StatusCode status)> function = {};
    engine::EndNote former = {};  // which is called first, under the lock under which the work ends
    std::shared_ptr<Threads> threads = {};
    StatusCode status = StatusCode::ok;
    Call* next = nullptr;
  };
  /// Throws if memory or threads run out.
  [[nodiscard]] std::unique_ptr<Call> prepare(std::function<void(StatusCode status)> function);
  /// To be called at the end of a work: it only queues the function. Takes over the call, and must
  /// be called once, or dropped.
  [[nodiscard]] static engine::EndNote note_of(std::unique_ptr<Call> call) noexcept;
  static void drop(engine::EndNote note) noexcept;

  /// For the operation's on_end; empty if there is none. Throws if memory or threads run out.
  [[nodiscard]] engine::EndNote note_for(const OperationOptions& options);
  /// Calls on_end, if there is one, and logs what it throws.
  static void call(const OperationOptions& options, StatusCode status) noexcept;

 private:
  const std::shared_ptr<Threads> threads_;
};

}  // namespace hocket::comm
