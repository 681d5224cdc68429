// What must wait for what, held against a plain account of who touched each cell.
#include "plan/hazards.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "support/catch.hpp"

using namespace hocket::plan;

namespace {

constexpr std::uint32_t size = 5;
constexpr std::uint32_t copies = 3;
const Problem problem{.operation = Operation::all_reduce, .size = size};

Step copy(const Range& from, const Range& to) {
  return {.kind = StepKind::copy,
          .from_buffer = from.buffer,
          .to_buffer = to.buffer,
          .from = from.first,
          .to = to.first,
          .count = from.count};
}
Step send(const Range& from) {
  return {
      .kind = StepKind::send, .from_buffer = from.buffer, .from = from.first, .count = from.count};
}

std::vector<std::uint32_t> add(Hazards& hazards, const Step& step) {
  std::vector<std::uint32_t> awaited;
  hazards.add(step, awaited);
  return awaited;
}

/// Cell by cell: all who read it since the last who wrote it.
class Account {
 public:
  explicit Account(const CellMap& cells) : cells_(cells), touched_(cells.count(copies)) {}

  std::vector<std::uint32_t> add(const Step& step) {
    std::set<std::uint32_t> awaited;
    if (step.has_source()) {
      for (Touched* each : all(step.source())) {
        awaited.insert(each->writer.begin(), each->writer.end());
        each->readers.insert(step_);
      }
    }
    if (step.has_target()) {
      for (Touched* each : all(step.target())) {
        const bool is_read = !each->readers.empty();
        const std::set<std::uint32_t>& last = is_read ? each->readers : each->writer;
        awaited.insert(last.begin(), last.end());
        *each = {.writer = {step_}, .readers = {}};
      }
    }
    awaited.erase(step_++);
    return {awaited.begin(), awaited.end()};
  }

 private:
  struct Touched {
    std::set<std::uint32_t> writer;
    std::set<std::uint32_t> readers;
  };

  std::vector<Touched*> all(const Range& range) {
    std::vector<Touched*> found;
    for (const CellRun run : cells_.of(range)) {
      for (std::uint32_t i = run.begin; i < run.end; ++i) found.push_back(&touched_[i]);
    }
    return found;
  }

  CellMap cells_;
  std::vector<Touched> touched_;
  std::uint32_t step_ = 0;
};

}  // namespace

TEST_CASE("a step waits for who wrote what it reads, and for who used what it writes") {
  Hazards hazards(CellMap(problem, shape_of(problem, 8), 0, false));
  using Steps = std::vector<std::uint32_t>;
  CHECK(add(hazards, copy({Buffer::in, 0, 8}, {Buffer::out, 0, 8})).empty());
  CHECK(add(hazards, send({Buffer::out, 2, 2})) == Steps{0});
  CHECK(add(hazards, send({Buffer::out, 3, 2})) == Steps{0});
  CHECK(add(hazards, copy({Buffer::in, 3, 1}, {Buffer::out, 3, 1})) == Steps{1, 2});
  CHECK(add(hazards, send({Buffer::out, 2, 3})) == Steps{0, 3});
  CHECK(add(hazards, copy({Buffer::in, 7, 1}, {Buffer::out, 7, 1})) == Steps{0});
  CHECK(add(hazards, copy({Buffer::in, 6, 4}, {Buffer::out, 6, 4})) == Steps{0, 5});
}

TEST_CASE("out is in where a caller may make them so") {
  for (const bool in_place : {false, true}) {
    Hazards hazards(CellMap(problem, shape_of(problem, 8), 0, in_place));
    CHECK(add(hazards, send({Buffer::in, 3, 1})).empty());
    CHECK(add(hazards, copy({Buffer::in, 0, 8}, {Buffer::scratch, 8, 8})).empty());
    CHECK(add(hazards, copy({Buffer::scratch, 8, 8}, {Buffer::out, 0, 8})).size() ==
          (in_place ? 2U : 1U));
  }
}

TEST_CASE("what must wait is what an account of each cell says") {
  std::mt19937_64 random(1);
  const auto below = [&](std::uint32_t end) { return static_cast<std::uint32_t>(random() % end); };
  Hazards hazards(CellMap(problem, shape_of(problem, 1), 0, false));
  for (int world = 0; world < 60; ++world) {
    const Shape shape = shape_of(problem, 1 + below(200));
    const std::uint32_t blocks = shape.vector_blocks();
    const CellMap cells(problem, shape, 0, world % 2 == 0);
    hazards.restart(cells);
    Account account(cells);
    for (std::uint32_t step = 0; step < 120; ++step) {
      const std::uint32_t count = 1 + below(below(4) == 0 ? blocks : std::min(blocks, 3U));
      const auto range = [&] {
        const auto buffer = static_cast<Buffer>(below(3));
        return Range{buffer, below(buffer == Buffer::scratch ? copies * blocks : blocks), count};
      };
      const Step made = below(2) == 0 ? send(range()) : copy(range(), range());
      INFO("world " << world << ", step " << step);
      REQUIRE(add(hazards, made) == account.add(made));
    }
  }
}
