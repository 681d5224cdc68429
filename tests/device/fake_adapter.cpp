// A transport whose adapters reach the fake device's memory: TCP, which sees that memory where a
// stream would. It does so for what was registered alone. Anybody else who touches it, as a
// processor of the host would, dies of that.
//
// FAKE_ADAPTER in the environment: "refuse" for one that takes no memory of a device in the end;
// "log" for one that tells how much it has moved between devices.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hocket/transport.hpp"

#include "base/environment.hpp"
#include "fake_device.hpp"
#include "support/forwarding_transport.hpp"
#include "transports/tcp/transport.hpp"

namespace hocket::fake {
namespace {

bool is_wished(std::string_view name) { return process_environment().get("FAKE_ADAPTER") == name; }

class Adapter final : public testing::ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;
  ~Adapter() override {
    if (!is_wished("log")) return;
    std::fprintf(stderr, "fake adapter registered=%zu left=%zu sent=%llu received=%llu\n",
                 registrations_, regions_.size(), static_cast<unsigned long long>(sent_),
                 static_cast<unsigned long long>(received_));
  }

  [[nodiscard]] std::size_t post(std::span<const TransportOp> ops) noexcept override {
    translated_.assign(ops.begin(), ops.end());
    for (TransportOp& op : translated_) {
      for (MemoryPart* const part : {&op.first, &op.rest}) reach(op, *part);
    }
    return inner_->post(translated_);
  }
  void deregister_memory(const RegisteredMemory& memory) noexcept override {
    const auto found = std::ranges::find(regions_, memory);
    if (found != regions_.end()) regions_.erase(found);
  }
  [[nodiscard]] Status register_device_memory(const RegisteredMemory& memory, int /*dma_buf*/,
                                              std::span<const std::uint32_t> peers) override {
    for (const std::uint32_t peer : peers) {
      if (Status status = can_reach(peer); !status.ok()) return status;
    }
    if (memory.bytes == 0) return {};
    if (is_wished("refuse")) return {StatusCode::limit_exceeded, "the fake adapter is full"};
    ++registrations_;
    regions_.push_back(memory);
    return {};
  }

 private:
  /// To where the adapter has it, if it is of the device.
  void reach(const TransportOp& op, MemoryPart& part) {
    const bool is_known = std::ranges::any_of(regions_, [&](const RegisteredMemory& each) {
      return part.data >= each.data && part.data + part.bytes <= each.data + each.bytes;
    });
    if (!is_known || part.bytes == 0) return;
    if (op.may_lend) {
      std::fputs("WRONG: device memory can't be lent\n", stdout);
      std::abort();
    }
    const bool is_send = op.kind == TransportOp::Kind::send;
    if (!is_send) adapter_writes(part.data, part.bytes);
    (is_send ? sent_ : received_) += part.bytes;
    part.data = as_device(part.data);
  }

  std::vector<RegisteredMemory> regions_ = {};
  std::vector<TransportOp> translated_ = {};
  std::size_t registrations_ = 0;
  std::uint64_t sent_ = 0;  // of devices, some perhaps not taken at first
  std::uint64_t received_ = 0;
};

Result<std::unique_ptr<Transport>> make(const TransportOptions& options) {
  auto tcp = tcp::TcpTransport::make(options, 1);
  if (!tcp.ok()) return tcp.status();
  return std::unique_ptr<Transport>(std::make_unique<Adapter>(*std::move(tcp)));
}

constexpr TransportKind kind = {
    .name = "fake",
    .summary = "TCP, and adapters for the fake device",
    .available = [](std::span<const Setting>) { return Status(); },
    .make = make,
};

}  // namespace
}  // namespace hocket::fake

extern "C" FAKE_DEVICE_API const hocket::TransportKind* hocket_transport_v1() {
  return &hocket::fake::kind;
}
