#include "draw/plan_chart.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "proof/describe.hpp"
#include "proof/schedule.hpp"

namespace hocket::draw {
namespace {

using plan::Plan;
using plan::Step;
using proof::Event;

constexpr std::uint32_t rows_max = 32;
constexpr std::uint32_t columns_max = 12;

/// Characters, of which one may be several bytes.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char byte) { return (byte & 0xc0) != 0x80; }));
}

void pad(std::string& line, std::string_view cell, std::size_t to) {
  line += cell;
  line.append(to - std::min(to, width(cell)) + 2, ' ');
}

/// "o2..3→1+": blocks 2 and 3 of out go to rank 1, which reduces them.
std::string cell(std::span<const Plan> plans, const Event& message) {
  const Step& send = plans[message.step.rank].steps[message.step.step];
  const Step& receive = plans[message.receive.rank].steps[message.receive.step];
  const std::uint32_t last = last_block(plans[message.step.rank], send.source());
  const std::string range =
      send.count == 1 ? std::to_string(send.from) : fmt::format("{}..{}", send.from, last);
  return fmt::format("{}{}→{}{}", name(send.from_buffer).front(), range, message.receive.rank,
                     receive.combines() ? "+" : "");
}

using Cells = std::map<std::pair<std::uint32_t, std::uint32_t>, std::string>;  // by rank and round

Cells cells_of(std::span<const Plan> plans, const proof::Schedule& schedule) {
  Cells cells;
  for (const Event& event : schedule.events) {
    if (!event.is_message) continue;
    std::string& text = cells[{event.step.rank, event.round}];
    if (!text.empty()) text += ' ';
    text += cell(plans, event);
  }
  return cells;
}

std::string title(std::span<const Plan> plans, const proof::Proof& proof) {
  const Plan& plan = plans.front();
  const std::uint32_t contributions = plan.problem.contributions;
  return fmt::format(
      "{} by {}, {} ranks{}: {} messages in {} rounds; a rank sends {} blocks at most, where the "
      "whole vector is {}\n\n",
      name(plan.problem.operation), plan.algorithm, plans.size(),
      contributions > 0 ? fmt::format(", {} contributions", contributions) : "", proof.messages,
      proof.rounds, proof.blocks_sent, plan.shape.vector_blocks());
}

}  // namespace

std::string plan_chart(std::span<const Plan> plans, const proof::Proof& proof) {
  const auto schedule = proof::make_schedule(plans);
  std::string chart = title(plans, proof);
  if (!schedule.ok() || schedule->rounds == 0) return chart;
  const Cells cells = cells_of(plans, *schedule);
  const auto rounds = static_cast<std::uint32_t>(schedule->rounds);
  const auto size = static_cast<std::uint32_t>(plans.size());
  const std::uint32_t columns = std::min(rounds, columns_max);
  const std::uint32_t rows = std::min(size, rows_max);

  std::vector<std::size_t> widths(columns + 1, 4);
  for (const auto& [place, text] : cells) {
    const auto [rank, round] = place;
    if (rank < rows && round <= columns) widths[round] = std::max(widths[round], width(text));
  }
  std::string line;
  pad(line, "rank", widths[0]);
  for (std::uint32_t round = 1; round <= columns; ++round) {
    pad(line, std::to_string(round), widths[round]);
  }
  for (std::uint32_t rank = 0; rank <= rows; ++rank) {
    chart += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
    if (rank == rows) break;
    line.clear();
    pad(line, fmt::format("{:>4}", rank), widths[0]);
    for (std::uint32_t round = 1; round <= columns; ++round) {
      const auto found = cells.find({rank, round});
      pad(line, found == cells.end() ? "·" : std::string_view(found->second), widths[round]);
    }
  }
  if (rows < size || columns < rounds) {
    chart += fmt::format("… {} ranks and {} rounds in all; --svg FILE draws them\n", size, rounds);
  }
  return chart + "\ni, o, s: blocks of in, out, scratch; → to that rank; + which reduces them\n";
}

}  // namespace hocket::draw
