// Steps and ranges in words, for messages.
#pragma once

#include <cstdint>
#include <string>

#include "plan/plan.hpp"

namespace hocket::plan {

[[nodiscard]] std::string_view name(Buffer buffer) noexcept;
[[nodiscard]] std::string_view name(StepKind kind) noexcept;

/// "out[3]", "scratch[4..7]"
[[nodiscard]] std::string describe(const Range& range);
/// "recv_reduce from 2: out[3] = in[3] op message"
[[nodiscard]] std::string describe(const Step& step);

}  // namespace hocket::plan
