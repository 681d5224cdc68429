// Stands in for tls.cpp where Hocket is built without OpenSSL's headers.
#include "wire/tls.hpp"

namespace hocket::wire {

Status tls_support() {
  return Status(StatusCode::unsupported, "this Hocket was built without TLS")
      .with_hint("build it where OpenSSL 3 and its headers are (libssl-dev), with -Dtls=enabled");
}

Result<std::unique_ptr<TlsContext>> TlsContext::make(Role /*role*/, const TlsOptions& /*options*/,
                                                     const Credentials& /*credentials*/) {
  return tls_support();
}

}  // namespace hocket::wire
