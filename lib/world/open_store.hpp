// A client of the store that a URL names.
#pragma once

#include <memory>
#include <optional>

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "base/config.hpp"
#include "store/store.hpp"
#include "wire/credentials.hpp"
#include "world/rendezvous_url.hpp"

namespace hocket::world {

/// Opens the store at a tcp:// or file:// URL without rank= and size=. The
/// timeout is `timeout`, else the URL's, else HOCKET_STORE_TIMEOUT.
[[nodiscard]] Result<std::unique_ptr<store::Store>> open_store(const RendezvousUrl& url,
                                                               const Config& config,
                                                               std::optional<Duration> timeout);

/// Reads the job and the secret that processes prove to each other.
[[nodiscard]] Result<wire::Credentials> read_credentials(const Config& config);

}  // namespace hocket::world
