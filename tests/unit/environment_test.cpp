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

TEST_CASE("settings change an environment") {
  const char* const entries[] = {"RANK=3", "SIZE=4", "HOST=a", nullptr};
  const hocket::Setting settings[] = {{"RANK", "5"}, {"HOST", ""}, {"NEW", "x"}};
  const hocket::ChangedEnvironment changed(Environment(entries), settings);
  REQUIRE(changed.get().get("RANK") == "5");
  REQUIRE(changed.get().get("SIZE") == "4");
  REQUIRE_FALSE(changed.get().has("HOST"));
  REQUIRE(changed.get().get("NEW") == "x");
  REQUIRE_FALSE(hocket::ChangedEnvironment(Environment(nullptr), {}).get().has("RANK"));
}

TEST_CASE("no environment has nothing in it") {
  REQUIRE_FALSE(Environment(nullptr).has("PATH"));
  REQUIRE(hocket::process_environment().has("PATH"));
}
