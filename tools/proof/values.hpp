// What stands in the blocks of all ranks while their plans run, as numbers in place of data.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hocket/status.hpp"

#include "plan/cell_map.hpp"
#include "plan/plan.hpp"
#include "proof/event.hpp"
#include "proof/pages.hpp"

namespace hocket::proof {

struct ValuesOptions {
  bool in_place = false;
  /// Find out whether what is reduced is combined in the canonical tree.
  bool canonical = true;
  /// Combine by an op that is not commutative.
  bool ordered = false;
  std::uint64_t seed = 1;
};

class Values {
 public:
  /// Before any event. Of the plans all but their steps, which the events have.
  void start(std::span<const plan::Plan> plans, const ValuesOptions& options);

  /// Fails when something undefined is read, or `in` where out, which is the same memory, was
  /// changed already: what is right in place and apart is right then with some ranks in place.
  [[nodiscard]] Status run(std::span<const Event> events);
  /// Whether each rank's `out` holds what the operation promises.
  [[nodiscard]] Status check_results() const;
  /// Whether what was reduced was combined in the canonical tree.
  [[nodiscard]] bool are_canonical() const;

  /// Of each that plans touch.
  static constexpr std::uint64_t bytes_per_block = 16;

 private:
  /// The sum of the random numbers that stand for what was contributed to a block, and how many
  /// they are: right together only if each contribution is in it exactly once, but for a chance of
  /// one in many billions. And a hash of the tree in which they were combined. If ordered, it is
  /// two random numbers instead, a and b of x → ax + b; of several, that for one after the other:
  /// right only if they are combined in order.
  class Block {
   public:
    Block() = default;
    Block(std::uint64_t factor, std::uint64_t term) noexcept
        : sum_(term), tree_and_count_(factor | 1) {}
    Block(std::uint64_t sum, std::uint64_t count, std::uint64_t hash) noexcept
        : sum_(sum), tree_and_count_(((hash | 1) << count_bits) | std::min(count, count_max)) {}

    [[nodiscard]] bool is_defined() const noexcept { return tree_and_count_ != 0; }
    [[nodiscard]] std::uint64_t sum() const noexcept { return sum_; }
    [[nodiscard]] std::uint64_t tree() const noexcept { return tree_and_count_ >> count_bits; }
    /// Stays at count_max, which is more than there are contributions.
    [[nodiscard]] std::uint64_t count() const noexcept { return tree_and_count_ & count_max; }
    /// If ordered; odd, so that nothing is lost.
    [[nodiscard]] std::uint64_t factor() const noexcept { return tree_and_count_; }
    friend bool operator==(const Block&, const Block&) = default;

   private:
    static constexpr int count_bits = 24;
    static constexpr std::uint64_t count_max = (1 << count_bits) - 1;

    std::uint64_t sum_ = 0;
    std::uint64_t tree_and_count_ = 0;  // 0: undefined
  };
  static_assert(sizeof(Block) == bytes_per_block);
  /// Where the blocks of a rank are. What the copies of the vector in scratch have at one place of
  /// it is side by side: many plans use no other place of scratch.
  struct Memory {
    plan::CellMap cells;
    std::size_t first;    // of its blocks in `in` and `out`
    std::size_t scratch;  // likewise
    std::uint32_t scratch_copies;

    [[nodiscard]] std::size_t block(plan::Buffer buffer, std::uint32_t cell) const noexcept {
      if (buffer != plan::Buffer::scratch) return first + cell;
      const std::uint32_t in_scratch = cell - cells.count(0);
      if (scratch_copies == 1) return scratch + in_scratch;
      const std::uint32_t copy = in_scratch / cells.vector();
      return scratch + std::size_t{in_scratch - copy * cells.vector()} * scratch_copies + copy;
    }
    [[nodiscard]] std::size_t block(const plan::Range& range) const noexcept {
      return block(range.buffer, cells.first(range));
    }
    /// From one block to the next.
    [[nodiscard]] std::uint32_t stride(plan::Buffer buffer) const noexcept {
      return buffer == plan::Buffer::scratch ? scratch_copies : 1;
    }
  };
  /// Blocks equally far from each other.
  struct Row {
    std::size_t first;
    std::uint32_t stride;

    [[nodiscard]] std::size_t block(std::uint32_t i) const noexcept {
      return first + std::size_t{i} * stride;
    }
  };
  /// The blocks of a range, row by row.
  class Walk;
  /// What an event reads here or elsewhere, what it combines that with, and what it writes.
  struct Stretch {
    std::uint32_t begin;  // of the event's blocks
    std::uint32_t count;
    Row incoming;
    Row own;
    Row target;
  };

  [[nodiscard]] Block contribution(std::uint32_t number, std::uint32_t position) const noexcept;
  [[nodiscard]] Block combine(const Block& left, const Block& right) const noexcept;
  /// As the step has it, with what is there already.
  [[nodiscard]] Block combine(const plan::Step& step, const Block& own,
                              const Block& incoming) const noexcept;
  void fill_inputs();
  void combine_all();
  void add_up();
  void combine_in_order();

  void prefetch(const Event& event) const noexcept;
  [[nodiscard]] Status run(const Event& event);
  [[nodiscard]] Status run_stretches(const Event& event);
  [[nodiscard]] Status run(const Event& event, const Stretch& stretch);
  void write(const Stretch& stretch, const plan::Step& step);
  [[nodiscard]] bool are_readable(const Row& row, std::uint32_t count,
                                  plan::Buffer buffer) const noexcept;
  [[nodiscard]] Status wrong_read(const StepId& id, const plan::Step& step,
                                  const plan::Range& range, std::uint32_t begin) const;

  [[nodiscard]] Block expected(std::uint32_t rank, std::uint32_t position) const noexcept;
  [[nodiscard]] Status check_block(std::uint32_t rank, std::uint32_t block) const;

  std::span<const plan::Plan> plans_;
  ValuesOptions options_;
  bool is_reduced_ = false;
  bool is_prefix_ = false;              // and on each rank of others
  bool is_everywhere_ = false;          // the result; and combined in the same tree, if it is
  bool is_canonical_ = false;           // and in that one
  std::vector<std::uint64_t> randoms_;  // by contribution, what makes its random numbers
  std::vector<Memory> memory_;          // by rank
  Pages pages_;                         // for those blocks:
  Block* blocks_ = nullptr;             // by cell: in and out of all ranks, then their scratch
  std::vector<std::uint8_t> is_out_;    // likewise, in place only: it was changed as out
  /// By position, if the operation reduces: of the canonical tree, if that is to be known. Of a
  /// prefix, of the first contribution, then of the first two, and so on.
  std::vector<Block> results_;
};

}  // namespace hocket::proof
