// A failure as it travels, so that other ranks can say what one of them met.
#pragma once

#include <string>
#include <string_view>

#include "hocket/status.hpp"

namespace hocket::wire {

/// Its code, peer, errno, words and hint.
[[nodiscard]] std::string encode_fault(const Status& fault);

/// What was encoded; a protocol_error when it is something else.
[[nodiscard]] Status decode_fault(std::string_view bytes);

/// What others are told of a rank that can't take part. `process`: such as "pid 7 on node".
[[nodiscard]] Status fault_of(int rank, std::string_view process, const Status& fault);

}  // namespace hocket::wire
