#include "wire/openssl.hpp"

#include <initializer_list>
#include <utility>

#include "base/library.hpp"

namespace hocket::wire {
namespace {

Status without_tls(Status why) {
  return Status(StatusCode::unsupported, "TLS needs OpenSSL's libssl, which is not here")
      .with_hint("install libssl3")
      .caused_by(std::move(why));
}

}  // namespace

Result<OpenSsl> load_openssl(std::span<const char* const> libraries) {
  const Result<Library> library = Library::open(libraries);
  if (!library.ok()) return without_tls(library.status());
  OpenSsl api;
#define HOCKET_OPENSSL_FIND(name) \
  if (Status status = library->find(#name, api.name); !status.ok()) return without_tls(status);
  HOCKET_OPENSSL_FUNCTIONS(HOCKET_OPENSSL_FIND)
#undef HOCKET_OPENSSL_FIND
  return api;
}

const Result<OpenSsl>& openssl() {
  static_assert(OPENSSL_VERSION_MAJOR == 3);
  static constexpr const char* libraries[] = {"libssl.so.3"};
  static const Result<OpenSsl> loaded = load_openssl(libraries);
  return loaded;
}

}  // namespace hocket::wire
