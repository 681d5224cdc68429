// Steps and ranges in words, for messages; in the namespace of what they are of, so that they are
// found without a name.
#pragma once

#include <cstdint>
#include <string>

#include "plan/plan.hpp"

namespace hocket::plan {

[[nodiscard]] std::string_view name(Buffer buffer) noexcept;
[[nodiscard]] std::string_view name(StepKind kind) noexcept;

/// "out[3]", "scratch[4..7]", as if no buffer had an end.
[[nodiscard]] std::string describe(const Range& range);
/// The same, but "out[4..1]" where it goes on at the beginning.
[[nodiscard]] std::string describe(const Plan& plan, const Range& range);
/// The last block of a range that is inside its buffer; of one that is not, as if that had no end.
[[nodiscard]] std::uint32_t last_block(const Plan& plan, const Range& range) noexcept;
/// "recv_reduce from 2: out[3] = in[3] op message"
[[nodiscard]] std::string describe(const Step& step);
/// "rank 2, step 5 (copy out[0] = in[0])"
[[nodiscard]] std::string locate(const Plan& plan, std::uint32_t step);
[[nodiscard]] std::string locate(std::uint32_t rank, std::uint32_t number, const Step& step);

}  // namespace hocket::plan
