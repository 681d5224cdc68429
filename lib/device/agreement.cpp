#include "device/agreement.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/log.hpp"

namespace hocket::device {
namespace {

/// What a rank tells the others.
struct Card {
  std::array<char, 32> version = {};  // of the library; empty: it has none
  std::array<char, 192> device = {};  // and its host
  std::array<char, 160> why_not = {};
};

using Id = std::array<char, 128>;

template <std::size_t bytes>
void write(std::array<char, bytes>& to, std::string_view text) {
  std::memcpy(to.data(), text.data(), std::min(text.size(), bytes - 1));
}

template <std::size_t bytes>
std::string_view read(const std::array<char, bytes>& from) {
  return {from.data(), ::strnlen(from.data(), bytes)};
}

Card own_card(const OffloadKind* kind, const Runtime& runtime, int device,
              const std::string& host) {
  Card card;
  const auto refuse = [&](const Status& why) {
    card.version = {};
    write(card.why_not, why.what());
    return card;
  };
  if (kind == nullptr) {
    return refuse({StatusCode::unsupported, "NCCL is not in this build, or HOCKET_NCCL=0"});
  }
  const auto version = kind->version();
  if (!version.ok()) return refuse(version.status());
  const auto name = runtime.identify(device);
  if (!name.ok()) return refuse(name.status());
  write(card.version, *version);
  write(card.device, fmt::format("{} {}", host, *name));
  return card;
}

/// The same on all ranks; empty if all can.
std::string find_obstacle(const std::vector<Card>& cards) {
  for (std::size_t i = 0; i < cards.size(); ++i) {
    const Card& card = cards[i];
    if (read(card.version).empty()) return fmt::format("rank {}: {}", i, read(card.why_not));
    if (card.version != cards[0].version) {
      return fmt::format("rank 0 has version {}, and rank {} has {}", read(cards[0].version), i,
                         read(card.version));
    }
    const auto same = std::ranges::find(
        cards.begin(), cards.begin() + static_cast<std::ptrdiff_t>(i), card.device, &Card::device);
    if (same != cards.begin() + static_cast<std::ptrdiff_t>(i)) {
      return fmt::format("ranks {} and {} have one device", same - cards.begin(), i);
    }
  }
  return {};
}

Status run(const Collective& collective, HostSide& side, Deadline deadline) {
  engine::Work work;
  work.begin();
  if (Status status = side.start(collective, 0, work, deadline); !status.ok()) return status;
  side.engine().wait(work);
  return work.status();
}

/// Those of all ranks, in their order.
template <class Words>
Result<std::vector<Words>> exchange(const Words& ours, const Position& position, HostSide& side,
                                    Deadline deadline) {
  std::vector<Words> all(position.size);
  Status status = run({.kind = CollectiveKind::all_gather,
                       .in = &ours,
                       .out = all.data(),
                       .type = DataType::u8,
                       .count = sizeof ours},
                      side, deadline);
  if (!status.ok()) return status;
  return all;
}

/// Rank 0 makes it once all are known to have use for it: it may keep a thread until they come.
Result<Id> share_id(const OffloadKind& kind, const Position& position, HostSide& side,
                    Deadline deadline) {
  Id id = {};
  if (position.rank == 0) {
    const auto made = kind.make_id();
    if (!made.ok()) return made.status();
    std::memcpy(id.data(), made->data(), std::min(made->size(), id.size()));
  }
  Status status = run({.kind = CollectiveKind::broadcast,
                       .in = id.data(),
                       .out = id.data(),
                       .type = DataType::u8,
                       .count = id.size()},
                      side, deadline);
  if (!status.ok()) return status;
  return id;
}

/// The same on all ranks: whether all are well. The log says of the first that is not.
Result<bool> are_all_well(const Status& ours, const Position& position, HostSide& side,
                          Deadline deadline) {
  struct Health {
    bool is_well = true;
    std::array<char, 239> why_not = {};
  };
  Health own = {.is_well = ours.ok()};
  if (!ours.ok()) write(own.why_not, ours.what());
  const auto all = exchange(own, position, side, deadline);
  if (!all.ok()) return all.status();
  const auto ill = std::ranges::find(*all, false, &Health::is_well);
  if (ill == all->end()) return true;
  log::line(log::Level::info, "device memory without GPUDirect: rank {}: {}", ill - all->begin(),
            read(ill->why_not));
  return false;
}

}  // namespace

Result<Way> agree_on_way(const OffloadKind* kind, const Runtime& runtime, int device,
                         const std::string& host, const Position& position, HostSide& side,
                         const Limit& limit) {
  const auto cards =
      exchange(own_card(kind, runtime, device, host), position, side, limit.deadline);
  if (!cards.ok()) return cards.status();
  Way way = {.why_not = find_obstacle(*cards)};
  if (!way.why_not.empty()) {
    log::line(log::Level::info, "device memory is staged through the host: {}", way.why_not);
    return way;
  }
  if (Status status = side.watch(); !status.ok()) return status;
  const auto id = share_id(*kind, position, side, limit.deadline);
  if (!id.ok()) return id.status();
  auto offload = kind->make({.position = position, .runtime = runtime, .limit = limit},
                            {id->data(), id->size()});
  if (!offload.ok()) return offload.status();
  way.offload = std::move(*offload);
  return way;
}

/// Nothing is allocated where somebody has no adapter: to free it would wait for the device.
Result<std::unique_ptr<DeviceSlots>> agree_on_device_slots(const Runtime& runtime,
                                                           std::size_t bytes, bool is_wanted,
                                                           const Position& position, HostSide& side,
                                                           Deadline deadline) {
  std::unique_ptr<DeviceSlots> none;
  if (position.size == 1) return none;
  const Status ours = is_wanted ? side.register_device_memory({}, -1)
                                : Status(StatusCode::unsupported, "it has no HOCKET_GPUDIRECT=1");
  auto can = are_all_well(ours, position, side, deadline);
  if (!can.ok()) return can.status();
  if (!*can) return none;
  auto slots = DeviceSlots::make(runtime, side, bytes);
  can = are_all_well(slots.status(), position, side, deadline);
  if (!can.ok()) return can.status();
  if (!*can) return none;
  log::line(log::Level::info, "device memory by GPUDirect, where it only moves");
  return slots;
}

}  // namespace hocket::device
