#include "proof/heard.hpp"

#include <fmt/format.h>

namespace hocket::proof {

using plan::Buffer;
using plan::CellMap;
using plan::Plan;
using plan::Range;
using plan::Step;
using plan::StepKind;

namespace {

constexpr std::size_t word_bits = 64;

}  // namespace

void Heard::start(std::span<const Plan> plans) {
  plans_ = plans;
  words_ = (plans.size() + word_bits - 1) / word_bits;
  memory_.clear();
  memory_.reserve(plans.size());
  for (std::uint32_t rank = 0; rank < plans.size(); ++rank) {
    const Plan& plan = plans[rank];
    const CellMap cells(plan.problem, plan.shape, plan.rank, false);
    memory_.emplace_back(cells.count(plan.scratch_copies) * words_);
    at(rank, {Buffer::in, 0, 1})[rank / word_bits] |= std::uint64_t{1} << rank % word_bits;
  }
}

std::span<std::uint64_t> Heard::at(std::uint32_t rank, const Range& range) {
  const Plan& plan = plans_[rank];
  const CellMap cells(plan.problem, plan.shape, plan.rank, false);
  return std::span(memory_[rank]).subspan(cells.of(range)[0].begin * words_, words_);
}

Status Heard::run(std::span<const Event> events) {
  for (const Event& event : events) run(event);
  return {};
}

void Heard::run(const Event& event) {
  const StepId& here = event.last();
  const Step& step = *event.to;
  const auto source = at(event.step.rank, event.from->source());
  const auto target = at(here.rank, step.target());
  const bool keeps = step.combines();
  const auto kept = step.kind == StepKind::recv_reduce ? at(here.rank, step.source()) : target;
  for (std::size_t i = 0; i < words_; ++i) target[i] = source[i] | (keeps ? kept[i] : 0);
}

Status Heard::check_results() const {
  for (std::uint32_t rank = 0; rank < plans_.size(); ++rank) {
    const CellMap cells(plans_[rank].problem, plans_[rank].shape, plans_[rank].rank, false);
    const std::size_t first = cells.of({Buffer::out, 0, 1})[0].begin * words_;
    for (std::size_t other = 0; other < plans_.size(); ++other) {
      const std::uint64_t word = memory_[rank][first + other / word_bits];
      if ((word >> other % word_bits & 1) != 0) continue;
      return Status(StatusCode::invalid_argument,
                    fmt::format("rank {} goes on before rank {} has come", rank, other));
    }
  }
  return {};
}

}  // namespace hocket::proof
