#include "wire/openssl.hpp"

#include "support/catch.hpp"

using Catch::Matchers::Contains;
using hocket::StatusCode;
using hocket::wire::load_openssl;

TEST_CASE("a missing libssl is told, and what to install") {
  static constexpr const char* absent[] = {"libhocket_absent.so.3"};
  const auto status = load_openssl(absent).status();
  REQUIRE(status.code() == StatusCode::unsupported);
  REQUIRE_THAT(status.to_string(), Contains("TLS needs OpenSSL") && Contains("install libssl3") &&
                                       Contains("libhocket_absent.so.3: cannot open"));
}

TEST_CASE("a libssl without one of our functions is told") {
  static constexpr const char* other[] = {"libm.so.6"};
  const auto status = load_openssl(other).status();
  REQUIRE(status.code() == StatusCode::unsupported);
  REQUIRE_THAT(status.to_string(), Contains("the library libm.so.6 has no BIO_ctrl_pending"));
}
