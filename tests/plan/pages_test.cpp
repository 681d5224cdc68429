// Memory of proofs: from the heap or from the system, and given out piece by piece.
#include "proof/pages.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "support/catch.hpp"

using namespace hocket::proof;

TEST_CASE("pages are zero, small or large, and there as long as their owner") {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1000}, std::size_t{9} << 20}) {
    Pages pages(bytes, bytes / 2);
    REQUIRE(pages.size() == bytes);
    const auto* const begin = pages.data();
    CHECK(std::all_of(begin, begin + bytes, [](std::byte each) { return each == std::byte{0}; }));
    std::fill_n(pages.data(), bytes, std::byte{7});
    Pages other = std::move(pages);
    pages = Pages(100, 100);
    CHECK(other.data() == begin);
    CHECK((bytes == 0 || other.data()[bytes - 1] == std::byte{7}));
  }
}

TEST_CASE("what nobody touches may be more than the machine has") {
  const Pages pages(std::size_t{1} << 37, 0);
  pages.data()[std::size_t{1} << 36] = std::byte{1};
  CHECK(pages.size() == std::size_t{1} << 37);
}

TEST_CASE("pieces of an arena don't overlap, also after all were taken back") {
  Arena arena;
  for (int round = 0; round < 3; ++round) {
    std::vector<std::pair<std::uint64_t*, std::size_t>> pieces;
    for (const std::size_t count : {1U, 9'000U, 3U, 100'000U, 0U, 700'000U, 5U}) {
      auto* const piece = arena.take<std::uint64_t>(count);
      std::fill_n(piece, count, pieces.size());
      pieces.emplace_back(piece, count);
    }
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const auto [piece, count] = pieces[i];
      CHECK(std::all_of(piece, piece + count, [i](std::uint64_t each) { return each == i; }));
    }
    arena.clear();
  }
}
