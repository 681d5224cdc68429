// Two transports as one, in the conformance suite: all ranks have the second, and of the first
// three ranks of four (as of hosts of which one has no adapter) only two have the first as well.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "conformance/transport_conformance.hpp"
#include "engine/mixed.hpp"
#include "transports/tcp/transport.hpp"

namespace hocket::testing {
namespace {

class MixedNet final : public TransportNet {
 public:
  std::unique_ptr<Transport> make(TransportOptions options) override {
    options.job = "conformance";
    options.secret = "of every rank";
    std::vector<engine::MixedTransport::Part> parts;
    for (const char* const name : {"first", "second"}) {
      const bool has_it = name == std::string("second") || options.rank % 3 != 2;
      if (!has_it) continue;
      parts.push_back({.name = name, .transport = require(tcp::TcpTransport::make(options, 1))});
    }
    return require(engine::MixedTransport::make(std::move(parts)));
  }
};

}  // namespace

std::span<const TransportSubject> transport_subjects() {
  static const TransportSubject list[] = {
      {.name = "mixed",
       .make_net = []() -> std::unique_ptr<TransportNet> { return std::make_unique<MixedNet>(); },
       .tells_of_parts = true,
       .unreachable_address =
           engine::list_item("first", "192.0.2.1:9 0123456789abcdef0123456789abcdef")}};
  return list;
}

}  // namespace hocket::testing
