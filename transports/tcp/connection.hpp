// A connection that is made, whatever goes over it: what it is ready for, and what it reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "hocket/status.hpp"

#include "link/greeting.hpp"
#include "net/silence.hpp"
#include "transports/common/poller.hpp"
#include "transports/tcp/queue.hpp"

namespace hocket::tcp {

/// Read into memory of which the message may turn out shorter: at most so much at once.
inline constexpr std::size_t ahead_bytes_max = 64 << 10;
/// Read behind all receives that are posted.
inline constexpr std::size_t overflow_bytes = 16 << 10;

/// Memory to read into, for whoever reads just now: room for bytes that must move, and directly
/// behind it that for the overflow.
class Scratch {
 public:
  Scratch() : memory_(moved_bytes + overflow_bytes) {}
  [[nodiscard]] std::byte* overflow() noexcept { return memory_.data() + moved_bytes; }
  [[nodiscard]] std::span<std::byte> all() noexcept { return memory_; }

 private:
  static constexpr std::size_t moved_bytes = ahead_bytes_max + 64 * header_bytes;
  std::vector<std::byte> memory_;
};

class Connection : public common::Pollee {
 public:
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  virtual ~Connection() = default;

  [[nodiscard]] bool is_linked() const noexcept { return static_cast<bool>(link_.socket); }
  [[nodiscard]] int socket() const noexcept { return link_.socket.get(); }
  void note(const common::Event& event) noexcept;
  /// Whether the other host has not answered for so long (net::Silence); while it is linked.
  [[nodiscard]] bool is_unanswered(Instant now, Duration limit) noexcept {
    return silence_.lasts(socket(), now, limit);
  }
  void begin_turn() noexcept { has_moved_ = false; }
  /// Whether bytes have come or gone since begin_turn().
  [[nodiscard]] bool has_moved() const noexcept { return has_moved_; }

 protected:
  explicit Connection(Role of) : Pollee(of) {}

  /// What it is that nothing comes any more.
  [[nodiscard]] virtual Status lost(std::string_view how, int error = 0) const = 0;
  /// What was read, in order.
  [[nodiscard]] virtual Status take(std::span<const std::byte> bytes) = 0;

  void adopt_link(link::Link link);
  /// Of a read that asked for so many bytes and gave `count`.
  [[nodiscard]] Status note_read(ssize_t count, std::size_t asked);
  /// Once, with TLS.
  [[nodiscard]] Status receive_encrypted(Scratch& scratch);

  link::Link link_ = {};
  bool is_readable_ = false;  // as far as we know
  bool is_writable_ = false;
  bool has_moved_ = false;
  bool has_ended_ = false;      // the other end sends no more, beyond what there is to read
  int send_error_ = 0;          // met while sending: reading on then meets an end and no reason
  std::string encrypted_ = {};  // with TLS: on its way out

 private:
  net::Silence silence_ = {};
};

}  // namespace hocket::tcp
