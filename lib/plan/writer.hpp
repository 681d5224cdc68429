// How an algorithm writes a plan: step by step, as if one step were over before the next begins. What
// must wait for what is found out here.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "plan/hazards.hpp"
#include "plan/plan.hpp"

namespace hocket::plan {

class PlanWriter {
 public:
  PlanWriter(std::string_view algorithm, const Problem& problem, int rank,
             std::uint32_t blocks_per_chunk);

  [[nodiscard]] const Problem& problem() const noexcept { return plan_.problem; }
  [[nodiscard]] int rank() const noexcept { return plan_.rank; }
  [[nodiscard]] int size() const noexcept { return plan_.problem.size; }
  [[nodiscard]] const Shape& shape() const noexcept { return plan_.shape; }

  // A step on no blocks is none, and so is a copy of a range to itself.
  void send(int peer, const Range& from, int lane = 0);
  void recv(int peer, const Range& to, int lane = 0);
  /// to = from op what comes
  void recv_reduce(int peer, const Range& from, const Range& to, int lane = 0);
  void copy(const Range& from, const Range& to);
  /// to = to op from
  void reduce(const Range& from, const Range& to);

  [[nodiscard]] Plan take() noexcept { return std::move(plan_); }

 private:
  void add(Step step);

  Plan plan_;
  Hazards hazards_;
};

}  // namespace hocket::plan
