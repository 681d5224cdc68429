// Memory that the adapters know: slots of one size, registered a few at a time as they are needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <infiniband/verbs.h>

#include "hocket/status.hpp"

namespace hocket::verbs {

struct SlotOptions {
  std::size_t slot_bytes = 0;
  std::uint32_t at_once = 0;  // registered together
  std::uint32_t most = 0;     // a multiple of that
  bool is_written_remotely = false;
};

class Slots {
 public:
  using Index = std::uint32_t;

  /// For adapters, each by a protection domain of it, which outlive this.
  Slots(const SlotOptions& options, std::vector<ibv_pd*> domains);
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;
  ~Slots();

  /// Registers some more. Fails with limit_exceeded when there are as many as there may be, or when
  /// the system lets us have no more.
  [[nodiscard]] Status grow();
  /// None when all are in use, and there can't be more.
  [[nodiscard]] std::optional<Index> take() noexcept;
  void give(Index slot) noexcept { free_.push_back(slot); }

  [[nodiscard]] std::byte* memory(Index slot) const noexcept;
  /// Of the adapter of that number.
  [[nodiscard]] std::uint32_t local_key(Index slot, std::size_t rail) const noexcept;
  [[nodiscard]] std::uint32_t remote_key(Index slot, std::size_t rail) const noexcept;
  /// The slot in which an address is.
  [[nodiscard]] std::optional<Index> find(const std::byte* address) const noexcept;

  [[nodiscard]] std::size_t slot_bytes() const noexcept { return options_.slot_bytes; }
  [[nodiscard]] std::size_t count() const noexcept { return chunks_.size() * options_.at_once; }
  [[nodiscard]] std::size_t free() const noexcept { return free_.size(); }

 private:
  struct Chunk {
    std::byte* memory = nullptr;
    std::vector<ibv_mr*> regions = {};  // one for each adapter
  };
  [[nodiscard]] std::size_t chunk_bytes() const noexcept {
    return options_.slot_bytes * options_.at_once;
  }
  void release(const Chunk& chunk) const noexcept;

  SlotOptions options_;
  std::vector<ibv_pd*> domains_;
  std::vector<Chunk> chunks_ = {};
  std::vector<Index> free_ = {};
  bool is_full_ = false;  // the system has refused more
};

}  // namespace hocket::verbs
