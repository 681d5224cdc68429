#include "world/open_store.hpp"

#include <string>
#include <utility>

#include "store/file_store.hpp"
#include "store/tcp_store.hpp"
#include "world/tls_settings.hpp"

namespace hocket::world {

Result<wire::Credentials> read_credentials(const Config& config) {
  Result<std::string> secret = read_secret(config);
  if (!secret.ok()) return secret.status();
  return wire::Credentials{.job = config.get(variables::job), .secret = *std::move(secret)};
}

Result<std::unique_ptr<store::Store>> open_store(const RendezvousUrl& url, const Config& config,
                                                 std::optional<Duration> timeout) {
  Result<wire::Credentials> credentials = read_credentials(config);
  if (!credentials.ok()) return credentials.status();
  if (!url.job.empty()) credentials->job = url.job;
  const Duration limit =
      timeout.value_or(url.timeout.value_or(config.get(variables::store_timeout)));
  const auto opened = [](auto store) -> Result<std::unique_ptr<store::Store>> {
    if (!store.ok()) return store.status();
    return std::unique_ptr<store::Store>(*std::move(store));
  };
  if (url.scheme == RendezvousUrl::Scheme::file) {
    return opened(
        store::FileStore::open({.path = url.path, .job = credentials->job, .timeout = limit}));
  }
  Result<wire::TlsOptions> tls = read_tls_settings(config);
  if (!tls.ok()) return tls.status();
  return opened(store::TcpStore::connect({.server = url.endpoint,
                                          .credentials = *std::move(credentials),
                                          .tls = *std::move(tls),
                                          .timeout = limit}));
}

}  // namespace hocket::world
