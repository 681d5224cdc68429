// Ranks by host. A rank's *slot* is its number on its host; where the last host has fewer ranks
// than the others, those that it has stand for the slots that it lacks, in turns.
#pragma once

#include <algorithm>
#include <cstdint>

#include "plan/problem.hpp"

namespace hocket::plan {

class Hosts {
 public:
  explicit Hosts(const Problem& problem) noexcept
      : slots_(std::clamp(problem.ranks_per_host, 1U, problem.size)),
        count_((problem.size - 1) / slots_ + 1),
        last_ranks_(problem.size - (count_ - 1) * slots_) {}

  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint32_t slots() const noexcept { return slots_; }
  [[nodiscard]] std::uint32_t ranks(std::uint32_t host) const noexcept {
    return host + 1 == count_ ? last_ranks_ : slots_;
  }
  [[nodiscard]] bool are_even() const noexcept { return last_ranks_ == slots_; }
  /// That one rank stands for, at most.
  [[nodiscard]] std::uint32_t slots_max() const noexcept { return (slots_ - 1) / last_ranks_ + 1; }
  /// Hosts that have a rank of that slot.
  [[nodiscard]] std::uint32_t with_slot(std::uint32_t slot) const noexcept {
    return slot < last_ranks_ ? count_ : count_ - 1;
  }

  [[nodiscard]] std::uint32_t host_of(std::uint32_t rank) const noexcept { return rank / slots_; }
  [[nodiscard]] std::uint32_t slot_of(std::uint32_t rank) const noexcept { return rank % slots_; }
  /// The one that stands for the slot, if the host has none of that.
  [[nodiscard]] std::uint32_t rank_of(std::uint32_t host, std::uint32_t slot) const noexcept {
    return host * slots_ + slot % ranks(host);
  }

 private:
  std::uint32_t slots_;
  std::uint32_t count_;
  std::uint32_t last_ranks_;
};

}  // namespace hocket::plan
