// What stands in the blocks of all ranks while their plans run, as numbers in place of data.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hocket/status.hpp"

#include "plan/cells.hpp"
#include "proof/schedule.hpp"

namespace hocket::plan {

class Values {
 public:
  Values(std::span<const Plan> plans, bool in_place, std::uint64_t seed);

  /// Fails when something undefined is read, or `in` where out, which is the same memory, was
  /// changed already: what is right in place and apart is right then with some ranks in place.
  [[nodiscard]] Status run(const Event& event);
  /// Whether each rank's `out` holds what the operation promises.
  [[nodiscard]] Status check_results() const;
  /// Whether what was reduced was combined in the canonical tree.
  [[nodiscard]] bool are_canonical() const;

 private:
  /// The sum of the random numbers that stand for what was contributed to a block, and how many
  /// they are: right together only if each contribution is in it exactly once, but for a chance of
  /// one in many billions. And a hash of the tree in which they were combined.
  struct Block {
    std::uint64_t sum = 0;
    std::uint64_t tree = 0;   // 0: undefined
    std::uint32_t count = 0;  // at most UINT32_MAX, where it stays

    friend bool operator==(const Block&, const Block&) = default;
  };
  struct Memory {
    Cells cells;
    std::vector<Block> blocks;  // by cell
    std::vector<bool> is_out;   // by cell: it was changed as out
  };

  [[nodiscard]] Block contribution(std::uint32_t number, std::uint32_t position) const noexcept;
  [[nodiscard]] static Block combine(const Block& one, const Block& other) noexcept;
  [[nodiscard]] Status check_read(StepId id, const Range& range, std::uint32_t cell,
                                  std::uint32_t i) const;
  void fill_inputs();
  void combine_all();
  [[nodiscard]] Block expected(std::uint32_t rank, std::uint32_t position) const noexcept;
  [[nodiscard]] Status check_block(std::uint32_t rank, std::uint32_t block) const;

  std::span<const Plan> plans_;
  std::uint64_t seed_;
  std::vector<Memory> memory_;
  std::vector<Block> results_;  // by position, of the canonical tree, if the operation reduces
};

}  // namespace hocket::plan
