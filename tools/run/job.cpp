#include "run/job.hpp"

#include <cerrno>
#include <cstdlib>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/fd.hpp"
#include "base/rng.hpp"

namespace hocket::run {
namespace {

constexpr std::size_t name_bytes = 8;
constexpr std::size_t secret_bytes = 32;

}  // namespace

wire::Credentials make_credentials(const std::string& name) {
  const char* const secret = std::getenv("HOCKET_SECRET");
  const bool has_secret = secret != nullptr && *secret != '\0';
  return {.job = name.empty() ? random_hex(name_bytes) : name,
          .secret = has_secret ? std::string(secret) : random_hex(secret_bytes)};
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

Result<JobStore> JobStore::serve(const store::Endpoint& listen, wire::Credentials credentials) {
  auto server = store::Server::start({.listen = listen, .credentials = std::move(credentials)});
  if (!server.ok()) return server.status();
  return JobStore(std::move(*server));
}

}  // namespace hocket::run
