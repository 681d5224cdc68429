#include "world/number.hpp"

#include <memory>
#include <set>
#include <string>

#include "base/limits.hpp"
#include "store/hash_store.hpp"
#include "store/prefix_store.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"

using hocket::StatusCode;
using hocket::store::HashStore;
using hocket::store::PrefixStore;
using hocket::testing::Child;
using hocket::world::check_name;
using hocket::world::describe;
using hocket::world::epoch_of;
using hocket::world::next_number;
using hocket::world::scope_of;
using hocket::world::WorldId;

namespace {

int next(hocket::store::Store& store, const WorldId& id, int rank = 0) {
  return next_number(store, id, rank).value();
}

}  // namespace

TEST_CASE("each world has keys and connections of its own") {
  std::set<std::string> scopes;
  std::set<std::uint64_t> epochs;
  int count = 0;
  for (const char* name : {"", "a", "b", "1"}) {
    for (int number = 0; number < 3; ++number) {
      for (int attempt = 0; attempt < 3; ++attempt) {
        const WorldId id{.attempt = attempt, .name = name, .number = number};
        scopes.insert(scope_of(id));
        epochs.insert(epoch_of(id));
        ++count;
      }
    }
  }
  REQUIRE(scopes.size() == static_cast<std::size_t>(count));
  REQUIRE(epochs.size() == static_cast<std::size_t>(count));
  REQUIRE(scope_of({.attempt = 7}) == "7");
  REQUIRE(epoch_of({.attempt = 7}) == 7);
}

TEST_CASE("messages name a world that is not the first") {
  REQUIRE(describe({}).empty());
  REQUIRE(describe({.number = 1}) == " of world 2");
  REQUIRE(describe({.name = "a"}) == " of world \"a\"");
  REQUIRE(describe({.name = "a", .number = 2}) == " of world \"a\" number 3");
}

TEST_CASE("names of worlds are simple") {
  for (const char* name : {"", "a", "data.loader_2-B"}) REQUIRE(check_name(name, "world").ok());
  const std::string longest(hocket::limits::name_bytes_max, 'x');
  REQUIRE(check_name(longest, "world").ok());
  for (const std::string& name : {longest + "x", std::string("a/b"), std::string("a b")}) {
    REQUIRE(check_name(name, "world").code() == StatusCode::invalid_argument);
  }
}

TEST_CASE("a rank counts the worlds of each name") {
  HashStore all;
  PrefixStore store(all.clone().value(), "counts");
  for (int number = 0; number < 3; ++number) {
    REQUIRE(next(store, {}) == number);
    REQUIRE(next(store, {.name = "a"}) == number);
    REQUIRE(next(store, {.attempt = 1}) == number);
    REQUIRE(next(store, {}, 1) == number);
  }
}

TEST_CASE("in another store a rank begins again") {
  HashStore first;
  HashStore second;
  REQUIRE(next(first, {}) == 0);
  REQUIRE(next(second, {}) == 0);
  REQUIRE(next(first, {}) == 1);
  REQUIRE(next(second, {}) == 1);
}

TEST_CASE("a store is the same by whatever handle it is reached, and its parts are others") {
  HashStore all;
  for (int number = 0; number < 3; ++number) {
    const auto handle = all.clone().value();
    REQUIRE(next(*handle, {}) == number);
    PrefixStore part(all.clone().value(), "part");
    REQUIRE(next(part, {}) == number);
  }
}

TEST_CASE("a child counts anew") {
  HashStore all;
  REQUIRE(next(all, {}) == 0);
  Child child([&] { return next(all, {}) == 0; });
  REQUIRE(child.ended_well());
}
