#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "store/hash_store.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"
#include "world/entry.hpp"
#include "world/rendezvous.hpp"

using namespace std::chrono_literals;
using hocket::Config;
using hocket::Environment;
using hocket::Result;
using hocket::Status;
using hocket::StatusCode;
using hocket::store::Server;
using hocket::testing::TemporaryFolder;
using hocket::world::card_key;
using hocket::world::rendezvous;
using hocket::world::RendezvousOptions;
using hocket::world::why_no_card;
using hocket::world::World;

namespace {

/// A rendezvous in an environment of these variables alone.
Result<World> meet(const std::vector<std::string>& variables, RendezvousOptions options = {}) {
  std::vector<const char*> entries;
  for (const std::string& each : variables) entries.push_back(each.c_str());
  entries.push_back(nullptr);
  if (!options.timeout) options.timeout = 30s;
  return rendezvous(std::move(options), Environment(entries.data()), Config(entries.data()));
}

/// Each rank in a thread; `variables_of` gives its environment. Checked by the caller's thread.
template <class VariablesOf>
std::vector<Result<World>> meet_all(int size, VariablesOf variables_of) {
  std::vector<Result<World>> worlds;
  for (int rank = 0; rank < size; ++rank) {
    worlds.emplace_back(Status(StatusCode::internal, "not run"));
  }
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&world = worlds[static_cast<std::size_t>(rank)],
                          variables = variables_of(rank)] { world = meet(variables); });
  }
  for (std::thread& each : threads) each.join();
  return worlds;
}

std::vector<std::string> open_mpi(int rank, int size, const TemporaryFolder& folder) {
  return {fmt::format("OMPI_COMM_WORLD_RANK={}", rank),
          fmt::format("OMPI_COMM_WORLD_SIZE={}", size),
          fmt::format("OMPI_COMM_WORLD_LOCAL_RANK={}", rank),
          fmt::format("OMPI_COMM_WORLD_LOCAL_SIZE={}", size),
          "PMIX_NAMESPACE=a/b",
          "XDG_RUNTIME_DIR=" + folder.path()};
}

void require_ok(const std::vector<Result<World>>& worlds) {
  for (const auto& world : worlds) {
    INFO(world.status().to_string());
    REQUIRE(world.ok());
  }
}

}  // namespace

TEST_CASE("a world of one needs nobody and no network") {
  const auto world = meet({"RANK=0", "WORLD_SIZE=1"});
  REQUIRE(world.ok());
  REQUIRE(world->server != nullptr);
  REQUIRE(world->server->endpoint().port != 0);
  REQUIRE(world->local_size == 1);
  REQUIRE(world->launcher == "torchrun or env://");
  REQUIRE(world->store->set("key", "value").ok());
}

TEST_CASE("the ranks of a host meet without a master, and share a secret that nobody gave them") {
  const TemporaryFolder folder;
  auto worlds = meet_all(4, [&](int rank) { return open_mpi(rank, 4, folder); });
  require_ok(worlds);
  REQUIRE(worlds[0]->server != nullptr);
  REQUIRE(worlds[1]->server == nullptr);
  REQUIRE(worlds[0]->credentials.secret.size() == 64);
  REQUIRE(worlds[3]->credentials.secret == worlds[0]->credentials.secret);
  REQUIRE(worlds[3]->job == "a/b");
  REQUIRE(worlds[3]->address == "127.0.0.1");
  REQUIRE(worlds[0]->store->set("key", "value").ok());
  REQUIRE(worlds[3]->store->get("key").value() == "value");
}

TEST_CASE(
    "ranks that meet in a file share a secret that nobody gave them, if nobody else reads it") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/store";
  const auto in_file = [&](int rank) {
    return std::vector{fmt::format("HOCKET_RENDEZVOUS=file://{}?size=3&rank={}", path, rank)};
  };
  {
    const auto worlds = meet_all(3, in_file);
    require_ok(worlds);
    REQUIRE(worlds[0]->credentials.secret.size() == 64);
    for (const auto& world : worlds) {
      REQUIRE(world->credentials.secret == worlds[0]->credentials.secret);
    }
  }
  REQUIRE(chmod(path.c_str(), 0644) == 0);
  const auto worlds = meet_all(3, in_file);
  require_ok(worlds);
  REQUIRE(worlds[0]->credentials.secret.empty());
}

TEST_CASE("the store of a world shows only what its users put there") {
  const auto world = meet({"RANK=0", "WORLD_SIZE=1", "HOCKET_ATTEMPT=3"});
  REQUIRE(world.ok());
  REQUIRE(world->id.attempt == 3);
  REQUIRE(world->store->keys().value().empty());
}

TEST_CASE("a launcher's store is joined by all ranks, attempt after attempt") {
  const auto server = Server::start({.credentials = {.job = "j", .secret = "hush"}});
  REQUIRE(server.ok());
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto worlds = meet_all(3, [&](int rank) {
      return std::vector<std::string>{"HOCKET_STORE=" + (*server)->endpoint().to_string(),
                                      "HOCKET_JOB=j",
                                      "HOCKET_SECRET=hush",
                                      "WORLD_SIZE=3",
                                      fmt::format("RANK={}", rank),
                                      fmt::format("HOCKET_ATTEMPT={}", attempt)};
    });
    require_ok(worlds);
    REQUIRE(worlds[0]->server == nullptr);
    REQUIRE(worlds[2]->local_rank == 2);
    REQUIRE(worlds[2]->store->check({"key"}).value() == false);
    REQUIRE(worlds[2]->store->set("key", "value").ok());
  }
}

TEST_CASE("a rank that ends before it has left its card is told to who waits for that") {
  const TemporaryFolder folder;
  auto worlds = meet_all(3, [&](int rank) { return open_mpi(rank, 3, folder); });
  require_ok(worlds);
  REQUIRE(worlds[2]->store->set(card_key(2), "a card").ok());
  worlds[1] = Status(StatusCode::aborted, "gone");
  worlds[2] = Status(StatusCode::aborted, "gone");
  const auto card = worlds[0]->store->get(card_key(1), 10s);
  REQUIRE(card.status().to_string() == "ok");
  const Status why = why_no_card(*card);
  REQUIRE(why.code() == StatusCode::peer_lost);
  REQUIRE(why.peer() == 1);
  REQUIRE(worlds[0]->store->get(card_key(2), 0s).value() == "a card");
}

TEST_CASE("rank 0 lets the others hear what is wrong before its store goes") {
  for (int round = 0; round < 5; ++round) {
    const TemporaryFolder folder;
    const auto worlds = meet_all(4, [&](int rank) {
      auto variables = open_mpi(rank, 4, folder);
      if (rank == 0) variables.emplace_back("HOCKET_INTERFACE=wlan9");
      return variables;
    });
    for (const auto& world : worlds) {
      CAPTURE(world.status().to_string());
      REQUIRE(world.status().code() == StatusCode::not_found);
      REQUIRE(world.status().what().find("rank 0 (pid ") == 0);
      REQUIRE(world.status().operation() == "rendezvous");
    }
  }
}

TEST_CASE("without a master the ranks of several hosts are told what to set") {
  const TemporaryFolder folder;
  auto variables = open_mpi(1, 4, folder);
  variables[3] = "OMPI_COMM_WORLD_LOCAL_SIZE=2";
  const Status status = meet(variables).status();
  REQUIRE(status.code() == StatusCode::invalid_argument);
  REQUIRE(status.hint().find("MASTER_ADDR") != std::string::npos);
}

TEST_CASE("who waits on its host for a rank 0 that does not come says so in time") {
  const TemporaryFolder folder;
  const auto start = hocket::monotonic_clock().now();
  const Status status = meet(open_mpi(1, 2, folder), {.timeout = 300ms}).status();
  REQUIRE(status.code() == StatusCode::timeout);
  REQUIRE(status.what().find("rank 0 is missing") == 0);
  REQUIRE(hocket::monotonic_clock().now() - start < 5s);
}

TEST_CASE("the caller's job and secret hold above the environment's") {
  const auto world = meet({"RANK=0", "WORLD_SIZE=1", "HOCKET_JOB=a", "HOCKET_SECRET=b"},
                          {.credentials = {.job = "c", .secret = "d"}});
  REQUIRE(world.ok());
  REQUIRE(world->job == "c");
  REQUIRE(world->credentials.secret == "d");
}

TEST_CASE("over a program's store, hosts may count the starts of their ranks differently") {
  hocket::store::HashStore store;
  std::vector<Result<World>> worlds;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    worlds.emplace_back(Status(StatusCode::internal, "not run"));
  }
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&world = worlds[static_cast<std::size_t>(rank)], rank,
                          own = store.clone().value()]() mutable {
      world = meet(
          {fmt::format("RANK={}", rank), "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=1",
           "TORCHELASTIC_RUN_ID=job", fmt::format("TORCHELASTIC_RESTART_COUNT={}", rank)},
          {.store = std::move(own)});
    });
  }
  for (std::thread& each : threads) each.join();
  require_ok(worlds);
  REQUIRE(worlds[0]->credentials.secret == worlds[1]->credentials.secret);
}
