// What CONTRIBUTING.md says of adding an algorithm is what works.
#include <fstream>
#include <iterator>
#include <string>

#include "plan/star_broadcast.hpp"
#include "proof/verify.hpp"
#include "support/catch.hpp"

using namespace hocket::plan;
using namespace hocket::proof;

namespace {

std::string read_file(const char* path) {
  std::ifstream file(path);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("the algorithm of the walk-through is proved as any other") {
  for (std::uint32_t size = 1; size <= 12; ++size) {
    const Problem problem{.operation = Operation::broadcast, .size = size, .root = size / 2};
    const auto proof = verify(build_all(star_broadcast_algorithm, problem));
    REQUIRE(proof.status().to_string() == "ok");
    CHECK(check_promises(star_broadcast_algorithm, problem, *proof).to_string() == "ok");
  }
}

TEST_CASE("the walk-through shows that algorithm") {
  const std::string source = read_file(HOCKET_SOURCE "/tests/plan/star_broadcast.hpp");
  const std::string shown = source.substr(
      source.find("inline constexpr"), source.find("\n\n}  // namespace") - source.find("inline"));
  CHECK(read_file(HOCKET_SOURCE "/CONTRIBUTING.md").find(shown) != std::string::npos);
}
