// Windows of collectives on device memory: each element goes to a slot once, and comes back once.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "hocket/collective.hpp"

#include "device/windows.hpp"
#include "support/catch.hpp"

namespace hocket::device {
namespace {

constexpr std::size_t slot_bytes = 256;

/// How often the windows touch each element of the user's memory.
struct Touched {
  std::vector<int> in;
  std::vector<int> out;
};

struct Shape {
  std::size_t in = 0;  // elements
  std::size_t out = 0;
};

/// Of the blocks of one window in one direction, which must lie apart in the slot.
void count(const std::vector<Block>& blocks, std::byte* memory, std::vector<int>& touched) {
  std::array<bool, slot_bytes> taken = {};
  for (const Block& each : blocks) {
    const std::size_t end = each.slot_offset + each.row_bytes * each.rows;
    REQUIRE(end <= slot_bytes);
    bool is_free = true;
    for (std::size_t i = each.slot_offset; i < end; ++i) {
      is_free = !std::exchange(taken.at(i), true) && is_free;
    }
    REQUIRE(is_free);
    for (std::size_t row = 0; row < each.rows; ++row) {
      const auto first = static_cast<std::size_t>(each.user - memory) + row * each.user_pitch;
      REQUIRE(first % 4 == 0);
      for (std::size_t i = 0; i < each.row_bytes / 4; ++i) ++touched.at(first / 4 + i);
    }
  }
}

Touched touch(Collective whole, const Position& position, const Shape& shape, SlotPlace place) {
  std::vector<std::byte> in(shape.in * 4 + 4);
  std::vector<std::byte> out(shape.out * 4 + 4);
  whole.in = shape.in == 0 ? nullptr : in.data();
  whole.out = shape.out == 0 ? nullptr : out.data();
  Touched touched = {std::vector<int>(shape.in), std::vector<int>(shape.out)};
  const std::size_t elements = window_elements(whole, position, slot_bytes);
  Window window;
  for (std::size_t begin = 0; begin < largest_part(whole); begin += elements) {
    write_window(whole, position, begin, elements, {slot_bytes, place}, window);
    count(window.down, in.data(), touched.in);
    count(window.up, out.data(), touched.out);
  }
  return touched;
}

bool is_once(const std::vector<int>& touched) {
  return std::ranges::all_of(touched, [](int times) { return times == 1; });
}

void check(const Collective& whole, const Position& position, const Shape& shape) {
  for (const SlotPlace place : {SlotPlace::host, SlotPlace::device}) {
    const Touched touched = touch(whole, position, shape, place);
    CHECK(is_once(touched.in));
    CHECK(is_once(touched.out));
  }
}

Collective of(CollectiveKind kind, std::size_t count) {
  return {.kind = kind, .type = DataType::f32, .count = count, .root = 1};
}

TEST_CASE("windows of vectors hold each element once", "[device]") {
  for (const std::size_t count : {0U, 1U, 63U, 64U, 65U, 1000U}) {
    for (const std::uint32_t rank : {0U, 1U, 2U}) {
      const bool is_root = rank == 1;
      const Position position = {.rank = rank, .size = 3};
      check(of(CollectiveKind::all_reduce, count), position, {count, count});
      check(of(CollectiveKind::scan, count), position, {count, count});
      check(of(CollectiveKind::exscan, count), position, {count, rank > 0 ? count : 0});
      check(of(CollectiveKind::reduce, count), position, {count, is_root ? count : 0});
      check(of(CollectiveKind::broadcast, count), position, {is_root ? count : 0, count});
    }
  }
}

TEST_CASE("windows of parts hold each element once", "[device]") {
  for (const std::size_t count : {0U, 1U, 21U, 22U, 500U}) {
    for (const std::uint32_t rank : {0U, 1U, 2U}) {
      const bool is_root = rank == 1;
      const Position position = {.rank = rank, .size = 3};
      const std::size_t all = count * 3;
      check(of(CollectiveKind::all_gather, count), position, {count, all});
      check(of(CollectiveKind::reduce_scatter, count), position, {all, count});
      check(of(CollectiveKind::gather, count), position, {count, is_root ? all : 0});
      check(of(CollectiveKind::scatter, count), position, {is_root ? all : 0, count});
      check(of(CollectiveKind::all_to_all, count), position, {all, all});
    }
  }
}

TEST_CASE("windows of uneven parts hold each element once", "[device]") {
  const std::vector<std::size_t> counts = {70, 0, 5};
  const std::vector<std::size_t> from = {1, 90, 0};
  for (const std::uint32_t rank : {0U, 1U, 2U}) {
    const Position position = {.rank = rank, .size = 3};
    Collective it = of(CollectiveKind::all_gather, 0);
    it.counts = counts;
    check(it, position, {counts[rank], 75});
    it.kind = CollectiveKind::reduce_scatter;
    check(it, position, {75, counts[rank]});
    it.kind = CollectiveKind::all_to_all;
    it.counts_from = from;
    CHECK(is_largest_part_private(it));
    check(it, position, {75, 91});
  }
}

TEST_CASE("windows of a batch hold each piece once", "[device]") {
  std::vector<std::byte> memory(4000);
  std::vector<Piece> pieces;
  std::size_t at = 0;
  for (const std::size_t count : {3U, 0U, 200U, 61U, 1U}) {
    pieces.push_back({memory.data() + at * 4, count});
    at += count;
  }
  Collective it = of(CollectiveKind::all_reduce, at);
  it.pieces = pieces;
  const Position position = {.rank = 0, .size = 2};
  std::vector<int> down(at);
  std::vector<int> up(at);
  Window window;
  const std::size_t elements = window_elements(it, position, slot_bytes);
  for (std::size_t begin = 0; begin < at; begin += elements) {
    write_window(it, position, begin, elements, {slot_bytes}, window);
    count(window.down, memory.data(), down);
    count(window.up, memory.data(), up);
  }
  CHECK(is_once(down));
  CHECK(is_once(up));
}

TEST_CASE("windows fill the slot, on every rank alike", "[device]") {
  for (const std::uint32_t rank : {0U, 1U, 2U, 3U}) {
    const Position position = {.rank = rank, .size = 4};
    Collective it = of(CollectiveKind::all_to_all, 7);
    CHECK(window_elements(it, position, slot_bytes) == 8);
    it.kind = CollectiveKind::all_gather;
    CHECK(window_elements(it, position, slot_bytes) == 16);
    it.kind = CollectiveKind::all_reduce;
    CHECK(window_elements(it, position, slot_bytes) == 64);
    CHECK(window_elements(it, position, 1) == 1);
  }
}

/// Each rank's part is where the collective among the hosts looks for it.
TEST_CASE("parts lie in the slot in the order of ranks", "[device]") {
  constexpr std::size_t part_bytes = 20;
  std::vector<std::byte> memory(12 * part_bytes);
  Window window;
  for (const std::uint32_t rank : {0U, 1U, 2U}) {
    const Position position = {.rank = rank, .size = 3};
    Collective it = of(CollectiveKind::all_gather, 9);
    it.in = it.out = memory.data();
    write_window(it, position, 4, 5, {slot_bytes}, window);
    CHECK(window.collective.count == 5);
    CHECK(window.out_offset == 0);
    CHECK(window.in_offset == rank * part_bytes);
    REQUIRE(window.down.size() == 1);
    CHECK(window.down[0].slot_offset == window.in_offset);
    REQUIRE(window.up.size() == 1);
    CHECK(window.up[0].slot_offset == 0);
    CHECK((window.up[0].rows == 3 && window.up[0].row_bytes == part_bytes));

    const std::vector<std::size_t> counts = {5, 1, 7};
    it.counts = counts;
    write_window(it, position, 0, 5, {slot_bytes}, window);
    REQUIRE(window.up.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(window.up[i].slot_offset == std::array<std::size_t, 3>{0, 20, 24}.at(i));
    }
    CHECK(window.in_offset == window.up[rank].slot_offset);

    it.kind = CollectiveKind::all_to_all;
    it.counts_from = counts;
    write_window(it, position, 0, 5, {slot_bytes}, window);
    CHECK(window.out_offset == slot_bytes / 2);
    CHECK(window.up.front().slot_offset == window.out_offset);
    CHECK(window.down.back().slot_offset + window.down.back().row_bytes <= window.out_offset);
  }
}

/// No host copies in slots of the device: what a rank has for itself goes down and up.
TEST_CASE("in slots of the device, nobody exchanges anything with itself", "[device]") {
  constexpr std::size_t part_bytes = 20;
  std::vector<std::byte> memory(20 * part_bytes);
  const std::vector<std::size_t> counts = {1, 3, 2};
  for (const bool is_even : {true, false}) {
    for (const std::uint32_t rank : {0U, 1U, 2U}) {
      Collective it = of(CollectiveKind::all_to_all, is_even ? 9 : 0);
      it.in = it.out = memory.data();
      if (!is_even) it.counts = it.counts_from = counts;
      Window window;
      write_window(it, {.rank = rank, .size = 3}, 0, 5, {slot_bytes, SlotPlace::device}, window);
      CHECK(window.collective.options.memory == MemoryKind::device);
      std::size_t others = 0;
      for (std::uint32_t i = 0; i < 3; ++i) {
        const std::size_t wanted = i == rank ? 0 : is_even ? 5 : counts[i];
        REQUIRE(window.collective.counts.size() == 3);
        CHECK(window.collective.counts[i] == wanted);
        CHECK(window.collective.counts_from[i] == wanted);
        others += wanted;
      }
      const auto is_own = [&](const Block& each) { return each.slot_offset == others * 4; };
      CHECK(std::ranges::count_if(window.down, is_own) == 1);
      CHECK(std::ranges::count_if(window.up, is_own) == 1);
    }
  }
}

}  // namespace
}  // namespace hocket::device
