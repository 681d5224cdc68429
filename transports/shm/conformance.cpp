#include <fmt/format.h>

#include "conformance/transport_conformance.hpp"
#include "transports/shm/address.hpp"
#include "transports/shm/transport.hpp"

namespace hocket::testing {
namespace {

class ShmNet final : public TransportNet {
 public:
  std::unique_ptr<Transport> make(TransportOptions options) override {
    return require(shm::ShmTransport::make(options));
  }
};

/// Of this host, but of no process.
std::string nowhere() {
  shm::Address address = shm::Address::own();
  address.pid = 1 << 30;
  return address.to_string();
}

}  // namespace

std::span<const TransportSubject> transport_subjects() {
  static const TransportSubject list[] = {
      {.name = "shm",
       .make_net = []() -> std::unique_ptr<TransportNet> { return std::make_unique<ShmNet>(); },
       .tells_of_parts = true,
       .unreachable_address = nowhere()}};
  return list;
}

}  // namespace hocket::testing
