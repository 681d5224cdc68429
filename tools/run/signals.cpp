#include "run/signals.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include <sys/signalfd.h>
#include <unistd.h>

#include <fmt/format.h>

namespace hocket::run {
namespace {

/// How the launcher itself takes signals that it does not read from a SignalQueue.
struct OwnAction {
  int signal;
  void (*handler)(int);
};
const OwnAction own_actions[] = {
    {SIGPIPE, SIG_IGN}, {SIGTTIN, SIG_IGN}, {SIGTTOU, SIG_IGN}, {SIGCHLD, SIG_DFL}};
static_assert(std::size(own_actions) == std::tuple_size_v<decltype(Dispositions::actions)>);

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

}  // namespace

bool ends_the_job(int signal) noexcept {
  return std::ranges::find(ending_signals, signal) != std::end(ending_signals);
}

bool is_ignored(int signal) noexcept {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

std::string signal_name(int signal) {
  const char* const name = sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

Dispositions settle_in() noexcept {
  Dispositions before = {.open_files = raise_open_files_max()};
  for (std::size_t i = 0; i < std::size(own_actions); ++i) {
    struct sigaction action {};
    action.sa_handler = own_actions[i].handler;
    sigaction(own_actions[i].signal, &action, &before.actions[i]);
  }
  return before;
}

void restore(const Dispositions& dispositions) noexcept {
  setrlimit(RLIMIT_NOFILE, &dispositions.open_files);
  for (std::size_t i = 0; i < std::size(own_actions); ++i) {
    sigaction(own_actions[i].signal, &dispositions.actions[i], nullptr);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

SignalQueue::SignalQueue(std::initializer_list<int> signals) : SignalQueue(set_of(signals)) {}

SignalQueue::SignalQueue(const sigset_t& signals) {
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  fd_.reset(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

SignalQueue SignalQueue::of_the_user() {
  sigset_t set = set_of({});
  for (const int signal : ending_signals) {
    if (!is_ignored(signal)) sigaddset(&set, signal);
  }
  for (const int signal : passing_signals) {
    if (!is_ignored(signal)) sigaddset(&set, signal);
  }
  return SignalQueue(set);
}

std::optional<int> SignalQueue::take() noexcept {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return {};
  return static_cast<int>(info.ssi_signo);
}

}  // namespace hocket::run
