// One collective operation made up by a seed, with memory for every rank and what must stand there
// in the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "hocket/types.hpp"

#include "engine/binding.hpp"
#include "engine/program.hpp"
#include "plan/catalog.hpp"
#include "reduce/reduction.hpp"

namespace hocket::testing {

using Random = std::mt19937_64;
using Bytes = std::vector<std::byte>;

/// Between both, both included.
[[nodiscard]] std::uint64_t between(Random& random, std::uint64_t least, std::uint64_t most);

class SimCase {
 public:
  /// Of any algorithm.
  SimCase(Random& random, std::uint32_t size);
  SimCase(Random& random, const plan::Algorithm& algorithm, const plan::Problem& problem);

  /// "all_reduce by ring, 5 ranks, …"
  [[nodiscard]] std::string to_string() const;

  [[nodiscard]] const plan::Algorithm& algorithm() const noexcept { return *algorithm_; }
  [[nodiscard]] const plan::Problem& problem() const noexcept { return problem_; }
  [[nodiscard]] plan::ChunkSizes sizes() const noexcept { return sizes_; }
  [[nodiscard]] std::uint64_t element_bytes() const noexcept { return size_of(type_); }
  [[nodiscard]] const reduce::Reduction& reduction() const noexcept { return reduction_; }

  [[nodiscard]] const std::byte* in(std::uint32_t rank) const noexcept;
  [[nodiscard]] std::byte* out(std::uint32_t rank) noexcept;
  /// All that an operation may write to.
  [[nodiscard]] const Bytes& memory(std::uint32_t rank) const noexcept { return ranks_[rank].out; }

  /// What is wrong with the result of a rank; empty if nothing is.
  [[nodiscard]] std::string check(std::uint32_t rank) const;

 private:
  struct Memory {
    Bytes in;  // empty in place
    Bytes out;
    std::uint64_t in_begin = 0;  // in place, where the smaller one is in the larger
    std::uint64_t out_begin = 0;
    Bytes given;  // what `in` held in the beginning
    std::uint64_t out_bytes = 0;
  };

  SimCase(Random& random, const plan::Algorithm& algorithm, std::uint32_t size);

  void choose(Random& random);
  void choose_sizes(Random& random);
  void fill(Random& random, std::uint32_t rank);
  /// Of what the rank's result is made of.
  [[nodiscard]] Bytes reduced(std::uint32_t rank) const;
  [[nodiscard]] Bytes gathered() const;
  [[nodiscard]] Bytes expected(std::uint32_t rank) const;
  /// Where a chunk is in the vector.
  [[nodiscard]] std::uint64_t chunk_begin(std::uint32_t chunk) const;

  const plan::Algorithm* algorithm_ = nullptr;
  plan::Problem problem_;
  DataType type_ = DataType::u8;
  ReduceOp op_ = ReduceOp::sum;
  bool is_uneven_ = false;
  bool in_place_ = false;
  std::vector<std::uint64_t> sizes_;
  reduce::Reduction reduction_;
  std::vector<Memory> ranks_;
};

}  // namespace hocket::testing
