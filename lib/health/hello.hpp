// What two ranks say to each other when one dials a line of the monitor to the other:
//
//   dialler   version 4, epoch 8, world size 4, rank 4, address 4, instance of the one who is
//             dialled 16
//   listener  verdict 1
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "hocket/status.hpp"

#include "link/greeting.hpp"

namespace hocket::health {

inline constexpr std::uint32_t line_version = 4;  // 3 gave parts of a split one id
inline constexpr std::size_t instance_bytes = 16;
inline constexpr link::Words line_words = {
    .purpose = wire::Purpose::control, .hello_bytes = 40, .answer_bytes = 1};

struct Hello {
  std::uint32_t version = line_version;
  std::uint64_t epoch = 0;
  std::uint32_t size = 1;
  std::uint32_t rank = 0;
  std::uint32_t way = 0;  // which of the other's addresses it dialled
  std::string instance = {};

  [[nodiscard]] std::string encode() const;
  /// Of as many bytes as line_words says.
  [[nodiscard]] static Hello decode(std::string_view bytes);
};

enum class Welcome : char {
  welcome = 'w',
  version_differs = 'v',
  other_world = 'o',
  not_awaited = 'n',  // it has a line already, or counts as lost
};

/// Success for a welcome.
[[nodiscard]] Status check_answer(std::string_view answer);

}  // namespace hocket::health
