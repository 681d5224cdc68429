// Memory of the world that one rank was lent messages in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "base/rng.hpp"

namespace hocket::simulated {

class Loans {
 public:
  /// Room for a message that will be lent, or nothing while there are too many.
  [[nodiscard]] std::byte* make(std::uint64_t bytes, std::uint32_t loans_max);

  /// Its bytes, or nothing if it is not lent. What was given back is filled with noise, and stays
  /// allocated for a while: who reads it on gets wrong data, the same in each run.
  std::optional<std::uint64_t> give_back(const std::byte* lent, SeededRandom& random);

  [[nodiscard]] std::size_t count() const noexcept { return loans_.size(); }

 private:
  static constexpr std::size_t returned_max = 8;

  struct Loan {
    std::unique_ptr<std::byte[]> memory;
    std::uint64_t bytes = 0;
  };

  std::map<const std::byte*, Loan> loans_;
  std::deque<Loan> returned_;
};

}  // namespace hocket::simulated
