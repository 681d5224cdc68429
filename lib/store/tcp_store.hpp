// The store of a server on TCP, seen from a client.
#pragma once

#include <memory>
#include <string>

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "store/connection.hpp"
#include "store/store.hpp"

namespace hocket::store {

/// One connection, which any number of threads share. When it breaks, every call fails with
/// peer_lost, and so does every later one.
class TcpStore final : public Store {
 public:
  /// Tries until the server is there and lets us in, but no longer than options.timeout. To be
  /// refused (permission_denied for a wrong secret, mismatch for another job) ends it at once.
  [[nodiscard]] static Result<std::unique_ptr<TcpStore>> connect(const ConnectOptions& options);

  [[nodiscard]] Result<std::unique_ptr<Store>> clone() override;
  [[nodiscard]] std::string describe() const override;
  [[nodiscard]] Reply perform(Request request) override;

  /// Our own address on this connection: one by which the server's host reaches us.
  [[nodiscard]] const std::string& local_address() const noexcept;

 private:
  TcpStore(ConnectOptions options, std::unique_ptr<Connection> connection);

  ConnectOptions options_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace hocket::store
