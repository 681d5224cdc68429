#include "integration/collectives/operation.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace hocket::testing {
namespace {

constexpr std::size_t guard_bytes = 64;
constexpr std::byte guard{0xA5};
constexpr std::byte poison{0xEE};

std::size_t rounded(std::size_t bytes) { return (bytes + 15) / 16 * 16; }

/// Elements of the larger buffer before the smaller, where both are one.
std::size_t elements_before(const Model& model, std::size_t rank) {
  const bool has_parts = model.in_elements(rank) != model.out_elements(rank);
  return has_parts ? model.before(rank) : 0;
}

std::vector<std::size_t> row(const Model& model, std::size_t rank) {
  std::vector<std::size_t> counts;
  for (std::size_t i = 0; i < model.size; ++i) counts.push_back(model.part_between(rank, i));
  return counts;
}

std::vector<std::size_t> column(const Model& model, std::size_t rank) {
  std::vector<std::size_t> counts;
  for (std::size_t i = 0; i < model.size; ++i) counts.push_back(model.part_between(i, rank));
  return counts;
}

}  // namespace

Operation::Operation(Model model, std::size_t rank) : model_(std::move(model)), rank_(rank) {
  const std::size_t element = size_of(model_.type);
  in_bytes_ = model_.in_elements(rank) * element;
  out_bytes_ = model_.out_elements(rank) * element;
  in_at_ = guard_bytes + element;  // aligned to its type and no more
  out_at_ = in_at_ + rounded(in_bytes_) + guard_bytes;
  if (model_.is_in_place && in_bytes_ > 0 && out_bytes_ > 0) {
    out_at_ = in_at_;
    (in_bytes_ > out_bytes_ ? out_at_ : in_at_) += elements_before(model_, rank) * element;
  }
  memory_.resize(std::max(in_at_ + in_bytes_, out_at_ + out_bytes_) + guard_bytes);
  if (model_.kind == CollectiveKind::all_to_all && model_.is_uneven()) {
    counts_ = row(model_, rank);
    counts_from_ = column(model_, rank);
  } else {
    counts_ = model_.counts;
  }
  fill();
}

void Operation::fill() {
  std::ranges::fill(memory_, guard);
  std::fill_n(memory_.begin() + static_cast<std::ptrdiff_t>(out_at_), out_bytes_, poison);
  if (in_bytes_ > 0) {
    std::ranges::copy(model_.contribution(rank_),
                      memory_.begin() + static_cast<std::ptrdiff_t>(in_at_));
  }
  before_ = memory_;
}

Collective Operation::collective() {
  Collective result{.kind = model_.kind,
                    .in = in_bytes_ > 0 ? memory_.data() + in_at_ : nullptr,
                    .out = out_bytes_ > 0 ? memory_.data() + out_at_ : nullptr,
                    .type = model_.type,
                    .count = model_.is_uneven() ? 0 : model_.count,
                    .counts = counts_,
                    .counts_from = counts_from_,
                    .root = model_.root};
  result.reduction.op = model_.op;
  if (model_.op == ReduceOp::premul_sum) {
    result.reduction.factor = model_.factor();
  }
  if (model_.op == ReduceOp::custom) result.reduction.custom = custom_xor;
  return result;
}

void Operation::begin(Communicator& communicator, Way way) {
  const bool is_prepared = way == Way::run_prepared || way == Way::start_prepared;
  if (is_prepared) prepared_ = communicator.prepare(collective());
  switch (way) {
    case Way::run:
      return communicator.run(collective());
    case Way::run_prepared:
      return prepared_->run();
    case Way::start:
      work_ = communicator.start(collective());
      return;
    case Way::start_prepared:
      work_ = prepared_->start();
      return;
  }
}

std::string Operation::end() {
  work_.wait();
  return check();
}

Bytes Operation::output() const {
  const auto begin = memory_.begin() + static_cast<std::ptrdiff_t>(out_at_);
  return {begin, begin + static_cast<std::ptrdiff_t>(out_bytes_)};
}

std::string Operation::check() const {
  const Bytes wanted = model_.expected(rank_);
  const Bytes got = output();
  const auto place = [&] {
    return fmt::format("rank {} of {}: {}", rank_, model_.size, model_.text());
  };
  if (!model_.is_right(got, wanted)) {
    const auto [first, other] = std::ranges::mismatch(got, wanted);
    const auto at = static_cast<std::size_t>(first - got.begin()) / size_of(model_.type);
    const bool is_poison = std::ranges::all_of(got, [](std::byte each) { return each == poison; });
    return fmt::format("{}: element {} of {} is wrong{}", place(), at, model_.out_elements(rank_),
                       is_poison ? ": nothing was written" : "");
  }
  Bytes expected = before_;
  std::ranges::copy(got, expected.begin() + static_cast<std::ptrdiff_t>(out_at_));
  if (expected == memory_) return {};
  const auto [first, other] = std::ranges::mismatch(memory_, expected);
  return fmt::format("{}: written outside of the output, {} bytes behind its beginning", place(),
                     first - memory_.begin() - static_cast<std::ptrdiff_t>(out_at_));
}

std::uint64_t Operation::hash() const {
  std::uint64_t hash = 14695981039346656037U;
  for (const std::byte each : output())
    hash = (hash ^ std::to_integer<std::uint64_t>(each)) * 1099511628211U;
  return hash;
}

}  // namespace hocket::testing
