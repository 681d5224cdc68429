#include "proof/describe.hpp"

#include <array>

#include <fmt/format.h>

namespace hocket::plan {
namespace {

std::string describe_from_to(const Range& range, std::uint64_t last) {
  if (range.count == 1) return fmt::format("{}[{}]", name(range.buffer), range.first);
  return fmt::format("{}[{}..{}]", name(range.buffer), range.first, last);
}

std::string operands(const Step& step, std::string_view own, std::string_view read) {
  return fmt::format("{} op {}", step.is_reversed ? read : own, step.is_reversed ? own : read);
}

}  // namespace

std::string_view name(Buffer buffer) noexcept {
  constexpr std::array<std::string_view, 3> names = {"in", "out", "scratch"};
  const auto index = static_cast<std::size_t>(buffer);
  return index < names.size() ? names.at(index) : "unknown";
}

std::string_view name(StepKind kind) noexcept {
  constexpr std::array<std::string_view, 5> names = {"send", "recv", "recv_reduce", "copy",
                                                     "reduce"};
  const auto index = static_cast<std::size_t>(kind);
  return index < names.size() ? names.at(index) : "unknown";
}

std::string describe(const Range& range) {
  const std::uint64_t end = std::uint64_t{range.first} + range.count;
  return describe_from_to(range, end == 0 ? 0 : end - 1);
}

std::string describe(const Plan& plan, const Range& range) {
  return describe_from_to(range, last_block(plan, range));
}

std::uint32_t last_block(const Plan& plan, const Range& range) noexcept {
  const std::uint32_t vector = plan.shape.vector_blocks();
  const bool is_scratch = range.buffer == Buffer::scratch;
  const std::uint32_t begin = is_scratch ? range.first / vector * vector : 0;
  const std::uint32_t count = is_scratch ? vector : plan.blocks(range.buffer);
  const std::uint32_t last = range.first + range.count - 1;
  const bool is_inside = range.first < begin + count && range.count <= count;
  return is_inside && last >= begin + count ? last - count : last;
}

std::string describe(const Step& step) {
  const std::string lane = step.lane == 0 ? "" : fmt::format(" on lane {}", +step.lane);
  switch (step.kind) {
    case StepKind::send:
      return fmt::format("send {} to {}{}", describe(step.source()), step.peer, lane);
    case StepKind::recv:
      return fmt::format("recv {} from {}{}", describe(step.target()), step.peer, lane);
    case StepKind::recv_reduce:
      return fmt::format("recv_reduce {} = {} from {}{}", describe(step.target()),
                         operands(step, describe(step.source()), "message"), step.peer, lane);
    case StepKind::copy:
      return fmt::format("copy {} = {}", describe(step.target()), describe(step.source()));
    case StepKind::reduce:
      return fmt::format("reduce {} = {}", describe(step.target()),
                         operands(step, "it", describe(step.source())));
  }
  return "unknown step";
}

std::string locate(const Plan& plan, std::uint32_t step) {
  return locate(plan.rank, step, plan.steps[step]);
}

std::string locate(std::uint32_t rank, std::uint32_t number, const Step& step) {
  return fmt::format("rank {}, step {} ({})", rank, number, describe(step));
}

}  // namespace hocket::plan
