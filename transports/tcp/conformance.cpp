#include "conformance/transport_conformance.hpp"
#include "support/tls.hpp"
#include "transports/tcp/transport.hpp"

namespace hocket::testing {
namespace {

template <std::uint32_t streams, bool is_encrypted>
class TcpNet final : public TransportNet {
 public:
  static std::unique_ptr<TransportNet> create() { return std::make_unique<TcpNet>(); }

  std::unique_ptr<Transport> make(TransportOptions options) override {
    options.job = "conformance";
    options.secret = "of every rank";
    if (is_encrypted) options.tls = "psk";
    return require(tcp::TcpTransport::make(options, streams));
  }
};

TransportSubject subject(const char* name, std::unique_ptr<TransportNet> (*make_net)()) {
  return {.name = name,
          .make_net = make_net,
          .unreachable_address = "192.0.2.1:9 0123456789abcdef0123456789abcdef"};
}

}  // namespace

std::span<const TransportSubject> transport_subjects() {
  static const TransportSubject list[] = {
      subject("plain", TcpNet<1, false>::create),
      subject("streams", TcpNet<3, false>::create),
      subject("tls", has_tls() ? TcpNet<1, true>::create : nullptr),
  };
  return list;
}

}  // namespace hocket::testing
