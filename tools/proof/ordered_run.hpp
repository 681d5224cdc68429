// Plans run in the order that each has: as by ranks that do one thing after the other of each kind.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.hpp"
#include "proof/event.hpp"
#include "proof/pages.hpp"

namespace hocket::proof {

/// Each rank sends one message at a time, receives one at a time and takes one step of its own at a
/// time, each in the order of its plan; a message goes when both sides have come to it. Not all
/// plans that are right can run like this, but those that can are cheap to run: no lane needs to be
/// looked at, because what both sides come to next is what belongs together. And since steps of one
/// kind are over one after the other, all that a step waits for is so many sends and so many
/// receives.
class OrderedRun {
 public:
  /// Forgets all plans, and keeps their memory.
  void start(const plan::Problem& problem, const plan::Shape& shape);
  /// That of the next rank, which passed check_plan and is needed no longer. All are there before
  /// the first event.
  void add(const plan::Plan& plan);
  /// With all plans, by rank.
  void start(std::span<const plan::Plan> plans);

  /// What happens next, each event behind all that it waits for. None when nothing is left or
  /// nothing can go on. Valid until the next call, but its steps as long as this run.
  [[nodiscard]] std::span<const Event> next();
  [[nodiscard]] bool is_over() const noexcept { return steps_left_ == 0; }

  /// What the run keeps of a step.
  static constexpr std::uint64_t bytes_per_step = 32;

  [[nodiscard]] std::uint64_t messages() const noexcept { return messages_; }
  /// Messages one after the other.
  [[nodiscard]] std::uint64_t rounds() const noexcept { return rounds_; }

 private:
  static constexpr std::uint32_t nobody = UINT32_MAX;
  /// So many of each kind, in the order of the plan.
  struct Waits {
    std::uint32_t sends = 0;
    std::uint32_t receives = 0;
  };
  /// Its number and waits lie where the step has its place in Plan::after, which nobody asks for
  /// here: proofs of large worlds are as large as their moves.
  struct Move {
    Move() = default;
    Move(const plan::Step& its_step, std::uint32_t number, std::uint32_t waits) : step(its_step) {
      step.after_first = number;
      step.after_count = waits;
    }

    /// Of the step.
    [[nodiscard]] std::uint32_t number() const noexcept { return step.after_first; }
    /// Of a send for receives, of a receive for sends: that many.
    [[nodiscard]] std::uint32_t waits() const noexcept { return step.after_count; }

    plan::Step step = {.peer = nobody};
    std::uint32_t over = 0;  // one more than the round in which it is over
  };
  static_assert(sizeof(Move) == bytes_per_step);
  struct OwnStep {
    plan::Step step = {};
    std::uint32_t number = 0;
    Waits waits = {.sends = UINT32_MAX};
  };
  /// What a rank has to do; behind the last of each kind is one that never happens.
  struct Part {
    Move* sends = nullptr;
    Move* receives = nullptr;
    OwnStep* own = nullptr;
  };
  /// How far it has come.
  struct alignas(64) Rank {
    std::uint32_t send_to = nobody;  // whom the next one is for
    std::uint32_t receive_from = nobody;
    Waits over = {};
    Waits own_waits = {};  // those of the next step of its own
    bool is_due = false;
    Move* sends = nullptr;
    Move* receives = nullptr;
    const OwnStep* own = nullptr;  // the next one
  };

  [[nodiscard]] static Waits most(const Waits& one, const Waits& other) noexcept {
    return {std::max(one.sends, other.sends), std::max(one.receives, other.receives)};
  }
  [[nodiscard]] Part take_part(const plan::Plan& plan);
  [[nodiscard]] Waits waits_of(const plan::Plan& plan, const plan::Step& step) const noexcept;
  void begin();
  /// As far as it can; false if there are many events before that.
  [[nodiscard]] bool go_on(std::uint32_t rank);
  void take_own(std::uint32_t rank);
  /// Each of the two is whom the other comes to next.
  [[nodiscard]] bool pass_message(std::uint32_t sender, std::uint32_t receiver);
  [[nodiscard]] static std::uint32_t when_over(const Move* moves, std::uint32_t count) noexcept {
    return count == 0 ? 1 : moves[count - 1].over;
  }
  void make_due(std::uint32_t rank);

  std::uint32_t blocks_per_chunk_ = 1;
  Arena arena_;                 // of all parts
  std::vector<Part> parts_;     // by rank
  std::vector<Waits> implied_;  // by step of one plan: what is over when it is
  std::vector<Rank> ranks_;
  std::vector<std::uint32_t> due_;  // ranks that may be able to go on, the next one last
  std::vector<Event> events_;
  std::uint64_t steps_left_ = 0;
  std::uint64_t messages_ = 0;
  std::uint32_t rounds_ = 0;
};

}  // namespace hocket::proof
