#include "comm/callbacks.hpp"

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>
#include <utility>

#include "base/exception.hpp"
#include "base/log.hpp"

namespace hocket::comm {
namespace {

/// If more functions than this wait for each other, that is a mistake of the program.
constexpr std::size_t threads_max = 64;

template <class Function>
void call_and_log(const Function& function) noexcept {
  try {
    function();
  } catch (...) {
    log::line(log::Level::error,
              "a function for the end of an operation threw an exception, which is ignored: {}",
              status_of_exception().what());
  }
}

}  // namespace

/// A function may wait for something that another function does, which then needs a thread as well.
/// So one thread is always kept idle.
class Callbacks::Threads : public std::enable_shared_from_this<Threads> {
 public:
  /// Starts the first thread, if there is none yet. Throws if that fails.
  void have_one() {
    const std::lock_guard lock(mutex_);
    if (count_ == 0) add();
  }

  /// Called under the engine's lock, so it waits for nobody.
  void push(Call& call) noexcept {
    const std::lock_guard lock(mutex_);
    *(last_ == nullptr ? &first_ : &last_->next) = &call;
    last_ = &call;
    changed_.notify_one();
  }

  void end() noexcept {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    changed_.notify_all();
  }

 private:
  void add() {
    ++count_;
    ++idle_;
    try {
      std::thread([self = shared_from_this()] { self->run(); }).detach();
    } catch (...) {
      --count_;
      --idle_;
      throw;
    }
  }

  void run() noexcept {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return first_ != nullptr || is_ending_; });
      if (first_ == nullptr) return;
      std::unique_ptr<Call> call(std::exchange(first_, first_->next));
      if (first_ == nullptr) last_ = nullptr;
      if (--idle_ == 0 && count_ < threads_max) {
        static_cast<void>(described([&] {
          add();
          return Status();
        }));
      }
      lock.unlock();
      call_and_log([&] { call->function(call->status); });
      call = nullptr;  // what the function holds may be the last communicator of a world
      lock.lock();
      ++idle_;
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Call* first_ = nullptr;  // to be called, in the order in which the operations ended
  Call* last_ = nullptr;
  std::size_t count_ = 0;
  std::size_t idle_ = 0;
  bool is_ending_ = false;
};

Callbacks::Callbacks() : threads_(std::make_shared<Threads>()) {}

Callbacks::~Callbacks() { threads_->end(); }

std::unique_ptr<Callbacks::Call> Callbacks::prepare(
    std::function<void(StatusCode status)> function) {
  threads_->have_one();
  auto call = std::make_unique<Call>();
  call->function = std::move(function);
  call->threads = threads_;
  return call;
}

engine::EndNote Callbacks::note_of(std::unique_ptr<Call> call) noexcept {
  const auto note = [](void* context, StatusCode status) {
    auto& it = *static_cast<Call*>(context);
    if (it.former.function != nullptr) it.former.function(it.former.context, status);
    it.status = status;
    it.threads->push(it);
  };
  return {.function = note, .context = call.release()};
}

void Callbacks::drop(engine::EndNote note) noexcept { delete static_cast<Call*>(note.context); }

engine::EndNote Callbacks::note_for(const OperationOptions& options) {
  if (options.on_end == nullptr) return {};
  return note_of(prepare([on_end = options.on_end, context = options.on_end_context](
                             StatusCode status) { on_end(context, status); }));
}

void Callbacks::call(const OperationOptions& options, StatusCode status) noexcept {
  if (options.on_end == nullptr) return;
  call_and_log([&] { options.on_end(options.on_end_context, status); });
}

}  // namespace hocket::comm
