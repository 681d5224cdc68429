// The signals that the launcher takes, and how it takes them: as events of its loop.
#pragma once

#include <array>
#include <csignal>
#include <initializer_list>
#include <optional>
#include <string>

#include <sys/resource.h>

#include "base/fd.hpp"

namespace hocket::run {

/// Those that end the job. All of them are passed on to the ranks.
inline constexpr int ending_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
/// Those that are only passed on.
inline constexpr int passing_signals[] = {SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

[[nodiscard]] bool ends_the_job(int signal) noexcept;

/// Whether this process ignores it.
[[nodiscard]] bool is_ignored(int signal) noexcept;

/// "SIGTERM"
[[nodiscard]] std::string signal_name(int signal);

/// What this process was started with, to be given back to the programs it starts.
struct Dispositions {
  std::array<struct sigaction, 4> actions = {};
  rlimit open_files = {};
};

/// From now on a broken pipe, and to read or write a terminal from the background, fail as calls
/// and raise no signal; children leave a status when they die, even where the caller ignored that;
/// and as many files may be open as the system lets.
[[nodiscard]] Dispositions settle_in() noexcept;

/// In a child before it executes another program: all as it was, no signal blocked.
void restore(const Dispositions& dispositions) noexcept;

/// Signals that are read from a descriptor. They stay blocked when it is closed.
class SignalQueue {
 public:
  explicit SignalQueue(std::initializer_list<int> signals);
  /// All of ending_signals and passing_signals but those that were ignored, as nohup does.
  static SignalQueue of_the_user();

  [[nodiscard]] int descriptor() const noexcept { return fd_.get(); }
  /// The next signal that has come, if any.
  [[nodiscard]] std::optional<int> take() noexcept;

 private:
  explicit SignalQueue(const sigset_t& signals);

  Fd fd_;
};

}  // namespace hocket::run
