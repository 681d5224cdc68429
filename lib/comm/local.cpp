// The part of the C++ API that needs no world.
#include <cstdint>

#include <fmt/format.h>

#include "hocket/hocket.hpp"

#include "base/config.hpp"
#include "base/log.hpp"
#include "reduce/reduction.hpp"

namespace hocket::inline v0 {
namespace {

/// The widest instruction set that HOCKET_SIMD allows.
const reduce::InstructionSet& allowed_instruction_set() {
  const std::string_view widest =
      variables::simd_levels[process_config().get(variables::simd).index];
  const auto sets = reduce::instruction_sets();
  if (widest == "best") return sets.front();
  for (const reduce::InstructionSet& set : sets) {
    if (set.name == widest) return set;
  }
  log::line(log::Level::warning, "HOCKET_SIMD={}: this machine or build has no {}; using {}",
            widest, widest, sets.back().name);
  return sets.back();
}

bool overlaps(const void* out, const void* in, std::size_t bytes) noexcept {
  const auto a = reinterpret_cast<std::uintptr_t>(out);
  const auto b = reinterpret_cast<std::uintptr_t>(in);
  return a != b && (a < b ? b - a : a - b) < bytes;
}

}  // namespace

std::string_view version() noexcept { return HOCKET_VERSION; }

void set_log_sink(hocket_log_sink sink, void* context) noexcept { log::set_sink(sink, context); }

void reduce_local(void* out, const void* a, const void* b, std::size_t count, DataType type,
                  ReduceOp op) {
  static const reduce::InstructionSet& set = allowed_instruction_set();
  if (op == ReduceOp::average || op == ReduceOp::premul_sum || op == ReduceOp::custom) {
    throw_error(Status(StatusCode::unsupported,
                       fmt::format("reduce_local: {} needs more than two elements", name(op))));
  }
  auto reduction = reduce::Reduction::make({.type = type, .op = op}, set);
  if (!reduction.ok()) throw_error(reduction.status().with_operation("reduce_local"));
  if (count > SIZE_MAX / size_of(type)) {
    throw_error(Status(StatusCode::invalid_argument,
                       fmt::format("reduce_local: {} elements do not fit in memory", count)));
  }
  const std::size_t bytes = count * size_of(type);
  if (overlaps(out, a, bytes) || overlaps(out, b, bytes)) {
    throw_error(Status(StatusCode::invalid_argument, "reduce_local: out overlaps an operand")
                    .with_hint("out may be one of the operands or lie apart from both"));
  }
  reduction->combine(out, a, b, count);
}

}  // namespace hocket::inline v0
