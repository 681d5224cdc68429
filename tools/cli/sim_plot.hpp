// A picture of which algorithm is fastest: sizes from left to right, ranks from bottom to top.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim_sweep.hpp"

namespace hocket::cli {

struct PlotRow {
  std::uint32_t ranks;
  Outcomes outcomes;  // by size
};

/// An SVG document, which needs nothing else. All rows have the same sizes and algorithms.
[[nodiscard]] std::string draw_plot(const std::string& title, const Sweep& sweep,
                                    const std::vector<PlotRow>& rows);

}  // namespace hocket::cli
