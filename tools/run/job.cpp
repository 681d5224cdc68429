#include "run/job.hpp"

#include <cerrno>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/config.hpp"
#include "base/fd.hpp"
#include "base/rng.hpp"
#include "world/tls_settings.hpp"

namespace hocket::run {
namespace {

constexpr std::size_t name_bytes = 8;
constexpr std::size_t secret_bytes = 32;

}  // namespace

Result<wire::Credentials> given_credentials(const std::string& name) {
  const Config& config = process_config();
  auto secret = read_secret(config);
  if (!secret.ok()) return secret.status();
  return wire::Credentials{.job = name.empty() ? config.get(variables::job) : name,
                           .secret = std::move(*secret)};
}

Result<wire::Credentials> make_credentials(const std::string& name) {
  auto credentials = given_credentials(name);
  if (!credentials.ok()) return credentials.status();
  if (credentials->job.empty()) credentials->job = random_hex(name_bytes);
  if (credentials->secret.empty()) credentials->secret = random_hex(secret_bytes);
  return credentials;
}

Result<std::uint16_t> free_port() {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(socket.get(), generic, size) != 0 || getsockname(socket.get(), generic, &size) != 0) {
    return Status(StatusCode::system_error, "no free port").with_system_error(errno);
  }
  return ntohs(address.sin_port);
}

Result<wire::TlsOptions> tls_settings(const std::vector<std::string>& environment) {
  std::vector<const char*> entries;
  for (const std::string& entry : environment) entries.push_back(entry.c_str());
  entries.push_back(nullptr);
  return world::read_tls_settings(Config(entries.data()));
}

Result<JobStore> JobStore::serve(const net::Endpoint& listen, wire::Credentials credentials,
                                 const std::vector<std::string>& environment) {
  auto tls = tls_settings(environment);
  if (!tls.ok()) return tls.status();
  auto server = store::Server::start(
      {.listen = listen, .credentials = std::move(credentials), .tls = std::move(*tls)});
  if (!server.ok()) return server.status();
  return JobStore(std::move(*server));
}

}  // namespace hocket::run
