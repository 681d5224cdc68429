// Randomness: of the system, fit for secrets and nonces; and of a seed, for simulations and tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace hocket {

/// Fills `to`. Any thread; waits only while the machine has just been switched on. A system that
/// gives no randomness ends the process: there is nothing safe to do instead.
void random_bytes(std::span<std::byte> to) noexcept;

/// So many random bytes, each as two digits 0-9a-f.
[[nodiscard]] std::string random_hex(std::size_t bytes);

/// Numbers that follow from a seed, the same on every machine (splitmix64). Never for secrets.
class SeededRandom {
 public:
  explicit constexpr SeededRandom(std::uint64_t seed) noexcept : state_(seed) {}

  /// Any of the 2^64.
  constexpr std::uint64_t next() noexcept {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    return mixed ^ mixed >> 31;
  }

  /// One below the limit, which is not 0.
  constexpr std::uint64_t below(std::uint64_t limit) noexcept { return next() % limit; }

  /// Both ends are in it, and the last is not before the first.
  constexpr std::uint64_t between(std::uint64_t first, std::uint64_t last) noexcept {
    const std::uint64_t span = last - first + 1;  // 0: all 2^64
    return first + (span == 0 ? next() : below(span));
  }

  /// True with this probability.
  constexpr bool chance(double probability) noexcept {
    return static_cast<double>(next() >> 11) * 0x1p-53 < probability;
  }

 private:
  std::uint64_t state_;
};

}  // namespace hocket
