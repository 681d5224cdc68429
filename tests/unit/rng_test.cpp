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
