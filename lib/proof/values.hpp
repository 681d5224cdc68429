// What stands in the blocks of all ranks while their plans run, as numbers in place of data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hocket/status.hpp"

#include "plan/cell_map.hpp"
#include "plan/plan.hpp"
#include "proof/event.hpp"

namespace hocket::proof {

class Values {
 public:
  /// Before any event. Keeps the memory of the world before.
  void start(std::span<const plan::Plan> plans, bool in_place, std::uint64_t seed);

  /// Fails when something undefined is read, or `in` where out, which is the same memory, was
  /// changed already: what is right in place and apart is right then with some ranks in place.
  [[nodiscard]] Status run(std::span<const Event> events);
  /// Whether each rank's `out` holds what the operation promises.
  [[nodiscard]] Status check_results() const;

 private:
  /// The sum of the random numbers that stand for what was contributed to a block, and how many
  /// they are: right together only if each contribution is in it exactly once, but for a chance of
  /// one in many billions. And a hash of the tree in which they were combined.
  struct Block {
    static constexpr int count_bits = 24;
    static constexpr std::uint64_t count_max = (1 << count_bits) - 1;

    std::uint64_t sum = 0;
    std::uint64_t tree_and_count = 0;  // 0: undefined

    Block() = default;
    Block(std::uint64_t all, std::uint64_t count, std::uint64_t hash) noexcept
        : sum(all), tree_and_count(((hash | 1) << count_bits) | count) {}

    [[nodiscard]] bool is_defined() const noexcept { return tree_and_count != 0; }
    [[nodiscard]] std::uint64_t tree() const noexcept { return tree_and_count >> count_bits; }
    /// At most count_max, where it stays.
    [[nodiscard]] std::uint64_t count() const noexcept { return tree_and_count & count_max; }
    friend bool operator==(const Block&, const Block&) = default;
  };
  struct Memory {
    plan::CellMap cells;
    std::size_t first;  // of its blocks
  };

  /// Blocks in a row: of what an event reads here or elsewhere, of what it combines that with, and
  /// of what it writes, the first one each.
  struct Stretch {
    std::uint32_t begin;  // of the event's blocks
    std::uint32_t count;
    std::size_t incoming;
    std::size_t own;
    std::size_t target;
  };

  [[nodiscard]] Block contribution(std::uint32_t rank, std::uint32_t position) const noexcept;
  [[nodiscard]] static Block combine(const Block& one, const Block& other) noexcept;
  void fill_inputs();
  void add_up();

  [[nodiscard]] Status run(const Event& event);
  [[nodiscard]] Status run(const Event& event, const Stretch& stretch);
  [[nodiscard]] bool are_readable(std::size_t first, std::uint32_t count,
                                  plan::Buffer buffer) const noexcept;
  [[nodiscard]] Status wrong_read(const StepId& id, const plan::Range& range,
                                  std::uint32_t begin) const;
  void write(const Stretch& stretch, bool combines, bool is_noted);
  [[nodiscard]] Block expected(std::uint32_t rank, std::uint32_t position) const noexcept;
  [[nodiscard]] Status check_block(std::uint32_t rank, std::uint32_t block) const;

  std::span<const plan::Plan> plans_;
  bool in_place_ = false;
  bool is_reduced_ = false;
  bool is_everywhere_ = false;          // and combined in the same tree
  std::vector<std::uint64_t> randoms_;  // by rank, what makes its contributions
  std::vector<Memory> memory_;          // by rank
  std::vector<Block> blocks_;           // by cell of all ranks
  std::vector<std::uint8_t> is_out_;    // likewise, in place only: it was changed as out
  std::vector<std::uint64_t> sums_;  // of all contributions, by position, if the operation reduces
};

}  // namespace hocket::proof
