#include "run/user.hpp"

#include <utility>

namespace hocket::run {

User::User(Loop& loop, UserListener& listener, Fd lifeline)
    : signals_(loop, listener), lifeline_(loop, listener, std::move(lifeline)) {}

User::Signals::Signals(Loop& loop, UserListener& listener)
    : loop_(loop), listener_(listener), queue_(SignalQueue::of_the_user()) {
  loop_.add(*this);
}

User::Signals::~Signals() { loop_.remove(*this); }

void User::Signals::ready() {
  while (const auto signal = queue_.take()) listener_.on_signal(*signal);
}

User::Lifeline::Lifeline(Loop& loop, UserListener& listener, Fd fd)
    : loop_(loop), listener_(listener), fd_(std::move(fd)) {
  loop_.add(*this);
}

User::Lifeline::~Lifeline() { loop_.remove(*this); }

void User::Lifeline::ready() {
  fd_.reset();
  listener_.on_guardian_death();
}

}  // namespace hocket::run
