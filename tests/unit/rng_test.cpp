#include "base/rng.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "support/catch.hpp"

using hocket::random_bytes;
using hocket::random_hex;
using hocket::SeededRandom;

TEST_CASE("random bytes fill what they are given and nothing beside it") {
  constexpr std::size_t margin = 8;
  for (const unsigned count :
       {0u, 1u, 31u, 32u, 257u, 100'000u}) {  // one call gives 256 for certain
    std::vector<std::byte> buffer(count + 2 * margin);
    random_bytes(std::span(buffer).subspan(margin, count));
    const auto is_zero = [](std::byte each) { return each == std::byte{0}; };
    REQUIRE(std::all_of(buffer.begin(), buffer.begin() + margin, is_zero));
    REQUIRE(std::all_of(buffer.end() - margin, buffer.end(), is_zero));
    if (count < 32) continue;  // in fewer, 8 zeros at the end come up by chance
    REQUIRE_FALSE(std::all_of(buffer.end() - 2 * margin, buffer.end() - margin, is_zero));
  }
}

TEST_CASE("half of the random bits are ones") {
  std::vector<std::byte> buffer(1 << 20);
  random_bytes(buffer);
  long ones = 0;
  for (const std::byte each : buffer) ones += std::popcount(std::to_integer<unsigned char>(each));
  const long half = static_cast<long>(buffer.size()) * 4;
  REQUIRE(std::abs(ones - half) < 20'000);  // 14 standard deviations
}

TEST_CASE("random bytes come once") {
  std::set<std::array<std::byte, 16>> seen;
  for (int i = 0; i < 1000; ++i) {
    std::array<std::byte, 16> bytes;
    random_bytes(bytes);
    REQUIRE(seen.insert(bytes).second);
  }
}

TEST_CASE("random hex has two digits for each byte") {
  REQUIRE(random_hex(0).empty());
  const std::string text = random_hex(32);
  REQUIRE(text.size() == 64);
  REQUIRE(text.find_first_not_of("0123456789abcdef") == std::string::npos);
  REQUIRE(random_hex(32) != text);
}

TEST_CASE("a seed decides all numbers, on every machine") {
  SeededRandom random(1234567);  // as the authors of splitmix64 print them
  CHECK(random.next() == 6457827717110365317u);
  CHECK(random.next() == 3203168211198807973u);
  CHECK(random.next() == 9817491932198370423u);
}

TEST_CASE("seeded numbers lie where they shall") {
  SeededRandom random(1);
  std::set<std::uint64_t> below;
  std::set<std::uint64_t> between;
  int often = 0;
  for (int i = 0; i < 1000; ++i) {
    below.insert(random.below(3));
    between.insert(random.between(7, 9));
    often += random.chance(0.25) ? 1 : 0;
    REQUIRE_FALSE(random.chance(0));
    REQUIRE(random.chance(1));
  }
  CHECK(below == std::set<std::uint64_t>{0, 1, 2});
  CHECK(between == std::set<std::uint64_t>{7, 8, 9});
  CHECK(std::abs(often - 250) < 70);  // 5 standard deviations
  CHECK(random.between(0, UINT64_MAX) != random.between(0, UINT64_MAX));
}
