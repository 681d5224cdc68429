#include "sim_plot.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

#include "base/text.hpp"

namespace hocket::cli {
namespace {

constexpr std::size_t cell_width = 56;
constexpr std::size_t cell_height = 34;
constexpr std::size_t left = 76;
constexpr std::size_t top = 46;
constexpr std::size_t legend_row = 22;

// Told apart by most people with colour-blindness too (Paul Tol's light scheme).
constexpr std::array<std::string_view, 9> colours = {"#77aadd", "#ee8866", "#bbcc33",
                                                     "#eedd88", "#ffaabb", "#99ddff",
                                                     "#44bb99", "#aaaa00", "#dddddd"};

std::string_view colour(std::size_t algorithm) { return colours[algorithm % colours.size()]; }

/// Of the bound, in percent.
double share(const Outcome& outcome) {
  return outcome.seconds > 0 ? 100 * outcome.bound_seconds / outcome.seconds : 0;
}

void draw_cell(std::string& svg, std::size_t x, std::size_t y,
               const std::vector<Outcome>& outcomes) {
  const std::size_t winner = best(outcomes);
  const Outcome& outcome = outcomes[winner];
  fmt::format_to(std::back_inserter(svg),
                 "<g><title>{}: {:.4g} us, {:.0f} % of the bound</title>"
                 "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" stroke=\"#fff\"/>"
                 "<text x=\"{}\" y=\"{}\">{:.0f} %</text></g>\n",
                 outcome.algorithm->name, outcome.seconds * 1e6, share(outcome), x, y, cell_width,
                 cell_height, colour(winner), x + cell_width / 2, y + cell_height / 2 + 4,
                 share(outcome));
}

void draw_legend(std::string& svg, const Sweep& sweep, std::size_t y) {
  for (std::size_t i = 0; i < sweep.algorithms.size(); ++i, y += legend_row) {
    fmt::format_to(std::back_inserter(svg),
                   "<rect x=\"{}\" y=\"{}\" width=\"14\" height=\"14\" fill=\"{}\"/>"
                   "<text x=\"{}\" y=\"{}\" text-anchor=\"start\">{}</text>\n",
                   left, y, colour(i), left + 22, y + 12, sweep.algorithms[i]->name);
  }
}

}  // namespace

std::string draw_plot(const std::string& title, const Sweep& sweep,
                      const std::vector<PlotRow>& rows) {
  const std::size_t bottom = top + rows.size() * cell_height;
  const std::size_t width = left + std::max<std::size_t>(sweep.sizes.size() * cell_width, 560) + 20;
  const std::size_t height = bottom + 64 + sweep.algorithms.size() * legend_row;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" font-size=\"12\" "
      "text-anchor=\"middle\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n"
      "<text x=\"{2}\" y=\"24\" text-anchor=\"start\" font-size=\"15\">{3}</text>\n",
      width, height, left, title);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t y = bottom - (i + 1) * cell_height;
    fmt::format_to(std::back_inserter(svg),
                   "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{} ranks</text>\n", left - 8,
                   y + cell_height / 2 + 4, rows[i].ranks);
    for (std::size_t j = 0; j < sweep.sizes.size(); ++j) {
      draw_cell(svg, left + j * cell_width, y, rows[i].outcomes[j]);
    }
  }
  for (std::size_t j = 0; j < sweep.sizes.size(); ++j) {
    fmt::format_to(std::back_inserter(svg), "<text x=\"{}\" y=\"{}\">{}</text>\n",
                   left + j * cell_width + cell_width / 2, bottom + 18,
                   format_size(sweep.sizes[j]));
  }
  draw_legend(svg, sweep, bottom + 44);
  return svg + "</svg>\n";
}

}  // namespace hocket::cli
