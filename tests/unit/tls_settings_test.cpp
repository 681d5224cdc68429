#include "world/tls_settings.hpp"

#include <initializer_list>
#include <string>
#include <vector>

#include "support/catch.hpp"

using hocket::Result;
using hocket::StatusCode;
using hocket::wire::TlsMode;
using hocket::wire::TlsOptions;

namespace {

Result<TlsOptions> read(std::initializer_list<const char*> entries) {
  std::vector<const char*> environment(entries);
  environment.push_back(nullptr);
  return hocket::world::read_tls_settings(hocket::Config(environment.data()));
}

void require_refused(const Result<TlsOptions>& settings, const std::string& words) {
  REQUIRE(settings.status().code() == StatusCode::invalid_argument);
  REQUIRE_THAT(settings.status().to_string(), Catch::Matchers::Contains(words));
}

}  // namespace

TEST_CASE("TLS is off until it is asked for") {
  REQUIRE(read({})->mode == TlsMode::off);
  REQUIRE(read({"HOCKET_TLS="})->mode == TlsMode::off);
  REQUIRE(read({"HOCKET_TLS=off"})->mode == TlsMode::off);
  REQUIRE(read({"HOCKET_TLS=psk"})->mode == TlsMode::psk);
}

TEST_CASE("a mode of TLS that is none is refused, not taken for none at all") {
  require_refused(read({"HOCKET_TLS=on"}), "HOCKET_TLS is none of off, psk, certificate");
}

TEST_CASE("TLS by certificate needs its three files") {
  const char* const mode = "HOCKET_TLS=certificate";
  const char* const certificate = "HOCKET_TLS_CERTIFICATE_FILE=c.pem";
  const char* const key = "HOCKET_TLS_KEY_FILE=k.pem";
  const char* const authorities = "HOCKET_TLS_CA_FILE=ca.pem";
  require_refused(read({mode, key, authorities}), "HOCKET_TLS_CERTIFICATE_FILE");
  require_refused(read({mode, certificate, authorities}), "HOCKET_TLS_KEY_FILE");
  require_refused(read({mode, certificate, key}), "HOCKET_TLS_CA_FILE");
  const auto settings = read({mode, certificate, key, authorities});
  REQUIRE(settings.status().to_string() == "ok");
  REQUIRE(settings->mode == TlsMode::certificate);
  REQUIRE(settings->certificate_file == "c.pem");
  REQUIRE(settings->key_file == "k.pem");
  REQUIRE(settings->ca_file == "ca.pem");
}
