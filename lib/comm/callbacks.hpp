// Calls the program's functions when operations have ended (Options::on_end), on threads of its
// own: they may wait, and they may call Hocket.
#pragma once

#include <cstdint>
#include <memory>

#include "hocket/collective.hpp"
#include "hocket/status.hpp"

namespace hocket::comm {

/// Any thread may call anything.
class Callbacks {
 public:
  Callbacks();
  Callbacks(const Callbacks&) = delete;
  Callbacks& operator=(const Callbacks&) = delete;
  /// Returns at once; what has been noted is still called.
  ~Callbacks();

  /// What the engine calls in place of on_end: it only notes that the function is to be called.
  /// Must be called once, or its context given to drop(). Throws if memory or threads run out.
  /// Without an on_end there is nothing to call.
  struct Note {
    void (*function)(void* context, StatusCode status) = nullptr;
    void* context = nullptr;
  };
  [[nodiscard]] Note note_for(const Options& options);
  static void drop(const Note& note) noexcept;

  /// Calls on_end, if there is one, and logs what it throws.
  static void call(const Options& options, StatusCode status) noexcept;

 private:
  class Threads;
  const std::shared_ptr<Threads> threads_;
};

}  // namespace hocket::comm
