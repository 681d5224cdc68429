#include "draw/plan_svg.hpp"

#include <cstdint>

#include <fmt/format.h>

#include "plan/describe.hpp"
#include "proof/schedule.hpp"

namespace hocket::draw {
namespace {

using plan::Plan;
using proof::Event;

// In the drawing's units.
constexpr std::uint64_t left = 64;
constexpr std::uint64_t top = 72;
constexpr std::uint64_t column = 96;
constexpr std::uint64_t row = 36;
constexpr std::uint64_t labels_ranks_max = 16;  // more would cover each other

std::uint64_t x_of(std::uint64_t round) { return left + round * column; }
std::uint64_t y_of(std::uint64_t rank) { return top + rank * row; }

std::string head(std::span<const Plan> plans, std::uint64_t rounds) {
  const Plan& plan = plans.front();
  const std::uint64_t width = x_of(rounds) + left / 2;
  const std::uint64_t height = y_of(plans.size()) + row / 2;
  return fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}">
<style>
  text {{ font: 12px sans-serif; fill: #333 }}
  .row {{ stroke: #ddd }}
  .move {{ stroke: #2f6fb0; fill: none; stroke-width: 1.5; marker-end: url(#move) }}
  .reduce {{ stroke: #c2571a; fill: none; stroke-width: 1.5; marker-end: url(#reduce) }}
  .blocks {{ font-size: 9px; fill: #666 }}
</style>
<defs>
  <marker id="move" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0L8 4L0 8z" fill="#2f6fb0"/></marker>
  <marker id="reduce" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0L8 4L0 8z" fill="#c2571a"/></marker>
</defs>
<rect width="100%" height="100%" fill="white"/>
<text x="12" y="20" font-weight="bold">{2} by {3}, {4} ranks, {5} rounds</text>
<text x="12" y="38"><tspan fill="#2f6fb0">blue: moved</tspan> <tspan fill="#c2571a" dx="8">orange: reduced where it comes</tspan></text>
)",
      width, height, name(plan.problem.operation), plan.algorithm, plans.size(), rounds);
}

std::string grid(std::size_t ranks, std::uint64_t rounds) {
  std::string svg;
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                       x_of(round) - column / 2, top - row / 2, round);
  }
  for (std::uint64_t rank = 0; rank < ranks; ++rank) {
    svg += fmt::format(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>"
        "<line class=\"row\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n",
        left - 10, y_of(rank) + 4, rank, left, y_of(rank), x_of(rounds), y_of(rank));
  }
  return svg;
}

std::string arrow(std::span<const Plan> plans, const Event& message) {
  const plan::Step& send = plans[message.step.rank].steps[message.step.step];
  const plan::Step& receive = plans[message.receive.rank].steps[message.receive.step];
  const bool reduces = receive.kind == plan::StepKind::recv_reduce;
  const std::uint64_t x1 = x_of(message.round - 1) + 8;
  const std::uint64_t x2 = x_of(message.round) - 8;
  const std::uint64_t y1 = y_of(message.step.rank);
  const std::uint64_t y2 = y_of(message.receive.rank);
  std::string svg = fmt::format("<path class=\"{}\" d=\"M{} {}L{} {}\"/>",
                                reduces ? "reduce" : "move", x1, y1, x2, y2);
  if (plans.size() <= labels_ranks_max) {
    svg += fmt::format("<text class=\"blocks\" x=\"{}\" y=\"{}\">{}</text>", x1, y1 - 3,
                       describe(send.source()));
  }
  return svg + '\n';
}

}  // namespace

std::string plan_svg(std::span<const Plan> plans) {
  const auto schedule = proof::make_schedule(plans);
  const std::uint64_t rounds = schedule.ok() ? schedule->rounds : 0;
  std::string svg = head(plans, rounds) + grid(plans.size(), rounds);
  if (rounds > 0) {
    for (const Event& event : schedule->events) {
      if (event.is_message) svg += arrow(plans, event);
    }
  }
  return svg + "</svg>\n";
}

}  // namespace hocket::draw
