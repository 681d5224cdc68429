#include "proof/values.hpp"

#include <new>

#include <fmt/format.h>

#include "proof/check.hpp"
#include "proof/describe.hpp"

namespace hocket::proof {

using plan::Buffer;
using plan::CellMap;
using plan::CellRuns;
using plan::Operation;
using plan::Plan;
using plan::Problem;
using plan::Range;
using plan::Step;
using plan::StepKind;

namespace {

constexpr std::uint64_t mix(std::uint64_t bits) noexcept {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

/// What mix() takes one after the other is to be far apart; and small seeds would otherwise be what
/// a number is, and what is contributed there nothing.
constexpr std::uint64_t far_apart = 0x9e3779b97f4a7c15;

/// So far that what an event reads has come from memory by then.
constexpr std::size_t events_ahead = 16;

/// What is here already and goes into the target with what comes in.
Range own_of(const Step& step) noexcept {
  return step.kind == StepKind::recv_reduce ? step.source() : step.target();
}

}  // namespace

class Values::Walk {
 public:
  Walk(const Memory& memory, const Range& range) noexcept
      : memory_(memory), buffer_(range.buffer), runs_(memory.cells.of(range)) {}

  /// From a block of the range on.
  [[nodiscard]] Row row(std::uint32_t i) const noexcept {
    const std::uint32_t before = runs_[0].size();
    const std::uint32_t cell = i < before ? runs_[0].begin + i : runs_[1].begin + (i - before);
    return {memory_.block(buffer_, cell), memory_.stride(buffer_)};
  }
  /// How many are in a row there, of so many in all.
  [[nodiscard]] std::uint32_t in_row(std::uint32_t i, std::uint32_t count) const noexcept {
    return (i < runs_[0].size() ? runs_[0].size() : count) - i;
  }

 private:
  const Memory& memory_;
  Buffer buffer_;
  CellRuns runs_;
};

inline Values::Block Values::contribution(std::uint32_t number,
                                          std::uint32_t position) const noexcept {
  const std::uint64_t random = mix(randoms_[number] + position * far_apart);
  if (options_.ordered) return {random, mix(random)};
  return {random, 1, random >> 24};
}

/// Unless ordered, the same whichever of the two is which: so is a reduction. But not the same in
/// another tree.
inline Values::Block Values::combine(const Block& left, const Block& right) const noexcept {
  if (options_.ordered) {
    return {left.factor() * right.factor(), left.factor() * right.sum() + left.sum()};
  }
  return {left.sum() + right.sum(), left.count() + right.count(), mix(left.tree() + right.tree())};
}

inline Values::Block Values::combine(const Step& step, const Block& own,
                                     const Block& incoming) const noexcept {
  return step.is_reversed ? combine(incoming, own) : combine(own, incoming);
}

void Values::start(std::span<const Plan> plans, const ValuesOptions& options) {
  const Problem& problem = plans.front().problem;
  plans_ = plans;
  options_ = options;
  is_reduced_ = reduces(problem.operation);
  is_prefix_ = is_prefix(problem.operation);
  options_.canonical = options.canonical && !is_prefix_;
  is_everywhere_ = problem.operation == Operation::all_reduce ||
                   problem.operation == Operation::all_gather ||
                   problem.operation == Operation::broadcast;
  is_canonical_ = problem.contributions > 0;
  const std::uint64_t seed = mix(options.seed ^ far_apart);
  randoms_.resize(all_contributions(problem));
  for (std::size_t i = 0; i < randoms_.size(); ++i) randoms_[i] = mix(seed ^ mix(i + far_apart));
  memory_.clear();
  std::size_t blocks = 0;
  std::size_t used = 0;
  for (const Plan& plan : plans) {
    const CellMap cells(problem, plan.shape, plan.rank, options.in_place);
    memory_.push_back({cells, blocks, 0, plan.scratch_copies});
    blocks += cells.count(0);
    used += std::size_t{plan.blocks(Buffer::in)} + plan.blocks(Buffer::out);
  }
  const std::size_t apart_from_scratch = blocks;
  const std::size_t dense = used >= blocks / 4 * 3 ? blocks : 0;
  for (Memory& each : memory_) {
    each.scratch = blocks;
    blocks += each.cells.count(each.scratch_copies) - each.cells.count(0);
  }
  // Undefined, which is zero: what nobody touches, as most of a canonical plan's scratch, is cheap.
  pages_ = Pages();
  pages_ = Pages(blocks * sizeof(Block), dense * sizeof(Block));
  blocks_ = reinterpret_cast<Block*>(pages_.data());
  is_out_.assign(options.in_place ? apart_from_scratch : 0, 0);
  fill_inputs();
  results_.clear();
  if (!is_reduced_) return;
  if (options_.ordered) return combine_in_order();
  options_.canonical || is_canonical_ ? combine_all() : add_up();
}

void Values::fill_inputs() {
  for (std::uint32_t rank = 0; rank < plans_.size(); ++rank) {
    const CellMap& cells = memory_[rank].cells;
    const Range in = {Buffer::in, 0, plans_[rank].blocks(Buffer::in)};
    const std::uint32_t row = std::min(in.count, cells.vector());
    if (row == 0) continue;
    const std::uint32_t position = cells.position(cells.first(in));
    Block* block = &blocks_[memory_[rank].first + cells.first(in)];
    std::uint32_t number = contributions_of(plans_[rank].problem, rank).begin;
    for (std::uint32_t vector = 0; vector < in.count / row; ++vector, ++number) {
      for (std::uint32_t i = 0; i < row; ++i) *block++ = contribution(number, position + i);
    }
  }
}

/// In the canonical tree: neighbours become one, and the last one of an odd number stays what it
/// is, until there is one.
void Values::combine_all() {
  std::vector<Block> row(randoms_.size());
  for (std::uint32_t position = 0; position < plans_.front().shape.vector_blocks(); ++position) {
    for (std::uint32_t i = 0; i < row.size(); ++i) row[i] = contribution(i, position);
    for (std::size_t count = row.size(); count > 1; count = (count + 1) / 2) {
      for (std::size_t i = 0; i + 1 < count; i += 2) row[i / 2] = combine(row[i], row[i + 1]);
      if (count % 2 == 1) row[count / 2] = row[count - 1];
    }
    results_.push_back(row.front());
  }
}

/// In no tree.
void Values::add_up() {
  const auto all = static_cast<std::uint32_t>(randoms_.size());
  std::vector<std::uint64_t> sums(plans_.front().shape.vector_blocks());
  for (std::uint32_t i = 0; i < all; ++i) {
    for (std::uint32_t position = 0; position < sums.size(); ++position) {
      sums[position] += contribution(i, position).sum();
    }
    if (!is_prefix_ && i + 1 < all) continue;
    for (const std::uint64_t sum : sums) results_.push_back({sum, i + 1, 0});
  }
}

void Values::combine_in_order() {
  const auto all = static_cast<std::uint32_t>(randoms_.size());
  std::vector<Block> row;
  for (std::uint32_t i = 0; i < all; ++i) {
    for (std::uint32_t position = 0; position < plans_.front().shape.vector_blocks(); ++position) {
      const Block next = contribution(i, position);
      if (i == 0) row.push_back(next);
      if (i > 0) row[position] = combine(row[position], next);
    }
    if (is_prefix_ || i + 1 == all) results_.insert(results_.end(), row.begin(), row.end());
  }
}

Status Values::run(std::span<const Event> events) {
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (i + events_ahead < events.size()) prefetch(events[i + events_ahead]);
    if (Status status = run(events[i]); !status.ok()) return status;
  }
  return {};
}

/// Ranks are looked at by turns, each in memory of its own.
inline void Values::prefetch(const Event& event) const noexcept {
  const Memory& there = memory_[event.step.rank];
  const Memory& here = memory_[event.last().rank];
  __builtin_prefetch(&blocks_[there.block(event.from->source())]);
  __builtin_prefetch(&blocks_[here.block(event.to->target())], 1);
}

Status Values::run(const Event& event) {
  const Step& step = *event.to;
  if (step.count > 1) return run_stretches(event);
  const Memory& here = memory_[event.last().rank];
  const Memory& there = memory_[event.step.rank];
  const Row incoming = {there.block(event.from->source()), 1};
  const Row mine = {here.block(own_of(step)), 1};
  const Row target = {here.block(step.target()), 1};
  const Block& value = blocks_[incoming.first];
  const Block& own = blocks_[mine.first];
  if (options_.in_place || !value.is_defined() || (step.combines() && !own.is_defined())) {
    return run(event, {0, 1, incoming, mine, target});
  }
  blocks_[target.first] = step.combines() ? combine(step, own, value) : value;
  return {};
}

Status Values::run_stretches(const Event& event) {
  const Step& step = *event.to;
  const Memory& here = memory_[event.last().rank];
  const Walk incoming(memory_[event.step.rank], event.from->source());
  const Walk own(here, own_of(step));
  const Walk target(here, step.target());
  for (std::uint32_t i = 0, count = 0; i < step.count; i += count) {
    count = std::min(
        {incoming.in_row(i, step.count), own.in_row(i, step.count), target.in_row(i, step.count)});
    Status status = run(event, {i, count, incoming.row(i), own.row(i), target.row(i)});
    if (!status.ok()) return status;
  }
  return {};
}

Status Values::run(const Event& event, const Stretch& stretch) {
  const Step& step = *event.to;
  const Range incoming = event.from->source();
  if (!are_readable(stretch.incoming, stretch.count, incoming.buffer)) {
    return wrong_read(event.step, *event.from, incoming, stretch.begin);
  }
  if (step.combines() && !are_readable(stretch.own, stretch.count, own_of(step).buffer)) {
    return wrong_read(event.last(), step, own_of(step), stretch.begin);
  }
  write(stretch, step);
  return {};
}

void Values::write(const Stretch& stretch, const Step& step) {
  const auto& [begin, count, incoming, own, target] = stretch;
  const bool is_noted = options_.in_place && step.to_buffer == Buffer::out;
  for (std::uint32_t i = 0; i < count; ++i) {
    Block value = blocks_[incoming.block(i)];
    if (step.combines()) value = combine(step, blocks_[own.block(i)], value);
    Block& written = blocks_[target.block(i)];
    if (is_noted && written != value) is_out_[target.block(i)] = 1;
    written = value;
  }
}

bool Values::are_readable(const Row& row, std::uint32_t count, Buffer buffer) const noexcept {
  const bool may_be_out = options_.in_place && buffer == Buffer::in;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::size_t at = row.block(i);
    if (!blocks_[at].is_defined() || (may_be_out && is_out_[at] != 0)) return false;
  }
  return true;
}

/// Of those from `begin` on, one is not readable.
Status Values::wrong_read(const StepId& id, const Step& step, const Range& range,
                          std::uint32_t begin) const {
  const Walk walk(memory_[id.rank], range);
  std::uint32_t i = begin;
  while (are_readable(walk.row(i), 1, range.buffer)) ++i;
  return Status(StatusCode::invalid_argument,
                fmt::format("{}: block {} of {} blocks of {} {}", locate(id.rank, id.step, step), i,
                            range.count, name(range.buffer),
                            blocks_[walk.row(i).first].is_defined()
                                ? "was changed as out, which may be the same memory"
                                : "is undefined here"));
}

Values::Block Values::expected(std::uint32_t rank, std::uint32_t position) const noexcept {
  const Problem& problem = plans_.front().problem;
  const std::uint32_t chunk = plans_.front().shape.blocks_per_chunk;
  switch (problem.operation) {
    case Operation::all_gather:
    case Operation::gather:
      return contribution(position / chunk, position);
    case Operation::broadcast:
    case Operation::scatter:
      return contribution(problem.root, position);
    case Operation::all_to_all:
      return contribution(position / chunk, rank * chunk + position % chunk);
    case Operation::scan:
    case Operation::exscan: {
      const std::size_t before = contributions_to(problem, rank) - 1;
      return results_[before * plans_.front().shape.vector_blocks() + position];
    }
    default:
      return results_[position];
  }
}

Status Values::check_block(std::uint32_t rank, std::uint32_t block) const {
  const Memory& memory = memory_[rank];
  const std::uint32_t cell = memory.cells.first({Buffer::out, block, 1});
  const Block& value = blocks_[memory.first + cell];
  const Block& first_value = blocks_[memory_[0].cells.first({Buffer::out, block, 1})];
  const Block wanted = expected(rank, memory.cells.position(cell));
  if ((!is_reduced_ || options_.ordered) && value == wanted) return {};
  const auto wrong = [&](std::string_view why) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("rank {}, out[{}]: {}", rank, block, why));
  };
  if (!value.is_defined()) return wrong("it is undefined at the end");
  if (options_.ordered) return wrong("it was combined in another order than that of the ranks");
  if (value.sum() != wanted.sum() || value.count() != wanted.count() ||
      (!is_reduced_ && value.tree() != wanted.tree())) {
    if (is_prefix_) return wrong("not each contribution that belongs here is in it exactly once");
    return wrong(is_reduced_ ? "not every rank's contribution is in it exactly once"
                             : "it holds what belongs elsewhere");
  }
  if (is_everywhere_ && value.tree() != first_value.tree()) {
    return wrong("it was combined in another order than on rank 0, so that its bits may differ");
  }
  if (is_canonical_ && value.tree() != wanted.tree()) {
    return wrong(
        "the tree in which it was combined is not the canonical tree, so that its bits may differ "
        "in worlds of other sizes");
  }
  return {};
}

Status Values::check_results() const {
  const auto out_of = [this](std::uint32_t rank) {
    const Range out = {Buffer::out, 0, plans_[rank].blocks(Buffer::out)};
    const Memory& memory = memory_[rank];
    return std::span(&blocks_[memory.first + memory.cells.first(out)], out.count);
  };
  for (std::uint32_t rank = 0; rank < plans_.size(); ++rank) {
    // Most are as on rank 0, where all was right.
    if (is_everywhere_ && rank > 0 && std::ranges::equal(out_of(rank), out_of(0))) continue;
    const std::uint32_t blocks = plans_[rank].blocks(Buffer::out);
    for (std::uint32_t block = 0; block < blocks; ++block) {
      if (Status status = check_block(rank, block); !status.ok()) return status;
    }
  }
  return {};
}

bool Values::are_canonical() const {
  if (!is_reduced_ || !(options_.canonical || is_canonical_)) return false;
  for (std::uint32_t rank = 0; rank < plans_.size(); ++rank) {
    const auto& [cells, first, scratch, copies] = memory_[rank];
    for (std::uint32_t block = 0; block < plans_[rank].blocks(Buffer::out); ++block) {
      const std::uint32_t cell = cells.first({Buffer::out, block, 1});
      if (blocks_[first + cell].tree() != results_[cells.position(cell)].tree()) return false;
    }
  }
  return true;
}

}  // namespace hocket::proof
