#include "run/failures.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"

namespace hocket::run {
namespace {

constexpr std::size_t shown_max = 4;  // with their last lines
constexpr std::size_t named_max = 16;

/// Whether it died by itself: of a signal, but not because its peer in a pipe was gone.
bool has_crashed(const Failure& failure) {
  const int signal = failure.end.status - 128;
  return signal > 0 && signal < SIGRTMIN && signal != SIGPIPE;
}

/// "rank 2", "ranks 0, 1 and 3", "ranks 0, 1, … and 48 others"
std::string listed(std::span<const Failure> failures) {
  std::vector<int> ranks;
  for (const Failure& each : failures) ranks.push_back(each.end.rank);
  std::ranges::sort(ranks);
  if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
  const bool are_many = ranks.size() > named_max;
  const std::size_t named = are_many ? named_max : ranks.size() - 1;
  const std::string rest =
      are_many ? fmt::format("{} others", ranks.size() - named) : std::to_string(ranks.back());
  return fmt::format("ranks {} and {}", joined(std::span(ranks).first(named), ", "), rest);
}

std::int64_t spread_ms(const std::vector<Failure>& failures) {
  const auto [first, last] = std::ranges::minmax(failures, {}, &Failure::seen);
  return std::chrono::ceil<std::chrono::milliseconds>(last.seen - first.seen).count();
}

/// "hocket run: rank 3 failed first, on node7 (pid 17), after 3.2 s: exit status 1"
std::string told(const Failure& failure, std::string_view how) {
  const std::chrono::duration<double> lasted = failure.end.lasted;
  std::string text =
      fmt::format("hocket run: rank {} {}, on {} (pid {}), after {:.1f} s: {}", failure.end.rank,
                  how, failure.host, failure.end.pid, lasted.count(), failure.end.text);
  if (failure.last_lines.empty()) return text;
  text += "\nthe last lines of its stderr:\n  | ";
  for (const char each : failure.last_lines) {
    text += each;
    if (each == '\n') text += "  | ";
  }
  return text;
}

}  // namespace

void Failures::add(Failure failure) {
  const bool is_cause =
      has_crashed(failure) && !failures_.empty() && !has_crashed(failures_.front());
  failures_.insert(is_cause ? failures_.begin() : failures_.end(), std::move(failure));
}

std::string Failures::story() const {
  const Failure& first = failures_.front();
  if (failures_.size() == 1) return told(first, "failed first");
  if (has_crashed(first)) {
    return fmt::format("{}\nhocket run: {} failed within {} ms of it", told(first, "failed first"),
                       listed(std::span(failures_).subspan(1)), spread_ms(failures_));
  }
  std::string text = fmt::format("hocket run: {} failed within {} ms of each other",
                                 listed(failures_), spread_ms(failures_));
  for (const Failure& each : std::span(failures_).first(std::min(failures_.size(), shown_max))) {
    text += '\n' + told(each, "failed");
  }
  return text;
}

}  // namespace hocket::run
