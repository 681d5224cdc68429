#include "store/channel.hpp"

#include <algorithm>
#include <utility>

#include "net/socket.hpp"

namespace hocket::store {
namespace {

constexpr std::size_t read_bytes_max = 64 << 10;
/// More is encrypted and sent piece by piece, so that a large value is not there thrice.
constexpr std::size_t encrypted_bytes_max = 256 << 10;

}  // namespace

Result<std::unique_ptr<Channel>> Channel::open(Fd socket, const wire::TlsContext* tls,
                                               Deadline deadline) {
  std::unique_ptr<wire::TlsFilter> filter;
  if (tls != nullptr) {
    auto made = tls->new_filter();
    if (!made.ok()) return made.status();
    filter = std::move(*made);
  }
  std::unique_ptr<Channel> channel(new Channel(std::move(socket), std::move(filter)));
  if (tls == nullptr) return channel;
  if (Status status = channel->shake_hands(deadline); !status.ok()) return status;
  return channel;
}

/// The last message of TLS's handshake goes out with the first bytes that are sent.
Status Channel::shake_hands(Deadline deadline) {
  while (!filter_->is_ready()) {
    Status status = net::send_all(socket_.get(), filter_->take_output(), deadline);
    if (status.ok()) status = receive(deadline).status();
    if (!status.ok()) return status;
  }
  return {};
}

Result<std::string> Channel::binding() const {
  return filter_ == nullptr ? std::string() : filter_->channel_binding();
}

Status Channel::send(std::string_view bytes, Deadline deadline) {
  if (filter_ == nullptr) return net::send_all(socket_.get(), bytes, deadline);
  return send_encrypted(bytes, deadline);
}

/// What reading made TLS say is in the output too, in its order; it may wait for the next bytes.
Status Channel::send_encrypted(std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, encrypted_bytes_max);
    bytes.remove_prefix(piece.size());
    std::string output;
    {
      const std::lock_guard lock(mutex_);
      if (Status status = filter_->send(piece); !status.ok()) return status;
      output = filter_->take_output();
    }
    if (Status status = net::send_all(socket_.get(), output, deadline); !status.ok()) return status;
  }
  return {};
}

Result<std::string_view> Channel::receive(Deadline deadline) {
  received_.resize(read_bytes_max);  // most connections of a crowd never get here
  const auto count = net::receive_some(socket_.get(), received_, deadline);
  if (!count.ok()) return count.status();
  const std::string_view received(received_.data(), *count);
  return filter_ == nullptr ? received : decrypt(received);
}

Result<std::string_view> Channel::decrypt(std::string_view received) {
  decrypted_.clear();
  const std::lock_guard lock(mutex_);
  Status status = filter_->receive(received, decrypted_);
  if (status.ok()) return std::string_view(decrypted_);
  // The other side is told why, unless that would have to wait, or comes into what is being sent.
  if (!filter_->is_ready()) {
    static_cast<void>(net::send_all(socket_.get(), filter_->take_output(), Deadline(Instant())));
  }
  return status;
}

Result<std::string> Channel::receive_exactly(std::size_t bytes, Deadline deadline) {
  if (filter_ == nullptr) return net::receive_exactly(socket_.get(), bytes, deadline);
  std::string message;
  while (message.size() < bytes) {
    const auto more = receive(deadline);
    if (!more.ok()) return more.status();
    message += *more;
  }
  if (message.size() == bytes) return message;
  return Status(StatusCode::protocol_error, "the server says more than was asked for");
}

}  // namespace hocket::store
