#include "run/signals.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include <sys/signalfd.h>
#include <unistd.h>

#include <fmt/format.h>

namespace hocket::run {
namespace {

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

bool ends_the_job(int signal) noexcept {
  return std::ranges::find(ending_signals, signal) != std::end(ending_signals);
}

std::string signal_name(int signal) {
  const char* const name = sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

Dispositions ignore_nuisances() noexcept {
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  Dispositions before;
  sigaction(SIGPIPE, &ignore, &before.pipe);
  sigaction(SIGTTIN, &ignore, &before.terminal_in);
  sigaction(SIGTTOU, &ignore, &before.terminal_out);
  return before;
}

void restore(const Dispositions& dispositions) noexcept {
  sigaction(SIGPIPE, &dispositions.pipe, nullptr);
  sigaction(SIGTTIN, &dispositions.terminal_in, nullptr);
  sigaction(SIGTTOU, &dispositions.terminal_out, nullptr);
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
