// Memory of the user that the adapters know, so that messages go from it and come to it without a
// copy. It is what Transport::register_memory() was told of, and nothing else: whoever told it
// stands by its staying mapped, so that no registration outlives its memory.
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
  std::vector<ibv_mr*> keys = {};  // one for each rail
  std::uint32_t users = 0;         // who told of it
  std::uint32_t pins = 0;          // pieces that are on their way from it or to it
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
  /// Of one of those who told of it. Behind the last one it is found no more, and given up by the
  /// adapters when it has no pins.
  void remove(const RegisteredMemory& memory) noexcept;

  /// One in which these bytes are; null when there is none.
  [[nodiscard]] Region* find(const std::byte* data, std::uint64_t bytes,
                             bool may_receive) const noexcept;
  static void pin(Region& region) noexcept { ++region.pins; }
  void unpin(Region& region) noexcept;

 private:
  using Known = std::multimap<const std::byte*, std::unique_ptr<Region>>;

  [[nodiscard]] Known::iterator find_same(const RegisteredMemory& memory) noexcept;
  [[nodiscard]] bool give_to_adapters(Region& region) const;
  static void take_from_adapters(const Region& region) noexcept;

  std::vector<ibv_pd*> domains_;
  Known known_ = {};
  std::uint64_t longest_ = 0;                          // of those that ever were
  std::vector<std::unique_ptr<Region>> leaving_ = {};  // without users, with pins
};

}  // namespace hocket::verbs
