// Joins several worlds in one process, by what its environment says or by the URL that is the
// second argument; worlds_test.py starts it. The first argument says how.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "hocket/hocket.hpp"

namespace {

using namespace std::chrono_literals;

std::string url;

hocket::Communicator join(std::string name = {}, std::chrono::nanoseconds timeout = 60s) {
  return hocket::join({.url = url, .timeout = timeout, .name = std::move(name)});
}

/// Fails unless all ranks say the same in this world.
void require_same(hocket::Communicator& world, std::int64_t what) {
  std::vector<std::int64_t> said(static_cast<std::size_t>(world.size()));
  world.all_gather(std::span<const std::int64_t>(&what, 1), std::span(said));
  for (const std::int64_t each : said) {
    if (each != what) throw std::runtime_error("ranks are in different worlds");
  }
}

void one_after_the_other() {
  for (int i = 0; i < 5; ++i) {
    auto world = join();
    require_same(world, i);
  }
}

void at_once() {
  auto first = join();
  auto second = join();
  auto third = join("third");
  require_same(third, 3);
  require_same(first, 1);
  require_same(second, 2);
}

/// Each rank lets go of its worlds in another order; a split needs the store.
void leaving() {
  std::optional<hocket::Communicator> first = join();
  const bool is_server = first->rank() == 0;
  if (is_server) first.reset();
  auto second = join();
  require_same(second, 2);
  auto part = second.split(0);
  require_same(part, 2);
  first.reset();
  second = {};
  auto third = part.dup();
  require_same(third, 3);
  part = {};
  third = {};
  auto last = join();
  require_same(last, 4);
}

void by_names() {
  const auto use = [](const char* name, std::int64_t what, std::exception_ptr& failure) {
    try {
      for (int i = 0; i < 3; ++i) {
        auto world = join(name);
        require_same(world, what + i);
      }
    } catch (...) {
      failure = std::current_exception();
    }
  };
  auto unnamed = join();
  const bool is_odd = unnamed.rank() % 2 != 0;
  std::exception_ptr failures[2];
  std::thread other(use, is_odd ? "data" : "model", is_odd ? 100 : 200, std::ref(failures[0]));
  std::this_thread::sleep_for(50ms);  // so that ranks probably begin in different orders
  use(is_odd ? "model" : "data", is_odd ? 200 : 100, failures[1]);
  other.join();
  for (const std::exception_ptr& each : failures) {
    if (each) std::rethrow_exception(each);
  }
  require_same(unnamed, 0);
}

/// Rank 1 comes too late to the first world, so that it fails; all try again until they meet.
void late() {
  auto first = join("first");
  const bool is_late = first.rank() == 1;
  if (is_late) std::this_thread::sleep_for(2500ms);
  for (int failures = 0; failures < 5; ++failures) {
    try {
      auto world = join({}, failures == 0 && !is_late ? 1s : 20s);
      require_same(world, 1);
      std::printf("failures %d\n", failures);
      return;
    } catch (const hocket::Error& error) {
      std::printf("%s\n", error.what());
    }
  }
  throw std::runtime_error("the ranks did not meet again");
}

/// Rank 0 joins more worlds than the others.
void too_many() {
  auto first = join();
  auto loader = join("loader");
  require_same(loader, 1);
  if (first.rank() != 0) {
    std::int64_t end = 0;
    first.recv(std::span(&end, 1), 0);
    return;
  }
  for (const char* name : {"", "loader"}) {
    try {
      (void)join(name, 1s);
    } catch (const hocket::Timeout& error) {
      std::printf("%s\n", error.what());
    }
  }
  const std::int64_t end = 1;
  for (int rank = 1; rank < first.size(); ++rank) {
    first.send(std::span<const std::int64_t>(&end, 1), rank);
  }
}

/// Rank 1 ends, and the others go on to worlds that it does not join.
void ending() {
  auto first = join();
  require_same(first, 1);
  if (first.rank() == 1) return;
  for (const char* name : {"", "loader"}) {
    try {
      (void)join(name);
    } catch (const hocket::PeerLost& error) {
      std::printf("%s\n", error.what());
      continue;
    }
    throw std::runtime_error("a world without rank 1");
  }
}

/// Worlds with settings of their own, beside one that has the environment's.
void settings() {
  auto first = join();
  const auto join_with = [](std::vector<hocket::Setting> settings) {
    return hocket::join({.url = url, .timeout = 60s, .settings = std::move(settings)});
  };
  const std::pair<hocket::Setting, std::string_view> refused[] = {
      {{"HOCKET_TCP_STREAM", "2"}, "did you mean HOCKET_TCP_STREAMS?"},
      {{"HOCKET_FAILURE_TIMEOUT", "soon"}, "is not a duration"},
      {{"HOCKET_LOG_LEVEL", "debug"}, "holds for the whole process"},
      {{"HOCKET_TCP_STREAMS", "0"}, "HOCKET_TCP_STREAMS=0 is not from 1 to 64"},
  };
  for (const auto& [setting, why] : refused) {
    try {
      (void)join_with({setting});
    } catch (const hocket::InvalidArgument& error) {
      if (std::string_view(error.what()).find(why) != std::string_view::npos) continue;
      throw;
    }
    throw std::runtime_error("a setting that is wrong was taken: " + setting.name);
  }
  auto second = join_with({{"HOCKET_TCP_STREAMS", "3"}, {"HOCKET_ALGORITHM", "all_gather=ring"}});
  std::vector<std::int64_t> large(1 << 18, 1);
  second.all_reduce(std::span(large));
  require_same(second, 2);
  require_same(first, 1);
  if (large[0] != second.size()) throw std::runtime_error("a wrong sum");
}

}  // namespace

int main(int argc, char** argv) {
  constexpr std::pair<std::string_view, void (*)()> all[] = {
      {"sequence", one_after_the_other},
      {"at-once", at_once},
      {"leaving", leaving},
      {"names", by_names},
      {"settings", settings},
      {"late", late},
      {"too-many", too_many},
      {"ending", ending},
  };
  const std::string_view wanted = argc > 1 ? argv[1] : "";
  if (argc > 2) url = argv[2];
  try {
    for (const auto& [name, work] : all) {
      if (name == wanted) work();
    }
    return 0;
  } catch (const std::exception& error) {
    std::printf("%s: %s\n", std::string(wanted).c_str(), error.what());
  }
  return 1;
}
