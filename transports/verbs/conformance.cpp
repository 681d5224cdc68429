// Of adapters that Soft-RoCE gives in the machine of tools/rdma-vm; all ranks in one kernel there.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/environment.hpp"
#include "conformance/transport_conformance.hpp"
#include "support/forwarding_transport.hpp"
#include "transports/verbs/transport.hpp"

namespace hocket::testing {
namespace {

enum class Adapters { one, one_each, two_rails };
enum class Memory { copied, registered, of_device };

/// Registers the memory of each op until the op is over, so that large messages go straight; as
/// memory of a device, so that all do.
class Registering final : public ForwardingTransport {
 public:
  Registering(std::unique_ptr<Transport> inner, Memory memory)
      : ForwardingTransport(std::move(inner)), memory_(memory) {}

  [[nodiscard]] std::size_t post(std::span<const TransportOp> ops) noexcept override {
    std::size_t known = 0;
    while (known < ops.size() && add(ops[known])) ++known;
    const std::size_t taken = inner_->post(ops.first(known));
    for (const TransportOp& op : ops.first(known).subspan(taken)) drop(op.token);
    return taken;
  }
  [[nodiscard]] std::size_t poll(std::span<TransportCompletion> completions) noexcept override {
    const std::size_t count = inner_->poll(completions);
    for (std::size_t i = 0; i < count; ++i) drop(completions[i].token);
    return count;
  }

 private:
  /// Whether there is room for it.
  [[nodiscard]] bool add(const TransportOp& op) {
    if (memory_ == Memory::of_device) return add_of_device(op);
    for (const MemoryPart& part : {op.first, op.rest}) {
      if (part.bytes == 0) continue;
      const RegisteredMemory memory = {part.data, part.bytes, op.kind == TransportOp::Kind::recv};
      inner_->register_memory(memory);
      registered_.emplace(op.token, memory);
    }
    return true;
  }
  /// Both parts as one: they are of one parcel. There is no other way for what is not known.
  [[nodiscard]] bool add_of_device(const TransportOp& op) {
    if (op.bytes() == 0) return true;
    const MemoryPart& first = op.first.bytes > 0 ? op.first : op.rest;
    const MemoryPart& last = op.rest.bytes > 0 ? op.rest : op.first;
    const std::byte* const begin = std::min(first.data, last.data);
    const std::byte* const end = std::max(first.data + first.bytes, last.data + last.bytes);
    const RegisteredMemory memory = {begin, static_cast<std::uint64_t>(end - begin),
                                     op.kind == TransportOp::Kind::recv};
    const Status status = inner_->register_device_memory(memory, -1, {});
    if (status.code() == StatusCode::limit_exceeded) return false;
    if (!status.ok()) std::abort();  // ranks may be threads, which Catch's checks are not for
    registered_.emplace(op.token, memory);
    return true;
  }
  void drop(std::uint64_t token) {
    const auto [begin, end] = registered_.equal_range(token);
    for (auto each = begin; each != end; ++each) inner_->deregister_memory(each->second);
    registered_.erase(begin, end);
  }

  const Memory memory_;
  std::multimap<std::uint64_t, RegisteredMemory> registered_ = {};  // by token
};

template <Adapters adapters, Memory memory = Memory::copied>
class VerbsNet final : public TransportNet {
 public:
  static std::unique_ptr<TransportNet> create() { return std::make_unique<VerbsNet>(); }

  std::unique_ptr<Transport> make(TransportOptions options) override {
    options.job = "conformance";
    options.secret = "of every rank";
    std::string devices = "=rxe0";
    if (adapters == Adapters::one_each) devices = fmt::format("=rxe{}", options.rank % 2);
    if (adapters == Adapters::two_rails) devices = "=rxe0,=rxe1";
    auto made = require(verbs::VerbsTransport::make(options, {.devices = devices}));
    if (memory == Memory::copied) return made;
    return std::make_unique<Registering>(std::move(made), memory);
  }
};

TransportSubject subject(const char* name, std::unique_ptr<TransportNet> (*make_net)(),
                         bool sends_ahead = true) {
  return {.name = name,
          .make_net = make_net,
          .sends_ahead = sends_ahead,
          .unreachable_address = "192.0.2.1:9 0123456789abcdef0123456789abcdef"};
}

}  // namespace

std::span<const TransportSubject> transport_subjects() {
  const std::string_view devices = process_environment().get("RDMA_VM_DEVICES");
  const bool has_two = devices.find("rxe1") != std::string_view::npos;
  static const TransportSubject list[] = {
      subject("one adapter", VerbsNet<Adapters::one>::create),
      subject("device memory", VerbsNet<Adapters::one, Memory::of_device>::create, false),
      subject("an adapter each", has_two ? VerbsNet<Adapters::one_each>::create : nullptr),
      subject("registered memory",
              has_two ? VerbsNet<Adapters::two_rails, Memory::registered>::create : nullptr),
      subject("two rails", has_two ? VerbsNet<Adapters::two_rails>::create : nullptr),
  };
  return list;
}

}  // namespace hocket::testing
