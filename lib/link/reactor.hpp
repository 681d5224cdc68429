// The thread of the control plane: one a process, whatever the number of its worlds. It makes and
// watches connections whose speed does not matter, and keeps their times.
#pragma once

#include <memory>
#include <thread>
#include <utility>

#include <asio/bind_allocator.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>

#include "hocket/status.hpp"

#include "base/fd.hpp"
#include "link/asio_files.hpp"
#include "link/handler_memory.hpp"

namespace hocket::link {

class Reactor {
 public:
  /// The one of this process, which lives as long as somebody has it. Fails where the system gives
  /// no thread or no descriptors.
  [[nodiscard]] static Result<std::shared_ptr<Reactor>> of_process();

  Reactor();  // throws; for of_process()
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;
  /// Not on its own thread.
  ~Reactor();

  [[nodiscard]] asio::io_context& io() noexcept { return io_; }
  /// Does it on the thread, soon. Throws without memory.
  template <class Action>
  void post(Action&& action) {
    asio::post(io_, std::forward<Action>(action));
  }
  /// Does the same with memory of the caller.
  template <class Action>
  void post(HandlerMemory& memory, Action&& action) {
    asio::post(io_, asio::bind_allocator(HandlerMemory::Allocator<Action>(memory),
                                         std::forward<Action>(action)));
  }

 private:
  void run() noexcept;

  asio::io_context io_{1};
  const Fd anchor_;  // by which the io_context's own descriptors are found
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  std::unique_ptr<ReactorFiles> files_;
  std::thread thread_;
};

}  // namespace hocket::link
