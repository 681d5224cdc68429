// Where a rank's board is, and who may find it: processes of one user that see each other in /proc.
// Then each can open the other's descriptors there, so that a board needs no name that could be
// left behind, and nobody else can read it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "hocket/status.hpp"

namespace hocket::shm {

struct Address {
  std::string place = {};  // the same for ranks that can open each other's descriptors
  std::int64_t pid = 0;
  int board = -1;  // its descriptors there
  int bell = -1;
  std::array<std::uint64_t, 2> secret = {};  // which the board begins with

  /// Of this process; the descriptors and the secret are the caller's.
  [[nodiscard]] static Address own();
  [[nodiscard]] static Result<Address> parse(std::string_view text);
  [[nodiscard]] std::string to_string() const;
};

}  // namespace hocket::shm
