// How the launchers that a scheduler started on several nodes come together, in the job's store.
// Node 0 decides; the others wait for its word. The keys:
//
//   launch/node/N    who came as node N, until it leaves: {"launcher", "host", "ranks", "nodes",
//                    "restarts_max"}
//   launch/alive/N   counts up as long as N's launcher lives; node 0 looks at it
//   launch/word      node 0's: {"launchers", "hosts", "master_port"} of the world that has come
//                    together, or {"refused", "code", "hint"}
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "net/endpoint.hpp"
#include "store/tcp_store.hpp"
#include "wire/credentials.hpp"
#include "wire/tls.hpp"

namespace hocket::run {

/// Where the launchers meet, and all that they know of each other then.
struct Meeting {
  std::shared_ptr<store::TcpStore> store = {};
  std::vector<std::string> hosts = {};  // of each node
  std::uint16_t master_port = 0;        // of node 0
};

struct MeetingOptions {
  net::Endpoint server = {};
  wire::Credentials credentials = {};
  wire::TlsOptions tls = {};
  int node = 0;
  int nodes = 1;
  int ranks = 1;  // of this node
  int restarts_max = 0;
  std::string host = {};
  std::uint16_t master_port = 0;  // of this host: one that is free
  Duration timeout = std::chrono::minutes(5);
};

/// Waits for the launchers of all nodes, as long as `goes_on`, which is asked every second or so.
/// Fails with the nodes that are missing, that are there twice or that want something else. Who
/// fails leaves: another launcher may come in its place. That of one that died is free some seconds
/// later.
[[nodiscard]] Result<Meeting> meet(const MeetingOptions& options,
                                   const std::function<bool()>& goes_on);

/// The key that counts up as long as this node's launcher lives.
[[nodiscard]] std::string alive_key(int node);

}  // namespace hocket::run
