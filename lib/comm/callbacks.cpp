#include "comm/callbacks.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "base/exception.hpp"
#include "base/log.hpp"

namespace hocket::comm {
namespace {

/// If more functions than this wait for each other, that is a mistake of the program.
constexpr std::size_t threads_max = 64;

}  // namespace

/// A function may wait for something that another function does, which then needs a thread as well.
/// So one thread is always kept idle.
class Callbacks::Threads : public std::enable_shared_from_this<Threads> {
 public:
  struct Entry {
    Options options = {};
    StatusCode status = StatusCode::ok;
    std::shared_ptr<Threads> threads = {};
    Entry* next = nullptr;
  };

  /// Starts the first thread, if there is none yet. Throws if that fails.
  void have_one() {
    const std::lock_guard lock(mutex_);
    if (count_ == 0) add();
  }

  /// Called under the engine's lock, so it waits for nobody.
  void push(Entry& entry) noexcept {
    const std::lock_guard lock(mutex_);
    *(last_ == nullptr ? &first_ : &last_->next) = &entry;
    last_ = &entry;
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
      const std::unique_ptr<Entry> entry(std::exchange(first_, first_->next));
      if (first_ == nullptr) last_ = nullptr;
      if (--idle_ == 0 && count_ < threads_max) {
        static_cast<void>(described([&] {
          add();
          return Status();
        }));
      }
      lock.unlock();
      call(entry->options, entry->status);
      lock.lock();
      ++idle_;
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Entry* first_ = nullptr;  // to be called, in the order in which the operations ended
  Entry* last_ = nullptr;
  std::size_t count_ = 0;
  std::size_t idle_ = 0;
  bool is_ending_ = false;
};

Callbacks::Callbacks() : threads_(std::make_shared<Threads>()) {}

Callbacks::~Callbacks() { threads_->end(); }

Callbacks::Note Callbacks::note_for(const Options& options) {
  if (options.on_end == nullptr) return {};
  threads_->have_one();
  auto entry = std::make_unique<Threads::Entry>();
  entry->options = options;
  entry->threads = threads_;
  const auto note = [](void* context, StatusCode status) {
    auto& noted = *static_cast<Threads::Entry*>(context);
    noted.status = status;
    noted.threads->push(noted);
  };
  return {.function = note, .context = entry.release()};
}

void Callbacks::drop(const Note& note) noexcept {
  delete static_cast<Threads::Entry*>(note.context);
}

void Callbacks::call(const Options& options, StatusCode status) noexcept {
  if (options.on_end == nullptr) return;
  try {
    options.on_end(options.on_end_context, status);
  } catch (...) {
    log::line(log::Level::error, "on_end of an operation threw an exception, which is ignored: {}",
              status_of_exception().what());
  }
}

}  // namespace hocket::comm
