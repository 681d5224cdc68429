// What makes a job one: its name, its secret and the store that its launcher serves.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hocket/status.hpp"

#include "net/endpoint.hpp"
#include "store/server.hpp"
#include "wire/credentials.hpp"
#include "wire/tls.hpp"

namespace hocket::run {

/// The name given, or HOCKET_JOB; the secret of HOCKET_SECRET or HOCKET_SECRET_FILE. Empty where
/// there is none.
[[nodiscard]] Result<wire::Credentials> given_credentials(const std::string& name);

/// The same, with what is missing made up.
[[nodiscard]] Result<wire::Credentials> make_credentials(const std::string& name);

/// As HOCKET_TLS and its files say in an environment: the one that the ranks will have.
[[nodiscard]] Result<wire::TlsOptions> tls_settings(const std::vector<std::string>& environment);

/// A port of this host that nobody listens on now.
[[nodiscard]] Result<std::uint16_t> free_port();

/// A store for the job, served for as long as this lives.
class JobStore {
 public:
  /// With the TLS of this environment.
  static Result<JobStore> serve(const net::Endpoint& listen, wire::Credentials credentials,
                                const std::vector<std::string>& environment);

  /// The port it listens on.
  [[nodiscard]] std::uint16_t port() const noexcept { return server_->endpoint().port; }

 private:
  explicit JobStore(std::unique_ptr<store::Server> server) : server_(std::move(server)) {}

  std::unique_ptr<store::Server> server_;
};

}  // namespace hocket::run
