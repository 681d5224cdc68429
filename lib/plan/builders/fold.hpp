// A world whose size is no power of two, folded to one that is: of the first pairs of neighbours,
// the one with the even number is the *guest* of the other, its *host*; all but the guests are
// *members*.
#pragma once

#include <bit>
#include <cstdint>

namespace hocket::plan {

class Fold {
 public:
  Fold(std::uint32_t size, std::uint32_t rank) noexcept
      : members_(std::bit_floor(size)), guests_(size - members_), rank_(rank) {}

  [[nodiscard]] std::uint32_t members() const noexcept { return members_; }
  [[nodiscard]] bool is_guest() const noexcept { return is_in_pair() && rank_ % 2 == 0; }
  [[nodiscard]] bool is_host() const noexcept { return is_in_pair() && rank_ % 2 == 1; }
  /// The guest's host, and the host's guest.
  [[nodiscard]] std::uint32_t partner() const noexcept { return rank_ ^ 1; }

  /// Its number among the members; of a guest, its host's.
  [[nodiscard]] std::uint32_t member() const noexcept {
    return is_in_pair() ? rank_ / 2 : rank_ - guests_;
  }
  [[nodiscard]] std::uint32_t rank_of(std::uint32_t member) const noexcept {
    return member < guests_ ? 2 * member + 1 : member + guests_;
  }
  /// The first rank that a member stands for: its own, or its guest's.
  [[nodiscard]] std::uint32_t first_rank_of(std::uint32_t member) const noexcept {
    return member < guests_ ? 2 * member : member + guests_;
  }

 private:
  [[nodiscard]] bool is_in_pair() const noexcept { return rank_ < 2 * guests_; }

  std::uint32_t members_;
  std::uint32_t guests_;
  std::uint32_t rank_;
};

}  // namespace hocket::plan
