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
  for (const plan::Algorithm& each : plan::catalog()) add(Tag(each, 0, 128).behind({}));
  const plan::Algorithm& ring = algorithm(Operation::all_reduce, "ring");
  for (const DataType type : all_data_types()) add(Tag(ring, 0, 128).with(type).behind({}));
  for (const ReduceOp op : all_reduce_ops()) add(Tag(ring, 0, 128).with(op).behind({}));
  for (std::uint32_t root = 1; root < 4096; ++root) add(Tag(ring, root, 128).behind({}));
  Tag::Past past;
  for (int behind = 1; behind < 4096; ++behind) {
    past.add(Tag(ring, 0, 128));
    add(Tag(ring, 0, 128).behind(past));
  }
  for (std::uint64_t count = 0; count < 1 << 20; ++count) {
    if (count != 128) add(Tag(ring, 0, count).behind({}));
  }
  for (int bit = 20; bit < 51; ++bit) add(Tag(ring, 0, std::uint64_t{1} << bit).behind({}));
  REQUIRE(tags.size() == made);
}

TEST_CASE("a disagreement names both calls", "[tag]") {
  const plan::Algorithm& ring = algorithm(Operation::all_reduce, "ring");
  const plan::Algorithm& circulant = algorithm(Operation::all_reduce, "circulant");
  const plan::Algorithm& binomial = algorithm(Operation::broadcast, "binomial");
  const auto sum = Tag(ring, 0, 128).with(DataType::f32).with(ReduceOp::sum);
  const auto max = Tag(ring, 0, 128).with(DataType::f32).with(ReduceOp::max);
  Tag::Past past;
  past.add(sum);
  CHECK(words(sum.behind({}), max.behind({})) ==
        "rank 2 called all_reduce(max, f32, 128 elements), and rank 0 called all_reduce(sum, f32, "
        "128 elements)");
  CHECK(words(sum.behind({}), Tag(binomial, 5, 1).with(DataType::u8).behind({})) ==
        "rank 2 called broadcast(u8, 1 element, root 5), and rank 0 called all_reduce(sum, f32, "
        "128 elements)");
  CHECK(words(sum.behind(past), sum.behind({})) ==
        "rank 2 called all_reduce(sum, f32, 128 elements), and rank 0 called all_reduce(sum, f32, "
        "128 elements), but behind other operations");
  const auto other = Tag(circulant, 0, 128).with(DataType::f32).with(ReduceOp::sum);
  const Status algorithms = engine::disagreement(sum.behind({}), other.behind({}), 0, 2);
  CHECK(algorithms.what() ==
        "rank 2 called all_reduce(sum, f32, 128 elements) by circulant, and rank 0 called "
        "all_reduce(sum, f32, 128 elements) by ring");
  CHECK(algorithms.hint().find("HOCKET_ALGORITHM") != std::string_view::npos);
}

TEST_CASE("one operation that differs is told by all that follow", "[tag]") {
  std::vector<Tag> calls;
  for (const plan::Algorithm& each : plan::catalog()) {
    for (const DataType type : all_data_types()) calls.push_back(Tag(each, 0, 128).with(type));
  }
  std::size_t same = 0;
  for (const Tag& one : calls) {
    for (const Tag& other : calls) {
      Tag::Past ours;
      Tag::Past theirs;
      ours.add(one);
      theirs.add(other);
      for (int i = 0; i < 3; ++i) {
        ours.add(calls.front());
        theirs.add(calls.front());
      }
      if (calls.front().behind(ours) == calls.front().behind(theirs)) ++same;
    }
  }
  // Each is the same as itself, and one in 2,048 others by accident.
  CHECK(same >= calls.size());
  CHECK(same < calls.size() + calls.size() * calls.size() / 1000);
}

TEST_CASE("a large count is cut to its upper bits", "[tag]") {
  const plan::Algorithm& ring = algorithm(Operation::all_reduce, "ring");
  const std::string text =
      words(Tag(ring, 0, (1 << 20) - 1).behind({}), Tag(ring, 0, 3 << 20).behind({}));
  CHECK(text.find("all_reduce(1048575 elements)") != std::string::npos);
  CHECK(text.find("all_reduce(about 3145728 elements)") != std::string::npos);
}

TEST_CASE("a tag of nothing we know is no crash", "[tag]") {
  for (std::uint64_t bit = 0; bit < 64; ++bit) {
    const std::uint64_t tag = ~std::uint64_t{0} << bit;
    CHECK(words(0, tag).find("rank 2 called ") == 0);
  }
}

}  // namespace
}  // namespace hocket::testing
