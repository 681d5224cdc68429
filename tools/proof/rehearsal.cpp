#include "proof/rehearsal.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "proof/check.hpp"
#include "proof/describe.hpp"

namespace hocket::proof {

using plan::Buffer;
using plan::Layout;
using plan::Operation;
using plan::Plan;
using plan::Problem;
using plan::Range;
using plan::Step;
using plan::StepKind;

namespace {

using Numbers = std::vector<std::uint64_t>;

Numbers to_numbers(std::span<const std::uint64_t> numbers) {
  return {numbers.begin(), numbers.end()};
}

/// One rank: its memory, and how far its plan has come.
class Actor {
 public:
  Actor(const Plan& plan, const RehearsalOptions& options, std::mt19937_64& random);

  [[nodiscard]] const Plan& plan() const noexcept { return plan_; }
  [[nodiscard]] const Layout& layout() const noexcept { return layout_; }
  [[nodiscard]] std::span<std::uint64_t> buffer(Buffer buffer) noexcept;

  [[nodiscard]] Numbers read(const Range& range);
  /// False if there is room for more or for less.
  [[nodiscard]] bool write(const Range& range, const Numbers& numbers);
  /// The step with what came, if it receives. False if something is of another size than it must
  /// be.
  [[nodiscard]] bool perform(std::uint32_t step, Numbers incoming);

  [[nodiscard]] bool is_ready(std::uint32_t step) const;
  bool started(std::uint32_t step) const { return started_[step]; }
  void start(std::uint32_t step) { started_[step] = true; }
  void finish(std::uint32_t step) { finished_[step] = true; }
  [[nodiscard]] bool has_finished(std::uint32_t step) const { return finished_[step]; }

 private:
  template <class Visit>
  void visit_blocks(const Range& range, Visit visit);

  const Plan& plan_;
  Layout layout_;
  bool in_place_;
  Numbers memory_[3];
  std::vector<bool> started_, finished_;
};

Actor::Actor(const Plan& plan, const RehearsalOptions& options, std::mt19937_64& random)
    : plan_(plan),
      layout_(plan, options.sizes),
      in_place_(options.in_place && can_be_in_place(plan.problem)),
      started_(plan.steps.size()),
      finished_(plan.steps.size()) {
  for (const Buffer each : {Buffer::in, Buffer::out, Buffer::scratch}) {
    Numbers& numbers = memory_[static_cast<std::size_t>(each)];
    numbers.resize(layout_.size(each));
    std::ranges::generate(numbers, std::ref(random));  // what nobody has written is anything
  }
  if (!in_place_) return;
  // The larger one is both.
  Numbers& in = memory_[0];
  Numbers& out = memory_[1];
  if (out.size() < in.size()) {
    out.clear();
  } else if (!in.empty()) {
    std::ranges::copy(in, out.begin() + static_cast<std::ptrdiff_t>(layout_.offset(Buffer::in)));
    in.clear();
  }
}

std::span<std::uint64_t> Actor::buffer(Buffer buffer) noexcept {
  const auto size = static_cast<std::size_t>(layout_.size(buffer));
  if (size == 0) return {};
  Numbers& own = memory_[static_cast<std::size_t>(buffer)];
  if (!in_place_ || buffer == Buffer::scratch || own.size() >= size) {
    return std::span(own).first(size);
  }
  Numbers& other = memory_[buffer == Buffer::in ? 1 : 0];
  return std::span(other).subspan(static_cast<std::size_t>(layout_.offset(buffer)), size);
}

template <class Visit>
void Actor::visit_blocks(const Range& range, Visit visit) {
  const std::uint32_t blocks = std::min(plan_.blocks(range.buffer), plan_.shape.vector_blocks());
  const std::uint32_t begin = range.first / blocks * blocks;
  for (std::uint32_t i = 0; i < range.count; ++i) {
    const auto elements =
        layout_.elements(range.buffer, begin + (range.first - begin + i) % blocks);
    visit(buffer(range.buffer).subspan(elements.begin, elements.end - elements.begin));
  }
}

Numbers Actor::read(const Range& range) {
  Numbers numbers;
  visit_blocks(range, [&](std::span<const std::uint64_t> block) {
    numbers.insert(numbers.end(), block.begin(), block.end());
  });
  return numbers;
}

bool Actor::write(const Range& range, const Numbers& numbers) {
  std::size_t done = 0;
  visit_blocks(range, [&](std::span<std::uint64_t> block) {
    for (std::uint64_t& each : block) {
      if (done < numbers.size()) each = numbers[done];
      ++done;
    }
  });
  return done == numbers.size();
}

bool Actor::perform(std::uint32_t number, Numbers incoming) {
  const Step& step = plan_.steps[number];
  if (!step.receives()) incoming = read(step.source());
  if (step.combines()) {
    const Numbers own = read(step.kind == StepKind::reduce ? step.target() : step.source());
    if (own.size() != incoming.size()) return false;
    for (std::size_t i = 0; i < own.size(); ++i) incoming[i] += own[i];
  }
  finish(number);
  return write(step.target(), incoming);
}

bool Actor::is_ready(std::uint32_t step) const {
  return !started_[step] &&
         std::ranges::all_of(plan_.awaited(plan_.steps[step]),
                             [&](std::uint32_t each) { return finished_[each]; });
}

/// A message that was offered: with its numbers, or still where the sender has them.
struct Offer {
  std::uint32_t sender;
  std::uint32_t step;
  std::optional<Numbers> numbers;
};
using LaneId = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // from, to, which

class Stage {
 public:
  Stage(std::span<const Plan> plans, const RehearsalOptions& options);

  Status play();

 private:
  struct Cue {
    std::uint32_t rank;
    std::uint32_t step;
  };

  void go_on_from(std::uint32_t rank);
  /// False when it can't be now.
  bool act(const Cue& cue);
  void send(const Cue& cue, const Step& step);
  bool receive(const Cue& cue, const Step& step);
  void perform(const Cue& cue, Numbers incoming);
  [[nodiscard]] bool has_turn(const Cue& cue, const Step& step) const;
  [[nodiscard]] Status stuck() const;
  Status check_results();
  /// Of what the rank's result is made of.
  [[nodiscard]] Numbers sum_for(std::uint32_t rank) const;
  [[nodiscard]] Numbers expected(std::uint32_t rank) const;

  std::span<const Plan> plans_;
  std::mt19937_64 random_;
  std::vector<Actor> actors_;
  std::vector<Numbers> inputs_;
  std::map<LaneId, std::deque<Offer>> lanes_;
  Status failure_;
  std::vector<Cue> cues_;  // steps that have not happened, or not been offered
};

Stage::Stage(std::span<const Plan> plans, const RehearsalOptions& options)
    : plans_(plans), random_(options.seed) {
  actors_.reserve(plans.size());
  for (const Plan& plan : plans) {
    Actor& actor = actors_.emplace_back(plan, options, random_);
    const auto in = actor.buffer(Buffer::in);
    inputs_.push_back(to_numbers(in));
    for (std::uint32_t i = 0; i < plan.steps.size(); ++i) cues_.push_back({plan.rank, i});
  }
}

/// Whether all earlier ones of its lane have had theirs.
bool Stage::has_turn(const Cue& cue, const Step& step) const {
  const std::vector<Step>& steps = plans_[cue.rank].steps;
  for (std::uint32_t i = 0; i < cue.step; ++i) {
    const bool same = steps[i].sends() == step.sends() && steps[i].receives() == step.receives() &&
                      steps[i].peer == step.peer && steps[i].lane == step.lane;
    if (same && !actors_[cue.rank].started(i)) return false;
  }
  return true;
}

void Stage::send(const Cue& cue, const Step& step) {
  Actor& actor = actors_[cue.rank];
  actor.start(cue.step);
  Offer offer{cue.rank, cue.step, std::nullopt};
  if (random_() % 2 == 0) {
    offer.numbers = actor.read(step.source());
    actor.finish(cue.step);
  }
  lanes_[{cue.rank, step.peer, step.lane}].push_back(std::move(offer));
}

bool Stage::receive(const Cue& cue, const Step& step) {
  auto& lane = lanes_[{step.peer, cue.rank, step.lane}];
  if (lane.empty()) return false;
  Offer offer = std::move(lane.front());
  lane.pop_front();
  if (!offer.numbers) {
    Actor& sender = actors_[offer.sender];
    offer.numbers = sender.read(sender.plan().steps[offer.step].source());
    sender.finish(offer.step);
  }
  actors_[cue.rank].start(cue.step);
  perform(cue, std::move(*offer.numbers));
  return true;
}

void Stage::perform(const Cue& cue, Numbers incoming) {
  if (actors_[cue.rank].perform(cue.step, std::move(incoming)) || !failure_.ok()) return;
  failure_ = Status(StatusCode::invalid_argument,
                    fmt::format("{}: what comes has another number of elements than its place",
                                locate(plans_[cue.rank], cue.step)));
}

bool Stage::act(const Cue& cue) {
  const Step& step = plans_[cue.rank].steps[cue.step];
  Actor& actor = actors_[cue.rank];
  if (!actor.is_ready(cue.step)) return false;
  if (step.sends() || step.receives()) {
    if (!has_turn(cue, step)) return false;
    if (step.receives()) return receive(cue, step);
    send(cue, step);
    return true;
  }
  actor.start(cue.step);
  perform(cue, {});
  return true;
}

Status Stage::stuck() const {
  const Cue& cue = cues_.front();
  return Status(StatusCode::invalid_argument,
                fmt::format("nothing can go on, not even {}", locate(plans_[cue.rank], cue.step)));
}

Status Stage::play() {
  // In each pass over what is left, in another order each time, at least one must happen.
  while (!cues_.empty()) {
    std::ranges::shuffle(cues_, random_);
    const std::size_t before = cues_.size();
    std::erase_if(cues_, [&](const Cue& cue) { return random_() % 4 != 0 && act(cue); });
    if (cues_.size() == before) {
      std::erase_if(cues_, [&](const Cue& cue) { return act(cue); });
    }
    if (cues_.size() == before) return stuck();
    if (!failure_.ok()) return failure_;
  }
  return check_results();
}

Numbers Stage::sum_for(std::uint32_t rank) const {
  const Problem& problem = plans_.front().problem;
  Numbers sum(inputs_.front().size() / contributions_of(problem, 0).count());
  std::size_t left = contributions_to(problem, rank) * sum.size();
  for (const Numbers& each : inputs_) {
    for (std::size_t i = 0; i < each.size() && left > 0; ++i, --left) {
      sum[i % sum.size()] += each[i];
    }
  }
  return sum;
}

/// What the rank's `out` must be.
Numbers Stage::expected(std::uint32_t rank) const {
  const Problem& problem = plans_.front().problem;
  const Layout& layout = actors_[rank].layout();
  const auto part = [](const Numbers& of, std::uint64_t begin, std::uint64_t end) {
    return std::span(of).subspan(begin, end - begin);
  };
  const std::uint64_t begin = layout.offset(Buffer::out);
  const std::uint64_t end = begin + layout.size(Buffer::out);
  if (reduces(problem.operation)) return to_numbers(part(sum_for(rank), begin, end));
  if (has_root(problem.operation) && problem.operation != Operation::gather) {
    return to_numbers(part(inputs_[problem.root], begin, end));
  }
  Numbers all;
  const std::uint32_t chunk = plans_[rank].shape.blocks_per_chunk;
  for (std::uint32_t other = 0; other < problem.size; ++other) {
    const Layout& there = actors_[other].layout();
    const bool is_for_us = problem.operation == Operation::all_to_all;
    const std::uint32_t first = is_for_us ? rank * chunk : 0;
    const auto mine = part(inputs_[other], there.elements(Buffer::in, first).begin,
                           there.elements(Buffer::in, first + chunk - 1).end);
    all.insert(all.end(), mine.begin(), mine.end());
  }
  return all;
}

Status Stage::check_results() {
  for (std::uint32_t rank = 0; rank < plans_.size(); ++rank) {
    if (plans_[rank].blocks(Buffer::out) == 0) continue;
    const Numbers wanted = expected(rank);
    const auto [there, other] = std::ranges::mismatch(actors_[rank].buffer(Buffer::out), wanted);
    if (other == wanted.end()) continue;
    return Status(StatusCode::invalid_argument,
                  fmt::format("rank {}: element {} of out is wrong", rank, other - wanted.begin()));
  }
  return {};
}

}  // namespace

Status rehearse(std::span<const Plan> plans, const RehearsalOptions& options) {
  return Stage(plans, options).play();
}

}  // namespace hocket::proof
