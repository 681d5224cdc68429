#include "run/guardian.hpp"

#include <cerrno>
#include <csignal>
#include <optional>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/text.hpp"
#include "run/descendants.hpp"
#include "run/keyboard.hpp"
#include "run/output.hpp"
#include "run/process.hpp"
#include "run/signals.hpp"

namespace hocket::run {
namespace {

/// Reaps what has died; the worker's wait status when it was among them.
std::optional<int> reap(pid_t worker) {
  std::optional<int> status;
  int each_status = 0;
  for (pid_t pid = 0; (pid = waitpid(-1, &each_status, WNOHANG)) > 0;) {
    if (pid == worker) status = each_status;
  }
  return status;
}

void pass_on(int signal, const Fd& lifeline) {
  const char byte = static_cast<char>(signal);
  // Full: it has been told often enough. Broken: it is gone.
  [[maybe_unused]] const ssize_t put = ::write(lifeline.get(), &byte, sizeof byte);
  // The shell must see that its job has stopped; its SIGCONT comes to us as any signal.
  if (signal == SIGTSTP) raise(SIGSTOP);
}

/// Until the worker has ended; its wait status.
int watch(pid_t worker, const Fd& lifeline, SignalQueue& signals, SignalQueue& deaths,
          Keyboard& keyboard) {
  // A background job that comes to the front may read the terminal, but nothing tells it.
  constexpr int look_again_ms = 1000;
  for (;;) {
    pollfd waited[] = {
        {signals.descriptor(), POLLIN, 0}, {deaths.descriptor(), POLLIN, 0}, keyboard.wanted()};
    poll(waited, std::size(waited), isatty(STDIN_FILENO) == 1 ? look_again_ms : -1);
    if (waited[2].revents != 0) keyboard.ready();
    while (const auto signal = signals.take()) pass_on(*signal, lifeline);
    while (deaths.take()) continue;
    if (const auto status = reap(worker)) return *status;
  }
}

int end_status(int wait_status, const std::vector<pid_t>& bystanders) {
  const auto left = kill_descendants(monotonic_clock(), bystanders);
  if (WIFSIGNALED(wait_status)) {
    complain(fmt::format("hocket run: its worker was killed by {}; so was what it left",
                         signal_name(WTERMSIG(wait_status))));
  }
  if (!left.empty()) {
    complain(fmt::format("hocket run: these processes can't be killed: {}", joined(left, " ")));
  }
  return exit_status(wait_status);
}

}  // namespace

int guarded(const std::function<int(Fd lifeline, const Dispositions& before)>& work) {
  // Who became hocket by exec may have had children before.
  const std::vector<pid_t> bystanders = children();
  open_standard_streams();
  adopt_orphans();
  if (!sees_descendants()) {
    complain(
        "hocket run: /proc does not show the processes of this job: of what its ranks start, "
        "only their process groups are killed");
  }
  SignalQueue signals = SignalQueue::of_the_user();
  SignalQueue deaths{SIGCHLD};
  const Dispositions before = settle_in();
  Keyboard keyboard;
  PipeEnds lifeline = make_pipe();
  fcntl(lifeline.writer.get(), F_SETFL, O_NONBLOCK);

  const pid_t worker = fork();
  if (worker < 0) {
    complain(fmt::format("hocket run: no process can be started: {}", error_text(errno)));
    return 1;
  }
  if (worker == 0) {
    // Out of the terminal's foreground group: what it sends there comes through the guardian.
    setpgid(0, 0);
    prctl(PR_SET_NAME, "hocket-worker");  // who kills by name is to leave one of the two
    adopt_orphans();
    lifeline.writer.reset();
    keyboard.hand_to_worker();
    return work(std::move(lifeline.reader), before);
  }
  setpgid(worker, worker);
  lifeline.reader.reset();
  keyboard.keep();
  return end_status(watch(worker, lifeline.writer, signals, deaths, keyboard), bystanders);
}

}  // namespace hocket::run
