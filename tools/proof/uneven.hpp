// Whether plans work where chunks differ in size.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/cell_map.hpp"
#include "plan/plan.hpp"

namespace hocket::proof {

/// Everything must go only where what is of the same size is, however large each chunk may be: from
/// a place in the vector to the same place, and of an all-to-all straight from the chunk for a rank
/// to the chunk of a rank.
class Uneven {
 public:
  /// Of the plans of all ranks.
  void start(const plan::Problem& problem, const plan::Shape& shape);
  /// Whether this holds of a step of a rank itself, which is both, or of a message.
  [[nodiscard]] bool keeps_size(std::uint32_t sender, const plan::Step& from,
                                std::uint32_t receiver, const plan::Step& to) const;

 private:
  [[nodiscard]] static bool are_at_one_place(const plan::CellMap& here, const plan::Range& first,
                                             const plan::CellMap& there,
                                             const plan::Range& second) noexcept;
  [[nodiscard]] bool is_chunk(const plan::Range& range, plan::Buffer buffer,
                              std::uint32_t chunk) const noexcept;

  std::vector<plan::CellMap> cells_;  // by rank
  std::uint32_t blocks_per_chunk_ = 1;
  bool is_all_to_all_ = false;
};

}  // namespace hocket::proof
