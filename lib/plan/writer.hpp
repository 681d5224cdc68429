// How an algorithm writes a plan: step by step, as if one step were over before the next begins.
// What must wait for what is found out here.
#pragma once

#include <any>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "plan/hazards.hpp"
#include "plan/plan.hpp"

namespace hocket::plan {

class PlanWriter {
 public:
  PlanWriter(std::string_view algorithm, const Problem& problem, std::uint32_t rank,
             std::uint32_t blocks_per_chunk);

  /// Writes the plan of another rank next, into the memory of a plan that is no longer needed.
  void restart(std::uint32_t rank, Plan memory = {});

  [[nodiscard]] const Problem& problem() const noexcept { return plan_.problem; }
  [[nodiscard]] std::uint32_t rank() const noexcept { return plan_.rank; }
  [[nodiscard]] std::uint32_t size() const noexcept { return plan_.problem.size; }
  [[nodiscard]] const Shape& shape() const noexcept { return plan_.shape; }
  /// The ranks `steps`, at most size, further on and further back around the ring.
  [[nodiscard]] std::uint32_t ahead(std::uint32_t steps) const noexcept {
    return around(rank() + steps);
  }
  [[nodiscard]] std::uint32_t behind(std::uint32_t steps) const noexcept {
    return around(rank() + size() - steps);
  }

  /// What all ranks have in common: made of these, which are the same for all, by the first that
  /// asks.
  template <class Common, class... Parts>
  [[nodiscard]] const Common& common(const Parts&... parts) {
    const auto* made = std::any_cast<Common>(&common_);
    return made != nullptr ? *made : common_.emplace<Common>(parts...);
  }

  // A step on no blocks is none, and so is a copy of a range to itself.
  void send(std::uint32_t peer, const Range& from, int lane = 0);
  void recv(std::uint32_t peer, const Range& to, int lane = 0);
  /// to = from op what comes
  void recv_reduce(std::uint32_t peer, const Range& from, const Range& to, int lane = 0);
  /// to = what comes op from
  void recv_reduce_left(std::uint32_t peer, const Range& from, const Range& to);
  void copy(const Range& from, const Range& to);
  /// to = to op from
  void reduce(const Range& from, const Range& to);
  /// to = from op to
  void reduce_left(const Range& from, const Range& to);

  /// The next step, one of the rank itself, waits for all so far, and those behind it for it.
  void join();

  [[nodiscard]] Plan take() noexcept;

 private:
  void add(const Step& step);
  void await_join();
  /// So many that the block of scratch is in one of them.
  void count_copies(std::uint32_t block) noexcept;
  [[nodiscard]] std::uint32_t around(std::uint32_t rank) const noexcept {
    return rank < size() ? rank : rank - size();
  }

  Plan plan_;
  Hazards hazards_;
  std::any common_;
  std::uint32_t joint_ = 0;  // the step behind the last join
  // Most plans of a world are about as long as the one before.
  std::size_t steps_expected_ = 0;
  std::size_t awaited_expected_ = 0;
};

}  // namespace hocket::plan
