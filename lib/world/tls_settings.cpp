#include "world/tls_settings.hpp"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"

namespace hocket::world {

Result<wire::TlsOptions> read_tls_settings(const Config& config) {
  if (config.is_invalid(variables::tls)) {
    return Status(StatusCode::invalid_argument, fmt::format("{} is none of {}", variables::tls.name,
                                                            joined(variables::tls.choices, ", ")));
  }
  wire::TlsOptions options = {
      .mode = static_cast<wire::TlsMode>(config.get(variables::tls).index),
  };
  if (options.mode != wire::TlsMode::certificate) return options;
  for (const auto& [variable, file] :
       {std::pair(&variables::tls_certificate_file, &options.certificate_file),
        {&variables::tls_key_file, &options.key_file},
        {&variables::tls_ca_file, &options.ca_file}}) {
    *file = config.get(*variable);
    if (!file->empty()) continue;
    return Status(StatusCode::invalid_argument,
                  fmt::format("{}=certificate needs {}", variables::tls.name, variable->name))
        .with_hint("name the file, or take HOCKET_TLS=psk, which needs no certificates");
  }
  return options;
}

}  // namespace hocket::world
