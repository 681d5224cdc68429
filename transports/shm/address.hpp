// Where a rank's board is, and which ranks may open it: processes of one user that see each other
// in /proc. There each can open the other's descriptors, so a board needs no name that could be
// left behind, and no other user but root can read it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "hocket/status.hpp"

namespace hocket::shm {

struct Address {
  std::string domain = {};  // the same for ranks that can open each other's descriptors
  std::int64_t pid = 0;
  int board = -1;  // its descriptors there
  int bell = -1;
  std::array<std::uint64_t, 2> secret = {};  // which the board's header contains

  /// Of this process; the descriptors and the secret are the caller's.
  [[nodiscard]] static Address own();
  [[nodiscard]] static Result<Address> parse(std::string_view text);
  [[nodiscard]] std::string to_string() const;
};

}  // namespace hocket::shm
