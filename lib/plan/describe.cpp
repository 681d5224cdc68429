#include "plan/describe.hpp"

#include <array>

#include <fmt/format.h>

namespace hocket::plan {

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
  if (range.count == 1) return fmt::format("{}[{}]", name(range.buffer), range.first);
  const std::uint64_t end = std::uint64_t{range.first} + range.count;
  return fmt::format("{}[{}..{}]", name(range.buffer), range.first, end == 0 ? 0 : end - 1);
}

std::string describe(const Step& step) {
  const std::string lane = step.lane == 0 ? "" : fmt::format(" on lane {}", step.lane);
  switch (step.kind) {
    case StepKind::send:
      return fmt::format("send {} to {}{}", describe(step.source()), step.peer, lane);
    case StepKind::recv:
      return fmt::format("recv {} from {}{}", describe(step.target()), step.peer, lane);
    case StepKind::recv_reduce:
      return fmt::format("recv_reduce {} = {} op message from {}{}", describe(step.target()),
                         describe(step.source()), step.peer, lane);
    case StepKind::copy:
      return fmt::format("copy {} = {}", describe(step.target()), describe(step.source()));
    case StepKind::reduce:
      return fmt::format("reduce {} = it op {}", describe(step.target()), describe(step.source()));
  }
  return "unknown step";
}

}  // namespace hocket::plan
