// What the ranks of a communicator must agree on about an operation, in the 64 bits that come with
// each of its messages: so the first message between two ranks whose calls differ tells, and costs
// nothing.
#pragma once

#include <cstdint>

#include "hocket/status.hpp"
#include "hocket/types.hpp"

#include "plan/catalog.hpp"

namespace hocket::engine {

/// Operations of one group have the same tag if they are alike, and came behind the same ones.
/// Large numbers are cut: what they are cut to says enough, as the lengths of messages must agree
/// too.
class Tag {
 public:
  /// Of no operation.
  constexpr Tag() noexcept = default;
  /// Of an operation that this algorithm of the catalog carries out. `count`: elements, as far as
  /// all ranks have to give the same.
  Tag(const plan::Algorithm& algorithm, std::uint32_t root, std::uint64_t count) noexcept;
  [[nodiscard]] Tag with(DataType type) const noexcept;
  [[nodiscard]] Tag with(ReduceOp op) const noexcept;

  /// The operations of a group so far, in 12 bits: so ranks whose operations differed are told by
  /// the next message between them, even if those had none.
  class Past {
   public:
    /// One more. The same ones over and over give 4,096 different pasts.
    void add(const Tag& tag) noexcept {
      const std::uint64_t scattered = tag.bits_ * 0x9E37'79B9'7F4A'7C15 >> (64 - bits);
      value_ = (5 * value_ + (scattered | 1)) & ((1U << bits) - 1);
    }
    static constexpr unsigned bits = 12;

   private:
    friend class Tag;
    std::uint64_t value_ = 0;
  };

  /// What comes with the messages of such an operation that is behind these.
  [[nodiscard]] std::uint64_t behind(Past past) const noexcept { return bits_ | past.value_; }

 private:
  explicit constexpr Tag(std::uint64_t bits) noexcept : bits_(bits) {}

  std::uint64_t bits_ = 0;
};

/// The failure of ranks whose messages have different tags: mismatch, with both calls in words.
[[nodiscard]] Status disagreement(std::uint64_t ours, std::uint64_t theirs, std::uint32_t rank,
                                  std::uint32_t peer);

}  // namespace hocket::engine
