// What may have something to do: sockets, each told once until that is used up, and a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <sys/epoll.h>

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "base/fd.hpp"

namespace hocket::common {

/// Who is told; which class it is follows from the role.
struct Pollee {
  enum class Role : std::uint8_t { listener, stranger, dial, stream, rail, leaver };

  explicit Pollee(Role of) noexcept : role(of) {}
  Role role;
};

struct Event {
  Pollee* pollee = nullptr;  // null: it has been forgotten
  std::uint32_t what = 0;    // of epoll

  [[nodiscard]] bool may_read() const noexcept {
    return (what & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
  }
  [[nodiscard]] bool may_write() const noexcept {
    return (what & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0;
  }
  [[nodiscard]] bool is_ending() const noexcept {
    return (what & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
  }
};

class Poller {
 public:
  static constexpr std::size_t events_at_once = 64;

  [[nodiscard]] Status open();

  /// Told at once of what is there already.
  [[nodiscard]] Status add(int socket, Pollee& pollee) noexcept;
  /// Nothing is told to it any more, even of what look() has given. To be called before its socket
  /// is closed: a child of this process, made by fork(), may have it open still.
  void forget(const Pollee& pollee, int socket) noexcept;

  /// What has happened since; does not wait. Valid until the next call.
  [[nodiscard]] std::span<Event> look() noexcept;

  /// Makes the descriptor readable at that time.
  void wake_at(Deadline deadline) noexcept;
  [[nodiscard]] int descriptor() const noexcept { return epoll_.get(); }

 private:
  Fd epoll_;
  Fd timer_;
  Deadline alarm_ = {};
  std::array<Event, events_at_once> events_ = {};
};

}  // namespace hocket::common
