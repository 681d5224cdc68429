// Which rank, and of how many.
#pragma once

#include <cstdint>

namespace hocket {

struct Position {
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
};

}  // namespace hocket
