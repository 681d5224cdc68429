#include "transports/tcp/connection.hpp"

#include <cerrno>
#include <utility>

#include <sys/socket.h>

#include "base/bytes.hpp"

namespace hocket::tcp {

void Connection::note(const common::Event& event) noexcept {
  if (event.may_read()) is_readable_ = true;
  if (event.may_write()) is_writable_ = true;
  if (event.is_ending()) has_ended_ = true;
}

void Connection::adopt_link(link::Link link) {
  link_ = std::move(link);
  is_readable_ = true;
  is_writable_ = true;
}

/// A read that got less than it asked for has emptied the socket, unless its end has come.
Status Connection::note_read(ssize_t count, std::size_t asked) {
  if (count == 0 && send_error_ != 0) return lost("its connection broke", send_error_);
  if (count == 0) return lost("its connection ended");
  if (count < 0) {
    if (errno == EINTR) return {};
    is_readable_ = false;
    return errno == EAGAIN ? Status() : lost("its connection broke", errno);
  }
  has_moved_ = true;
  if (static_cast<std::size_t>(count) < asked && !has_ended_) is_readable_ = false;
  return {};
}

Status Connection::receive_encrypted(Scratch& scratch) {
  const std::span<std::byte> room = scratch.all();
  const ssize_t count = ::recv(socket(), room.data(), room.size(), 0);
  Status status = note_read(count, room.size());
  if (count <= 0 || !status.ok()) return status;
  std::string plain;
  status = link_.tls->receive(as_text(room.first(static_cast<std::size_t>(count))), plain);
  encrypted_ += link_.tls->take_output();
  Status taken = take(std::as_bytes(std::span(plain)));
  if (!taken.ok()) return taken;
  return status.ok() ? status : lost(status.what());
}

}  // namespace hocket::tcp
