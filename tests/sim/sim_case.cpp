#include "sim/sim_case.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include <fmt/format.h>

#include "plan/layout.hpp"

namespace hocket::testing {
namespace {

using plan::Buffer;
using plan::Operation;

constexpr std::array types = {DataType::u8,  DataType::i32, DataType::u64,
                              DataType::f32, DataType::f64, DataType::i16};
constexpr std::array ops = {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::product};

/// A small whole number as an element, so that sums are exact in every type.
void write_element(std::byte* to, DataType type, std::uint64_t number) {
  const auto put = [&](auto value) { std::memcpy(to, &value, sizeof value); };
  switch (type) {
    case DataType::i32:
      return put(static_cast<std::int32_t>(number));
    case DataType::u64:
      return put(number);
    case DataType::f32:
      return put(static_cast<float>(number));
    case DataType::f64:
      return put(static_cast<double>(number));
    case DataType::i16:
      return put(static_cast<std::int16_t>(number));
    default:
      return put(static_cast<std::uint8_t>(number));
  }
}

Bytes slice(const Bytes& bytes, std::uint64_t begin, std::uint64_t count) {
  const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(begin);
  return {first, first + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace

std::uint64_t between(Random& random, std::uint64_t least, std::uint64_t most) {
  return least + random() % (most - least + 1);
}

SimCase::SimCase(Random& random, std::uint32_t size)
    : SimCase(random, plan::catalog()[random() % plan::catalog().size()], size) {}

SimCase::SimCase(Random& random, const plan::Algorithm& algorithm, std::uint32_t size)
    : SimCase(
          random, algorithm,
          {.operation = algorithm.operation,
           .size = size,
           .root = plan::has_root(algorithm.operation) ? static_cast<std::uint32_t>(random() % size)
                                                       : 0,
           .pieces = static_cast<std::uint32_t>(between(random, 1, 5)),
           .ranks_per_host = static_cast<std::uint32_t>(between(random, 1, size))}) {}

SimCase::SimCase(Random& random, const plan::Algorithm& algorithm, const plan::Problem& problem)
    : algorithm_(&algorithm),
      problem_(problem),
      reduction_(*reduce::Reduction::make({})),
      ranks_(problem.size) {
  choose(random);
  choose_sizes(random);
  for (std::uint32_t rank = 0; rank < problem.size; ++rank) fill(random, rank);
}

void SimCase::choose(Random& random) {
  const bool is_barrier = problem_.operation == Operation::barrier;
  type_ = is_barrier ? DataType::u8 : types[random() % types.size()];
  op_ = is_barrier ? ReduceOp::max : ops[random() % ops.size()];
  is_uneven_ = algorithm_->allows_uneven && random() % 2 == 0;
  in_place_ = plan::can_be_in_place(problem_) && random() % 2 == 0;
  reduction_ = *reduce::Reduction::make({.type = type_, .op = op_});
}

void SimCase::choose_sizes(Random& random) {
  constexpr std::array<std::uint64_t, 8> most = {0, 1, 7, 64, 64, 300, 300, 5000};
  const std::uint64_t limit = most[random() % most.size()];
  sizes_ = plan::even_sizes(problem_, limit == 0 ? 0 : random() % (limit + 1));
  if (problem_.operation == Operation::barrier) sizes_ = plan::even_sizes(problem_, 1);
  if (!is_uneven_) return;
  for (std::uint64_t& size : sizes_) size = random() % (limit + 1);
}

void SimCase::fill(Random& random, std::uint32_t rank) {
  const plan::Plan plan = plan::build(*algorithm_, problem_, rank);
  const plan::Layout layout(plan, sizes_);
  Memory& memory = ranks_[rank];
  const std::uint64_t bytes = layout.size(Buffer::in) * element_bytes();
  memory.out_bytes = layout.size(Buffer::out) * element_bytes();
  memory.given.resize(bytes);
  for (std::uint64_t i = 0; i < bytes; i += element_bytes()) {
    write_element(memory.given.data() + i, type_, random() % 4);
  }
  if (in_place_) {
    memory.in_begin = layout.offset(Buffer::in) * element_bytes();
    memory.out_begin = layout.offset(Buffer::out) * element_bytes();
  }
  // What is not written yet is anything.
  memory.out.resize(std::max(memory.in_begin + bytes, memory.out_begin + memory.out_bytes));
  std::ranges::generate(memory.out, [&] { return static_cast<std::byte>(random()); });
  if (!in_place_) {
    memory.in = memory.given;
    return;
  }
  std::ranges::copy(memory.given,
                    memory.out.begin() + static_cast<std::ptrdiff_t>(memory.in_begin));
}

const std::byte* SimCase::in(std::uint32_t rank) const noexcept {
  const Memory& memory = ranks_[rank];
  return in_place_ ? memory.out.data() + memory.in_begin : memory.in.data();
}

std::byte* SimCase::out(std::uint32_t rank) noexcept {
  return ranks_[rank].out.data() + ranks_[rank].out_begin;
}

Bytes SimCase::reduced(std::uint32_t rank) const {
  Bytes sum = ranks_[0].given;
  for (std::uint32_t i = 1; i < plan::contributions_to(problem_, rank); ++i) {
    reduction_.combine(sum.data(), sum.data(), ranks_[i].given.data(),
                       sum.size() / element_bytes());
  }
  return sum;
}

Bytes SimCase::gathered() const {
  Bytes all;
  for (const Memory& memory : ranks_)
    all.insert(all.end(), memory.given.begin(), memory.given.end());
  return all;
}

std::uint64_t SimCase::chunk_begin(std::uint32_t chunk) const {
  const auto end = sizes_.begin() + static_cast<std::ptrdiff_t>(chunk);
  return std::accumulate(sizes_.begin(), end, std::uint64_t{}) * element_bytes();
}

Bytes SimCase::expected(std::uint32_t rank) const {
  const bool is_root = rank == problem_.root;
  switch (problem_.operation) {
    case Operation::all_reduce:
    case Operation::scan:
      return reduced(rank);
    case Operation::exscan:
      return rank > 0 ? reduced(rank) : Bytes();
    case Operation::reduce_scatter:
      return slice(reduced(rank), chunk_begin(rank), sizes_[rank] * element_bytes());
    case Operation::all_gather:
      return gathered();
    case Operation::broadcast:
      return ranks_[problem_.root].given;
    case Operation::reduce:
      return is_root ? reduced(rank) : Bytes();
    case Operation::gather:
      return is_root ? gathered() : Bytes();
    case Operation::scatter:
      return slice(ranks_[problem_.root].given, chunk_begin(rank), sizes_[rank] * element_bytes());
    case Operation::all_to_all: {
      Bytes all;
      for (std::size_t from = 0; from < ranks_.size(); ++from) {
        const auto row = sizes_.begin() + static_cast<std::ptrdiff_t>(from * ranks_.size());
        const std::uint64_t begin = std::accumulate(row, row + rank, std::uint64_t{});
        const Bytes part =
            slice(ranks_[from].given, begin * element_bytes(), row[rank] * element_bytes());
        all.insert(all.end(), part.begin(), part.end());
      }
      return all;
    }
    case Operation::barrier:
      break;
  }
  return {};
}

std::string SimCase::check(std::uint32_t rank) const {
  if (problem_.operation == Operation::barrier) return {};
  const Memory& memory = ranks_[rank];
  if (!in_place_ && memory.in != memory.given) return fmt::format("rank {}: in was changed", rank);
  const Bytes right = expected(rank);
  const Bytes result = slice(memory.out, memory.out_begin, memory.out_bytes);
  if (result == right) return {};
  const auto differs = std::ranges::mismatch(result, right);
  return fmt::format("rank {}: byte {} of {} is wrong", rank, differs.in1 - result.begin(),
                     right.size());
}

std::string SimCase::to_string() const {
  return fmt::format("{} by {}, {} ranks, root {}, {} pieces, {} a host, {} {}, {}{} elements",
                     plan::name(problem_.operation), algorithm_->name, problem_.size, problem_.root,
                     problem_.pieces, problem_.ranks_per_host, name(type_), name(op_),
                     in_place_ ? "in place, " : "",
                     is_uneven_ ? "different" : std::to_string(sizes_.empty() ? 0 : sizes_[0]));
}

}  // namespace hocket::testing
