// What stands in the blocks of all ranks while their plans run, as numbers in place of data.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hocket/status.hpp"

#include "plan/schedule.hpp"

namespace hocket::plan {

/// A block: the sum of random numbers for what was contributed to it, and a hash of the tree by which
/// it was combined.
struct Block {
  std::uint64_t sum = 0;
  std::uint64_t tree = 0;  // 0: undefined

  friend bool operator==(const Block&, const Block&) = default;
};

class Values {
 public:
  Values(std::span<const Plan> plans, bool in_place, std::uint64_t seed);

  /// Fails when something undefined is read.
  [[nodiscard]] Status run(const Event& event);
  /// Whether each rank's `out` holds what the operation promises.
  [[nodiscard]] Status check_results() const;

 private:
  struct Memory {
    std::vector<Block> in, out, scratch;  // in place, in and out are in the larger one of the two
  };

  [[nodiscard]] Block input(std::uint32_t rank, std::uint32_t block) const noexcept;
  [[nodiscard]] Result<Block> read(StepId id, Buffer buffer, std::uint32_t block) const;
  Block& target(std::uint32_t rank, Buffer buffer, std::uint32_t block);
  [[nodiscard]] const Block& at(std::uint32_t rank, Buffer buffer, std::uint32_t block) const;
  [[nodiscard]] Block expected(std::uint32_t rank, std::uint32_t block) const;
  [[nodiscard]] Status wrong_result(std::uint32_t rank, std::uint32_t block) const;

  std::span<const Plan> plans_;
  bool in_place_;
  std::uint64_t seed_;
  std::vector<Memory> memory_;
  std::vector<std::uint64_t> sums_;  // of all ranks' inputs, by block
};

}  // namespace hocket::plan
