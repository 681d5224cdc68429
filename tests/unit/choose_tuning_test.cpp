#include <string>
#include <utility>

#include "choose/tuning.hpp"
#include "support/catch.hpp"

namespace hocket::choose {
namespace {

const Network base = find_preset("ethernet-1g").value();

std::string refusal(const std::string& text) {
  return parse_tuning(text, "table.txt", base).status().to_string();
}

}  // namespace

TEST_CASE("what was measured is kept for people") {
  const Tuning tuning = parse_tuning(
                            "hocket-tuning 1\nmeasured all_reduce:1M@4 ring = 1.25ms\n"
                            "measured broadcast:1M@4 chain/16 = 1ms\n",
                            "file", {})
                            .value();
  REQUIRE(tuning.measured.size() == 2);
  CHECK(tuning.measured[0].algorithm->name == "ring");
  CHECK(tuning.measured[0].pieces == 0);
  CHECK(tuning.measured[1].pieces == 16);
  CHECK(tuning.measured[0].bytes == 1 << 20);
  CHECK(tuning.measured[0].ranks == 4);
  CHECK(tuning.measured[0].seconds == Approx(1.25e-3));
  CHECK(tuning.rules.empty());
  for (const std::string line : {"measured all_reduce:1M ring = 1ms", "measured ring = 1ms",
                                 "measured all_reduce:1M@4 ring = soon",
                                 "measured all_reduce:1M@4 rings = 1ms", "measured"}) {
    INFO(line);
    CHECK_FALSE(parse_tuning("hocket-tuning 1\n" + line, "file", {}).ok());
  }
}

TEST_CASE("a tuning file changes the network's numbers, and has rules") {
  const Tuning tuning = parse_tuning(
                            "# measured on a Sunday\n"
                            "hocket-tuning 1\n\n"
                            "network = infiniband-hdr  # as sold\r\n"
                            "network.latency = 2us\n"
                            "network.nic_bandwidth=100Gbit\n"
                            "all_reduce:0-4K = one_shot, broadcast=chain/16\n"
                            "  ring",
                            "table.txt", base)
                            .value();
  Network expected = find_preset("infiniband-hdr").value();
  expected.latency = 2e-6;
  expected.nic_bandwidth = 12.5e9;
  CHECK(tuning.network == expected);
  REQUIRE(tuning.rules.size() == 5);  // three operations have a ring
  CHECK(tuning.rules[0].text == "all_reduce:0-4K = one_shot");
  CHECK(tuning.rules[1].pieces == 16);
  CHECK(tuning.rules[1].source == "table.txt, line 7");
  CHECK(tuning.rules[4].source == "table.txt, line 8");
}

TEST_CASE("what a tuning file does not say stays as it is") {
  const Tuning tuning = parse_tuning("hocket-tuning 1\nnetwork.latency=1ms", "", base).value();
  Network expected = base;
  expected.latency = 1e-3;
  CHECK(tuning.network == expected);
  CHECK(tuning.rules.empty());
}

TEST_CASE("a tuning file that can't be read names the file, the line and the word") {
  const std::string begin = "hocket-tuning 1\n";
  const std::pair<std::string, std::string> wrongs[] = {
      {"", "table.txt: a tuning file begins with \"hocket-tuning 1\""},
      {"# all comment\n", "begins with \"hocket-tuning 1\""},
      {"ring\nhocket-tuning 1", "table.txt, line 1: a tuning file begins with"},
      {"hocket-tuning 2", "\"hocket-tuning 2\" is of another version"},
      {begin + "network.latenc = 1us",
       "table.txt, line 2: a network has no number \"latenc\"; latency?"},
      {begin + "network.latency = soon",
       "table.txt, line 2: latency is a time such as 10us, not \"soon\""},
      {begin + "netwrk.latency = 1us", "table.txt, line 2: \"netwrk\" is nothing that has"},
      {begin + "network = ethernet-2g", "there is no network \"ethernet-2g\"; ethernet-1g?"},
      {begin + "network.latency=1us\nnetwork=ethernet-1g", "line 3: the network stands before"},
      {begin + "network.background = 1", "table.txt: network: background must be"},
      {begin + "\nall_reduc = ring",
       "line 3: the rule \"all_reduc = ring\": there is no operation"},
      {begin + "all_reduc = ring", "did you mean all_reduce?"},
      {begin + "broadcast = ring", "there is no algorithm for broadcast \"ring\""},
      {begin + "network", "there is no network \"\""},
  };
  for (const auto& [text, said] : wrongs) {
    INFO(text);
    CHECK_THAT(refusal(text), Catch::Contains(said));
  }
}

}  // namespace hocket::choose
