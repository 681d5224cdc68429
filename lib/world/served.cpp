#include "world/served.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include "base/fd.hpp"
#include "base/private_file.hpp"

namespace hocket::world {
namespace {

using namespace std::chrono_literals;

/// For a server to notice that our own connection was closed, and to end.
constexpr auto end_patience = 5ms;

struct Served {
  std::string place;
  std::unique_ptr<store::Server> server;
  wire::TlsOptions tls = {};
  int leases = 0;
};

struct Registry {
  std::mutex mutex = {};  // of all below
  std::vector<Served> servers = {};
  std::map<std::string, int> published = {};  // by path, how many want the file
};

Registry& registry() {
  static ProcessWide<Registry> all;
  return all.get();
}

/// Ends at the end of the process what nobody uses any more.
struct LastSweep {
  LastSweep() = default;
  LastSweep(const LastSweep&) = delete;
  LastSweep& operator=(const LastSweep&) = delete;
  ~LastSweep() {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    std::erase_if(all.servers, [](const Served& each) { return each.leases == 0; });
  }
};

void sweep(std::vector<Served>& servers) {
  std::erase_if(servers, [](const Served& each) { return each.server->has_ended(); });
}

bool fits(const Served& served, const LeaseOptions& wanted) {
  const wire::Credentials& has = served.server->credentials();
  const wire::Credentials& wants = wanted.server.credentials;
  return !wanted.place.empty() && served.place == wanted.place && served.tls == wanted.server.tls &&
         has.job == wants.job && (wanted.takes_any_secret || has.secret == wants.secret);
}

}  // namespace

Result<ServerLease> lease_server(const LeaseOptions& options) {
  Registry& all = registry();
  static const LastSweep last_sweep;
  const std::lock_guard lock(all.mutex);
  const auto shared = std::ranges::find_if(
      all.servers, [&](const Served& each) { return fits(each, options) && each.server->go_on(); });
  if (shared != all.servers.end()) {
    ++shared->leases;
    return ServerLease(shared->server.get());
  }
  sweep(all.servers);
  auto server = store::Server::start(options.server);
  if (!server.ok()) return server.status();
  all.servers.push_back({.place = options.place,
                         .server = *std::move(server),
                         .tls = options.server.tls,
                         .leases = 1});
  return ServerLease(all.servers.back().server.get());
}

void EndLease::operator()(store::Server* server) const noexcept {
  Registry& all = registry();
  const auto is_it = [server](const Served& each) { return each.server.get() == server; };
  {
    const std::lock_guard lock(all.mutex);
    const auto found = std::ranges::find_if(all.servers, is_it);
    if (found == all.servers.end() || --found->leases > 0) return;  // or it is our parent's
    server->end_when_idle();
  }
  for (const Instant end = monotonic_clock().now() + end_patience;;) {
    std::this_thread::sleep_for(100us);
    const std::lock_guard lock(all.mutex);
    const auto found = std::ranges::find_if(all.servers, is_it);
    if (found == all.servers.end() || found->leases > 0) return;
    const bool has_ended = server->has_ended();
    const bool is_for_others = server->connections() > 1 || monotonic_clock().now() >= end;
    if (has_ended) all.servers.erase(found);
    if (has_ended || is_for_others) return;
  }
}

Status publish(const std::string& path, std::string_view content) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  ++all.published[path];
  return write_private_file(path, content);
}

void withdraw(const std::string& path) noexcept {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.published.find(path);
  if (found == all.published.end() || --found->second > 0) return;
  all.published.erase(found);
  ::unlink(path.c_str());
}

}  // namespace hocket::world
