// A transport that is loaded, in the conformance suite: of those that HOCKET_TRANSPORT_PATH holds,
// the one that HOCKET_TRANSPORT names. TEST_UNREACHABLE_ADDRESS may be an address of it where
// nobody is.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/environment.hpp"
#include "conformance/transport_conformance.hpp"
#include "engine/transports.hpp"
#include "support/catch.hpp"

namespace hocket::testing {
namespace {

std::string variable(std::string_view name) { return std::string(process_environment().get(name)); }

const TransportKind* find_kind() {
  const engine::FoundTransports found = engine::find_transports(variable("HOCKET_TRANSPORT_PATH"));
  for (const std::string& complaint : found.complaints) UNSCOPED_INFO(complaint);
  for (const TransportKind* const kind : found.kinds) {
    if (kind->name == variable("HOCKET_TRANSPORT")) return kind;
  }
  FAIL("HOCKET_TRANSPORT names no transport that HOCKET_TRANSPORT_PATH holds");
  return nullptr;
}

class LoadedNet final : public TransportNet {
 public:
  std::unique_ptr<Transport> make(TransportOptions options) override {
    static const TransportKind* const kind = find_kind();
    options.job = "conformance";
    options.secret = "of every rank";
    options.host = "127.0.0.1";
    require(kind->available({}));
    return require(kind->make(options));
  }
};

}  // namespace

std::span<const TransportSubject> transport_subjects() {
  static const TransportSubject subjects[] = {
      {.name = "loaded",
       .make_net = []() -> std::unique_ptr<TransportNet> { return std::make_unique<LoadedNet>(); },
       .tells_reason_in_mid_message = false,
       .unreachable_address = variable("TEST_UNREACHABLE_ADDRESS")},
  };
  return subjects;
}

}  // namespace hocket::testing
