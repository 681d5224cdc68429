#include "base/environment.hpp"

#include "support/catch.hpp"

using hocket::Environment;

TEST_CASE("an environment gives the values of its names") {
  const char* const entries[] = {"RANK=3", "RANKING=4", "EMPTY=", "ODD", "X=a=b", "=y", nullptr};
  const Environment environment(entries);
  REQUIRE(environment.get("RANK") == "3");
  REQUIRE(environment.get("X") == "a=b");
  REQUIRE(environment.get("RAN").empty());
  REQUIRE(environment.get("ODD").empty());
  REQUIRE(environment.has("RANKING"));
  REQUIRE_FALSE(environment.has("EMPTY"));
  REQUIRE_FALSE(environment.has("ABSENT"));
}

TEST_CASE("of a name that is set twice the last value holds, as for Config") {
  const char* const entries[] = {"RANK=3", "RANK=4", nullptr};
  REQUIRE(Environment(entries).get("RANK") == "4");
}

TEST_CASE("no environment has nothing in it") {
  REQUIRE_FALSE(Environment(nullptr).has("PATH"));
  REQUIRE(hocket::process_environment().has("PATH"));
}
