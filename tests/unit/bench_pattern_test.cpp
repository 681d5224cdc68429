// The data by which hocket-bench checks collectives: right results pass, wrong ones are counted.
#include <algorithm>
#include <numeric>
#include <vector>

#include "hocket/types.hpp"

#include "bench/pattern.hpp"
#include "reduce/reduction.hpp"
#include "support/catch.hpp"

namespace hocket::bench {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::size_t count = 300;
constexpr std::size_t first = 65'400;  // so that the numbers begin anew within the count

Bytes given(const Pattern& pattern, DataType type, std::uint32_t rank) {
  Bytes bytes(count * size_of(type));
  pattern.write(rank, first, bytes);
  return bytes;
}

/// What the ranks give, reduced by the library's own arithmetic in the order of `ranks`.
Bytes reduce_all(const Pattern& pattern, const reduce::Reduction& reduction, DataType type,
                 const std::vector<std::uint32_t>& ranks) {
  Bytes all;
  for (const std::uint32_t rank : ranks) {
    Bytes one = given(pattern, type, rank);
    if (reduction.prepares()) reduction.prepare(one.data(), one.data(), count);
    if (all.empty()) {
      all = one;
    } else {
      reduction.combine(all.data(), all.data(), one.data(), count);
    }
  }
  if (reduction.finishes()) reduction.finish(all.data(), all.data(), count);
  return all;
}

void check_any_order(const Pattern::Options& options) {
  const auto reduction = reduce::Reduction::make({.type = options.type,
                                                  .op = options.op,
                                                  .contributions = static_cast<int>(options.ranks),
                                                  .factor = Pattern::factor});
  if (!reduction.ok()) return;
  const Pattern pattern(options);
  std::vector<std::uint32_t> ranks(options.ranks);
  std::iota(ranks.begin(), ranks.end(), 0U);
  INFO(name(options.type) << " " << name(options.op) << " of " << options.ranks << " ranks");
  const Bytes forwards = reduce_all(pattern, *reduction, options.type, ranks);
  CHECK(pattern.count_wrong_reduced(first, forwards) == 0);
  std::ranges::reverse(ranks);
  std::rotate(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(options.ranks / 3),
              ranks.end());  // clang 14 has no std::ranges::rotate
  CHECK(reduce_all(pattern, *reduction, options.type, ranks) == forwards);
}

}  // namespace

TEST_CASE("what must come out of a reduction is what the kernels compute, in any order") {
  for (const DataType type : all_data_types()) {
    for (const ReduceOp op : all_reduce_ops()) {
      if (op == ReduceOp::custom) continue;
      for (const std::uint32_t ranks : {1U, 2U, 3U, 5U, 8U, 100U}) {
        check_any_order({.type = type, .op = op, .ranks = ranks, .salt = 7});
      }
    }
  }
}

TEST_CASE("each wrong element is counted, and once") {
  for (const DataType type : all_data_types()) {
    INFO(name(type));
    const Pattern pattern({.type = type, .ranks = 3, .salt = 1});
    Bytes got = given(pattern, type, 2);
    CHECK(pattern.count_wrong(2, first, got) == 0);
    for (const std::size_t at : {std::size_t{0}, count / 2, count - 1}) {
      got[at * size_of(type)] ^= std::byte{0x40};
      got[(at + 1) * size_of(type) - 1] ^= std::byte{0x20};
    }
    CHECK(pattern.count_wrong(2, first, got) == 3);
  }
}

TEST_CASE("a poisoned element is wrong in all types") {
  for (const DataType type : all_data_types()) {
    INFO(name(type));
    const Pattern pattern({.type = type, .op = ReduceOp::max, .ranks = 3});
    Bytes got = given(pattern, type, 0);
    poison(std::span(got).first(10 * size_of(type)));
    CHECK(pattern.count_wrong(0, first, got) == 10);
    poison(got);
    CHECK(pattern.count_wrong_reduced(first, got) == count);
  }
}

TEST_CASE("data of another rank, position or call is not the same") {
  const DataType type = DataType::i32;
  const Pattern pattern({.type = type, .ranks = 4, .salt = 1});
  const Pattern next({.type = type, .ranks = 4, .salt = 2});
  const Bytes got = given(pattern, type, 1);
  CHECK(pattern.count_wrong(2, first, got) > count / 2);
  CHECK(pattern.count_wrong(1, first + 1, got) > count / 2);
  CHECK(next.count_wrong(1, first, got) > count / 2);
}

TEST_CASE("a rank that is left out, or counted twice, is seen") {
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::product, ReduceOp::max, ReduceOp::bit_xor}) {
    INFO(name(op));
    const DataType type = DataType::i32;
    const Pattern pattern({.type = type, .op = op, .ranks = 4});
    const auto reduction = reduce::Reduction::make({.type = type, .op = op, .contributions = 4});
    REQUIRE(reduction.ok());
    CHECK(pattern.count_wrong_reduced(first, reduce_all(pattern, *reduction, type, {0, 1, 3})) > 0);
    const Bytes first_two = reduce_all(pattern, *reduction, type, {0, 1});
    CHECK(pattern.count_wrong_reduced(first, first_two, 2) == 0);
    CHECK(pattern.count_wrong_reduced(first, first_two, 3) > 0);
    if (op == ReduceOp::max) continue;  // twice is once
    const Bytes twice = reduce_all(pattern, *reduction, type, {0, 1, 2, 3, 3});
    CHECK(pattern.count_wrong_reduced(first, twice) > 0);
  }
}

TEST_CASE("rough numbers give other bits in another order") {
  const DataType type = DataType::f32;
  const Pattern pattern({.type = type, .ranks = 3});
  std::vector<Bytes> of(3, Bytes(count * size_of(type)));
  for (std::uint32_t rank = 0; rank < 3; ++rank) pattern.write_rough(rank, of[rank]);
  const auto reduction = reduce::Reduction::make({.type = type});
  REQUIRE(reduction.ok());
  Bytes left = of[0], right = of[1];
  reduction->combine(left.data(), left.data(), of[1].data(), count);
  reduction->combine(left.data(), left.data(), of[2].data(), count);
  reduction->combine(right.data(), right.data(), of[2].data(), count);
  reduction->combine(right.data(), right.data(), of[0].data(), count);
  CHECK(left != right);
}

}  // namespace hocket::bench
