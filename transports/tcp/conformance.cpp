#include <fmt/format.h>

#include "conformance/transport_conformance.hpp"
#include "support/tls.hpp"
#include "transports/tcp/transport.hpp"

namespace hocket::testing {
namespace {

/// As if each rank were a host of its own, with two networks.
std::string rails_of(std::uint32_t rank) {
  return fmt::format("127.0.0.{},127.0.1.{}", rank + 1, rank + 1);
}

template <std::uint32_t streams, bool is_encrypted, bool has_rails = false>
class TcpNet final : public TransportNet {
 public:
  static std::unique_ptr<TransportNet> create() { return std::make_unique<TcpNet>(); }

  std::unique_ptr<Transport> make(TransportOptions options) override {
    options.job = "conformance";
    options.secret = "of every rank";
    if (is_encrypted) options.tls = "psk";
    const std::string interfaces = has_rails ? rails_of(options.rank) : "";
    return require(tcp::TcpTransport::make(options, streams, interfaces));
  }
};

TransportSubject subject(const char* name, std::unique_ptr<TransportNet> (*make_net)(),
                         const char* nowhere = "192.0.2.1:9") {
  return {.name = name,
          .make_net = make_net,
          .tells_of_parts = true,
          .unreachable_address = fmt::format("{} 0123456789abcdef0123456789abcdef", nowhere)};
}

}  // namespace

std::span<const TransportSubject> transport_subjects() {
  static const TransportSubject list[] = {
      subject("plain", TcpNet<1, false>::create),
      subject("streams", TcpNet<3, false>::create),
      subject("tls", has_tls() ? TcpNet<1, true>::create : nullptr),
      subject("rails", TcpNet<1, false, true>::create, "192.0.2.1:9,192.0.2.2:9"),
      subject("encrypted rails", has_tls() ? TcpNet<2, true, true>::create : nullptr,
              "192.0.2.1:9,192.0.2.2:9"),
  };
  return list;
}

}  // namespace hocket::testing
