#include "base/bytes.hpp"

#include <array>
#include <cstdint>

#include "support/catch.hpp"

using hocket::load_little_endian;
using hocket::reverse_bytes;
using hocket::store_little_endian;

static_assert(reverse_bytes(std::uint8_t{0x12}) == 0x12);
static_assert(reverse_bytes(std::uint16_t{0x1234}) == 0x3412);
static_assert(reverse_bytes(std::uint32_t{0x12345678}) == 0x78563412);
static_assert(reverse_bytes(std::uint64_t{0x0123456789abcdef}) == 0xefcdab8967452301);
static_assert(hocket::little_endian(hocket::little_endian(0x12345678u)) == 0x12345678u);

TEMPLATE_TEST_CASE("integers are stored with their lowest byte first", "", std::uint8_t,
                   std::uint16_t, std::uint32_t, std::uint64_t) {
  const auto value = static_cast<TestType>(0x0123456789abcdef);
  constexpr std::byte untouched{0xee};
  for (std::size_t offset = 0; offset < 9; ++offset) {  // 1 to 8: at every alignment
    std::array<std::byte, 24> buffer;
    buffer.fill(untouched);
    store_little_endian(buffer.data() + offset, value);
    for (std::size_t i = 0; i < buffer.size(); ++i) {
      const bool is_inside = i >= offset && i < offset + sizeof(TestType);
      const auto expected = is_inside
                                ? static_cast<std::byte>(std::uint64_t{value} >> (8 * (i - offset)))
                                : untouched;
      REQUIRE(buffer[i] == expected);
    }
    REQUIRE(load_little_endian<TestType>(buffer.data() + offset) == value);
  }
}

TEST_CASE("integers are read with their lowest byte first") {
  constexpr std::array bytes = {std::byte{0x01}, std::byte{0x02}, std::byte{0x80}, std::byte{0xff}};
  REQUIRE(load_little_endian<std::uint8_t>(bytes.data()) == 0x01);
  REQUIRE(load_little_endian<std::uint16_t>(bytes.data() + 1) == 0x8002);
  REQUIRE(load_little_endian<std::uint32_t>(bytes.data()) == 0xff800201);
}
