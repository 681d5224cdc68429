#include "transports/verbs/regions.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "transports/verbs/library.hpp"

namespace hocket::verbs {

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
  if (const auto same = find_same(memory); same != known_.end()) {
    ++same->second->users;
    return;
  }
  if (known_.size() >= limits::verbs_regions_max) return;
  auto region = std::make_unique<Region>(Region{.memory = memory, .users = 1});
  if (!give_to_adapters(*region)) return;
  longest_ = std::max(longest_, memory.bytes);
  known_.emplace(memory.data, std::move(region));
}

bool Regions::give_to_adapters(Region& region) const {
  const int access =
      region.memory.may_receive ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : 0;
  // The adapter's interface has no memory that is only read.
  void* const memory = const_cast<std::byte*>(region.memory.data);
  for (ibv_pd* const domain : domains_) {
    ibv_mr* const key = (api().ibv_reg_mr)(domain, memory, region.memory.bytes, access);
    if (key == nullptr) {
      log::line(log::Level::info, "{} of memory can't be registered, and will be copied: {}",
                format_size(region.memory.bytes), std::strerror(errno));
      take_from_adapters(region);
      return false;
    }
    region.keys.push_back(key);
  }
  return true;
}

void Regions::take_from_adapters(const Region& region) noexcept {
  for (ibv_mr* const key : region.keys) api().ibv_dereg_mr(key);
}

void Regions::remove(const RegisteredMemory& memory) noexcept {
  const auto found = find_same(memory);
  if (found == known_.end() || --found->second->users > 0) return;
  std::unique_ptr<Region> region = std::move(found->second);
  known_.erase(found);
  if (region->pins > 0) {
    leaving_.push_back(std::move(region));
  } else {
    take_from_adapters(*region);
  }
}

Region* Regions::find(const std::byte* data, std::uint64_t bytes, bool may_receive) const noexcept {
  for (auto each = known_.upper_bound(data); each != known_.begin();) {
    Region& region = *(--each)->second;
    const auto offset = static_cast<std::uint64_t>(data - region.memory.data);
    if (offset >= longest_) break;
    const bool is_inside = offset < region.memory.bytes && bytes <= region.memory.bytes - offset;
    if (is_inside && (region.memory.may_receive || !may_receive)) return &region;
  }
  return nullptr;
}

void Regions::unpin(Region& region) noexcept {
  if (--region.pins > 0 || region.users > 0) return;
  take_from_adapters(region);
  std::erase_if(leaving_, [&](const auto& each) { return each.get() == &region; });
}

}  // namespace hocket::verbs
