// The store of a server on TCP, as its clients see it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "store/connection.hpp"
#include "store/store.hpp"

namespace hocket::store {

/// One connection, which any number of threads share. When it breaks, every call fails with
/// peer_lost, and so does every later one. A server that does not answer at all is given
/// limits::store_answer_timeout beyond a call's timeout. The connection is not for children: in
/// one made by fork() every call fails with invalid_argument.
class TcpStore final : public Store {
 public:
  /// Tries until the server is there and lets us in, but no longer than options.timeout. To be
  /// refused (permission_denied for a wrong secret, mismatch for another job) ends it at once.
  [[nodiscard]] static Result<std::unique_ptr<TcpStore>> connect(ConnectOptions options);
  ~TcpStore() override;

  [[nodiscard]] Result<std::unique_ptr<Store>> clone() override;
  [[nodiscard]] std::string describe() const override;
  [[nodiscard]] Reply perform(Request request) override;

  /// Ends the calls that wait, in any thread, and every later one: they fail with peer_lost, and
  /// say why.
  void close(Status why);

  /// Our own address on this connection: one by which the server's host reaches us.
  [[nodiscard]] std::string local_host() const { return connection_->local_host(); }

 private:
  TcpStore(ConnectOptions options, std::unique_ptr<Connection> connection);

  const Origin origin_;
  ConnectOptions options_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace hocket::store
