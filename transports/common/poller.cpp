#include "transports/common/poller.hpp"

#include <algorithm>
#include <cerrno>

#include <sys/timerfd.h>

namespace hocket::common {
namespace {

constexpr std::uint32_t all_events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;

Status change(int epoll, int operation, int file, std::uint32_t events, Pollee* pollee) noexcept {
  epoll_event event = {.events = events, .data = {.ptr = pollee}};
  if (::epoll_ctl(epoll, operation, file, &event) == 0) return {};
  return Status(StatusCode::system_error, "epoll_ctl").with_system_error(errno);
}

}  // namespace

Status Poller::open() {
  epoll_ = Fd::open_unforked([] { return ::epoll_create1(EPOLL_CLOEXEC); });
  timer_ = Fd::open_unforked(
      [] { return ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC); });
  if (!epoll_ || !timer_) {
    return Status(StatusCode::system_error, "can't watch sockets")
        .with_system_error(errno)
        .with_hint("raise the limit of open files: ulimit -n");
  }
  return change(epoll_.get(), EPOLL_CTL_ADD, timer_.get(), EPOLLIN | EPOLLET, nullptr);
}

Status Poller::add(int socket, Pollee& pollee) noexcept {
  return change(epoll_.get(), EPOLL_CTL_ADD, socket, all_events, &pollee);
}

void Poller::forget(const Pollee& pollee, int socket) noexcept {
  static_cast<void>(::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket, nullptr));
  for (Event& event : events_) {
    if (event.pollee == &pollee) event.pollee = nullptr;
  }
}

std::span<Event> Poller::look() noexcept {
  std::array<epoll_event, std::tuple_size_v<decltype(events_)>> found;
  const int count = ::epoll_wait(epoll_.get(), found.data(), static_cast<int>(found.size()), 0);
  const auto size = static_cast<std::size_t>(std::max(count, 0));
  for (std::size_t i = 0; i < size; ++i) {
    events_[i] = {.pollee = static_cast<Pollee*>(found[i].data.ptr), .what = found[i].events};
  }
  return std::span(events_).first(size);
}

void Poller::wake_at(Deadline deadline) noexcept {
  if (deadline.at() == alarm_.at()) return;
  alarm_ = deadline;
  itimerspec when = {};  // zero: never
  if (!deadline.is_never()) {
    const auto left = std::max<Duration>(deadline.at().time_since_epoch(), Duration(1));
    when.it_value.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(left).count();
    when.it_value.tv_nsec = (left % std::chrono::seconds(1)).count();
  }
  static_cast<void>(::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr));
}

}  // namespace hocket::common
