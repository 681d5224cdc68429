// Which elements blocks are.
#include "plan/layout.hpp"

#include <vector>

#include "support/catch.hpp"
#include "support/plans.hpp"

using namespace hocket::plan;

namespace {

using Sizes = std::vector<std::uint64_t>;

Plan empty_plan(Operation operation, std::uint32_t size, std::uint32_t rank,
                std::uint32_t blocks_per_chunk) {
  const Problem problem{.operation = operation, .size = size};
  return {.problem = problem,
          .rank = rank,
          .shape = shape_of(problem, blocks_per_chunk),
          .scratch_copies = 2};
}

/// Of each block, how many elements.
Sizes blocks(const Layout& layout, Buffer buffer, std::uint32_t count) {
  Sizes sizes;
  std::uint64_t end = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto elements = layout.elements(buffer, i);
    CHECK(elements.begin == end);
    end = elements.end;
    sizes.push_back(elements.end - elements.begin);
  }
  CHECK(layout.size(buffer) == end);
  return sizes;
}

}  // namespace

TEST_CASE("a chunk is divided as even as can be, and scratch like the vector") {
  const Sizes sizes = {7};
  const Layout layout(empty_plan(Operation::all_reduce, 4, 1, 3), sizes);
  CHECK(blocks(layout, Buffer::in, 3) == Sizes{3, 2, 2});
  CHECK(blocks(layout, Buffer::out, 3) == Sizes{3, 2, 2});
  CHECK(blocks(layout, Buffer::scratch, 6) == Sizes{3, 2, 2, 3, 2, 2});
  CHECK(layout.offset(Buffer::out) == 0);
}

TEST_CASE("chunks of different sizes stand one behind the other") {
  const Sizes sizes = {5, 0, 3};
  const Layout layout(empty_plan(Operation::all_gather, 3, 2, 2), sizes);
  CHECK(blocks(layout, Buffer::in, 2) == Sizes{2, 1});
  CHECK(blocks(layout, Buffer::out, 6) == Sizes{3, 2, 0, 0, 2, 1});
  CHECK(layout.offset(Buffer::in) == 5);
  CHECK(layout.offset(Buffer::out) == 0);
}

TEST_CASE("an all-to-all sends its row and gets its column") {
  const Sizes rows = {1, 2, 3, 4};  // of rank 0, then of rank 1
  const Layout layout(empty_plan(Operation::all_to_all, 2, 1, 1), rows);
  CHECK(blocks(layout, Buffer::in, 2) == Sizes{3, 4});
  CHECK(blocks(layout, Buffer::out, 2) == Sizes{2, 4});
  CHECK(blocks(layout, Buffer::scratch, 4) == Sizes{4, 4, 4, 4});
}

TEST_CASE("rank 0 gets nothing of an exclusive scan") {
  const Sizes sizes = {7};
  for (const std::uint32_t rank : {0U, 1U}) {
    const Layout layout(empty_plan(Operation::exscan, 4, rank, 2), sizes);
    CHECK(blocks(layout, Buffer::in, 2) == Sizes{4, 3});
    CHECK(layout.size(Buffer::out) == (rank == 0 ? 0 : 7));
  }
  CHECK(Layout(empty_plan(Operation::scan, 4, 0, 2), sizes).size(Buffer::out) == 7);
}

TEST_CASE("uneven sizes differ, and none is among them") {
  CHECK(uneven_sizes({.operation = Operation::gather, .size = 4}, 9) == Sizes{0, 7, 4, 1});
  CHECK(even_sizes({.operation = Operation::all_to_all, .size = 2}, 3) == Sizes{3, 3, 3, 3});
}
