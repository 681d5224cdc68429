// Which elements a block is, once it is known how many there are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.hpp"

namespace hocket::plan {

/// Elements of each chunk of the vector. Of an all-to-all, in which rank r has for rank c as many
/// as c's turn in r's row says: row by row.
using ChunkSizes = std::span<const std::uint64_t>;

/// So many elements in each chunk.
[[nodiscard]] std::vector<std::uint64_t> even_sizes(const Problem& problem, std::uint64_t count);
/// Different numbers up to `most`, none among them.
[[nodiscard]] std::vector<std::uint64_t> uneven_sizes(const Problem& problem, std::uint64_t most);

/// Elements of one rank's buffers, one block after the other.
class Layout {
 public:
  /// `sizes`: one for each chunk, or for each pair of ranks of an all-to-all.
  Layout(const Plan& plan, ChunkSizes sizes);

  struct Elements {
    std::uint64_t begin;
    std::uint64_t end;
  };
  /// Of a block, in elements from the beginning of its buffer; of scratch, from that of the first
  /// copy of the vector.
  [[nodiscard]] Elements elements(Buffer buffer, std::uint32_t block) const noexcept;
  [[nodiscard]] std::uint64_t size(Buffer buffer) const noexcept;
  /// Where the smaller one of in and out begins in the larger one, if both are the same memory.
  [[nodiscard]] std::uint64_t offset(Buffer buffer) const noexcept;

 private:
  std::vector<std::uint64_t> begin_[3];  // by block, and behind the last
  std::uint64_t offset_[3] = {};
};

}  // namespace hocket::plan
