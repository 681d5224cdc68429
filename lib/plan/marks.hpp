// A row of places, some of them marked: which marked one is next, however far away.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hocket::plan {

/// A bit for each place; above each 64 words a word that says which of them have any, and so on.
class Marks {
 public:
  /// Without any marks.
  void clear() noexcept {
    for (auto& level : levels_) level.clear();
  }
  /// Room for so many places: more than before.
  void grow(std::uint32_t places) {
    std::size_t words = places;
    for (auto& level : levels_) {
      words = words / word_bits + 1;
      level.resize(words);
    }
  }

  [[nodiscard]] bool has(std::uint32_t place) const noexcept {
    return (levels_[0][place / word_bits] >> place % word_bits & 1) != 0;
  }
  void set(std::uint32_t place) noexcept {
    for (auto& level : levels_) {
      std::uint64_t& word = level[place / word_bits];
      const bool is_known_above = word != 0;
      word |= bit(place);
      if (is_known_above) return;
      place /= word_bits;
    }
  }
  void unset(std::uint32_t place) noexcept {
    for (auto& level : levels_) {
      level[place / word_bits] &= ~bit(place);
      if (level[place / word_bits] != 0) return;
      place /= word_bits;
    }
  }

  /// The last one before the place; there must be one.
  [[nodiscard]] std::uint32_t last_before(std::uint32_t place) const noexcept {
    std::size_t level = 0;
    for (;; ++level, place /= word_bits) {
      const std::uint64_t word = levels_[level][place / word_bits] & (bit(place) - 1);
      if (word == 0) continue;
      place = place / word_bits * word_bits + highest(word);
      break;
    }
    while (level-- > 0) place = place * word_bits + highest(levels_[level][place]);
    return place;
  }
  /// The first one behind the place; there must be one.
  [[nodiscard]] std::uint32_t first_after(std::uint32_t place) const noexcept {
    std::size_t level = 0;
    for (;; ++level, place /= word_bits) {
      const std::uint64_t word =
          levels_[level][place / word_bits] & ~(bit(place) | (bit(place) - 1));
      if (word == 0) continue;
      place = place / word_bits * word_bits + lowest(word);
      break;
    }
    while (level-- > 0) place = place * word_bits + lowest(levels_[level][place]);
    return place;
  }

 private:
  static constexpr std::uint32_t word_bits = 64;

  [[nodiscard]] static std::uint64_t bit(std::uint32_t place) noexcept {
    return std::uint64_t{1} << place % word_bits;
  }
  [[nodiscard]] static std::uint32_t highest(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(std::bit_width(word) - 1);
  }
  [[nodiscard]] static std::uint32_t lowest(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(std::countr_zero(word));
  }

  std::array<std::vector<std::uint64_t>, 5> levels_;  // one word on the last: 2^30 places
};

}  // namespace hocket::plan
