// Sizes, counts and factors of hocket-bench: those of nccl-tests.
#include "bench/sweep.hpp"
#include "bench/trial.hpp"
#include "support/catch.hpp"

namespace hocket::bench {

TEST_CASE("sizes grow by a factor or by a step, to the last one that fits") {
  using Sizes = std::vector<std::uint64_t>;
  CHECK(sizes_between(8, 128, 4, 0) == Sizes{8, 32, 128});
  CHECK(sizes_between(8, 127, 4, 0) == Sizes{8, 32});
  CHECK(sizes_between(8, 8, 2, 0) == Sizes{8});
  CHECK(sizes_between(0, 8, 4, 0) == Sizes{0, 1, 4});
  CHECK(sizes_between(0, 0, 4, 0) == Sizes{0});
  CHECK(sizes_between(0, 25, 4, 10) == Sizes{0, 10, 20});
  CHECK(sizes_between(1ULL << 63, UINT64_MAX, 4, 0) == Sizes{1ULL << 63});
}

TEST_CASE("where ranks have parts, a size is that of all parts") {
  const Case whole = {.kind = CollectiveKind::all_reduce};
  const Case parts = {.kind = CollectiveKind::all_gather};
  CHECK(count_of(whole, 4096, 4) == 1024);
  CHECK(count_of(parts, 4096, 4) == 256);
  CHECK(bytes_of(whole, 1024, 4) == 4096);
  CHECK(bytes_of(parts, 256, 4) == 4096);
}

TEST_CASE("only a size of 0 is a count of 0") {
  const Case parts = {.kind = CollectiveKind::all_gather};
  CHECK(count_of(parts, 0, 4) == 0);
  CHECK(count_of(parts, 1, 4) == 1);
  CHECK(count_of({.kind = CollectiveKind::barrier}, 8, 4) == 0);
}

TEST_CASE("the factor of the bus") {
  CHECK(bus_factor(CollectiveKind::all_reduce, 4) == 1.5);
  CHECK(bus_factor(CollectiveKind::all_reduce, 1) == 0);
  for (const CollectiveKind kind : {CollectiveKind::reduce_scatter, CollectiveKind::all_gather,
                                    CollectiveKind::all_to_all, CollectiveKind::gather}) {
    CHECK(bus_factor(kind, 4) == 0.75);
  }
  CHECK(bus_factor(CollectiveKind::broadcast, 4) == 1);
  CHECK(bus_factor(CollectiveKind::reduce, 4) == 1);
  CHECK(bus_factor(CollectiveKind::scan, 4) == 1);
}

}  // namespace hocket::bench
