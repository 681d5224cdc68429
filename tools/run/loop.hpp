// The loop of a process of the launcher: it waits for many things at once and tells whom they
// concern.
#pragma once

#include <vector>

#include <poll.h>

#include "base/clock.hpp"

namespace hocket::run {

/// Something to wait for. What it wants is asked anew before every wait.
class Watcher {
 public:
  Watcher() = default;
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  virtual ~Watcher() = default;

  /// The descriptor and its events (as of poll); descriptor -1 for none.
  [[nodiscard]] virtual pollfd wanted() const { return {-1, 0, 0}; }
  virtual void ready() {}

  /// When due() is to be called, whatever the descriptor does.
  [[nodiscard]] virtual Deadline deadline() const { return Deadline::never(); }
  virtual void due() {}
};

class Loop {
 public:
  explicit Loop(const Clock& clock) : clock_(clock) {}
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop() = default;

  /// Watchers may come and go at any time, also from within ready() and due().
  void add(Watcher& watcher) { watchers_.push_back(&watcher); }
  void remove(Watcher& watcher);

  /// Waits until something is ready or due, and tells all for whom that holds.
  void turn();

  [[nodiscard]] const Clock& clock() const noexcept { return clock_; }

 private:
  const Clock& clock_;
  std::vector<Watcher*> watchers_;  // null for those that went during a turn
};

}  // namespace hocket::run
