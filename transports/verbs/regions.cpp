#include "transports/verbs/regions.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "transports/verbs/library.hpp"

namespace hocket::verbs {
namespace {

/// Null, and why, where it can't be.
ibv_mr* register_dma_buf(ibv_pd* domain, const RegisteredMemory& memory, int dma_buf, int access,
                         std::string& why_not) {
  if (api().register_dma_buf == nullptr) {
    why_not = "libibverbs knows no dma-bufs (before rdma-core 34); by its address: ";
    return nullptr;
  }
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data);
  ibv_mr* const key = api().register_dma_buf(domain, 0, memory.bytes, address, dma_buf, access);
  if (key == nullptr) {
    why_not = fmt::format("as a dma-buf: {}; by its address: ", std::strerror(errno));
  }
  return key;
}

}  // namespace

Regions::~Regions() {
  for (const auto& [begin, region] : known_) take_from_adapters(*region);
  for (const auto& region : leaving_) take_from_adapters(*region);
}

Regions::Known::iterator Regions::find_same(const RegisteredMemory& memory) noexcept {
  const auto [begin, end] = known_.equal_range(memory.data);
  const auto found =
      std::find_if(begin, end, [&](const auto& each) { return each.second->memory == memory; });
  return found == end ? known_.end() : found;
}

void Regions::add(const RegisteredMemory& memory) {
  if (memory.bytes == 0) return;
  const Status status = know({.memory = memory}, -1);
  if (!status.ok() && status.code() != StatusCode::limit_exceeded) {
    log::line(log::Level::info, "{}, and will be copied", status.what());
  }
}

Status Regions::add_of_device(const RegisteredMemory& memory, int dma_buf) {
  if (memory.bytes == 0) return {};
  return know({.memory = memory, .is_of_device = true}, dma_buf);
}

Status Regions::know(const Region& wanted, int dma_buf) {
  const RegisteredMemory& memory = wanted.memory;
  if (const auto same = find_same(memory); same != known_.end()) {
    if (same->second->is_of_device != wanted.is_of_device) {
      return {StatusCode::invalid_argument, "memory is registered as a host's and as a device's"};
    }
    ++same->second->users;
    return {};
  }
  if (known_.size() >= limits::verbs_regions_max) {
    return {StatusCode::limit_exceeded,
            "there is more registered memory than adapters are told of"};
  }
  auto region = std::make_unique<Region>(wanted);
  region->users = 1;
  if (Status status = give_to_adapters(*region, dma_buf); !status.ok()) return status;
  longest_ = std::max(longest_, memory.bytes);
  if (wanted.is_of_device) of_device_.push_back(region.get());
  known_.emplace(memory.data, std::move(region));
  return {};
}

Status Regions::give_to_adapters(Region& region, int dma_buf) const {
  const RegisteredMemory& memory = region.memory;
  const int access = memory.may_receive ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : 0;
  // The adapter's interface has no memory that is only read.
  auto* const data = const_cast<std::byte*>(memory.data);
  for (ibv_pd* const domain : domains_) {
    ibv_mr* key = nullptr;
    std::string unshared;
    if (dma_buf >= 0) key = register_dma_buf(domain, memory, dma_buf, access, unshared);
    // By the driver's own means, if it has some: nvidia-peermem.
    if (key == nullptr) key = (api().ibv_reg_mr)(domain, data, memory.bytes, access);
    if (key == nullptr) {
      const int error = errno;
      take_from_adapters(region);
      return Status(
          StatusCode::unsupported,
          fmt::format("{} of{} memory can't be registered: {}{}", format_size(memory.bytes),
                      region.is_of_device ? " device" : "", unshared, std::strerror(error)));
    }
    region.keys.push_back(key);
  }
  return {};
}

void Regions::take_from_adapters(const Region& region) noexcept {
  for (ibv_mr* const key : region.keys) api().ibv_dereg_mr(key);
}

void Regions::remove(const RegisteredMemory& memory) noexcept {
  const auto found = find_same(memory);
  if (found == known_.end() || --found->second->users > 0) return;
  std::unique_ptr<Region> region = std::move(found->second);
  known_.erase(found);
  std::erase(of_device_, region.get());
  if (region->pins > 0) {
    leaving_.push_back(std::move(region));
  } else {
    take_from_adapters(*region);
  }
}

Region* Regions::find(const std::byte* data, std::uint64_t bytes, bool may_receive) const noexcept {
  for (auto each = known_.upper_bound(data); each != known_.begin();) {
    Region& region = *(--each)->second;
    if (static_cast<std::uint64_t>(data - region.memory.data) >= longest_) break;
    if (region.holds(data, bytes) && (region.memory.may_receive || !may_receive)) return &region;
  }
  return nullptr;
}

Result<Region*> Regions::find_device(const MemoryPart& first, const MemoryPart& rest,
                                     bool may_receive) const {
  bool is_of_device = false;
  for (Region* const each : of_device_) {
    const auto begins = [&](const MemoryPart& part) {
      return part.bytes > 0 && each->holds(part.data, 1);
    };
    const auto is_inside = [&](const MemoryPart& part) {
      return part.bytes == 0 || each->holds(part.data, part.bytes);
    };
    if (!begins(first) && !begins(rest)) continue;
    is_of_device = true;
    const bool fits = each->memory.may_receive || !may_receive;
    if (fits && is_inside(first) && is_inside(rest)) return each;
  }
  if (!is_of_device) return static_cast<Region*>(nullptr);
  return Status(StatusCode::invalid_argument,
                "an op is not all in one stretch of registered device memory");
}

void Regions::unpin(Region& region) noexcept {
  if (--region.pins > 0 || region.users > 0) return;
  take_from_adapters(region);
  std::erase_if(leaving_, [&](const auto& each) { return each.get() == &region; });
}

}  // namespace hocket::verbs
