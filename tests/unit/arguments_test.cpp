// Which memory of a prepared operation adapters should know.
#include "comm/arguments.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/limits.hpp"
#include "support/require.hpp"

namespace hocket::testing {
namespace {

constexpr std::size_t many = limits::registered_bytes_min;  // bytes

std::vector<RegisteredMemory> lasting(const Collective& collective, std::uint32_t rank) {
  const Position position = {.rank = rank, .size = 3};
  require(comm::check(collective, position));
  return comm::lasting_memory(collective, position);
}

}  // namespace

TEST_CASE("what is sent and what is received into are registered, and one buffer once") {
  std::vector<std::byte> in(3 * many);
  std::vector<std::byte> out(3 * many);
  Collective it = {.kind = CollectiveKind::all_reduce,
                   .in = in.data(),
                   .out = out.data(),
                   .count = 3 * many,
                   .reduction = ReduceOp::max};
  const RegisteredMemory all_in = {in.data(), 3 * many, false};
  const RegisteredMemory all_out = {out.data(), 3 * many, true};
  REQUIRE(lasting(it, 1) == std::vector{all_out, all_in});
  it.in = out.data();
  REQUIRE(lasting(it, 1) == std::vector{all_out});

  it = {.kind = CollectiveKind::all_gather, .in = in.data(), .out = out.data(), .count = many};
  REQUIRE(lasting(it, 1) == std::vector{all_out, RegisteredMemory{in.data(), many, false}});
  // In place at the beginning of the larger one, which is received into.
  it.in = out.data();
  REQUIRE(lasting(it, 0) == std::vector{all_out});

  it = {.kind = CollectiveKind::reduce_scatter,
        .in = in.data(),
        .out = in.data(),
        .count = many,
        .reduction = ReduceOp::max};
  REQUIRE(lasting(it, 0) == std::vector{RegisteredMemory{in.data(), many, true}, all_in});
}

TEST_CASE("what a rank does not have, what is little, and pieces are not registered") {
  std::vector<std::byte> out(many);
  Collective it = {.kind = CollectiveKind::broadcast, .out = out.data(), .count = many, .root = 1};
  REQUIRE(lasting(it, 0).size() == 1);
  --it.count;
  REQUIRE(lasting(it, 0).empty());
  const Piece piece = {out.data(), many};
  it = {.kind = CollectiveKind::broadcast, .count = many, .pieces = {&piece, 1}};
  REQUIRE(lasting(it, 0).empty());
}

}  // namespace hocket::testing
