#include "engine/tag.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"

namespace hocket::testing {
namespace {

using engine::Tag;
using plan::Operation;

const plan::Algorithm& algorithm(Operation operation, std::string_view name) {
  const plan::Algorithm* const found = plan::find_algorithm(operation, name);
  REQUIRE(found != nullptr);
  return *found;
}

std::string words(std::uint64_t ours, std::uint64_t theirs) {
  const Status status = engine::disagreement(ours, theirs, 0, 2);
  REQUIRE(status.code() == StatusCode::mismatch);
  REQUIRE(status.rank() == 0);
  REQUIRE(status.peer() == 2);
  REQUIRE_FALSE(status.hint().empty());
  return std::string(status.what());
}

TEST_CASE("tags differ in each thing that ranks must agree on", "[tag]") {
  std::set<std::uint64_t> tags;
  std::size_t made = 0;
  const auto add = [&](std::uint64_t tag) {
    tags.insert(tag);
    ++made;
  };
  for (const plan::Algorithm& each : plan::catalog()) add(Tag(each, 0, 128).after({}));
  const plan::Algorithm& ring = algorithm(Operation::all_reduce, "ring");
  for (const DataType type : all_data_types()) add(Tag(ring, 0, 128).with(type).after({}));
  for (const ReduceOp op : all_reduce_ops()) add(Tag(ring, 0, 128).with(op).after({}));
  for (std::uint32_t root = 1; root < 4096; ++root) add(Tag(ring, root, 128).after({}));
  Tag::History history;
  for (int behind = 1; behind < 4096; ++behind) {
    history.add(Tag(ring, 0, 128));
    add(Tag(ring, 0, 128).after(history));
  }
  for (std::uint64_t count = 0; count < 1 << 20; ++count) {
    if (count != 128) add(Tag(ring, 0, count).after({}));
  }
  for (int bit = 20; bit < 51; ++bit) add(Tag(ring, 0, std::uint64_t{1} << bit).after({}));
  REQUIRE(tags.size() == made);
}

TEST_CASE("a disagreement names both calls", "[tag]") {
  const plan::Algorithm& ring = algorithm(Operation::all_reduce, "ring");
  const plan::Algorithm& circulant = algorithm(Operation::all_reduce, "circulant");
  const plan::Algorithm& binomial = algorithm(Operation::broadcast, "binomial");
  const auto sum = Tag(ring, 0, 128).with(DataType::f32).with(ReduceOp::sum);
  const auto max = Tag(ring, 0, 128).with(DataType::f32).with(ReduceOp::max);
  Tag::History history;
  history.add(sum);
  CHECK(words(sum.after({}), max.after({})) ==
        "rank 2 called all_reduce(max, f32, 128 elements), and rank 0 called all_reduce(sum, f32, "
        "128 elements)");
  CHECK(words(sum.after({}), Tag(binomial, 5, 1).with(DataType::u8).after({})) ==
        "rank 2 called broadcast(u8, 1 element, root 5), and rank 0 called all_reduce(sum, f32, "
        "128 elements)");
  CHECK(words(sum.after(history), sum.after({})) ==
        "rank 2 called all_reduce(sum, f32, 128 elements), and rank 0 called all_reduce(sum, f32, "
        "128 elements), after different earlier operations");
  const auto other = Tag(circulant, 0, 128).with(DataType::f32).with(ReduceOp::sum);
  const Status algorithms = engine::disagreement(sum.after({}), other.after({}), 0, 2);
  CHECK(algorithms.what() ==
        "rank 2 called all_reduce(sum, f32, 128 elements) by circulant, and rank 0 called "
        "all_reduce(sum, f32, 128 elements) by ring");
  CHECK(algorithms.hint().find("HOCKET_ALGORITHM") != std::string_view::npos);
}

TEST_CASE("after one different call, all later tags differ", "[tag]") {
  std::vector<Tag> calls;
  for (const plan::Algorithm& each : plan::catalog()) {
    for (const DataType type : all_data_types()) calls.push_back(Tag(each, 0, 128).with(type));
  }
  std::size_t same = 0;
  for (const Tag& one : calls) {
    for (const Tag& other : calls) {
      Tag::History ours;
      Tag::History theirs;
      ours.add(one);
      theirs.add(other);
      for (int i = 0; i < 3; ++i) {
        ours.add(calls.front());
        theirs.add(calls.front());
      }
      if (calls.front().after(ours) == calls.front().after(theirs)) ++same;
    }
  }
  // Each is the same as itself, and one in 2,048 others by accident; the limit is twice that.
  CHECK(same >= calls.size());
  CHECK(same < calls.size() + calls.size() * calls.size() / 1000);
}

TEST_CASE("a large count is cut to its upper bits", "[tag]") {
  const plan::Algorithm& ring = algorithm(Operation::all_reduce, "ring");
  const std::string text =
      words(Tag(ring, 0, (1 << 20) - 1).after({}), Tag(ring, 0, 3 << 20).after({}));
  CHECK(text.find("all_reduce(1048575 elements)") != std::string::npos);
  CHECK(text.find("all_reduce(about 3145728 elements)") != std::string::npos);
}

TEST_CASE("a tag that can't be decoded still has a description", "[tag]") {
  for (std::uint64_t bit = 0; bit < 64; ++bit) {
    const std::uint64_t tag = ~std::uint64_t{0} << bit;
    CHECK(words(0, tag).find("rank 2 called ") == 0);
  }
}

}  // namespace
}  // namespace hocket::testing
