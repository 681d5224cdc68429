#include <algorithm>
#include <cstdint>
#include <vector>

#include "plan/catalog.hpp"
#include "simulator/volume.hpp"
#include "support/catch.hpp"

using namespace hocket::plan;
using hocket::sim::Volume;

namespace {

/// Block by block.
std::uint64_t elements(const Plan& plan, const Layout& layout, const Range& range) {
  const std::uint32_t vector = plan.shape.vector_blocks();
  const std::uint32_t blocks = std::min(vector, plan.blocks(range.buffer));
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < range.count; ++i) {
    const auto [begin, end] = layout.elements(range.buffer, (range.first % blocks + i) % blocks);
    sum += end - begin;
  }
  return sum;
}

std::vector<std::uint64_t> uneven_sizes(const Problem& problem) {
  const std::uint64_t chunks = shape_of(problem, 1).chunks;
  const bool is_pairs = problem.operation == Operation::all_to_all;
  std::vector<std::uint64_t> sizes(is_pairs ? chunks * chunks : chunks);
  for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = i * 37 % 11;  // some are empty
  return sizes;
}

void check(const Algorithm& algorithm, const Problem& problem) {
  const std::vector<std::uint64_t> sizes = uneven_sizes(problem);
  bool is_right = true;
  for (std::uint32_t rank = 0; rank < problem.size; ++rank) {
    const Plan plan = build(algorithm, problem, rank);
    const Layout layout(plan, sizes);
    const Volume volume(problem, plan.shape, 0, sizes, 4);
    for (const Step& step : plan.steps) {
      const Range range = step.has_source() ? step.source() : step.target();
      is_right &= volume.bytes(rank, range) == 4 * elements(plan, layout, range);
    }
  }
  INFO(algorithm.name << " for " << name(algorithm.operation) << ", " << problem.size << " ranks");
  CHECK(is_right);
}

}  // namespace

TEST_CASE("the bytes of every range are those of its blocks") {
  for (const Algorithm& algorithm : catalog()) {
    for (const std::uint32_t size : {1U, 2U, 6U, 13U}) {
      const std::uint32_t contributions = takes_contributions(algorithm) ? 3 * size + 1 : 0;
      check(algorithm, {.operation = algorithm.operation,
                        .size = size,
                        .pieces = 4,
                        .contributions = contributions});
    }
  }
}

TEST_CASE("without sizes the elements are divided evenly") {
  const Problem problem = {.operation = Operation::all_gather, .size = 4};
  const Volume volume(problem, shape_of(problem, 1), 10, {}, 2);
  CHECK(volume.bytes(0, {Buffer::out, 0, 4}) == 20);
  CHECK(volume.bytes(0, {Buffer::out, 0, 1}) == 6);
  CHECK(volume.bytes(0, {Buffer::out, 3, 2}) == 10);  // and on at the beginning
  CHECK(volume.bytes(3, {Buffer::in, 0, 1}) == 4);
  CHECK(volume.bytes(0, {Buffer::scratch, 5, 1}) == 6);
}
