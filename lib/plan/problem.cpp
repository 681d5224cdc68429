#include "plan/problem.hpp"

#include <array>

namespace hocket::plan {
namespace {

constexpr std::array operations = {
    Operation::all_reduce, Operation::reduce_scatter, Operation::all_gather, Operation::broadcast,
    Operation::reduce,     Operation::gather,         Operation::scatter,    Operation::all_to_all,
    Operation::barrier,    Operation::scan,           Operation::exscan,
};

constexpr std::array<std::string_view, operations.size()> names = {
    "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "gather",
    "scatter",    "all_to_all",     "barrier",    "scan",      "exscan",
};

enum class Extent : std::uint8_t { none, chunk, vector };

/// What of the vector each rank has, and what the root has; where there is none, rank 0.
struct Extents {
  Extent in, out, root_in, root_out;
};

constexpr std::array<Extents, operations.size()> extents = {{
    {Extent::vector, Extent::vector, Extent::vector, Extent::vector},  // all_reduce
    {Extent::vector, Extent::chunk, Extent::vector, Extent::chunk},    // reduce_scatter
    {Extent::chunk, Extent::vector, Extent::chunk, Extent::vector},    // all_gather
    {Extent::none, Extent::vector, Extent::vector, Extent::vector},    // broadcast
    {Extent::vector, Extent::none, Extent::vector, Extent::vector},    // reduce
    {Extent::chunk, Extent::none, Extent::chunk, Extent::vector},      // gather
    {Extent::none, Extent::chunk, Extent::vector, Extent::chunk},      // scatter
    {Extent::vector, Extent::vector, Extent::vector, Extent::vector},  // all_to_all
    {Extent::vector, Extent::vector, Extent::vector, Extent::vector},  // barrier: of no elements
    {Extent::vector, Extent::vector, Extent::vector, Extent::vector},  // scan
    {Extent::vector, Extent::vector, Extent::vector, Extent::none},    // exscan
}};

constexpr std::size_t index(Operation operation) noexcept {
  return static_cast<std::size_t>(operation);
}

Extent extent(const Problem& problem, std::uint32_t rank, Buffer buffer) noexcept {
  const Extents& row = extents.at(index(problem.operation));
  if (rank == (has_root(problem.operation) ? problem.root : 0)) {
    return buffer == Buffer::in ? row.root_in : row.root_out;
  }
  return buffer == Buffer::in ? row.in : row.out;
}

std::uint32_t vectors_of(const Problem& problem, std::uint32_t rank, Buffer buffer) noexcept {
  const bool has_several = problem.contributions > 0 && buffer == Buffer::in;
  return has_several ? contributions_of(problem, rank).count() : 1;
}

}  // namespace

std::span<const Operation> all_operations() noexcept { return operations; }

std::string_view name(Operation operation) noexcept { return names.at(index(operation)); }

bool has_root(Operation operation) noexcept {
  return operation == Operation::broadcast || operation == Operation::reduce ||
         operation == Operation::gather || operation == Operation::scatter;
}

bool reduces(Operation operation) noexcept {
  return operation == Operation::all_reduce || operation == Operation::reduce_scatter ||
         operation == Operation::reduce || is_prefix(operation);
}

bool is_prefix(Operation operation) noexcept {
  return operation == Operation::scan || operation == Operation::exscan;
}

bool is_of_whole_vectors(Operation operation) noexcept {
  return operation == Operation::all_reduce || operation == Operation::broadcast ||
         operation == Operation::reduce || operation == Operation::barrier;
}

bool can_be_in_place(const Problem& problem) noexcept {
  return problem.operation != Operation::all_to_all && problem.operation != Operation::barrier &&
         problem.contributions == 0;
}

std::uint32_t all_contributions(const Problem& problem) noexcept {
  return problem.contributions > 0 ? problem.contributions : problem.size;
}

Contributions contributions_of(const Problem& problem, std::uint32_t rank) noexcept {
  const std::uint32_t all = all_contributions(problem);
  const auto first = [&](std::uint32_t of) {
    return static_cast<std::uint32_t>(first_element(all, problem.size, of));
  };
  return {first(rank), first(rank + 1)};
}

std::uint32_t contributions_to(const Problem& problem, std::uint32_t rank) noexcept {
  if (!is_prefix(problem.operation)) return all_contributions(problem);
  return problem.operation == Operation::scan ? rank + 1 : rank;
}

Shape shape_of(const Problem& problem, std::uint32_t blocks_per_chunk) noexcept {
  switch (problem.operation) {
    case Operation::reduce_scatter:
    case Operation::all_gather:
    case Operation::gather:
    case Operation::scatter:
    case Operation::all_to_all:
      return {problem.size, blocks_per_chunk};
    default:
      return {1, blocks_per_chunk};
  }
}

std::uint32_t blocks_of(const Problem& problem, const Shape& shape, std::uint32_t rank,
                        Buffer buffer) noexcept {
  switch (extent(problem, rank, buffer)) {
    case Extent::none:
      return 0;
    case Extent::chunk:
      return shape.blocks_per_chunk;
    case Extent::vector:
      return vectors_of(problem, rank, buffer) * shape.vector_blocks();
  }
  return 0;
}

std::uint32_t place_in_vector(const Problem& problem, const Shape& shape, std::uint32_t rank,
                              Buffer buffer) noexcept {
  const bool is_chunk = extent(problem, rank, buffer) == Extent::chunk;
  return is_chunk ? rank * shape.blocks_per_chunk : 0;
}

}  // namespace hocket::plan
