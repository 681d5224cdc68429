// The calls of the system by which connections are made, none of which waits.
//
// Where both ends have one address there is no network to share: these connections use the plainest
// congestion control. The timers by which others pace what they send take as long as the data.
#pragma once

#include <string>

#include "hocket/status.hpp"

#include "base/fd.hpp"
#include "net/socket.hpp"

namespace hocket::link {

/// Listens on a port that is free.
[[nodiscard]] Result<Fd> listen_at(const net::Address& address);

/// The next connection of a listener; none, and errno, when there is none now.
[[nodiscard]] Fd accept_next(int listener) noexcept;

/// From an address of ours, so that the way back is the same. Writable when it is over.
[[nodiscard]] Result<Fd> begin_connecting(const net::Address& to, const net::Address& from);

/// What became of it: 0, or an errno.
[[nodiscard]] int connect_error(int socket, const net::Address& to) noexcept;

/// Drops what has come. False when nothing comes any more.
[[nodiscard]] bool discard_input(int socket) noexcept;

}  // namespace hocket::link
