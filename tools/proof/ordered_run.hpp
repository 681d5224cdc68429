// Plans run in the order that each has: as by ranks that do one thing after the other of each kind.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.hpp"
#include "proof/event.hpp"

namespace hocket::proof {

/// Each rank sends one message at a time, receives one at a time and takes one step of its own at a
/// time, each in the order of its plan; a message goes when both sides have come to it. Not all
/// plans that are right can run like this, but those that can are cheap to run: no lane needs to be
/// looked at, because what both sides come to next is what belongs together.
class OrderedRun {
 public:
  /// Of plans that passed check_plan, by rank. Keeps the memory of the run before.
  void start(std::span<const plan::Plan> plans);

  /// What happens next, each event behind all that it waits for. None when nothing is left or
  /// nothing can go on. Valid until the next call.
  [[nodiscard]] std::span<const Event> next();
  [[nodiscard]] bool is_over() const noexcept { return steps_left_ == 0; }

  [[nodiscard]] std::uint64_t messages() const noexcept { return messages_; }
  /// Messages one after the other.
  [[nodiscard]] std::uint64_t rounds() const noexcept { return rounds_; }

 private:
  static constexpr std::uint32_t nobody = UINT32_MAX;
  /// What a rank comes to next of one kind of step.
  struct Turn {
    std::uint32_t step = 0;       // behind the last: none
    std::uint32_t peer = nobody;  // nobody: the step has not been looked for, or is none
    std::uint32_t over = 1;       // as in Rank::over: no earlier than that
    std::uint8_t lane = 0;
    std::uint32_t first = 0;  // block, and how many, of what is sent or received
    std::uint32_t count = 0;
    const std::uint32_t* awaited = nullptr;  // of what it waits for, what was not over yet
    const std::uint32_t* awaited_end = nullptr;
  };
  struct Rank {
    Turn send, receive, own;
    bool is_due = false;
    std::uint32_t step_count = 0;
    const plan::Step* steps = nullptr;
    const std::uint32_t* after = nullptr;
    std::uint32_t* over = nullptr;  // by step: 0, or one more than the round in which it is over
  };

  /// As far as it can; false if there is no room for that.
  bool go_on(std::uint32_t rank);
  bool take_own(std::uint32_t rank);
  /// Each of the two is whom the other comes to next.
  bool pass_message(std::uint32_t sender, std::uint32_t receiver);
  [[nodiscard]] static bool is_ready(const Rank& rank, Turn& turn) noexcept;
  static void pass_on(Rank& rank, Turn& turn, std::uint32_t over) noexcept;
  static void find_send(Rank& rank) noexcept;
  static void find_receive(Rank& rank) noexcept;
  static void come_to_step(const Rank& rank, Turn& turn) noexcept;
  void make_due(std::uint32_t rank);

  std::uint32_t blocks_per_chunk_ = 1;
  std::vector<Rank> ranks_;
  std::vector<std::uint32_t> over_;  // of all ranks
  std::vector<std::uint32_t> due_;   // ranks that may be able to go on, the next one last
  std::vector<Event> events_;
  std::size_t event_count_ = 0;
  std::uint64_t steps_left_ = 0;
  std::uint64_t messages_ = 0;
  std::uint32_t rounds_ = 0;
};

}  // namespace hocket::proof
