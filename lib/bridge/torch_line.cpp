#include "bridge/torch_line.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "net/socket.hpp"
#include "store/message.hpp"
#include "wire/fields.hpp"

namespace hocket::bridge {
namespace {

using namespace std::chrono_literals;
using store::TorchCode;

constexpr Duration retry_pause_max = 100ms;
/// A server of PyTorch 1.13 takes the greeting for a set and this for a part of the key's length.
/// It must be too large for that server's memory: then it closes the connection at once, and does
/// not wait for the key, which would hold up its other clients.
constexpr std::uint32_t nonce = 0x7FEB636F;

Status not_there(const net::Endpoint& server, Status last) {
  return Status(StatusCode::timeout,
                fmt::format("no TCPStore of PyTorch answers at {}", server.to_string()))
      .with_hint("check the address, and that the store of torchrun or of rank 0 runs there")
      .caused_by(std::move(last));
}

Status no_tcp_store() {
  return Status(StatusCode::protocol_error, "the other side is no TCPStore of PyTorch");
}

}  // namespace

Result<TorchLine> TorchLine::open(const net::Endpoint& server, Deadline deadline) {
  bool is_torch_1 = false;
  for (Duration pause = 1ms;; pause = std::min(2 * pause, retry_pause_max)) {
    const Deadline cap =
        Deadline::after(monotonic_clock(), limits::handshake_timeout).or_sooner(deadline);
    auto line = try_once(server, is_torch_1, cap);
    if (line.ok()) return line;
    if (deadline.passed(monotonic_clock().now())) return not_there(server, line.status());
    is_torch_1 = !is_torch_1 && line.status().code() == StatusCode::peer_lost;
    if (!is_torch_1) std::this_thread::sleep_for(pause);
  }
}

Result<TorchLine> TorchLine::try_once(const net::Endpoint& server, bool is_torch_1,
                                      Deadline deadline) {
  const auto addresses = net::resolve(server, deadline);
  if (!addresses.ok()) return addresses.status();
  Status failure;
  for (const net::Address& address : *addresses) {
    auto socket = net::connect_to(address, deadline);
    failure = socket.status();
    if (!socket.ok()) continue;
    TorchLine line(*std::move(socket), is_torch_1);
    failure = line.greet(deadline);
    if (failure.ok()) return line;
  }
  return failure;
}

/// Both sides have spoken then: a port may belong to something else.
Status TorchLine::greet(Deadline deadline) {
  if (is_torch_1_) {
    if (Status status = say(TorchCode::num_keys, "", deadline); !status.ok()) return status;
    const auto keys = hear_number(deadline);
    return keys.ok() && *keys < 0 ? no_tcp_store() : keys.status();
  }
  std::string words;
  wire::FieldWriter fields(words);
  fields.integer(static_cast<std::uint8_t>(TorchCode::validate));
  fields.integer(store::torch_greeting);
  fields.integer(static_cast<std::uint8_t>(TorchCode::ping));
  const std::size_t start = words.size();
  fields.integer(nonce);
  Status status = net::send_all(socket_.get(), words, deadline);
  if (!status.ok()) return status;
  const auto answer = hear(sizeof nonce, deadline);
  if (!answer.ok()) return answer.status();
  if (*answer == words.substr(start)) return {};
  return no_tcp_store();
}

Status TorchLine::say(TorchCode code, std::string_view fields, Deadline deadline) {
  const std::uint8_t number =
      is_torch_1_ ? store::torch_1_number(code) : static_cast<std::uint8_t>(code);
  std::string words(1, static_cast<char>(number));
  words += fields;
  return net::send_all(socket_.get(), words, deadline);
}

Result<std::string> TorchLine::hear(std::size_t bytes, Deadline deadline) {
  return net::receive_exactly(socket_.get(), bytes, deadline);
}

Result<std::int64_t> TorchLine::hear_number(Deadline deadline) {
  const auto bytes = hear(sizeof(std::int64_t), deadline);
  if (!bytes.ok()) return bytes.status();
  return wire::FieldReader(*bytes).signed_integer();
}

Result<std::string> TorchLine::hear_value(Deadline deadline) {
  const auto size = hear_number(deadline);
  if (!size.ok()) return size.status();
  if (*size < 0 || static_cast<std::uint64_t>(*size) > store::encoded_bytes_max) {
    return Status(StatusCode::protocol_error, fmt::format("a value of {} bytes", *size));
  }
  return hear(static_cast<std::size_t>(*size), deadline);
}

}  // namespace hocket::bridge
