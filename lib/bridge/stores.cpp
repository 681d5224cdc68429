// The functions that make stores, and the server of one.
#include <string>
#include <utility>
#include <vector>

#include "hocket/store.hpp"

#include "base/config.hpp"
#include "base/exception.hpp"
#include "bridge/built_in_store.hpp"
#include "bridge/program_store.hpp"
#include "bridge/torch_store.hpp"
#include "store/hash_store.hpp"
#include "store/prefix_store.hpp"
#include "store/server.hpp"
#include "world/open_store.hpp"
#include "world/rendezvous_url.hpp"
#include "world/tls_settings.hpp"

namespace hocket::inline v1 {
namespace {

std::shared_ptr<Store> share(std::unique_ptr<store::Store> store) {
  return std::make_shared<bridge::BuiltInStore>(std::move(store));
}

Config config_of(const std::vector<Setting>& settings) {
  return process_config().with(settings).value();
}

}  // namespace

std::shared_ptr<Store> open_store(const StoreOptions& options) {
  return as_errors([&]() -> std::shared_ptr<Store> {
    const Config config = config_of(options.settings);
    const auto url = value_of(world::parse_rendezvous_url(options.url), "open_store");
    if (url.scheme == world::RendezvousUrl::Scheme::env || url.rank >= 0) {
      throw_error(Status(StatusCode::invalid_argument, "the URL does not name a store")
                      .with_operation("open_store")
                      .with_hint("tcp://HOST:PORT, file:///PATH and torch://HOST:PORT do, without "
                                 "rank= and size="));
    }
    if (url.scheme != world::RendezvousUrl::Scheme::torch) {
      return share(value_of(world::open_store(url, config, options.timeout), "open_store"));
    }
    const Duration timeout =
        options.timeout.value_or(url.timeout.value_or(config.get(variables::store_timeout)));
    return std::make_shared<bridge::TorchStore>(url.endpoint, timeout);
  });
}

std::shared_ptr<Store> make_local_store() {
  return as_errors([] { return share(std::make_unique<store::HashStore>()); });
}

std::shared_ptr<Store> make_prefix_store(std::shared_ptr<Store> whole, std::string_view prefix) {
  return as_errors([&] {
    if (whole == nullptr) {
      throw_error(Status(StatusCode::invalid_argument, "make_prefix_store: the store is null"));
    }
    return share(std::make_unique<store::PrefixStore>(
        value_of(bridge::handle_of(std::move(whole)), "make_prefix_store"), prefix));
  });
}

StoreServer::StoreServer(const StoreServerOptions& options) {
  as_errors([&] {
    const Config config = config_of(options.settings);
    server_ = value_of(store::Server::start(
                           {.listen = {.host = options.host, .port = options.port},
                            .credentials = value_of(world::read_credentials(config), "StoreServer"),
                            .tls = value_of(world::read_tls_settings(config), "StoreServer"),
                            .allow_without_secret = config.get(variables::allow_without_secret),
                            .serves_torch = options.serves_torch}),
                       "StoreServer");
  });
}

StoreServer::StoreServer(StoreServer&&) noexcept = default;
StoreServer& StoreServer::operator=(StoreServer&&) noexcept = default;
StoreServer::~StoreServer() = default;

std::uint16_t StoreServer::port() const noexcept { return server_->endpoint().port; }

}  // namespace hocket::inline v1
