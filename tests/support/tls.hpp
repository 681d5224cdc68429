// What tests of TLS need: whether it is here, and certificates.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"
#include "wire/tls.hpp"

namespace hocket::testing {

/// False where Hocket has no TLS: the test has then nothing to see, and says so.
inline bool has_tls() {
  const Status status = wire::tls_support();
  if (status.ok()) return true;
  REQUIRE(status.code() == StatusCode::unsupported);
  WARN("skipped: " << status.to_string());
  return false;
}

/// A folder of authorities and certificates, made by the command openssl and removed at the end.
class Certificates {
 public:
  Certificates() {
    for (const char* authority : {"ours", "other"}) {
      is_made_ = is_made_ && openssl(fmt::format("-x509 -keyout {0}.key -out {0}.pem -subj /CN={0}",
                                                 authority));
    }
    for (const auto& [name, authority] :
         {std::pair("one", "ours"), {"two", "ours"}, {"spy", "other"}}) {
      is_made_ = is_made_ && openssl(fmt::format("-x509 -CA {1}.pem -CAkey {1}.key -keyout {0}.key "
                                                 "-out {0}.pem -subj /CN={0}",
                                                 name, authority));
    }
  }

  /// False, with the reason printed, where there is no command to make them.
  [[nodiscard]] bool are_made() const {
    if (!is_made_) WARN("skipped: the command openssl is not here or too old");
    return is_made_;
  }

  [[nodiscard]] wire::TlsOptions options(std::string_view name, std::string_view authority) const {
    const std::string& folder = folder_.path();
    return {.mode = wire::TlsMode::certificate,
            .certificate_file = fmt::format("{}/{}.pem", folder, name),
            .key_file = fmt::format("{}/{}.key", folder, name),
            .ca_file = fmt::format("{}/{}.pem", folder, authority)};
  }

 private:
  [[nodiscard]] bool openssl(const std::string& arguments) const {
    const std::string line = fmt::format(
        "cd '{}' && openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "
        "-days 30 {} >/dev/null 2>&1",
        folder_.path(), arguments);
    return std::system(line.c_str()) == 0;
  }

  TemporaryFolder folder_;
  bool is_made_ = true;
};

}  // namespace hocket::testing
