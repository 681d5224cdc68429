#include "run/keyboard.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "run/process.hpp"

namespace hocket::run {

Keyboard::Keyboard() {
  if (isatty(STDIN_FILENO) != 1) return;
  PipeEnds pipe = make_pipe();
  for_worker_ = std::move(pipe.reader);
  to_worker_ = std::move(pipe.writer);
  fcntl(to_worker_.get(), F_SETFL, O_NONBLOCK);
}

void Keyboard::hand_to_worker() {
  if (for_worker_) dup2(for_worker_.get(), STDIN_FILENO);
  for_worker_.reset();
  to_worker_.reset();
}

pollfd Keyboard::wanted() const {
  if (!pending().empty()) return {to_worker_.get(), POLLOUT, 0};
  const bool may_read = to_worker_ && tcgetpgrp(STDIN_FILENO) == getpgrp();
  return {may_read ? STDIN_FILENO : -1, POLLIN, 0};
}

void Keyboard::ready() {
  if (pending().empty()) {
    begin_ = 0;
    const ssize_t got = ::read(STDIN_FILENO, typed_.data(), typed_.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    end_ = static_cast<std::size_t>(std::max<ssize_t>(got, 0));
    if (end_ == 0) return to_worker_.reset();
  }
  const ssize_t put = ::write(to_worker_.get(), pending().data(), pending().size());
  if (put > 0) begin_ += static_cast<std::size_t>(put);
  if (put < 0 && errno != EAGAIN && errno != EINTR) {
    begin_ = end_;
    to_worker_.reset();
  }
}

}  // namespace hocket::run
