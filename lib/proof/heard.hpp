// Who has heard of whom while the plans of a barrier run: it moves no data, and is right if each
// rank has heard of all before it goes on.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hocket/status.hpp"

#include "plan/cells.hpp"
#include "proof/schedule.hpp"

namespace hocket::plan {

class Heard {
 public:
  explicit Heard(std::span<const Plan> plans);

  [[nodiscard]] Status run(const Event& event);
  [[nodiscard]] Status check_results() const;

 private:
  /// A bit for each rank, in the cell that a range begins with.
  [[nodiscard]] std::span<std::uint64_t> at(std::uint32_t rank, const Range& range);

  std::span<const Plan> plans_;
  std::size_t words_;
  std::vector<std::vector<std::uint64_t>> memory_;
};

}  // namespace hocket::plan
