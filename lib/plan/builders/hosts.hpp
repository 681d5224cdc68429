// Ranks by host. A rank's *slot* is its number on its host; where the last host has fewer ranks
// than the others, those that it has stand for the slots that it lacks, in turns.
#pragma once

#include <algorithm>
#include <cstdint>

#include "plan/writer.hpp"

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

/// Where the rank of a plan is.
struct Seat {
  explicit Seat(const PlanWriter& plan) noexcept
      : hosts(plan.problem()),
        host(hosts.host_of(plan.rank())),
        slot(hosts.slot_of(plan.rank())),
        mates(hosts.ranks(host)) {}

  /// The ranks `steps` further on and further back on the same host, by slot.
  [[nodiscard]] std::uint32_t ahead(std::uint32_t steps) const noexcept {
    return (slot + steps) % mates;
  }
  [[nodiscard]] std::uint32_t behind(std::uint32_t steps) const noexcept {
    return (slot + mates - steps) % mates;
  }
  [[nodiscard]] std::uint32_t mate(std::uint32_t of_slot) const noexcept {
    return hosts.rank_of(host, of_slot);
  }
  /// The slots that a mate stands for, its own first.
  template <typename Use>
  void each_slot(std::uint32_t of_mate, Use use) const {
    for (std::uint32_t each = of_mate; each < hosts.slots(); each += mates) use(each);
  }

  Hosts hosts;
  std::uint32_t host;
  std::uint32_t slot;
  std::uint32_t mates;  // ranks of the host
};

}  // namespace hocket::plan
