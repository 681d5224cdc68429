// How an algorithm writes a plan: step by step, as if one step were over before the next begins.
// What must wait for what is found out here.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "plan/hazards.hpp"
#include "plan/plan.hpp"

namespace hocket::plan {

class PlanWriter {
 public:
  PlanWriter(std::string_view algorithm, const Problem& problem, std::uint32_t rank,
             std::uint32_t blocks_per_chunk);

  [[nodiscard]] const Problem& problem() const noexcept { return plan_.problem; }
  [[nodiscard]] std::uint32_t rank() const noexcept { return plan_.rank; }
  [[nodiscard]] std::uint32_t size() const noexcept { return plan_.problem.size; }
  [[nodiscard]] const Shape& shape() const noexcept { return plan_.shape; }
  /// The ranks `steps`, at most size, further on and further back around the ring.
  [[nodiscard]] std::uint32_t ahead(std::uint32_t steps) const noexcept {
    return (rank() + steps) % size();
  }
  [[nodiscard]] std::uint32_t behind(std::uint32_t steps) const noexcept {
    return (rank() + size() - steps) % size();
  }

  // A step on no blocks is none, and so is a copy of a range to itself.
  void send(std::uint32_t peer, const Range& from, int lane = 0);
  void recv(std::uint32_t peer, const Range& to, int lane = 0);
  /// to = from op what comes
  void recv_reduce(std::uint32_t peer, const Range& from, const Range& to, int lane = 0);
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
