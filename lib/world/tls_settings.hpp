// How the connections of a job are encrypted, as the HOCKET_TLS variables say.
#pragma once

#include "hocket/status.hpp"

#include "base/config.hpp"
#include "wire/tls.hpp"

namespace hocket::world {

/// Fails with invalid_argument for a mode that is none, rather than going on without TLS, and for
/// mode certificate without all of its files.
[[nodiscard]] Result<wire::TlsOptions> read_tls_settings(const Config& config);

}  // namespace hocket::world
