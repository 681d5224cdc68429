// A plan made ready to be run, any number of times and with any sizes: what waits for each step,
// and in which order messages go to and come from each peer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.hpp"

namespace hocket::engine {

inline constexpr std::uint32_t none = UINT32_MAX;

/// The messages to or from one peer on one lane: steps on it are posted in the order of the plan.
struct Port {
  std::uint32_t peer = 0;
  std::uint8_t lane = 0;
  bool sends = false;

  friend bool operator==(const Port&, const Port&) = default;
};

/// A step that waits for another.
struct Follower {
  std::uint32_t step = 0;
  /// Both go through one range of blocks from its beginning to its end, and touch no other block
  /// that the other touches: the follower may be as far as the one before it.
  bool is_abreast = false;
};

class Program {
 public:
  /// Of a plan whose steps wait for all that they conflict with, as PlanWriter's do.
  explicit Program(plan::Plan plan);

  /// How a step stands among the others.
  struct Place {
    std::uint32_t first_follower = 0;
    std::uint32_t follower_count = 0;
    std::uint32_t port = none;
    std::uint32_t next_on_port = none;  // step
  };

  [[nodiscard]] const plan::Plan& plan() const noexcept { return plan_; }
  [[nodiscard]] std::span<const Port> ports() const noexcept { return ports_; }
  [[nodiscard]] std::span<const Place> places() const noexcept { return places_; }
  /// For how many others each step waits: for the one before it on its port to be posted, and for
  /// those that it conflicts with to be over; if it may be abreast of some, not for them.
  [[nodiscard]] std::span<const std::uint32_t> waits(bool may_be_abreast) const noexcept {
    return may_be_abreast ? waits_abreast_ : waits_;
  }
  /// Those that wait for none.
  [[nodiscard]] std::span<const std::uint32_t> first_steps(bool may_be_abreast) const noexcept {
    return may_be_abreast ? first_steps_abreast_ : first_steps_;
  }
  /// Of all steps: those of one are in a row.
  [[nodiscard]] std::span<const Follower> followers() const noexcept { return followers_; }
  /// The steps that a step is abreast of.
  [[nodiscard]] std::span<const std::uint32_t> abreast_of(std::uint32_t step) const noexcept {
    return std::span(abreast_).subspan(abreast_first_[step],
                                       abreast_first_[step + 1] - abreast_first_[step]);
  }

 private:
  void find_ports();
  void find_followers();

  plan::Plan plan_;
  std::vector<Port> ports_;
  std::vector<Place> places_;                 // by step
  std::vector<std::uint32_t> waits_;          // likewise
  std::vector<std::uint32_t> waits_abreast_;  // likewise
  std::vector<std::uint32_t> first_steps_;
  std::vector<std::uint32_t> first_steps_abreast_;
  std::vector<Follower> followers_;           // of all steps
  std::vector<std::uint32_t> abreast_;        // of all steps
  std::vector<std::uint32_t> abreast_first_;  // by step, and behind the last
};

}  // namespace hocket::engine
