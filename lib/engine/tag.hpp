// What the ranks of a communicator must agree on about an operation, in the 64 bits that come with
// each of its messages: so the first message between two ranks whose calls differ tells, and costs
// nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hocket/status.hpp"
#include "hocket/types.hpp"

#include "plan/catalog.hpp"

namespace hocket::engine {

/// What to do where ranks call different operations.
inline constexpr std::string_view same_calls_hint =
    "make all ranks call the same operations in the same order, with the same type, op, count and "
    "root";

/// Two operations of a group have the same tag if they are the same call after the same earlier
/// calls. Root and count are cut to the bits that there are; counts that differ only in the bits
/// that are cut off give messages of different lengths.
class Tag {
 public:
  /// Of no operation.
  constexpr Tag() noexcept = default;
  /// Of an operation that this algorithm of the catalog carries out. `count`: elements, where all
  /// ranks must give the same number of them; else 0.
  Tag(const plan::Algorithm& algorithm, std::uint32_t root, std::uint64_t count) noexcept;
  [[nodiscard]] Tag with(DataType type) const noexcept;
  [[nodiscard]] Tag with(ReduceOp op) const noexcept;

  /// A digest of a group's earlier operations, in 12 bits. Ranks whose calls differed are told by
  /// the next message between them, even if the calls that differed sent none.
  class History {
   public:
    /// One more. The same call over and over gives 4,096 different histories.
    void add(const Tag& tag) noexcept {
      const std::uint64_t scattered = tag.bits_ * 0x9E37'79B9'7F4A'7C15 >> (64 - bits);
      value_ = (5 * value_ + (scattered | 1)) & ((1U << bits) - 1);
    }
    static constexpr unsigned bits = 12;

   private:
    friend class Tag;
    std::uint64_t value_ = 0;
  };

  /// Without a history.
  [[nodiscard]] std::uint64_t bits() const noexcept { return bits_; }
  [[nodiscard]] static bool have_same_history(std::uint64_t a, std::uint64_t b) noexcept {
    return ((a ^ b) & ((1U << History::bits) - 1)) == 0;
  }
  /// What comes with the messages of such an operation after these.
  [[nodiscard]] std::uint64_t after(History history) const noexcept {
    return bits_ | history.value_;
  }

 private:
  explicit constexpr Tag(std::uint64_t bits) noexcept : bits_(bits) {}

  std::uint64_t bits_ = 0;
};

/// An operation as a call: "all_reduce(sum, f32, 128 elements)".
[[nodiscard]] std::string describe_call(std::uint64_t tag);

/// The algorithm that carries it out; empty for a tag that is unknown here.
[[nodiscard]] std::string_view algorithm_name(std::uint64_t tag) noexcept;

/// The failure of ranks whose messages have different tags: mismatch, with both calls in words.
[[nodiscard]] Status disagreement(std::uint64_t ours, std::uint64_t theirs, std::uint32_t rank,
                                  std::uint32_t peer);

}  // namespace hocket::engine
