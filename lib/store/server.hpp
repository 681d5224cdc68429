// The server of a store on TCP: one thread, whatever the number of clients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "base/limits.hpp"
#include "net/endpoint.hpp"
#include "wire/credentials.hpp"
#include "wire/tls.hpp"

namespace hocket::store {

struct ServerOptions {
  /// Where to listen; port 0 picks a free one, an empty host listens on every address.
  net::Endpoint listen = {.host = "127.0.0.1", .port = 0};
  wire::Credentials credentials = {};
  wire::TlsOptions tls = {};  // for every client
  /// Without a secret only loopback is listened on, unless this is set.
  bool allow_without_secret = false;
  /// Also serves clients of PyTorch's TCPStore. Nobody can tell who they are: every process that
  /// reaches the address may be one. They see only keys that start with "/".
  bool serves_torch = false;
  /// For a client to prove who it is; then it is dropped.
  Duration handshake_timeout = limits::handshake_timeout;
  std::size_t bytes_max = limits::store_bytes_max;  // of all keys and values
  std::size_t connections_max = limits::store_connections_max;
  /// Of them, those that have not proved who they are; a further one pushes out the oldest.
  std::size_t strangers_max = limits::store_strangers_max;
};

class Server {
 public:
  /// Listens, and serves from then on until it is destroyed. Fails with already_exists when the
  /// port is taken, permission_denied when it would listen to the world without a secret or serve
  /// PyTorch at every address, and unsupported or invalid_argument for TLS that can't be.
  [[nodiscard]] static Result<std::unique_ptr<Server>> start(ServerOptions options);

  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  /// Closes every connection; their requests fail with peer_lost. In a child made by fork() it
  /// leaves all to the parent.
  ~Server();

  /// Where it listens, with the port that was picked.
  [[nodiscard]] const net::Endpoint& endpoint() const noexcept;

  /// Connections open now, before and after they proved who they are. Any thread.
  [[nodiscard]] std::size_t connections() const noexcept;
  [[nodiscard]] const wire::Credentials& credentials() const noexcept;

  // For a server that others may use longer than its owner does. Any thread.
  /// Ends by itself, and listens no more, as soon as it has no connection.
  void end_when_idle();
  /// Takes that back. False if it has ended already.
  [[nodiscard]] bool go_on() noexcept;
  [[nodiscard]] bool has_ended() const noexcept;

 private:
  class Hub;
  explicit Server(std::unique_ptr<Hub> hub) noexcept;

  const Origin origin_;
  std::unique_ptr<Hub> hub_;
};

}  // namespace hocket::store
