// What a plan is to solve: the operation and who takes part. How many elements there are, and of
// which type, is not known here.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "plan/step.hpp"

namespace hocket::plan {

enum class Operation : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  gather,
  scatter,
  all_to_all,
  barrier,
  scan,
  exscan,
};

[[nodiscard]] std::span<const Operation> all_operations() noexcept;
[[nodiscard]] std::string_view name(Operation operation) noexcept;
[[nodiscard]] bool has_root(Operation operation) noexcept;
/// Whether values of several ranks become one.
[[nodiscard]] bool reduces(Operation operation) noexcept;
/// Whether a rank gets those of the ranks up to it, or below it, alone.
[[nodiscard]] bool is_prefix(Operation operation) noexcept;
/// Whether all ranks but the root are interchangeable: no block belongs to a particular rank.
[[nodiscard]] bool is_of_whole_vectors(Operation operation) noexcept;

struct Problem {
  Operation operation = Operation::all_reduce;
  std::uint32_t size = 1;    // ranks
  std::uint32_t root = 0;    // of operations that have one
  std::uint32_t pieces = 1;  // into how many a pipeline cuts what it sends
  std::uint32_t ranks_per_host =
      1;  // ranks of one host have numbers in a row; the last may have fewer
  /// Of an all-reduce whose bits are to be the same at every size: how many vectors it reduces in
  /// all, at least one of each rank (contributions_of). 0: one of each rank.
  std::uint32_t contributions = 0;

  friend bool operator==(const Problem&, const Problem&) = default;
};

/// The vectors that a rank has in `in`, one behind the other, by their numbers in the world: as
/// even as can be.
struct Contributions {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  [[nodiscard]] std::uint32_t count() const noexcept { return end - begin; }
};
[[nodiscard]] Contributions contributions_of(const Problem& problem, std::uint32_t rank) noexcept;
[[nodiscard]] std::uint32_t all_contributions(const Problem& problem) noexcept;
/// So many of them, the first ones, a rank's result is made of.
[[nodiscard]] std::uint32_t contributions_to(const Problem& problem, std::uint32_t rank) noexcept;

/// How the buffers of a problem are made of blocks. A *chunk* is what one rank contributes to or
/// gets of a gather, scatter or all-to-all; all other operations have one chunk. Every chunk is
/// divided into the same number of blocks, as even as can be.
struct Shape {
  std::uint32_t chunks = 1;  // of the vector: the larger one of in and out
  std::uint32_t blocks_per_chunk = 1;

  [[nodiscard]] std::uint32_t vector_blocks() const noexcept { return chunks * blocks_per_chunk; }
  friend bool operator==(const Shape&, const Shape&) = default;
};

[[nodiscard]] Shape shape_of(const Problem& problem, std::uint32_t blocks_per_chunk) noexcept;

/// Blocks of `in` or `out` at a rank; 0 where it has no such buffer.
[[nodiscard]] std::uint32_t blocks_of(const Problem& problem, const Shape& shape,
                                      std::uint32_t rank, Buffer buffer) noexcept;

/// Where a caller may give the same memory for in and out (in place), the block of the vector that
/// the first block of the smaller one of the two is.
[[nodiscard]] bool can_be_in_place(const Problem& problem) noexcept;
[[nodiscard]] std::uint32_t place_in_vector(const Problem& problem, const Shape& shape,
                                            std::uint32_t rank, Buffer buffer) noexcept;

/// The first element of a block of a chunk that has so many; the last block ends where a block
/// behind it would begin.
[[nodiscard]] constexpr std::uint64_t first_element(std::uint64_t elements, std::uint32_t blocks,
                                                    std::uint32_t block) noexcept {
  const std::uint64_t longer = elements % blocks;  // so many blocks have one more
  return block * (elements / blocks) + (block < longer ? block : longer);
}

}  // namespace hocket::plan
