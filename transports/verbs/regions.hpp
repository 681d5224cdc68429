// Memory of the user that the adapters know, so that messages go from it and come to it without a
// copy. It is what Transport::register_memory() was told of, and nothing else: whoever told it
// stands by its staying mapped, so that no registration outlives its memory. Memory of a device
// (Transport::register_device_memory()) is touched by adapters alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include <infiniband/verbs.h>

#include "hocket/transport.hpp"

namespace hocket::verbs {

struct Region {
  RegisteredMemory memory = {};
  bool is_of_device = false;
  std::vector<ibv_mr*> keys = {};  // one for each rail
  std::uint32_t users = 0;         // who told of it
  std::uint32_t pins = 0;          // pieces on their way from it or to it, and ops of a device's

  [[nodiscard]] bool holds(const std::byte* data, std::uint64_t bytes) const noexcept {
    const auto offset = static_cast<std::uint64_t>(data - memory.data);
    return data >= memory.data && offset < memory.bytes && bytes <= memory.bytes - offset;
  }
};

class Regions {
 public:
  /// For adapters, each by a protection domain of it, which outlive this.
  explicit Regions(std::vector<ibv_pd*> domains) : domains_(std::move(domains)) {}
  Regions(const Regions&) = delete;
  Regions& operator=(const Regions&) = delete;
  ~Regions();

  /// What the adapters don't take is not known, and copied.
  void add(const RegisteredMemory& memory);
  /// The same, of memory of a device; fails where adapters don't take it.
  [[nodiscard]] Status add_of_device(const RegisteredMemory& memory, int dma_buf);
  /// Of one of those who told of it. Behind the last one it is found no more, and given up by the
  /// adapters when it has no pins.
  void remove(const RegisteredMemory& memory) noexcept;

  /// One in which these bytes are; null when there is none.
  [[nodiscard]] Region* find(const std::byte* data, std::uint64_t bytes,
                             bool may_receive) const noexcept;
  /// The one in which both parts of an op are, if it is of a device; null for memory of the host.
  /// Fails for what is in part of a device.
  [[nodiscard]] Result<Region*> find_device(const MemoryPart& first, const MemoryPart& rest,
                                            bool may_receive) const;
  static void pin(Region& region) noexcept { ++region.pins; }
  void unpin(Region& region) noexcept;

 private:
  using Known = std::multimap<const std::byte*, std::unique_ptr<Region>>;

  [[nodiscard]] Known::iterator find_same(const RegisteredMemory& memory) noexcept;
  [[nodiscard]] Status know(const Region& wanted, int dma_buf);
  [[nodiscard]] Status give_to_adapters(Region& region, int dma_buf) const;
  static void take_from_adapters(const Region& region) noexcept;

  std::vector<ibv_pd*> domains_;
  Known known_ = {};
  std::uint64_t longest_ = 0;                          // of those that ever were
  std::vector<Region*> of_device_ = {};                // among those known: few
  std::vector<std::unique_ptr<Region>> leaving_ = {};  // without users, with pins
};

}  // namespace hocket::verbs
