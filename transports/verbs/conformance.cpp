// Of adapters that Soft-RoCE gives in the machine of tools/rdma-vm; all ranks in one kernel there.
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/environment.hpp"
#include "conformance/transport_conformance.hpp"
#include "transports/verbs/transport.hpp"

namespace hocket::testing {
namespace {

enum class Adapters { one, one_each, two_rails };

template <Adapters adapters>
class VerbsNet final : public TransportNet {
 public:
  static std::unique_ptr<TransportNet> create() { return std::make_unique<VerbsNet>(); }

  std::unique_ptr<Transport> make(TransportOptions options) override {
    options.job = "conformance";
    options.secret = "of every rank";
    std::string devices = "=rxe0";
    if (adapters == Adapters::one_each) devices = fmt::format("=rxe{}", options.rank % 2);
    if (adapters == Adapters::two_rails) devices = "=rxe0,=rxe1";
    return require(verbs::VerbsTransport::make(options, {.devices = devices}));
  }
};

TransportSubject subject(const char* name, std::unique_ptr<TransportNet> (*make_net)()) {
  return {.name = name,
          .make_net = make_net,
          .unreachable_address = "192.0.2.1:9 0123456789abcdef0123456789abcdef"};
}

}  // namespace

std::span<const TransportSubject> transport_subjects() {
  const std::string_view devices = process_environment().get("RDMA_VM_DEVICES");
  const bool has_two = devices.find("rxe1") != std::string_view::npos;
  static const TransportSubject list[] = {
      subject("one adapter", VerbsNet<Adapters::one>::create),
      subject("an adapter each", has_two ? VerbsNet<Adapters::one_each>::create : nullptr),
      subject("two rails", has_two ? VerbsNet<Adapters::two_rails>::create : nullptr),
  };
  return list;
}

}  // namespace hocket::testing
