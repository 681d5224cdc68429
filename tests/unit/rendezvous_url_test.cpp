#include "world/rendezvous_url.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "support/catch.hpp"

using namespace std::chrono_literals;
using hocket::StatusCode;
using hocket::world::parse_rendezvous_url;
using hocket::world::RendezvousUrl;
using Scheme = RendezvousUrl::Scheme;

namespace {

RendezvousUrl parsed(std::string_view text) {
  const auto url = parse_rendezvous_url(text);
  INFO(url.status().to_string());
  REQUIRE(url.ok());
  return *url;
}

}  // namespace

TEST_CASE("a URL of TCP") {
  const RendezvousUrl url = parsed("tcp://node7:29500?rank=3&size=8&job=j%1&timeout=30s");
  REQUIRE(url.scheme == Scheme::tcp);
  REQUIRE(url.endpoint.to_string() == "node7:29500");
  REQUIRE(url.rank == 3);
  REQUIRE(url.size == 8);
  REQUIRE(url.job == "j%1");
  REQUIRE(url.timeout == 30s);
  REQUIRE_FALSE(url.is_served);
  REQUIRE(parsed("tcp://[fd00::7]:1/").endpoint.host == "fd00::7");
  REQUIRE(parsed("tcp://node7:29500").rank == -1);
  REQUIRE(parsed("tcp://node7:29500?").size == -1);
  REQUIRE(parsed("tcp://node7:29500?world_size=8&rank=0").size == 8);
  REQUIRE(parsed("tcp://node7:29500?served=1").is_served);
}

TEST_CASE("a URL of a file, and of the environment") {
  const RendezvousUrl url = parsed("file:///shared/run 7?rank=0&size=1");
  REQUIRE(url.scheme == Scheme::file);
  REQUIRE(url.path == "/shared/run 7");
  REQUIRE(url.size == 1);
  REQUIRE(parsed("env://").scheme == Scheme::env);
  REQUIRE(parsed("env://?job=x").job == "x");
}

TEST_CASE("a URL that is wrong is refused, and the message says why") {
  constexpr std::pair<std::string_view, std::string_view> rows[] = {
      {"", "no \"://\""},
      {"node7:29500", "no \"://\""},
      {"tcpp://node7:1", "did you mean tcp?"},
      {"http://node7:1", "not known"},
      {"env://x", "env:// has more"},
      {"env://?rank=0&size=1", "from RANK and WORLD_SIZE"},
      {"file://host/path", "absolute path"},
      {"file:///", "absolute path"},
      {"tcp://", "no HOST:PORT"},
      {"tcp://node7", "no HOST:PORT"},
      {"tcp://me@node7:1", "no user"},
      {"tcp://a:1?rnk=0&size=1", "did you mean rank?"},
      {"tcp://a:1?frobnicate=0", "not known"},
      {"tcp://a:1?rank=0", "both rank= and size="},
      {"tcp://a:1?size=1", "both rank= and size="},
      {"tcp://a:1?rank=&size=1", "without a value"},
      {"tcp://a:1?rank", "without a value"},
      {"tcp://a:1?&rank=0", "not known"},
      {"tcp://a:1?rank=0&size=2&rank=1", "rank= twice"},
      {"tcp://a:1?rank=0&size=2&world_size=2", "twice"},
      {"tcp://a:1?rank=2&size=2", "rank 2 in a world of 2"},
      {"tcp://a:1?rank=-1&size=2", "rank=\"-1\""},
      {"tcp://a:1?rank=0&size=0", "size=\"0\""},
      {"tcp://a:1?rank=0&size=1x", "size=\"1x\""},
      {"tcp://a:1?timeout=soon", "timeout=\"soon\""},
      {"tcp://a:1?served=maybe", "served=\"maybe\""},
      {"tcp://a:0?served=1", "no port"},
      {"env://?served=1", "for tcp://"},
  };
  for (const auto& [text, why] : rows) {
    CAPTURE(text);
    const auto status = parse_rendezvous_url(text).status();
    REQUIRE(status.code() == StatusCode::invalid_argument);
    REQUIRE(std::string(status.what()).find(why) != std::string::npos);
    REQUIRE_FALSE(status.hint().empty());
  }
}

TEST_CASE("a secret has no place in a URL, and is not repeated") {
  for (const std::string key : {"secret", "token", "password"}) {
    const auto status = parse_rendezvous_url("tcp://a:1?" + key + "=hush&rank=0").status();
    REQUIRE(status.code() == StatusCode::invalid_argument);
    REQUIRE(status.hint().find("HOCKET_SECRET") != std::string::npos);
    REQUIRE(status.to_string().find("hush") == std::string::npos);
  }
  REQUIRE(parse_rendezvous_url("tcp://a:1?secrt=hush").status().to_string().find("hush") ==
          std::string::npos);
}
