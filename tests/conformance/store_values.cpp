// Values by key: what each operation gives, and what it refuses.
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.hpp"
#include "conformance/store_conformance.hpp"

namespace hocket::testing {

using namespace std::chrono_literals;
using namespace std::string_literals;
using hocket::Swap;
using store::Store;
using Strings = std::vector<std::string>;

namespace {

std::string every_byte() {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  return bytes;
}

}  // namespace

STORE_TEST("what was set is there, and the last value holds") {
  Store& store = *subject.store;
  require(store.ping());
  require(store.set("k", "first"));
  REQUIRE(require(store.get("k")) == "first");
  require(store.set("k", "second"));
  REQUIRE(require(store.get("k")) == "second");
}

STORE_TEST("keys and values are any bytes, none included") {
  Store& store = *subject.store;
  const Strings texts = {"", "\0"s, "a\0b"s, "a", "/", " ", "\n", "\xff", every_byte()};
  for (const std::string& key : texts) {
    for (const std::string& value : texts) {
      require(store.set(key, value));
      REQUIRE(require(store.get(key)) == value);
    }
    require(store.set(key, key + "'s"));
  }
  for (const std::string& key : texts) REQUIRE(require(store.get(key)) == key + "'s");
  REQUIRE(require(store.num_keys()) == static_cast<std::int64_t>(texts.size()));
}

STORE_TEST("keys are counted and listed in order, those of others not") {
  Store& store = *subject.store;
  REQUIRE(require(store.num_keys()) == 0);
  REQUIRE(require(store.keys()).empty());
  for (const char* key : {"b", "a", "ab", "\xff", "part", "", "aa"}) require(store.set(key, "v"));
  REQUIRE(require(store.num_keys()) == 7);
  REQUIRE(require(store.keys()) == Strings{"", "a", "aa", "ab", "b", "part", "\xff"});
  REQUIRE(require(store.keys("a")) == Strings{"a", "aa", "ab"});
  REQUIRE(require(store.keys("ab")) == Strings{"ab"});
  REQUIRE(require(store.keys("abc")).empty());
  REQUIRE(require(store.keys("\xff")) == Strings{"\xff"});
}

STORE_TEST("queues, barriers and calls that wait make no keys") {
  Store& store = *subject.store;
  require(store.queue_push("q", "element"));
  require(store.barrier("b", 1));
  REQUIRE_FALSE(store.get("k", 0ns).ok());
  REQUIRE(require(store.num_keys()) == 0);
  REQUIRE_FALSE(require(store.check({"b"})));
}

STORE_TEST("who checks or waits sees a queue that is not empty, who gets does not") {
  Store& store = *subject.store;
  REQUIRE_FALSE(require(store.check({"q"})));
  require(store.queue_push("q", "element"));
  REQUIRE(require(store.check({"q"})));
  require(store.wait({"q"}, 0ns));
  REQUIRE_FALSE(store.get("q", 0ns).ok());
  REQUIRE(require(store.queue_pop("q")) == "element");
  REQUIRE_FALSE(require(store.check({"q"})));
  REQUIRE_FALSE(store.wait({"q"}, 0ns).ok());
}

STORE_TEST("a number is added to, from 0 on") {
  Store& store = *subject.store;
  REQUIRE(require(store.add("n", 5)) == 5);
  REQUIRE(require(store.add("n", -7)) == -2);
  REQUIRE(require(store.add("n", 0)) == -2);
  REQUIRE(require(store.get("n")) == "-2");
  require(store.set("n", "40"));
  REQUIRE(require(store.add("n", 2)) == 42);
  REQUIRE(require(store.add("zero", 0)) == 0);
  REQUIRE(require(store.get("zero")) == "0");
}

STORE_TEST("numbers reach as far as 64 bits, and no further") {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  constexpr auto least = std::numeric_limits<std::int64_t>::min();
  Store& store = *subject.store;
  REQUIRE(require(store.add("most", most)) == most);
  REQUIRE(require(store.add("least", least)) == least);
  require_failure(store, store.add("most", 1).status(), StatusCode::invalid_argument,
                  {"add", "most"});
  require_failure(store, store.add("least", -1).status(), StatusCode::invalid_argument,
                  {"add", "least"});
  REQUIRE(require(store.get("most")) == std::to_string(most));
  REQUIRE(require(store.get("least")) == std::to_string(least));
  REQUIRE(require(store.add("most", least)) == -1);
}

STORE_TEST("what is no number is not added to") {
  Store& store = *subject.store;
  for (const char* text : {"", " 1", "1 ", "one", "1.5", "0x1", "9223372036854775808"}) {
    require(store.set("k", text));
    require_failure(store, store.add("k", 1).status(), StatusCode::invalid_argument,
                    {"add", "\"k\"", "no number"});
    REQUIRE(require(store.get("k")) == text);
  }
}

STORE_TEST("appending adds at the end, to nothing at first") {
  Store& store = *subject.store;
  require(store.append("k", ""));
  REQUIRE(require(store.get("k")).empty());
  require(store.append("k", "ab"));
  require(store.append("k", "\0c"s));
  REQUIRE(require(store.get("k")) == "ab\0c"s);
  require(store.append("other", "x"));
  REQUIRE(require(store.get("other")) == "x");
}

STORE_TEST("a value that was given does not change with the key") {
  Store& store = *subject.store;
  require(store.set("k", "old"));
  const Strings before = require(store.multi_get({"k", "k"}));
  require(store.append("k", "er"));
  REQUIRE(before == Strings{"old", "old"});
  REQUIRE(require(store.get("k")) == "older");
}

STORE_TEST("check tells whether all keys are there") {
  Store& store = *subject.store;
  REQUIRE(require(store.check({})));
  REQUIRE_FALSE(require(store.check({"a"})));
  require(store.set("a", ""));
  REQUIRE(require(store.check({"a"})));
  REQUIRE_FALSE(require(store.check({"a", "b"})));
  REQUIRE_FALSE(require(store.check({"b", "a"})));
  require(store.set("b", ""));
  REQUIRE(require(store.check({"b", "a", "b"})));
}

STORE_TEST("compare_set sets what holds the expected value") {
  Store& store = *subject.store;
  require(store.set("k", "old"));
  const Swap wrong = require(store.compare_set("k", "other", "new"));
  REQUIRE_FALSE(wrong.is_set);
  REQUIRE(wrong.value == "old");
  REQUIRE(require(store.get("k")) == "old");

  const Swap right = require(store.compare_set("k", "old", "new"));
  REQUIRE(right.is_set);
  REQUIRE(right.value == "new");
  REQUIRE(require(store.get("k")) == "new");

  const Swap same = require(store.compare_set("k", "new", "new"));
  REQUIRE(same.is_set);
  REQUIRE_FALSE(require(store.compare_set("k", "", "newer")).is_set);
}

STORE_TEST("compare_set takes an absent key for one that holds nothing") {
  Store& store = *subject.store;
  const Swap wrong = require(store.compare_set("k", "something", "new"));
  REQUIRE_FALSE(wrong.is_set);
  REQUIRE_FALSE(wrong.value.has_value());
  REQUIRE_FALSE(require(store.check({"k"})));

  const Swap right = require(store.compare_set("k", "", "new"));
  REQUIRE(right.is_set);
  REQUIRE(right.value == "new");
  REQUIRE(require(store.get("k")) == "new");

  require(store.set("empty", ""));
  REQUIRE(require(store.compare_set("empty", "", "\0"s)).value == "\0"s);
}

STORE_TEST("a key that is deleted is gone") {
  Store& store = *subject.store;
  REQUIRE_FALSE(require(store.delete_key("k")));
  require(store.set("k", "v"));
  REQUIRE(require(store.delete_key("k")));
  REQUIRE_FALSE(require(store.delete_key("k")));
  REQUIRE_FALSE(require(store.check({"k"})));
  REQUIRE(require(store.num_keys()) == 0);
  REQUIRE(require(store.add("k", 1)) == 1);
}

STORE_TEST("several keys are set and got in their order") {
  Store& store = *subject.store;
  require(store.multi_set({}, {}));
  REQUIRE(require(store.multi_get({})).empty());
  require(store.multi_set({"b", "a", "c"}, {"2", "1", ""}));
  REQUIRE(require(store.multi_get({"a", "b", "c", "a"})) == Strings{"1", "2", "", "1"});
  require(store.multi_set({"a", "a"}, {"first", "last"}));
  REQUIRE(require(store.get("a")) == "last");
  require_failure(store, store.multi_set({"a", "b"}, {"1"}), StatusCode::invalid_argument,
                  {"set", "2 keys and 1 values"});
  REQUIRE(require(store.get("a")) == "last");
}

STORE_TEST("many keys go in one request") {
  Store& store = *subject.store;
  Strings keys;
  for (int i = 0; i < 10'000; ++i) keys.push_back("key " + std::to_string(i));
  require(store.multi_set(keys, keys));
  REQUIRE(require(store.multi_get(keys)) == keys);
  REQUIRE(require(store.num_keys()) == 10'000);
  REQUIRE(require(store.keys("key 999")).size() == 11);
}

STORE_TEST("a key of the longest length is taken, a longer one refused") {
  // What a prefix adds counts; no prefix here is longer than this.
  constexpr std::size_t room_for_prefix = 64;
  Store& store = *subject.store;
  const std::string longest(limits::store_key_bytes_max - room_for_prefix, 'k');
  require(store.set(longest, "v"));
  REQUIRE(require(store.keys()) == Strings{longest});

  const std::string longer(limits::store_key_bytes_max + 1, 'k');
  for (const Status& status :
       {store.set(longer, "v"), store.get(longer, 0ns).status(), store.add(longer, 1).status(),
        store.append(longer, "v"), store.check({longer}).status(), store.wait({longer}, 0ns),
        store.queue_push(longer, "v"), store.barrier(longer, 1), store.keys(longer).status(),
        store.multi_set({"k", longer}, {"", ""}), store.delete_key(longer).status()}) {
    require_failure(store, status, StatusCode::limit_exceeded, {"a key of 8193"});
  }
  REQUIRE(require(store.num_keys()) == 1);
}

STORE_TEST("more keys than the limit are refused") {
  Store& store = *subject.store;
  const Strings keys(limits::store_keys_per_request_max + 1, "k");
  require_failure(store, store.wait(keys, 0ns), StatusCode::limit_exceeded, {"131073 keys"});
  require_failure(store, store.check(keys).status(), StatusCode::limit_exceeded, {"131073 keys"});
  require(store.ping());
}

STORE_TEST("values are as large as the limit, and no larger") {
  constexpr std::size_t most = limits::store_message_bytes_max;
  Store& store = *subject.store;
  require_failure(store, store.set("k", std::string(most, 'v')), StatusCode::limit_exceeded,
                  {"a request"});
  REQUIRE_FALSE(require(store.check({"k"})));

  const std::string half(most / 2 + 1, 'h');
  require(store.set("k", half));
  require_failure(store, store.append("k", half), StatusCode::limit_exceeded, {"grow"});
  require_failure(store, store.multi_get({"k", "k"}).status(), StatusCode::limit_exceeded,
                  {"together"});
  REQUIRE(require(store.get("k")) == half);
  REQUIRE(require(store.delete_key("k")));
}

STORE_TEST("a reply shares its values with nobody") {
  Store& store = *subject.store;
  require(store.multi_set({"a", "b"}, {"1", "2"}));
  require(store.queue_push("q", "e"));
  const auto ask = [&](store::Kind kind, Strings keys, Strings values = {}) {
    return store.perform(
        {.kind = kind, .keys = std::move(keys), .values = std::move(values), .timeout = soon});
  };
  Background<store::Reply> waiting([&] { return ask(store::Kind::get, {"a", "late"}); });
  let_others_wait();
  require(store.set("late", "3"));
  for (const store::Reply& reply :
       {waiting.finish(), ask(store::Kind::get, {"a", "b"}), ask(store::Kind::keys, {""}),
        ask(store::Kind::queue_pop, {"q"}), ask(store::Kind::compare_set, {"a"}, {"1", "4"}),
        ask(store::Kind::compare_set, {"b"}, {"1", "4"})}) {
    require(reply.status);
    for (const store::Value& value : reply.values) REQUIRE(value.use_count() == 1);
  }
}

STORE_TEST("a clone is another handle of the same store") {
  Store& store = *subject.store;
  store.set_timeout(7s);
  const auto copy = clone(store);
  REQUIRE(copy->timeout() == 7s);
  copy->set_timeout(3s);
  REQUIRE(store.timeout() == 7s);
  REQUIRE(copy->describe() == store.describe());

  require(store.set("k", "v"));
  REQUIRE(require(copy->get("k")) == "v");
  require(copy->queue_push("q", "e"));
  REQUIRE(require(store.queue_pop("q")) == "e");
  subject.store.reset();
  REQUIRE(require(copy->get("k")) == "v");
}

}  // namespace hocket::testing
