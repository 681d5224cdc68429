// A new connection before anything else goes over it: TLS if asked for, the handshake of lib/wire,
// then one message each way, of a fixed size, by which the two sides find out what it is for. Never
// waits: it goes on when there is something to read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "hocket/status.hpp"

#include "base/fd.hpp"
#include "wire/credentials.hpp"
#include "wire/handshake.hpp"
#include "wire/tls.hpp"

namespace hocket::link {

/// A connection that is ready for messages.
struct Link {
  Fd socket = {};
  std::unique_ptr<wire::TlsFilter> tls = {};  // null without TLS
  std::string surplus = {};                   // what came behind the greeting
};

/// Borrowed by greetings.
struct Terms {
  /// Fails as TlsContext::make() does.
  [[nodiscard]] static Result<Terms> make(wire::Credentials credentials,
                                          const wire::TlsOptions& tls);

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

/// What is said once both sides have proved who they are.
struct Words {
  wire::Purpose purpose = wire::Purpose::data_link;
  std::size_t hello_bytes = 0;
  std::size_t answer_bytes = 0;
};

class DialGreeting final : public Greeting {
 public:
  DialGreeting(Fd socket, const Terms& terms, const Words& words, std::string hello);

  /// After the end.
  [[nodiscard]] const std::string& answer() const noexcept { return answer_; }

 private:
  [[nodiscard]] Result<bool> take_messages() override;
  [[nodiscard]] Status begin() override;

  const Terms& terms_;
  const Words words_;
  const std::string hello_;
  std::optional<wire::ClientHandshake> handshake_ = {};
  std::string answer_ = {};
};

class ListenGreeting final : public Greeting {
 public:
  ListenGreeting(Fd socket, const Terms& terms, const Words& words);

  /// The other side has proved who it is.
  [[nodiscard]] bool is_member() const noexcept { return is_member_; }
  /// What the dialler wants; after the end.
  [[nodiscard]] const std::string& hello() const noexcept { return hello_; }
  [[nodiscard]] Status answer(std::string_view words) { return say(words); }

 private:
  [[nodiscard]] Result<bool> take_messages() override;
  [[nodiscard]] Status begin() override;
  [[nodiscard]] Status reply(const wire::ServerHandshake::Step& step);

  const Terms& terms_;
  const Words words_;
  std::optional<wire::ServerHandshake> handshake_ = {};
  bool is_member_ = false;
  std::string hello_ = {};
};

}  // namespace hocket::link
