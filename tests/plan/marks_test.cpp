// Marks near and far, held against a set.
#include "plan/marks.hpp"

#include <cstdint>
#include <random>
#include <set>

#include "support/catch.hpp"

using hocket::plan::Marks;

TEST_CASE("the marks before and behind a place are found, however far") {
  std::mt19937_64 random(1);
  for (const std::uint32_t places : {2U, 64U, 65U, 4096U, 5000U, 300'000U}) {
    Marks marks;
    marks.grow(places);
    std::set<std::uint32_t> marked = {0, places - 1};  // so that there is always one
    for (const std::uint32_t each : marked) marks.set(each);
    for (int i = 0; i < 2000; ++i) {
      const auto place = static_cast<std::uint32_t>(random() % places);
      INFO(places << " places, at " << place);
      REQUIRE(marks.has(place) == marked.contains(place));
      if (place > 0) REQUIRE(marks.last_before(place) == *std::prev(marked.lower_bound(place)));
      if (place + 1 < places) REQUIRE(marks.first_after(place) == *marked.upper_bound(place));
      if (place == 0 || place + 1 == places) continue;
      if (marked.erase(place) == 1) {
        marks.unset(place);
      } else if (random() % 2 == 0) {
        marked.insert(place);
        marks.set(place);
      }
    }
  }
}

TEST_CASE("marks that are cleared are gone, and those there are stay when places are added") {
  Marks marks;
  marks.grow(100);
  marks.set(7);
  marks.set(99);
  marks.grow(10'000);
  marks.set(9'999);
  CHECK(marks.first_after(7) == 99);
  CHECK(marks.first_after(99) == 9'999);
  marks.clear();
  marks.grow(10'000);
  CHECK_FALSE(marks.has(7));
  marks.set(0);
  CHECK(marks.last_before(9'999) == 0);
}
