// A new connection before it is part of a channel: TLS if asked for, the handshake of lib/wire,
// then who dials whom and for what. Never waits: it goes on when there is something to read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "hocket/status.hpp"

#include "base/fd.hpp"
#include "transports/tcp/link.hpp"
#include "wire/credentials.hpp"
#include "wire/handshake.hpp"
#include "wire/tls.hpp"

namespace hocket::tcp {

/// A connection that is ready for messages.
struct Link {
  Fd socket = {};
  std::unique_ptr<wire::TlsFilter> tls = {};  // null without TLS
  std::string surplus = {};                   // what came behind the greeting
};

/// Borrowed by greetings.
struct Terms {
  wire::Credentials credentials = {};
  std::unique_ptr<wire::TlsContext> dialling = {};  // null without TLS
  std::unique_ptr<wire::TlsContext> listening = {};
};

class Greeting {
 public:
  Greeting(const Greeting&) = delete;
  Greeting& operator=(const Greeting&) = delete;
  virtual ~Greeting() = default;

  /// Reads what has come. True when the greeting is over, as far as this side waits for it.
  [[nodiscard]] Result<bool> advance();
  /// Counts the messages that have come in full.
  [[nodiscard]] int stage() const noexcept { return stage_; }
  [[nodiscard]] int socket() const noexcept { return socket_.get(); }
  /// After the end.
  [[nodiscard]] Link take() noexcept {
    return {std::move(socket_), std::move(tls_), std::move(said_)};
  }

 protected:
  Greeting(Fd socket, const wire::TlsContext* tls) : socket_(std::move(socket)), context_(tls) {}

  [[nodiscard]] Status begin_tls();
  [[nodiscard]] Status say(std::string_view words);
  [[nodiscard]] Result<std::string> binding() const;
  /// The next message if it is there in full.
  [[nodiscard]] std::optional<std::string> next(std::size_t bytes);
  [[nodiscard]] std::string_view said() const noexcept { return said_; }

 private:
  /// Takes the messages that are there; true at the end.
  [[nodiscard]] virtual Result<bool> take_messages() = 0;
  /// Once TLS, if any, is ready.
  [[nodiscard]] virtual Status begin() = 0;
  [[nodiscard]] Status receive(std::string_view bytes);
  [[nodiscard]] Status flush();

  Fd socket_;
  const wire::TlsContext* context_;
  std::unique_ptr<wire::TlsFilter> tls_ = {};
  std::string said_ = {};    // by the other side, and not taken yet
  std::string unsent_ = {};  // of ours
  int stage_ = 0;
  bool has_begun_ = false;
};

class DialGreeting final : public Greeting {
 public:
  DialGreeting(Fd socket, const Terms& terms, LinkHello hello, std::uint32_t peer);

  /// It was refused because the other end has closed the channel.
  [[nodiscard]] bool is_closed() const noexcept { return is_closed_; }

 private:
  [[nodiscard]] Result<bool> take_messages() override;
  [[nodiscard]] Status begin() override;

  const Terms& terms_;
  const LinkHello hello_;
  const std::uint32_t peer_;
  std::optional<wire::ClientHandshake> handshake_ = {};
  bool is_closed_ = false;
};

class ListenGreeting final : public Greeting {
 public:
  ListenGreeting(Fd socket, const Terms& terms);

  /// The other side has proved who it is.
  [[nodiscard]] bool is_member() const noexcept { return is_member_; }
  /// What the dialler wants; after the end.
  [[nodiscard]] const LinkHello& hello() const noexcept { return hello_; }
  [[nodiscard]] Status answer(const LinkAnswer& answer) { return say(answer.encode()); }

 private:
  [[nodiscard]] Result<bool> take_messages() override;
  [[nodiscard]] Status begin() override;
  [[nodiscard]] Status reply(const wire::ServerHandshake::Step& step);

  const Terms& terms_;
  std::optional<wire::ServerHandshake> handshake_ = {};
  bool is_member_ = false;
  LinkHello hello_ = {};
};

}  // namespace hocket::tcp
