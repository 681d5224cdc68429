#include "store/session.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <asio/buffer.hpp>
#include <asio/error.hpp>
#include <fmt/format.h>

#include "base/exception.hpp"
#include "base/limits.hpp"
#include "base/rng.hpp"
#include "net/socket.hpp"

namespace hocket::store {
namespace {

/// The rest stays in the outbox, where a value is kept once for all who want it.
constexpr std::size_t encrypted_at_once = 64 << 10;
constexpr std::size_t pieces_at_once_max = 16;
/// Before others have their turn.
constexpr int reads_at_once_max = 16;
/// Of a client of PyTorch's TCPStore, before others have their turn.
constexpr int torch_requests_at_once_max = 16;
/// What such a client may hold in addition to what is counted: so that small calls are served even
/// if others hold all that they may.
constexpr std::size_t torch_spare_bytes = 4 << 10;
/// Such clients make one call at a time.
constexpr std::uint64_t torch_call_id = 0;

Status lost(const asio::error_code& error) {
  if (error == asio::error::eof) return Status(StatusCode::peer_lost, "it closed the connection");
  return Status(StatusCode::peer_lost, error.message());
}

wire::Nonce fresh_nonce() {
  wire::Nonce nonce{};
  random_bytes(nonce);
  return nonce;
}

}  // namespace

Session::Session(asio::io_context& io, Fd socket, std::uint64_t serial, SessionHost& host)
    : socket_(io, std::move(socket)), serial_(serial), host_(host) {
  net::set_options(socket_->native_handle());
  socket_->non_blocking(true);
}

std::string Session::peer() const {
  asio::error_code error;
  const auto there = socket_->remote_endpoint(error);
  return error ? "a client that has gone"
               : net::Endpoint{there.address().to_string(), there.port()}.to_string();
}

template <class Action>
void Session::guarded(Action action) noexcept {
  try {
    if (!is_closed_) action();
  } catch (...) {
    close(status_of_exception());
  }
}

/// Asio asks the kernel for what it has not told yet only after a read that filled its buffer: so a
/// small request costs one read, and nothing to wait for the next.
void Session::await_input() {
  if (is_closed_ || awaits_input_ || awaits_turn_ || !torch_end_.ok() || is_paused()) return;
  awaits_input_ = true;
  socket_->async_receive(
      asio::buffer(first_bytes_),
      [self = shared_from_this()](const asio::error_code& error, std::size_t bytes) {
        self->awaits_input_ = false;
        self->guarded([&] { self->on_input(error, bytes); });
      });
}

void Session::await_output() {
  if (is_closed_ || awaits_output_) return;
  awaits_output_ = true;
  socket_->async_wait(asio::socket_base::wait_write,
                      [self = shared_from_this()](const asio::error_code&) {
                        self->awaits_output_ = false;
                        self->guarded([&] { self->host_.settle(self); });
                      });
}

void Session::on_input(const asio::error_code& error, std::size_t bytes) {
  if (error) {
    end_input(error);
  } else {
    receive({first_bytes_.data(), bytes});
    if (bytes == first_bytes_.size()) read_more();
  }
  host_.settle(shared_from_this());
}

/// A client of PyTorch's TCPStore may leave right after a call that has no answer: what it has sent
/// is served before the session is closed.
void Session::end_input(const asio::error_code& error) {
  if (torch_ == nullptr) return close(lost(error));
  torch_end_ = lost(error);
}

void Session::read_more() {
  const std::span<char> scratch = host_.scratch();
  for (int reads = 0; reads < reads_at_once_max && !is_closed_; ++reads) {
    asio::error_code error;
    const std::size_t bytes =
        socket_->read_some(asio::buffer(scratch.data(), scratch.size()), error);
    if (error == asio::error::would_block || error == asio::error::interrupted) return;
    if (error) return end_input(error);
    receive({scratch.data(), bytes});
    if (bytes < scratch.size()) return;
  }
}

void Session::receive(std::string_view bytes) {
  host_.tls() == nullptr ? take(bytes) : take_encrypted(bytes);
}

void Session::take(std::string_view bytes) {
  if (bytes.empty()) return;
  if (!std::exchange(has_begun_, true)) take_first(bytes.front());
  if (torch_ != nullptr) {
    torch_->append(bytes);
    account();
  } else if (is_admitted_) {
    incoming_.append(bytes);
    account();
  } else {
    greeting_.append(bytes);
    greet();
  }
}

void Session::take_first(char byte) {
  if (!host_.serves_torch()) return;
  host_.end_silence(*this);
  if (TorchClient::starts_with(byte)) {
    torch_ = std::make_unique<TorchClient>();
  } else {
    host_.await_proof(*this);
  }
}

void Session::take_encrypted(std::string_view bytes) {
  std::string words;
  Status status = tls_ == nullptr ? begin_tls() : Status();
  if (status.ok()) {
    status = tls_->receive(bytes, words);
    encrypted_ += tls_->take_output();
  }
  if (!status.ok()) {
    // A client without TLS begins with its Hello; one with the wrong key has named the job's.
    claimed_rank_ = tls_ != nullptr && tls_->has_named_job()
                        ? -1
                        : wire::claimed_rank(bytes, host_.credentials().job);
    return close(status);
  }
  if (tls_->is_ready()) take(words);
}

Status Session::begin_tls() {
  auto filter = host_.tls()->new_filter();
  if (filter.ok()) tls_ = std::move(*filter);
  return filter.status();
}

Status Session::begin_handshake() {
  const auto binding = tls_ == nullptr ? Result<std::string>("") : tls_->channel_binding();
  if (!binding.ok()) return binding.status();
  handshake_.emplace(host_.credentials(), wire::Purpose::store, fresh_nonce(), *binding);
  return {};
}

/// Answers a stranger. So few bytes always fit into a connection that has carried none before.
void Session::say(std::string_view words) {
  if (tls_ == nullptr) {
    static_cast<void>(net::send_all(socket_->native_handle(), words, Deadline(Instant())));
  } else if (tls_->send(words).ok()) {
    encrypted_ += tls_->take_output();
  }
}

void Session::greet() {
  if (!handshake_) {
    if (Status status = begin_handshake(); !status.ok()) return close(status);
  }
  if (!has_greeted_) take_hello();
  if (has_greeted_ && !is_closed_) take_proof();
}

void Session::take_hello() {
  if (greeting_.size() < wire::hello_bytes) {
    if (Status status = wire::check_first_bytes(greeting_); !status.ok()) close(status);
    return;
  }
  claimed_rank_ = wire::claimed_rank(greeting_, host_.credentials().job);
  const auto step = handshake_->on_hello(greeting_.substr(0, wire::hello_bytes));
  greeting_.erase(0, wire::hello_bytes);
  say(step.reply);
  if (step.is_refused()) return close(step.why);
  has_greeted_ = true;
}

void Session::take_proof() {
  if (greeting_.size() < wire::proof_bytes) return;
  const auto step = handshake_->on_proof(greeting_.substr(0, wire::proof_bytes));
  say(step.reply);
  if (step.is_refused()) return close(step.why);
  handshake_.reset();
  is_admitted_ = true;
  host_.admit(*this);
  const std::string rest = std::exchange(greeting_, {}).substr(wire::proof_bytes);
  incoming_.append(rest);
  account();
}

void Session::account() {
  incoming_.compact();
  std::size_t holds = incoming_.size();
  if (torch_ != nullptr) {
    torch_->compact();
    const std::size_t bytes = torch_->bytes() + torch_call_.bytes + outbox_.own_bytes();
    holds = bytes - std::min(bytes, torch_spare_bytes);
  }
  const auto more = static_cast<std::ptrdiff_t>(holds) - static_cast<std::ptrdiff_t>(held_);
  held_ = holds;
  if (!host_.hold(more, speaks_torch())) {
    close(Status(StatusCode::limit_exceeded,
                 "too many bytes of incomplete messages and unread answers"));
  }
}

bool Session::is_paused() const noexcept {
  return outbox_.bytes() + encrypted_.size() >= limits::store_unsent_bytes_max;
}

void Session::turn() noexcept {
  guarded([this] {
    for (;;) {
      serve_input();
      const bool was_paused = is_paused();
      if (!is_closed_) transmit();
      if (!was_paused || is_paused() || is_closed_) break;
      if (torch_ != nullptr) {
        ask_for_turn();
        break;
      }
    }
    if (torch_ != nullptr && !is_closed_) account();
    await_input();
  });
}

void Session::ask_for_turn() {
  if (std::exchange(awaits_turn_, true)) return;
  host_.await_turn(shared_from_this());
}

void Session::resume() noexcept {
  awaits_turn_ = false;
  turn();
}

void Session::serve_input() {
  torch_ == nullptr ? serve_frames() : serve_calls();
  if (!is_closed_) account();
}

void Session::serve_frames() {
  while (!is_closed_ && is_admitted_ && !is_paused()) {
    const auto frame = incoming_.next();
    if (!frame.ok()) return close(frame.status());
    if (!*frame) break;
    serve_frame(**frame);
  }
}

void Session::serve_frame(const wire::Frame& frame) {
  if (frame.message.empty()) return host_.withdraw(*this, frame.id);
  auto request = decode_request(frame.message);
  if (request.ok() && can_wait(request->kind) &&
      tickets_.size() >= limits::store_parked_per_connection_max) {
    request = Status(StatusCode::limit_exceeded, "too many requests of one client wait already");
  }
  if (request.ok()) return host_.serve(*this, frame.id, std::move(*request));
  if (request.status().code() == StatusCode::protocol_error) return close(request.status());
  reply(frame.id, {.status = request.status()});
}

void Session::serve_calls() {
  for (int served = 0; !is_closed_ && !is_paused() && !awaits_turn_; ++served) {
    if (!torch_failure_.ok()) return close(torch_failure_);
    if (served == torch_requests_at_once_max) return ask_for_turn();
    if (torch_parts_ == torch_call_.requests.size()) {
      auto call = torch_->next();
      if (!call.ok()) return close(call.status());
      if (!*call && !torch_end_.ok()) return close(torch_end_);
      if (!*call) return;
      begin_call(std::move(**call));
    }
    serve_part_of_call();
  }
}

void Session::begin_call(TorchCall call) {
  // A client that makes a call has given up the one that still waits.
  if (!tickets_.empty()) host_.withdraw(*this, torch_call_id);
  torch_call_ = std::move(call);
  torch_parts_ = 0;
}

void Session::serve_part_of_call() {
  std::vector<Request>& parts = torch_call_.requests;
  if (parts.empty()) {
    reply(torch_call_id, {});
  } else {
    host_.serve(*this, torch_call_id, std::move(parts[torch_parts_++]));
  }
  if (torch_parts_ < parts.size()) return;
  // With their memory, which an assignment would keep.
  std::vector<Request>().swap(parts);
  std::string().swap(torch_call_.expected);
  torch_call_.bytes = 0;
  torch_parts_ = 0;
}

void Session::reply(std::uint64_t id, Reply reply) {
  if (torch_ == nullptr) return outbox_.push(id, std::move(reply));
  auto answer = make_answer(torch_call_, reply);
  torch_failure_ = answer.status();
  if (!torch_failure_.ok()) return;
  outbox_.push(answer->head);
  if (answer->value != nullptr) outbox_.push(std::move(answer->value));
}

void Session::transmit() {
  if (host_.tls() != nullptr) return transmit_encrypted();
  while (outbox_.bytes() > 0) {
    std::array<std::string_view, pieces_at_once_max> pieces;
    std::array<asio::const_buffer, pieces_at_once_max> buffers;
    const std::size_t count = outbox_.front(pieces);
    for (std::size_t i = 0; i < count; ++i) buffers[i] = asio::buffer(pieces[i]);
    asio::error_code error;
    const std::size_t bytes = socket_->write_some(std::span(buffers).first(count), error);
    if (error == asio::error::would_block) return await_output();
    if (error == asio::error::interrupted) continue;
    if (error) return close(lost(error));
    outbox_.pop(bytes);
  }
}

void Session::transmit_encrypted() {
  for (;;) {
    if (encrypted_.empty() && outbox_.bytes() > 0) encrypt();
    if (encrypted_.empty() || is_closed_) return;
    asio::error_code error;
    const std::size_t bytes = socket_->write_some(asio::buffer(encrypted_), error);
    if (error == asio::error::would_block) return await_output();
    if (error == asio::error::interrupted) continue;
    if (error) return close(lost(error));
    encrypted_.erase(0, bytes);
    if (encrypted_.empty()) encrypted_.shrink_to_fit();  // for those that are idle from now on
  }
}

void Session::encrypt() {
  const std::string_view words = outbox_.first(encrypted_at_once);
  if (Status status = tls_->send(words); !status.ok()) return close(status);
  outbox_.pop(words.size());
  encrypted_ = tls_->take_output();
}

void Session::close(const Status& why) noexcept {
  if (std::exchange(is_closed_, true)) return;
  // A last word, such as an alert of TLS, as far as it can go without waiting.
  if (!encrypted_.empty()) {
    static_cast<void>(described(
        [&] { return net::send_all(socket_->native_handle(), encrypted_, Deadline(Instant())); }));
  }
  static_cast<void>(
      host_.hold(-static_cast<std::ptrdiff_t>(std::exchange(held_, 0)), speaks_torch()));
  host_.leave(*this, why);
  socket_.close();
}

}  // namespace hocket::store
