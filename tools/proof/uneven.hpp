// Whether plans work where chunks differ in size.
#pragma once

#include <span>
#include <vector>

#include "plan/cell_map.hpp"
#include "plan/plan.hpp"
#include "proof/event.hpp"

namespace hocket::proof {

/// Follows all events. Everything must go only where what is of the same size is, however large
/// each chunk may be: from a place in the vector to the same place, and of an all-to-all straight
/// from the chunk for a rank to the chunk of a rank.
class Uneven {
 public:
  void start(std::span<const plan::Plan> plans);
  void run(std::span<const Event> events);
  [[nodiscard]] bool allows() const noexcept { return allows_; }

 private:
  [[nodiscard]] bool keeps_size(const Event& event) const;
  [[nodiscard]] bool are_at_one_place(const StepId& one, const plan::Range& first,
                                      const StepId& other, const plan::Range& second) const;
  [[nodiscard]] bool is_chunk(const plan::Range& range, plan::Buffer buffer,
                              std::uint32_t chunk) const;

  std::span<const plan::Plan> plans_;
  std::vector<plan::CellMap> cells_;  // by rank
  bool is_all_to_all_ = false;
  bool allows_ = true;
};

}  // namespace hocket::proof
