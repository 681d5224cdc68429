// Who has heard of whom while the plans of a barrier run: it moves no data, and is right if each
// rank has heard of all before it goes on.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hocket/status.hpp"

#include "plan/cell_map.hpp"
#include "plan/plan.hpp"
#include "proof/event.hpp"

namespace hocket::proof {

class Heard {
 public:
  void start(std::span<const plan::Plan> plans);

  [[nodiscard]] Status run(std::span<const Event> events);
  [[nodiscard]] Status check_results() const;

 private:
  /// A bit for each rank, in the cell that a range begins with.
  [[nodiscard]] std::span<std::uint64_t> at(std::uint32_t rank, const plan::Range& range);
  void run(const Event& event);

  std::span<const plan::Plan> plans_;
  std::size_t words_ = 0;
  std::vector<std::vector<std::uint64_t>> memory_;
};

}  // namespace hocket::proof
