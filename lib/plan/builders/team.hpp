// Some of the ranks, numbered anew, and the blocks that they share: what an algorithm made of
// phases over parts of the world is written against.
#pragma once

#include <cstdint>

#include "plan/writer.hpp"

namespace hocket::plan {

/// Where things are: member i is the rank `first_rank + i * rank_step`, but for the last one, and
/// has the block `first_block + i * block_step`.
struct TeamPlaces {
  std::uint32_t size = 0;
  std::uint32_t self = 0;  // the member that the plan's rank is
  std::uint32_t first_rank = 0;
  std::uint32_t rank_step = 1;
  std::uint32_t last_rank = 0;
  std::uint32_t first_block = 0;
  std::uint32_t block_step = 1;
};

/// Writes steps on the blocks of `count` members from `first` on, around the circle of members. One
/// step is as many as there are stretches of the vector that those blocks are.
class Team {
 public:
  Team(PlanWriter& plan, const TeamPlaces& places) noexcept : plan_(plan), places_(places) {}
  /// All ranks, with as many blocks.
  explicit Team(PlanWriter& plan) noexcept
      : Team(plan, {.size = plan.size(), .self = plan.rank(), .last_rank = plan.size() - 1}) {}

  [[nodiscard]] std::uint32_t size() const noexcept { return places_.size; }
  [[nodiscard]] std::uint32_t self() const noexcept { return places_.self; }
  [[nodiscard]] std::uint32_t ahead(std::uint32_t members) const noexcept {
    return (self() + members) % size();
  }
  [[nodiscard]] std::uint32_t behind(std::uint32_t members) const noexcept {
    return (self() + size() - members) % size();
  }
  [[nodiscard]] std::uint32_t rank_of(std::uint32_t member) const noexcept {
    if (member + 1 == size()) return places_.last_rank;
    return places_.first_rank + member * places_.rank_step;
  }

  void send(std::uint32_t peer, Buffer from, std::uint32_t first, std::uint32_t count);
  void recv(std::uint32_t peer, Buffer to, std::uint32_t first, std::uint32_t count);
  void recv_reduce(std::uint32_t peer, Buffer from, Buffer to, std::uint32_t first,
                   std::uint32_t count);
  /// Of the own block, to any place.
  void recv_reduce(std::uint32_t peer, Buffer from, const Range& to);
  void copy(Buffer from, Buffer to, std::uint32_t member);
  void copy(Buffer from, const Range& to);

 private:
  [[nodiscard]] Range own_block(Buffer buffer) const noexcept {
    return {buffer, places_.first_block + self() * places_.block_step, 1};
  }
  template <typename Use>
  void each_stretch(std::uint32_t first, std::uint32_t count, Use use) const;

  PlanWriter& plan_;
  TeamPlaces places_;
};

}  // namespace hocket::plan
