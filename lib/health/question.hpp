// What a rank asks one that keeps it waiting: do you do the same as I? And that it waits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hocket/status.hpp"

#include "base/clock.hpp"

namespace hocket::health {

struct Question {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint64_t communicator = 0;
  std::uint64_t index = 0;   // of the operation among all of the communicator
  std::uint64_t tag = 0;     // of that operation
  std::uint64_t number = 0;  // as people count the operations of the one who asks
  Duration age = {};         // since it was called there
};

/// Appends it to a message.
void encode(const Question& question, std::string& message);
/// protocol_error for what is none.
[[nodiscard]] Result<Question> decode_question(std::string_view bytes);

}  // namespace hocket::health
