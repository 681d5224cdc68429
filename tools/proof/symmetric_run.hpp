// Plans of ranks that all do the same, run in the order that each has: one rank's steps stand for
// those of all.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hocket/status.hpp"

#include "plan/plan.hpp"
#include "plan/rotation.hpp"
#include "proof/event.hpp"

namespace hocket::proof {

/// As OrderedRun, in which at any time all ranks have then come equally far: what rank 0 sends to
/// rank d, it gets itself from the rank as far behind it. So its next send and its next receive
/// belong together, or nothing can go on.
class SymmetricRun {
 public:
  /// Of rank 0's plan, which passed check_plan.
  SymmetricRun(const plan::Plan& plan, plan::Symmetry symmetry);

  /// What happens next on rank 0, or from rank 0 to another, and likewise everywhere, behind all
  /// that it waits for. None when nothing is left or nothing can go on.
  [[nodiscard]] std::optional<Event> next();
  [[nodiscard]] bool is_over() const noexcept { return steps_left_ == 0; }
  /// Where it stopped.
  [[nodiscard]] Status describe_stop() const;

  [[nodiscard]] std::uint64_t messages() const noexcept { return messages_; }  // from rank 0
  [[nodiscard]] std::uint64_t rounds() const noexcept { return rounds_; }

 private:
  enum class Kind : std::uint8_t { send, receive, own };
  /// The step that a rank comes to next of one kind.
  struct Turn {
    Kind kind;
    std::uint32_t step = 0;  // behind the last: none
    std::uint32_t over = 1;  // as in over_: no earlier than that
    std::span<const std::uint32_t> awaited = {};
  };

  [[nodiscard]] bool is_left(const Turn& turn) const noexcept;
  void find(Turn& turn) const noexcept;
  [[nodiscard]] bool is_ready(Turn& turn) const noexcept;
  void pass_on(Turn& turn, std::uint32_t over) noexcept;
  [[nodiscard]] bool belong_together() const noexcept;

  const plan::Plan& plan_;
  plan::Symmetry symmetry_;
  Turn send_ = {.kind = Kind::send};
  Turn receive_ = {.kind = Kind::receive};
  Turn own_ = {.kind = Kind::own};
  std::vector<std::uint32_t> over_;  // by step: 0, or one more than the round in which it is over
  std::uint64_t steps_left_;
  std::uint64_t messages_ = 0;
  std::uint32_t rounds_ = 0;
};

}  // namespace hocket::proof
