#include "run/user.hpp"

#include <cerrno>
#include <utility>

#include <unistd.h>

namespace hocket::run {

User::User(Loop& loop, UserListener& listener, Fd lifeline)
    : loop_(loop), listener_(listener), lifeline_(std::move(lifeline)) {
  loop_.add(*this);
}

User::~User() { loop_.remove(*this); }

void User::ready() {
  char signal = 0;
  const ssize_t got = ::read(lifeline_.get(), &signal, sizeof signal);
  if (got > 0) return listener_.on_signal(signal);
  if (got < 0 && errno == EINTR) return;
  lifeline_.reset();
  listener_.on_guardian_death();
}

}  // namespace hocket::run
