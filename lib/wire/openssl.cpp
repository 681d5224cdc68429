#include "wire/openssl.hpp"

#include <utility>

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
  OpenSsl api(*library);
  if (!api.find.status().ok()) return without_tls(api.find.status());
  return api;
}

const Result<OpenSsl>& openssl() {
  static_assert(OPENSSL_VERSION_MAJOR == 3);
  static constexpr const char* libraries[] = {"libssl.so.3"};
  static const Result<OpenSsl>& loaded = []() -> const Result<OpenSsl>& {
    auto& found = *new Result<OpenSsl>(load_openssl(libraries));
    // Threads may still use it while the process ends, so that it must not free anything then. A
    // failure is told by the first call that needs what this prepares.
    if (found.ok()) static_cast<void>(found->OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr));
    return found;
  }();
  return loaded;
}

}  // namespace hocket::wire
