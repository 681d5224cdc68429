#include "base/text.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/catch.hpp"

using namespace std::chrono_literals;
using hocket::Duration;

namespace {

constexpr std::string_view unit_junk[] = {"",   " ",   "K",    "x",   "-1",  "-0",    "+1",  " 1",
                                          "1 ", "1 K", "1e3",  "0x1", "1_0", "1,5",   "nan", "inf",
                                          "--", "1Kx", "1..5", ".",   "-0K", "1K 2K", "NaNK"};

}  // namespace

TEST_CASE("integers are read whole or not at all") {
  constexpr std::pair<std::string_view, std::int64_t> right[] = {
      {"0", 0},
      {"-0", 0},
      {"-12", -12},
      {"007", 7},
      {"9223372036854775807", INT64_MAX},
      {"-9223372036854775808", INT64_MIN},
  };
  for (const auto& [text, value] : right) {
    CAPTURE(text);
    REQUIRE(hocket::parse_integer(text) == value);
  }
  for (const std::string_view text :
       {"", " ", "-", "+1", " 1", "1 ", "1.0", "1e3", "0x10", "1K", "one", "--1",
        "9223372036854775808", "-9223372036854775809", "99999999999999999999999"}) {
    CAPTURE(text);
    REQUIRE_FALSE(hocket::parse_integer(text).has_value());
  }
}

TEST_CASE("booleans are four words each, in any case") {
  for (const std::string_view text : {"1", "true", "TRUE", "True", "yes", "YES", "on", "oN"}) {
    CAPTURE(text);
    REQUIRE(hocket::parse_boolean(text) == true);
  }
  for (const std::string_view text : {"0", "false", "FALSE", "no", "No", "off", "OFF"}) {
    CAPTURE(text);
    REQUIRE(hocket::parse_boolean(text) == false);
  }
  for (const std::string_view text : {"", " ", "2", "01", "t", "y", "yes ", " no", "truefalse"}) {
    CAPTURE(text);
    REQUIRE_FALSE(hocket::parse_boolean(text).has_value());
  }
}

TEST_CASE("sizes take units of 1024") {
  constexpr std::pair<std::string_view, std::uint64_t> right[] = {
      {"0", 0},
      {"4096", 4096},
      {"4096B", 4096},
      {"64K", 65536},
      {"64k", 65536},
      {"64KB", 65536},
      {"64KiB", 65536},
      {"64kib", 65536},
      {"1.5M", 1572864},
      {"2GiB", 2147483648},
      {"0.5T", 549755813888},
      {".5K", 512},
      {"1.0", 1},
      {"0T", 0},
      {"9007199254740993", 9007199254740993},  // 2^53 + 1, which no double holds
      {"9007199254740993B", 9007199254740993},
      {"9007199254740993K", 9223372036854776832u},
      {"16777215T", 18446742974197923840u},
      {"18446744073709551615", UINT64_MAX},
      {"18446744073709551615B", UINT64_MAX},
  };
  for (const auto& [text, value] : right) {
    CAPTURE(text);
    REQUIRE(hocket::parse_size(text) == value);
  }
}

TEST_CASE("what is no size is refused") {
  for (const std::string_view text : unit_junk) {
    CAPTURE(text);
    REQUIRE_FALSE(hocket::parse_size(text).has_value());
  }
  for (const std::string_view text :
       {"1.5", "0.1K", "1P", "1iB", "1Ki", "1KK", "1ms", "-1K", "16777216T", "18446744073709551616",
        "99999999999999999999K"}) {
    CAPTURE(text);
    REQUIRE_FALSE(hocket::parse_size(text).has_value());
  }
  REQUIRE_FALSE(hocket::parse_size(std::string(400, '9')).has_value());
}

TEST_CASE("sizes are written in the shortest exact form") {
  constexpr std::pair<std::uint64_t, std::string_view> rows[] = {
      {0, "0"},
      {1, "1"},
      {1000, "1000"},
      {1023, "1023"},
      {1024, "1K"},
      {1536, "1536"},
      {65536, "64K"},
      {1048576, "1M"},
      {1572864, "1536K"},
      {3221225472, "3G"},
      {1099511627776, "1T"},
      {1125899906842624, "1024T"},
      {UINT64_MAX, "18446744073709551615"},
  };
  for (const auto& [bytes, text] : rows) REQUIRE(hocket::format_size(bytes) == text);
}

TEST_CASE("a size survives writing and reading") {
  std::mt19937_64 random(7);  // the seed is fixed
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t bytes = random() >> (random() % 64) << (random() % 64);
    const std::string text = hocket::format_size(bytes);
    CAPTURE(bytes, text);
    REQUIRE(hocket::parse_size(text) == bytes);
  }
}

TEST_CASE("what is too long is cut between two characters") {
  struct Row {
    std::string_view text;
    std::size_t bytes_max;
    std::string_view shown;
  };
  constexpr Row rows[] = {
      {"", 3, ""},        {"abc", 3, "abc"}, {"abcd", 3, "…"}, {"abcd", 4, "abcd"},
      {"abcde", 4, "a…"}, {"éé", 4, "éé"},   {"ééé", 5, "é…"}, {"aéé", 5, "aéé"},
      {"aééé", 5, "a…"},  {"🎵🎵", 7, "🎵…"},   {"🎵🎵", 6, "…"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text, row.bytes_max);
    REQUIRE(hocket::cut(row.text, row.bytes_max) == row.shown);
  }
}

TEST_CASE("durations take the usual units") {
  constexpr std::pair<std::string_view, Duration> right[] = {
      {"0", 0ns},
      {"5ns", 5ns},
      {"10us", 10us},
      {"250ms", 250ms},
      {"2s", 2s},
      {"2", 2s},
      {"1m", 1min},
      {"1.5m", 90s},
      {"1h", 1h},
      {"0.25", 250ms},
      {".5s", 500ms},
      {"0.1s", 100ms},
      {"2562047h", std::chrono::hours(2562047)},
  };
  for (const auto& [text, value] : right) {
    CAPTURE(text);
    REQUIRE(hocket::parse_duration(text) == value);
  }
  for (const std::string_view text : unit_junk) {
    CAPTURE(text);
    REQUIRE_FALSE(hocket::parse_duration(text).has_value());
  }
  for (const std::string_view text : {"1S", "1d", "1min", "1sec", "-1s", "-0s", "2562048h",
                                      "9223372037", "9223372036854775808ns"}) {
    CAPTURE(text);
    REQUIRE_FALSE(hocket::parse_duration(text).has_value());
  }
}

TEST_CASE("the nearest name is the one with the fewest letters changed") {
  constexpr std::string_view names[] = {"HOCKET_LOG_LEVEL", "HOCKET_SIMD", "HOCKET_SECRET", "up"};
  struct Row {
    std::string_view text;
    std::string_view nearest;  // empty for none
  };
  constexpr Row rows[] = {
      {"HOCKET_LOG_LEVEL", "HOCKET_LOG_LEVEL"},
      {"HOCKET_LOGLEVEL", "HOCKET_LOG_LEVEL"},
      {"HOCKET_LOG_LEVLE", "HOCKET_LOG_LEVEL"},
      {"hocket_simd", "HOCKET_SIMD"},
      {"HOCKET_SIMT", "HOCKET_SIMD"},
      {"HOCKETSIMD", "HOCKET_SIMD"},
      {"HOCKET_SECRETS", "HOCKET_SECRET"},
      {"u", "up"},  // one letter is always allowed
      {"uqq", ""},
      {"zz", ""},
      {"", ""},
      {"HOCKET_ABCD", "HOCKET_SIMD"},  // one letter in three may be wrong
      {"HOCKET_ABCE", ""},
      {"HOCKET_RENDEZVOUS", ""},
      {"PATH", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    REQUIRE(hocket::nearest_name(row.text, names).value_or("") == row.nearest);
  }
  REQUIRE_FALSE(hocket::nearest_name("x", {}).has_value());
}

TEST_CASE("of two names equally near the first is taken") {
  constexpr std::string_view names[] = {"cat", "car"};
  REQUIRE(hocket::nearest_name("cab", names) == "cat");
}

TEST_CASE("durations are written in four digits, in the largest unit that needs few decimals") {
  constexpr std::pair<Duration, std::string_view> rows[] = {
      {0ns, "0s"},
      {-1ns, "0s"},
      {Duration::min(), "0s"},
      {1ns, "1ns"},
      {999ns, "999ns"},
      {1us, "1us"},
      {1500ns, "1.5us"},
      {1001ns, "1.001us"},
      {250ms, "250ms"},
      {1s, "1s"},
      {1500ms, "1.5s"},
      {1001ms, "1.001s"},
      {1'000'100us, "1s"},
      {4'999'999'696ns, "5s"},
      {5'000'049'999ns, "5s"},
      {999'949'999ns, "999.9ms"},
      {999'950'000ns, "1s"},
      {12'345ns, "12.35us"},
      {1'234'567ns, "1.235ms"},
      {29'999'812'345ns, "30s"},
      {59s, "59s"},
      {60s, "1m"},
      {90s, "1.5m"},
      {61s, "61s"},
      {5min, "5m"},
      {1h, "1h"},
      {5400s, "1.5h"},
      {100h, "100h"},
      {Duration::max(), "9223000000s"},
  };
  for (const auto& [duration, text] : rows) {
    CAPTURE(duration.count());
    REQUIRE(hocket::format_duration(duration) == text);
  }
}

TEST_CASE("a duration survives writing and reading, but for what is rounded") {
  std::mt19937_64 random(9);  // the seed is fixed
  for (int i = 0; i < 10'000; ++i) {
    const Duration duration(static_cast<Duration::rep>(random() >> (12 + random() % 50)));
    const std::string text = hocket::format_duration(duration);
    CAPTURE(duration.count(), text);
    const auto read = hocket::parse_duration(text);
    REQUIRE(read.has_value());
    if (duration.count() < 10'000) REQUIRE(*read == duration);
    REQUIRE(std::abs((*read - duration).count()) <= duration.count() / 2'000 + 1);
    REQUIRE(hocket::format_duration(*read) == text);
  }
}

TEST_CASE("quoted text shows every byte and ends somewhere") {
  using namespace std::string_view_literals;
  constexpr std::pair<std::string_view, std::string_view> rows[] = {
      {"", R"("")"},
      {"plain text ~!", R"("plain text ~!")"},
      {"a\"b\\c", R"("a\x22b\x5cc")"},
      {"\0\n\x1b\x7f\xff"sv, R"("\x00\x0a\x1b\x7f\xff")"},
      {"é", R"("\xc3\xa9")"},
  };
  for (const auto& [text, quoted] : rows) REQUIRE(hocket::quote(text) == quoted);
  REQUIRE(hocket::quote("abcd", 4) == R"("abcd")");
  REQUIRE(hocket::quote("abcde", 4) == R"("abcd…")");
  REQUIRE(hocket::quote(std::string(1000, 'x')).size() < 80);
}

TEST_CASE("a list has its mark between parts only") {
  REQUIRE(hocket::joined(std::vector<std::string>{}, ", ").empty());
  REQUIRE(hocket::joined(std::vector<std::string>{"a"}, ", ") == "a");
  REQUIRE(hocket::joined(std::vector<std::string>{"", "b", ""}, ", ") == ", b, ");
  REQUIRE(hocket::joined(std::vector<std::string_view>{"a", "b"}, " or ") == "a or b");
  constexpr const char* names[] = {"a", "b"};
  REQUIRE(hocket::joined(names, ",") == "a,b");
  REQUIRE(hocket::joined(std::vector<std::uint64_t>{0, UINT64_MAX}, ",") ==
          "0,18446744073709551615");
  REQUIRE(hocket::joined(std::vector<int>{-1, 2}, " and ") == "-1 and 2");
}
