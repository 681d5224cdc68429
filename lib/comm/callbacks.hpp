// Calls the program's on_end functions when operations have ended. It has threads of its own, so
// these functions may wait and call Hocket.
#pragma once

#include <cstdint>
#include <memory>

#include "hocket/collective.hpp"
#include "hocket/status.hpp"

namespace hocket::comm {

/// Any thread may call any function.
class Callbacks {
 public:
  Callbacks();
  Callbacks(const Callbacks&) = delete;
  Callbacks& operator=(const Callbacks&) = delete;
  /// Returns at once. Functions of operations that have ended are still called.
  ~Callbacks();

  /// What the engine calls at the end of an operation, under its lock: it only queues on_end. Empty
  /// if there is no on_end. The engine must call it once, or drop() must be called.
  struct Note {
    void (*function)(void* context, StatusCode status) = nullptr;
    void* context = nullptr;
  };
  /// Throws if memory or threads run out.
  [[nodiscard]] Note note_for(const Options& options);
  static void drop(const Note& note) noexcept;

  /// Calls on_end, if there is one, and logs what it throws.
  static void call(const Options& options, StatusCode status) noexcept;

 private:
  class Threads;
  const std::shared_ptr<Threads> threads_;
};

}  // namespace hocket::comm
