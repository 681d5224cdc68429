// What ranks give to a collective under test, and whether what they get is what must come out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hocket/types.hpp"

namespace hocket::bench {

/// The numbers of one call: they differ by rank, position and salt, and are whole and so small that
/// they give the same, in the type, in whichever order they are reduced.
class Pattern {
 public:
  struct Options {
    DataType type = DataType::f32;
    ReduceOp op = ReduceOp::sum;  // any but custom; unimportant where nothing is reduced
    std::uint32_t ranks = 1;
    std::uint64_t salt = 0;  // another for each call
  };

  /// What premul_sum must multiply by.
  static constexpr double factor = 2;

  explicit Pattern(const Options& options);

  /// What the rank gives, from element `first` on.
  void write(std::uint32_t rank, std::size_t first, std::span<std::byte> to) const;

  /// Elements that are not, to the bit, what the rank gives there.
  [[nodiscard]] std::size_t count_wrong(std::uint32_t rank, std::size_t first,
                                        std::span<const std::byte> got) const;

  /// Elements that are not, to the bit, what all ranks give there, reduced.
  [[nodiscard]] std::size_t count_wrong_reduced(std::size_t first,
                                                std::span<const std::byte> got) const {
    return count_wrong_reduced(first, got, options_.ranks);
  }
  /// Likewise of what the first so many ranks give.
  [[nodiscard]] std::size_t count_wrong_reduced(std::size_t first, std::span<const std::byte> got,
                                                std::uint32_t ranks) const;

  /// Numbers that must be rounded, so that another order of reduction is likely to give other bits.
  void write_rough(std::uint32_t rank, std::span<std::byte> to) const;

 private:
  [[nodiscard]] std::int64_t value(std::uint32_t rank, std::uint64_t position) const;
  [[nodiscard]] double reduced(std::uint64_t position, std::uint32_t ranks) const;
  [[nodiscard]] std::int64_t addend(std::uint32_t rank, std::uint64_t position) const;

  Options options_;
  std::int64_t limit_;   // up to it all whole numbers are exact in the type; 2^k - 1
  std::uint32_t parts_;  // 2 for complex numbers
};

/// No element of a Pattern, nor what comes of them, has these bytes.
void poison(std::span<std::byte> memory);

}  // namespace hocket::bench
