// The part of the C++ API that needs no world.
#include "comm/local.hpp"

#include <cstdint>

#include <fmt/format.h>

#include "hocket/hocket.hpp"

#include "base/config.hpp"
#include "base/log.hpp"
#include "comm/arguments.hpp"
#include "reduce/reduction.hpp"

namespace hocket::comm {

const reduce::InstructionSet& allowed_instruction_set() {
  static const reduce::InstructionSet& set = [&]() -> const reduce::InstructionSet& {
    const std::size_t limit = process_config().get(variables::simd).index;
    return reduce::widest_within(variables::simd_levels[limit], reduce::instruction_sets());
  }();
  return set;
}

}  // namespace hocket::comm

namespace hocket::inline v1 {
namespace {

bool overlaps(const void* out, const void* in, std::size_t bytes) noexcept {
  return out != in && comm::ranges_overlap(out, bytes, in, bytes);
}

}  // namespace

std::string_view version() noexcept { return HOCKET_VERSION; }

void set_log_sink(hocket_log_sink sink, void* context) noexcept { log::set_sink(sink, context); }

void reduce_local(void* out, const void* a, const void* b, std::size_t count, DataType type,
                  ReduceOp op) {
  const auto reduction =
      reduce::Reduction::make({.type = type, .op = op}, comm::allowed_instruction_set());
  const bool is_custom = op == ReduceOp::custom;  // which fails for want of a function
  if (!reduction.ok() && !is_custom) throw_error(reduction.status().with_operation("reduce_local"));
  if (is_custom || op == ReduceOp::average || op == ReduceOp::premul_sum) {
    throw_error(Status(StatusCode::unsupported,
                       fmt::format("reduce_local: {} needs a collective", name(op))));
  }
  if (count > SIZE_MAX / size_of(type)) {
    throw_error(Status(StatusCode::invalid_argument,
                       fmt::format("reduce_local: {} elements do not fit in memory", count)));
  }
  if (count > 0 && (out == nullptr || a == nullptr || b == nullptr)) {
    throw_error(Status(StatusCode::invalid_argument,
                       fmt::format("reduce_local: a null pointer for {} elements", count)));
  }
  const std::size_t bytes = count * size_of(type);
  if (overlaps(out, a, bytes) || overlaps(out, b, bytes)) {
    throw_error(Status(StatusCode::invalid_argument, "reduce_local: out overlaps an operand")
                    .with_hint("out may be one of the operands or lie apart from both"));
  }
  reduction->combine(out, a, b, count);
}

}  // namespace hocket::inline v1
