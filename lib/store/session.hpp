// The server's end of one connection: who the client is, its requests as they come in, and its
// replies as it takes them. Lives on the server's thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <asio/error_code.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>

#include "hocket/status.hpp"

#include "base/fd.hpp"
#include "link/asio_files.hpp"
#include "store/keyspace.hpp"
#include "store/message.hpp"
#include "store/outbox.hpp"
#include "store/torch_client.hpp"
#include "wire/frame.hpp"
#include "wire/handshake.hpp"
#include "wire/tls.hpp"

namespace hocket::store {

class Session;

/// What a session needs of its server.
class SessionHost {
 public:
  SessionHost() = default;
  SessionHost(const SessionHost&) = delete;
  SessionHost& operator=(const SessionHost&) = delete;
  virtual ~SessionHost() = default;

  [[nodiscard]] virtual const wire::Credentials& credentials() const noexcept = 0;
  /// Null without TLS.
  [[nodiscard]] virtual const wire::TlsContext* tls() const noexcept = 0;
  /// Memory to read into, for whoever reads just now.
  [[nodiscard]] virtual std::span<char> scratch() noexcept = 0;
  /// Counts bytes of incomplete messages in or out; false when there are too many of them.
  /// Clients of PyTorch's TCPStore, who can't prove who they are, have less, and apart from others.
  [[nodiscard]] virtual bool hold(std::ptrdiff_t bytes, bool is_of_torch) noexcept = 0;
  /// Whether clients of PyTorch's TCPStore are served. They can't prove who they are.
  [[nodiscard]] virtual bool serves_torch() const noexcept = 0;
  /// The client has said its first byte, where clients may be silent.
  virtual void end_silence(Session& session) = 0;
  /// The client has to prove who it is.
  virtual void await_proof(Session& session) = 0;
  /// It did.
  virtual void admit(Session& session) = 0;
  /// Calls session.reply, now or later.
  virtual void serve(Session& session, std::uint64_t id, Request request) = 0;
  /// Nobody waits for the reply any more.
  virtual void withdraw(Session& session, std::uint64_t id) = 0;
  /// Calls session.resume(), after others have had their turn.
  virtual void await_turn(std::shared_ptr<Session> session) = 0;
  /// Lets this session, and others that have replies now, take their turn.
  virtual void settle(std::shared_ptr<Session> session) = 0;
  /// The session is closed and won't be heard of again.
  virtual void leave(Session& session, const Status& why) noexcept = 0;
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(asio::io_context& io, Fd socket, std::uint64_t serial, SessionHost& host);

  void start() { await_input(); }
  /// Puts the reply into the outbox; a turn sends it.
  void reply(std::uint64_t id, Reply reply);
  /// Serves what came in, sends what can be sent, and waits for more.
  void turn() noexcept;
  /// Takes the turn that it asked for.
  void resume() noexcept;
  void close(const Status& why) noexcept;

  [[nodiscard]] std::uint64_t serial() const noexcept { return serial_; }
  /// When it must have proved who it is. Kept by the host.
  [[nodiscard]] Instant& proof_due() noexcept { return proof_due_; }
  /// Of its requests that wait. Kept by the host.
  [[nodiscard]] std::unordered_set<Ticket>& tickets() noexcept { return tickets_; }
  /// For messages.
  [[nodiscard]] std::string peer() const;
  [[nodiscard]] bool speaks_torch() const noexcept { return torch_ != nullptr; }
  /// The rank that the client says it is, -1 if it does not say so; nothing unless it named our
  /// job. Nothing of it is proven before it is admitted.
  [[nodiscard]] std::optional<int> claimed_rank() const noexcept { return claimed_rank_; }

 private:
  void await_input();
  void await_output();
  void on_input(const asio::error_code& error, std::size_t bytes);
  void read_more();
  void end_input(const asio::error_code& error);
  void receive(std::string_view bytes);
  void take(std::string_view bytes);
  void take_first(char byte);
  void take_encrypted(std::string_view bytes);
  [[nodiscard]] Status begin_tls();
  [[nodiscard]] Status begin_handshake();
  void say(std::string_view words);
  void greet();
  void take_hello();
  void take_proof();
  void serve_input();
  void serve_frames();
  void serve_frame(const wire::Frame& frame);
  void serve_calls();
  void begin_call(TorchCall call);
  void serve_part_of_call();
  void ask_for_turn();
  void transmit();
  void transmit_encrypted();
  void encrypt();
  void account();
  [[nodiscard]] bool is_paused() const noexcept;
  template <class Action>
  void guarded(Action action) noexcept;

  link::OwnedSocket<asio::ip::tcp::socket> socket_;
  const std::uint64_t serial_;
  SessionHost& host_;
  Instant proof_due_;
  bool is_closed_ = false;
  bool awaits_input_ = false;
  bool awaits_output_ = false;
  std::array<char, 2048> first_bytes_;  // of what comes next; the rest is read into scratch()

  std::unique_ptr<wire::TlsFilter> tls_;  // from a client's first byte on; null without TLS
  std::string encrypted_;                 // on its way out, before anything in the outbox

  bool is_admitted_ = false;                        // the client has proved who it is
  std::optional<wire::ServerHandshake> handshake_;  // until then; inside TLS once that is ready
  bool has_greeted_ = false;                        // the Hello has come
  std::string greeting_;                            // the next of its messages, as far as it came
  std::optional<int> claimed_rank_;

  // Of a client of PyTorch's TCPStore, where those are served.
  bool has_begun_ = false;              // its first byte came
  std::unique_ptr<TorchClient> torch_;  // null for other clients
  TorchCall torch_call_;                // the one that is being served
  std::size_t torch_parts_ = 0;         // requests of it that have been served
  Status torch_failure_;                // why it can't be answered
  Status torch_end_;  // not ok: it has closed its side; what came before is still served
  bool awaits_turn_ = false;

  wire::FrameBuffer incoming_{encoded_bytes_max};
  std::size_t held_ = 0;  // bytes of this session that the host has counted: see account()
  Outbox outbox_;
  std::unordered_set<Ticket> tickets_;
};

}  // namespace hocket::store
