#include <string>

#include "choose/rules.hpp"
#include "support/catch.hpp"

using hocket::choose::parse_rules;
using hocket::choose::Rule;

TEST_CASE("a rule names an operation, bytes, ranks, an algorithm and pieces, as far as it likes") {
  const auto rules =
      parse_rules("all_reduce:0-4K@2-8=one_shot, broadcast:1M-=chain/16\n# of no account\nring")
          .value();
  REQUIRE(rules.size() == 5);  // three operations have a ring
  CHECK(rules[0].algorithm->name == "one_shot");
  CHECK(rules[0].bytes.holds(0));
  CHECK(rules[0].bytes.holds(4096));
  CHECK_FALSE(rules[0].bytes.holds(4097));
  CHECK_FALSE(rules[0].ranks.holds(1));
  CHECK(rules[0].ranks.holds(8));
  CHECK(rules[0].pieces == 0);
  CHECK(rules[1].algorithm->operation == hocket::plan::Operation::broadcast);
  CHECK(rules[1].pieces == 16);
  CHECK_FALSE(rules[1].bytes.holds((1 << 20) - 1));
  CHECK(rules[1].bytes.holds(UINT64_MAX));
  for (std::size_t i = 2; i < rules.size(); ++i) CHECK(rules[i].algorithm->name == "ring");
}

TEST_CASE("no rules are none") {
  CHECK(parse_rules("").value().empty());
  CHECK(parse_rules(" ,\n # nothing\n").value().empty());
  CHECK(parse_rules("all_reduce:8=ring").value().front().bytes.holds(8));
  CHECK_FALSE(parse_rules("all_reduce:8=ring").value().front().bytes.holds(9));
}

TEST_CASE("a rule that says nothing is refused, and its words are named") {
  const std::pair<std::string, std::string> wrongs[] = {
      {"rign", "there is no algorithm \"rign\""},
      {"all_reduc=ring", "there is no operation \"all_reduc\""},
      {"broadcast=ring", "there is no algorithm for broadcast \"ring\""},
      {"all_reduce:5-3=ring", "\"5-3\" are no bytes"},
      {"all_reduce:x=ring", "\"x\" are no bytes"},
      {"all_reduce:1K@two=ring", "\"two\" are no ranks"},
      {"broadcast=chain/0", "\"0\" is no number of pieces"},
      {"broadcast=chain/many", "\"many\" is no number of pieces"},
      {"=ring", "there is no operation \"\""},
      {"all_reduce=", "it names no algorithm"},
  };
  for (const auto& [text, said] : wrongs) {
    INFO(text);
    CHECK_THAT(std::string(parse_rules(text).status().what()), Catch::Contains(said));
  }
}
