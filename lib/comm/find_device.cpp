#include "comm/find_device.hpp"

#include <string>
#include <utility>

#include <fmt/format.h>

namespace hocket::comm {
namespace {

Status wrong_buffer(std::string what) { return {StatusCode::invalid_argument, std::move(what)}; }

/// Finds the device that all buffers of a collective are on.
class Finder {
 public:
  explicit Finder(const device::Runtime& runtime) : runtime_(runtime) {}

  [[nodiscard]] Status look_at(const void* memory) {
    if (memory == nullptr) return {};
    const auto facts = runtime_.facts_of(memory);
    // If the runtime fails, treat the memory as host memory, and keep why for the error.
    if (!facts.ok()) unknown_ = facts.status();
    const auto kind = facts.ok() ? static_cast<MemoryKind>(facts->kind) : MemoryKind::host;
    has_host_ = has_host_ || kind == MemoryKind::host;
    if (kind == MemoryKind::host) return {};
    has_device_ = has_device_ || is_of_device(kind);
    if (is_of_device(kind) && device_ >= 0 && device_ != facts->device) {
      return Status(
                 wrong_buffer(fmt::format("its buffers are in memory of device {} and of device {}",
                                          device_, facts->device)))
          .with_hint("give each operation buffers of one device");
    }
    if (is_of_device(kind)) device_ = facts->device;
    return {};
  }

  [[nodiscard]] Result<int> device(bool has_stream) const {
    if (!has_device_ && !has_stream) return -1;
    if (has_host_) {
      return Status(wrong_buffer(has_device_
                                     ? "its buffers are in memory of the host and of a device"
                                     : "it has a stream, but its memory of the host is not pinned"))
          .with_hint("copy it first, or allocate it pinned")
          .caused_by(unknown_);
    }
    return has_device_ ? device_ : current();
  }

  [[nodiscard]] Result<int> current() const {
    int device = 0;
    Status status = runtime_.check(runtime_->get_device(&device), "asking for the device");
    if (!status.ok()) return status;
    return device;
  }

 private:
  const device::Runtime& runtime_;
  bool has_host_ = false;
  bool has_device_ = false;
  int device_ = -1;
  Status unknown_;  // why the device's runtime does not know of some memory
};

}  // namespace

Result<int> find_device(const device::Runtime& runtime, const Collective& collective) {
  Finder finder(runtime);
  const OperationOptions& options = collective.options;
  if (is_of_device(options.memory)) return finder.current();
  if (options.memory != MemoryKind::detect) {
    if (!options.stream) return -1;
    if (options.memory == MemoryKind::pinned) return finder.current();
  }
  for (const void* const each : {collective.in, static_cast<const void*>(collective.out)}) {
    if (Status status = finder.look_at(each); !status.ok()) return status;
  }
  for (const auto pieces : {collective.pieces, collective.in_pieces, collective.out_pieces}) {
    for (const Piece& each : pieces) {
      if (each.count == 0) continue;
      if (Status status = finder.look_at(each.data); !status.ok()) return status;
    }
  }
  return finder.device(options.stream.has_value());
}

}  // namespace hocket::comm
