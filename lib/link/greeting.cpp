#include "link/greeting.hpp"

#include <array>
#include <cerrno>
#include <utility>

#include <sys/socket.h>

#include "base/rng.hpp"

namespace hocket::link {
namespace {

wire::Nonce fresh_nonce() {
  wire::Nonce nonce{};
  random_bytes(nonce);
  return nonce;
}

Status broken(int error) {
  return Status(StatusCode::peer_lost, "the connection broke").with_system_error(error);
}

}  // namespace

Result<Terms> Terms::make(wire::Credentials credentials, const wire::TlsOptions& tls) {
  Terms terms = {.credentials = std::move(credentials)};
  if (tls.mode == wire::TlsMode::off) return terms;
  for (const auto& [role, context] : {std::pair(wire::TlsContext::Role::client, &terms.dialling),
                                      {wire::TlsContext::Role::server, &terms.listening}}) {
    auto made = wire::TlsContext::make(role, tls, terms.credentials);
    if (!made.ok()) return made.status();
    *context = std::move(*made);
  }
  return terms;
}

// --- both sides ---

Result<bool> Greeting::advance() {
  if (context_ != nullptr && tls_ == nullptr) {
    if (Status status = begin_tls(); !status.ok()) return status;
  }
  std::array<char, 1024> bytes;
  for (;;) {
    if (!has_begun_ && (tls_ == nullptr ? context_ == nullptr : tls_->is_ready())) {
      has_begun_ = true;
      if (Status status = begin(); !status.ok()) return status;
    }
    if (has_begun_) {
      auto is_over = take_messages();
      if (!is_over.ok() || *is_over) return is_over;
    }
    if (Status status = flush(); !status.ok()) return status;
    const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (count == 0) return Status(StatusCode::peer_lost, "the other side closed the connection");
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN ? Result<bool>(false) : Result<bool>(broken(errno));
    if (Status status = receive({bytes.data(), static_cast<std::size_t>(count)}); !status.ok()) {
      static_cast<void>(flush());
      return status;
    }
  }
}

Status Greeting::begin_tls() {
  auto filter = context_->new_filter();
  if (!filter.ok()) return filter.status();
  tls_ = std::move(*filter);
  unsent_ += tls_->take_output();
  return {};
}

Status Greeting::receive(std::string_view bytes) {
  if (tls_ == nullptr) {
    said_ += bytes;
    return {};
  }
  Status status = tls_->receive(bytes, said_);
  unsent_ += tls_->take_output();
  return status;
}

/// So few bytes almost always fit into a connection that has carried none before.
Status Greeting::flush() {
  while (!unsent_.empty()) {
    const ssize_t sent =
        ::send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      unsent_.erase(0, static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      return {};
    } else if (errno != EINTR) {
      return broken(errno);
    }
  }
  return {};
}

Status Greeting::say(std::string_view words) {
  if (tls_ == nullptr) {
    unsent_ += words;
  } else {
    if (Status status = tls_->send(words); !status.ok()) return status;
    unsent_ += tls_->take_output();
  }
  return flush();
}

Result<std::string> Greeting::binding() const {
  return tls_ == nullptr ? Result<std::string>(std::string()) : tls_->channel_binding();
}

std::optional<std::string> Greeting::next(std::size_t bytes) {
  if (said_.size() < bytes) return std::nullopt;
  std::string message = said_.substr(0, bytes);
  said_.erase(0, bytes);
  ++stage_;
  return message;
}

// --- who dials ---

DialGreeting::DialGreeting(Fd socket, const Terms& terms, const Words& words, std::string hello)
    : Greeting(std::move(socket), terms.dialling.get()),
      terms_(terms),
      words_(words),
      hello_(std::move(hello)) {}

Status DialGreeting::begin() {
  const auto channel = binding();
  if (!channel.ok()) return channel.status();
  handshake_.emplace(terms_.credentials, words_.purpose, fresh_nonce(), *channel);
  return say(handshake_->hello());
}

Result<bool> DialGreeting::take_messages() {
  if (stage() == 0) {
    if (Status status = wire::check_first_bytes(said()); !status.ok()) return status;
    const auto challenge = next(wire::challenge_bytes);
    if (!challenge) return false;
    const auto proof = handshake_->on_challenge(*challenge);
    if (!proof.ok()) return proof.status();
    if (Status status = say(*proof); !status.ok()) return status;
  }
  if (stage() == 1) {
    const auto answer = next(wire::answer_bytes);
    if (!answer) return false;
    if (Status status = handshake_->on_answer(*answer); !status.ok()) return status;
    if (Status status = say(hello_); !status.ok()) return status;
  }
  auto answer = next(words_.answer_bytes);
  if (!answer) return false;
  answer_ = std::move(*answer);
  return true;
}

// --- who listens ---

ListenGreeting::ListenGreeting(Fd socket, const Terms& terms, const Words& words)
    : Greeting(std::move(socket), terms.listening.get()), terms_(terms), words_(words) {}

Status ListenGreeting::begin() {
  const auto channel = binding();
  if (!channel.ok()) return channel.status();
  handshake_.emplace(terms_.credentials, words_.purpose, fresh_nonce(), *channel);
  return {};
}

Status ListenGreeting::reply(const wire::ServerHandshake::Step& step) {
  Status status = step.reply.empty() ? Status() : say(step.reply);
  return step.is_refused() ? step.why : status;
}

Result<bool> ListenGreeting::take_messages() {
  if (stage() == 0) {
    const auto hello = next(wire::hello_bytes);
    if (!hello) {
      Status status = wire::check_first_bytes(said());
      return status.ok() ? Result<bool>(false) : Result<bool>(std::move(status));
    }
    if (Status status = reply(handshake_->on_hello(*hello)); !status.ok()) return status;
  }
  if (stage() == 1) {
    const auto proof = next(wire::proof_bytes);
    if (!proof) return false;
    if (Status status = reply(handshake_->on_proof(*proof)); !status.ok()) return status;
    is_member_ = true;
  }
  auto hello = next(words_.hello_bytes);
  if (!hello) return false;
  hello_ = std::move(*hello);
  return true;
}

}  // namespace hocket::link
