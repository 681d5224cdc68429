#include "draw/plan_svg.hpp"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "proof/describe.hpp"
#include "proof/schedule.hpp"

namespace hocket::draw {
namespace {

using plan::Plan;
using plan::Step;
using proof::Event;

// In the drawing's units.
constexpr std::uint64_t left = 64;
constexpr std::uint64_t top = 108;
constexpr std::uint64_t row = 36;
constexpr std::uint64_t column_min = 72;
constexpr std::uint64_t letter = 5;           // of a label, about
constexpr std::uint64_t width_min = 620;      // of the legend
constexpr std::size_t labels_ranks_max = 16;  // more would cover each other

/// Drawn in layers, as labels would be crossed out by arrows that came after them.
struct Drawing {
  std::span<const Plan> plans;
  std::uint64_t rounds = 0;
  std::uint64_t column = column_min;
  std::string marks = {};
  std::string labels = {};

  [[nodiscard]] std::uint64_t x_of(std::uint64_t round) const { return left + round * column; }
  [[nodiscard]] std::uint64_t y_of(std::uint64_t rank) const { return top + rank * row; }
  [[nodiscard]] const Step& step(const proof::StepId& id) const {
    return plans[id.rank].steps[id.step];
  }
};

/// What a message carries, if there is room to say so.
std::string label_of(const Drawing& drawing, const Event& event) {
  if (!event.is_message || drawing.plans.size() > labels_ranks_max) return "";
  const Plan& plan = drawing.plans[event.step.rank];
  if (plan.problem.operation == plan::Operation::barrier) return "";  // nothing
  return describe(plan, drawing.step(event.step).source());
}

std::string style(std::uint64_t width, std::uint64_t height) {
  return fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}">
<style>
  svg {{ font: 12px sans-serif; fill: #333 }}
  .row {{ stroke: #ddd }}
  .move {{ stroke: #2f6fb0; fill: none; stroke-width: 1.5; marker-end: url(#move) }}
  .reduce {{ stroke: #c2571a; fill: none; stroke-width: 1.5; marker-end: url(#reduce) }}
  .copy {{ fill: #2f6fb0 }}
  .add {{ fill: #c2571a }}
  .blocks {{ font-size: 9px }}
  .halo {{ font-size: 9px; stroke: white; stroke-width: 3 }}
</style>
<defs>
  <marker id="move" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0L8 4L0 8z" fill="#2f6fb0"/></marker>
  <marker id="reduce" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0L8 4L0 8z" fill="#c2571a"/></marker>
</defs>
<rect width="100%" height="100%" rx="6" fill="white"/>
)",
      width, height);
}

std::string head(const Drawing& drawing) {
  const Plan& plan = drawing.plans.front();
  const std::uint32_t blocks = plan.shape.vector_blocks();
  return style(std::max(drawing.x_of(drawing.rounds) + left / 2, width_min),
               drawing.y_of(drawing.plans.size()) + row / 4) +
         fmt::format(
             R"(<text x="12" y="20" font-weight="bold">{} by {}: {} ranks, one a row; {} rounds, one a column</text>
<line class="move" x1="12" y1="36" x2="36" y2="36"/><text x="42" y="40">sent</text>
<line class="reduce" x1="92" y1="36" x2="116" y2="36"/><text x="122" y="40">sent, and reduced with what is there</text>
<circle class="copy" cx="366" cy="36" r="3"/><text x="374" y="40">copied</text>
<circle class="add" cx="440" cy="36" r="3"/><text x="448" y="40">reduced inside a rank</text>
)",
             name(plan.problem.operation), plan.algorithm, drawing.plans.size(), drawing.rounds) +
         (drawing.labels.empty()
              ? ""
              : fmt::format("<text x=\"12\" y=\"58\">out[2..4]: blocks 2 to 4 of "
                            "the sender's out; the vector is {} block{}</text>\n",
                            blocks, blocks == 1 ? "" : "s"));
}

std::string grid(const Drawing& drawing) {
  std::string svg;
  for (std::uint64_t round = 1; round <= drawing.rounds; ++round) {
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                       drawing.x_of(round) - drawing.column / 2, top - row / 2 - 4, round);
  }
  for (std::uint64_t rank = 0; rank < drawing.plans.size(); ++rank) {
    const std::uint64_t y = drawing.y_of(rank);
    svg += fmt::format(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>"
        "<line class=\"row\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n",
        left - 10, y + 4, rank, left, y, drawing.x_of(drawing.rounds), y);
  }
  return svg;
}

void add_message(Drawing& drawing, const Event& message) {
  const bool reduces = drawing.step(message.receive).combines();
  const std::uint64_t x = drawing.x_of(message.round - 1) + 8;
  const std::uint64_t y = drawing.y_of(message.step.rank);
  drawing.marks +=
      fmt::format("<path class=\"{}\" d=\"M{} {}L{} {}\"/>\n", reduces ? "reduce" : "move", x, y,
                  drawing.x_of(message.round) - 8, drawing.y_of(message.receive.rank));
  const std::string label = label_of(drawing, message);
  if (label.empty()) return;
  const bool is_upward =
      message.receive.rank < message.step.rank;  // the label is on the other side
  drawing.labels +=
      fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", x, is_upward ? y + 11 : y - 4, label);
}

/// Between the rounds, where several such steps of a rank are one dot: that of a reduction, if
/// there is any.
void add_dot(Drawing& drawing, const Event& event) {
  drawing.marks += fmt::format("<circle class=\"{}\" cx=\"{}\" cy=\"{}\" r=\"3\"/>\n",
                               drawing.step(event.step).combines() ? "add" : "copy",
                               drawing.x_of(event.round), drawing.y_of(event.step.rank));
}

/// White all around them, so that they can be read where they lie on arrows.
std::string layers_of_labels(const Drawing& drawing) {
  if (drawing.labels.empty()) return "";
  return fmt::format(
      "<defs><g id=\"labels\">\n{}</g></defs>\n"
      "<use href=\"#labels\" class=\"halo\"/><use href=\"#labels\" class=\"blocks\"/>\n",
      drawing.labels);
}

}  // namespace

std::string plan_svg(std::span<const Plan> plans) {
  Drawing drawing{.plans = plans};
  const auto schedule = proof::make_schedule(plans);
  if (schedule.ok()) {
    drawing.rounds = schedule->rounds;
    std::uint64_t longest = 0;
    for (const Event& event : schedule->events) {
      longest = std::max<std::uint64_t>(longest, label_of(drawing, event).size());
    }
    drawing.column = std::max(column_min, longest * letter + 24);
    for (const Event& event : schedule->events) {
      event.is_message ? add_message(drawing, event) : add_dot(drawing, event);
    }
  }
  return head(drawing) + grid(drawing) + drawing.marks + layers_of_labels(drawing) + "</svg>\n";
}

}  // namespace hocket::draw
