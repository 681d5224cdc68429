// The stores that this process serves as rank 0. Worlds that meet at one place share one: a process
// may join any number of them, at once or one after the other.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "hocket/status.hpp"

#include "store/server.hpp"

namespace hocket::world {

struct EndLease {
  void operator()(store::Server* server) const noexcept;
};

/// One user's share of a server. Behind the last one the server ends as soon as it has no clients:
/// other ranks may need it longer, or come already to form the next world.
using ServerLease = std::unique_ptr<store::Server, EndLease>;

struct LeaseOptions {
  /// What tells this server from others of the process; empty for one that nobody shares.
  std::string place = {};
  /// Any secret will do, as other ranks are told the one that the server has.
  bool takes_any_secret = false;
  store::ServerOptions server = {};
};

/// A share of the server at that place, which is started if there is none. Fails as Server::start()
/// does.
[[nodiscard]] Result<ServerLease> lease_server(const LeaseOptions& options);

/// Writes the private file by which ranks of this host find rank 0.
Status publish(const std::string& path, std::string_view content);
/// Removes it, when as many threads have said so as have published it.
void withdraw(const std::string& path) noexcept;

}  // namespace hocket::world
