#include "base/config.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/limits.hpp"
#include "support/catch.hpp"
#include "support/require.hpp"

using namespace std::chrono_literals;
using hocket::Choice;
using hocket::Config;
using hocket::Duration;
using hocket::Setting;
using hocket::Status;
using hocket::StatusCode;
using hocket::ValueKind;
using hocket::Variable;
using hocket::VariableInfo;
using hocket::testing::require;

namespace {

constexpr std::string_view colours[] = {"red", "green", "blue"};
constexpr Variable<std::string> text{{.name = "HOCKET_TEXT", .fallback = "none", .help = ""}};
constexpr Variable<std::string> shared{
    {.name = "HOCKET_SHARED", .help = "", .is_of_process = true}};
constexpr Variable<bool> boolean{{.name = "HOCKET_BOOLEAN", .fallback = "0", .help = ""}};
constexpr Variable<std::int64_t> integer{{.name = "HOCKET_INTEGER", .fallback = "-3", .help = ""}};
constexpr Variable<std::uint64_t> size{{.name = "HOCKET_SIZE", .fallback = "64K", .help = ""}};
constexpr Variable<Duration> duration{{.name = "HOCKET_DURATION", .fallback = "2s", .help = ""}};
constexpr Variable<Choice> choice{
    {.name = "HOCKET_CHOICE", .fallback = "green", .choices = colours, .help = ""}};
constexpr Variable<std::int64_t> pin{
    {.name = "HOCKET_PIN", .fallback = "0", .help = "", .is_secret = true}};
constexpr const VariableInfo* registry[] = {&text,     &boolean, &integer, &size,
                                            &duration, &choice,  &pin,     &shared};

/// A Config of our registry that has read these entries.
Config read(const std::vector<std::string>& entries) {
  std::vector<const char*> environment;
  for (const std::string& entry : entries) environment.push_back(entry.c_str());
  environment.push_back(nullptr);
  return Config(environment.data(), registry);
}

std::string only_complaint(const Config& config) {
  REQUIRE(config.complaints().size() == 1);
  return config.complaints().front();
}

}  // namespace

TEST_CASE("what is not set has its default") {
  for (const Config& config : {read({}), Config(nullptr, registry)}) {
    REQUIRE(config.complaints().empty());
    REQUIRE(config.get(text) == "none");
    REQUIRE(config.get(boolean) == false);
    REQUIRE(config.get(integer) == -3);
    REQUIRE(config.get(size) == 65536);
    REQUIRE(config.get(duration) == 2s);
    REQUIRE(config.get(choice).index == 1);
    for (const VariableInfo* variable : registry) REQUIRE_FALSE(config.text_of(*variable));
  }
}

TEST_CASE("settings replace what is set") {
  const Config config = read({"HOCKET_TEXT=a", "HOCKET_SIZE=1", "HOCKET_DURATION=no"});
  const Setting some[] = {{"HOCKET_TEXT", "b"}, {"HOCKET_SIZE", ""}, {"HOCKET_DURATION", "1s"}};
  const Config changed = require(config.with(some));
  REQUIRE(changed.get(text) == "b");
  REQUIRE(changed.get(size) == 65536);
  REQUIRE(changed.get(duration) == 1s);
  REQUIRE(config.is_invalid(duration));
  REQUIRE_FALSE(changed.is_invalid(duration));
  REQUIRE(config.get(text) == "a");
  const Config copy(changed.settings(), registry);
  REQUIRE(copy.get(text) == "b");
  REQUIRE(copy.get(duration) == 1s);
  REQUIRE(copy.settings().size() == 2);
}

TEST_CASE("settings that are wrong are refused") {
  const auto why = [](Setting setting) {
    const Status status = read({}).with(std::span(&setting, 1)).status();
    REQUIRE(status.code() == StatusCode::invalid_argument);
    return std::string(status.what());
  };
  REQUIRE(why({"HOCKET_TEXTS", "1"}).find("did you mean HOCKET_TEXT?") != std::string::npos);
  REQUIRE(why({"HOCKET_INTEGER", "x"}).find("is not a whole number") != std::string::npos);
  REQUIRE(why({"HOCKET_INTEGER", "x"}).find("using") == std::string::npos);
  REQUIRE(why({"HOCKET_SHARED", "1"}).find("holds for the whole process") != std::string::npos);
}

TEST_CASE("what is set has its value, whatever its kind") {
  const Config config = read({"HOCKET_TEXT=a=b c", "HOCKET_BOOLEAN=yes", "HOCKET_INTEGER=42",
                              "HOCKET_SIZE=1.5M", "HOCKET_DURATION=250ms", "HOCKET_CHOICE=blue"});
  REQUIRE(config.complaints().empty());
  REQUIRE(config.get(text) == "a=b c");
  REQUIRE(config.get(boolean) == true);
  REQUIRE(config.get(integer) == 42);
  REQUIRE(config.get(size) == 1572864);
  REQUIRE(config.get(duration) == 250ms);
  REQUIRE(config.get(choice).index == 2);
  REQUIRE(config.text_of(size) == "1.5M");
}

TEST_CASE("an empty value counts as unset") {
  for (const VariableInfo* variable : registry) {
    const Config config = read({std::string(variable->name) + "="});
    REQUIRE(config.complaints().empty());
    REQUIRE_FALSE(config.text_of(*variable));
  }
  REQUIRE(read({"HOCKET_TEXT="}).get(text) == "none");
}

TEST_CASE("choices may be written in any case") {
  REQUIRE(read({"HOCKET_CHOICE=BLUE"}).get(choice).index == 2);
}

TEST_CASE("a value that is none is complained of and counts as unset") {
  struct Row {
    const VariableInfo& variable;
    std::string_view value;
    std::string_view complaint;
  };
  const Row rows[] = {
      {boolean, "maybe", R"(HOCKET_BOOLEAN="maybe" is not 0 or 1; using "0")"},
      {integer, "1.5", R"(HOCKET_INTEGER="1.5" is not a whole number; using "-3")"},
      {size, "64Q", R"(HOCKET_SIZE="64Q" is not a size such as 4096, 64K or 1M; using "64K")"},
      {duration, "2 s",
       R"(HOCKET_DURATION="2 s" is not a duration such as 250ms, 2s or 1m; using "2s")"},
      {choice, "reds", R"(HOCKET_CHOICE="reds" is not one of red, green, blue; using "green")"},
  };
  for (const Row& row : rows) {
    const Config config = read({std::string(row.variable.name) + "=" + std::string(row.value)});
    REQUIRE(only_complaint(config) == row.complaint);
    REQUIRE_FALSE(config.text_of(row.variable));
  }
  REQUIRE(read({"HOCKET_SIZE=64Q"}).get(size) == 65536);
}

TEST_CASE("a secret is read but not shown") {
  const Config config = read({"HOCKET_PIN=4711", "HOCKET_SIZE=1"});
  REQUIRE(config.get(pin) == 4711);
  REQUIRE(config.shown(pin) == "(set)");
  REQUIRE(config.shown(size) == "1");
  REQUIRE_FALSE(config.shown(text));
  REQUIRE(only_complaint(read({"HOCKET_PIN=hush"})) ==
          R"-(HOCKET_PIN="(set)" is not a whole number; using "0")-");
}

TEST_CASE("a value may have as many bytes as the limit says, and no more") {
  const std::string longest(hocket::limits::variable_bytes_max, 'x');
  REQUIRE(read({"HOCKET_TEXT=" + longest}).get(text) == longest);

  const Config config = read({"HOCKET_TEXT=" + longest + "x"});
  REQUIRE(only_complaint(config) == R"(HOCKET_TEXT is longer than 4096 bytes; using "none")");
  REQUIRE(config.get(text) == "none");
}

TEST_CASE("an unknown variable is complained of, with the nearest name if there is one") {
  constexpr std::pair<const char*, std::string_view> rows[] = {
      {"HOCKET_TEXTS=1", "HOCKET_TEXTS is not a variable of Hocket; did you mean HOCKET_TEXT?"},
      {"HOCKET_DURATON=1",
       "HOCKET_DURATON is not a variable of Hocket; did you mean HOCKET_DURATION?"},
      {"HOCKET_text=1", "HOCKET_text is not a variable of Hocket; did you mean HOCKET_TEXT?"},
      {"HOCKET_UNHEARD_OF=1",
       "HOCKET_UNHEARD_OF is not a variable of Hocket; see `hocket info --env`"},
      {"HOCKET_=1", "HOCKET_ is not a variable of Hocket; see `hocket info --env`"},
  };
  for (const auto& [entry, complaint] : rows) REQUIRE(only_complaint(read({entry})) == complaint);
}

TEST_CASE("what is not ours is left alone") {
  const Config config = read({"PATH=/bin", "hocket_size=1", "XHOCKET_SIZE=1", "HOCKET=1", "=x", "",
                              "HOCKETSIZE=1", "HOCKET_SIZE"});
  REQUIRE(config.complaints().empty());
  REQUIRE_FALSE(config.text_of(size));
}

TEST_CASE("of a variable that is set twice the last value holds") {
  REQUIRE(read({"HOCKET_SIZE=1", "HOCKET_SIZE=2"}).get(size) == 2);
}

TEST_CASE("a Config outlives the environment that it read") {
  std::string entry = "HOCKET_TEXT=value";
  const char* const environment[] = {entry.c_str(), nullptr};
  const Config config(environment, registry);
  std::ranges::fill(entry, '#');
  REQUIRE(config.get(text) == "value");
}

TEST_CASE("our own registry is in order") {
  std::set<std::string_view> names;
  for (const VariableInfo* variable : hocket::variables::all()) {
    CAPTURE(variable->name);
    REQUIRE(variable->name.starts_with("HOCKET_"));
    REQUIRE(names.insert(variable->name).second);
    REQUIRE_FALSE(variable->help.empty());
    REQUIRE((variable->kind == ValueKind::choice) == !variable->choices.empty());

    const std::string entry = std::string(variable->name) + "=" + std::string(variable->fallback);
    const char* const environment[] = {entry.c_str(), nullptr};
    const Config config(environment);
    REQUIRE(config.complaints().empty());
    REQUIRE(config.text_of(*variable).value_or("") == variable->fallback);
  }
}

TEST_CASE("our own variables have the type that their kind says") {
  const Config config(nullptr);
  REQUIRE(hocket::log::level_names[config.get(hocket::variables::log_level).index] == "warning");
  REQUIRE(hocket::variables::simd_levels[config.get(hocket::variables::simd).index] == "best");
}

TEST_CASE("kinds have names") {
  constexpr std::pair<ValueKind, std::string_view> rows[] = {
      {ValueKind::text, "text"}, {ValueKind::boolean, "boolean"},   {ValueKind::integer, "integer"},
      {ValueKind::size, "size"}, {ValueKind::duration, "duration"}, {ValueKind::choice, "choice"},
  };
  for (const auto& [kind, kind_name] : rows) REQUIRE(name(kind) == kind_name);
}
