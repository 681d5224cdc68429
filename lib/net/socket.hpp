// TCP sockets as a client uses them: every wait has a deadline.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/socket.h>

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "net/endpoint.hpp"

namespace hocket::net {

struct Address {
  sockaddr_storage storage = {};
  socklen_t bytes = sizeof(sockaddr_storage);

  [[nodiscard]] const sockaddr* get() const noexcept {
    return reinterpret_cast<const sockaddr*>(&storage);
  }
  [[nodiscard]] sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&storage); }

  /// 127.x.x.x or ::1
  [[nodiscard]] bool is_loopback() const noexcept;
  /// 0.0.0.0 or ::, which to a listener is every address of this host.
  [[nodiscard]] bool is_any() const noexcept;
  [[nodiscard]] Endpoint endpoint() const;
};

/// Every address of a name, in the order in which they should be tried. The deadline holds even
/// when a name server does not answer; the lookup is left behind then.
[[nodiscard]] Result<std::vector<Address>> resolve(const Endpoint& endpoint, Deadline deadline);

/// Connected, close-on-exec, without delay. It may block: for at most a second at a time in recv,
/// and as long as it takes in send.
[[nodiscard]] Result<Fd> connect_to(const Address& address, Deadline deadline);

/// The address of our end.
[[nodiscard]] Address local_address(int socket);

/// Sets what every connection of ours has: no delay of small messages, and probes that find out
/// within HOCKET_HOST_TIMEOUT, or a little more, when the host at the other end has gone while
/// nothing was under way. What is under way is the business of Silence.
void set_options(int socket) noexcept;

/// All of the bytes. After a failure some may have been sent. Fails with peer_lost when the other
/// host does not answer (Silence); so does receive_some.
[[nodiscard]] Status send_all(int socket, std::string_view bytes, Deadline deadline);

/// At least one byte; peer_lost when the other side has closed.
[[nodiscard]] Result<std::size_t> receive_some(int socket, std::span<char> to, Deadline deadline);

/// Exactly that many bytes.
[[nodiscard]] Result<std::string> receive_exactly(int socket, std::size_t bytes, Deadline deadline);

}  // namespace hocket::net
