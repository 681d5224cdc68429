// Where the blocks of a rank are, in place and apart.
#include "plan/cell_map.hpp"

#include "support/catch.hpp"

using namespace hocket::plan;

namespace {

CellRuns runs(CellRun first, CellRun second = {}) { return {first, second}; }

}  // namespace

TEST_CASE("a range goes on at the beginning of its buffer, or of its copy of the vector") {
  const Problem problem{.operation = Operation::all_reduce, .size = 4};
  const CellMap cells(problem, shape_of(problem, 4), 1, false);
  CHECK(cells.count(0) == 8);
  CHECK(cells.count(3) == 20);
  CHECK(cells.of({Buffer::in, 1, 3}) == runs({1, 4}));
  CHECK(cells.of({Buffer::in, 2, 3}) == runs({2, 4}, {0, 1}));
  CHECK(cells.of({Buffer::out, 3, 1}) == runs({7, 8}));
  CHECK(cells.of({Buffer::out, 3, 2}) == runs({7, 8}, {4, 5}));
  CHECK(cells.of({Buffer::scratch, 3, 2}) == runs({11, 12}, {8, 9}));
  CHECK(cells.of({Buffer::scratch, 5, 4}) == runs({13, 16}, {12, 13}));
}

TEST_CASE("in place, a rank's chunk is where it belongs in the vector") {
  const Problem problem{.operation = Operation::all_gather, .size = 4};
  const CellMap together(problem, shape_of(problem, 2), 3, true);
  CHECK(together.of({Buffer::in, 0, 2}) == runs({6, 8}));
  CHECK(together.of({Buffer::out, 6, 2}) == together.of({Buffer::in, 0, 2}));
  const CellMap apart(problem, shape_of(problem, 2), 3, false);
  CHECK(apart.of({Buffer::in, 0, 2}) == runs({6, 8}));
  CHECK(apart.of({Buffer::in, 1, 2}) == runs({7, 8}, {6, 7}));
  CHECK(apart.of({Buffer::out, 6, 2}) == runs({14, 16}));
}

TEST_CASE("a cell's position is that of its block in the vector") {
  const Problem problem{.operation = Operation::reduce_scatter, .size = 3};
  const CellMap cells(problem, shape_of(problem, 2), 2, false);
  CHECK(cells.position(cells.first({Buffer::in, 5, 1})) == 5);
  CHECK(cells.position(cells.first({Buffer::out, 1, 1})) == 5);  // the chunk of rank 2 begins at 4
  CHECK(cells.position(cells.first({Buffer::scratch, 3, 1})) == 3);
  CHECK(cells.position(cells.first({Buffer::scratch, 15, 1})) == 3);
}
