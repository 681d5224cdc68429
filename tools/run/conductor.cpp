#include "run/conductor.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <utility>

#include <fmt/format.h>

namespace hocket::run {
namespace {

constexpr std::chrono::seconds escape_after{2};

std::string in_seconds(Duration duration) {
  return fmt::format("{:.1f} s", std::chrono::duration<double>(duration).count());
}

std::string indented(std::string_view lines) {
  std::string to = "  | ";
  for (const char each : lines) {
    to += each;
    if (each == '\n') to += "  | ";
  }
  return to;
}

}  // namespace

Conductor::Conductor(Loop& loop, Output& output, ConductorOptions options, Fd lifeline)
    : loop_(loop),
      output_(output),
      options_(std::move(options)),
      user_(loop, *this, std::move(lifeline)) {}

void Conductor::add(Node& node) { sites_.push_back({.node = &node}); }

void Conductor::set_meeting_point(std::string store, std::string master_host,
                                  std::uint16_t master_port) {
  options_.world.store = std::move(store);
  options_.world.master_host = std::move(master_host);
  options_.world.master_port = master_port;
}

int Conductor::run() {
  run_attempt();
  while (may_restart()) {
    ++options_.world.attempt;
    output_.say(fmt::format("hocket run: restarting all ranks: restart {} of at most {}",
                            options_.world.attempt, options_.world.restarts_max));
    run_attempt();
  }
  while (!output_.is_flushed() && !is_abandoned_) turn();
  return exit_status();
}

void Conductor::run_attempt() {
  failure_.reset();
  is_ending_ = false;
  start_attempt();
  while (is_busy() && !has_escaped()) turn();
  output_.finish_all();
}

void Conductor::start_attempt() {
  for (std::size_t i = 0; i < sites_.size(); ++i) {
    Orders orders = {.command = options_.command};
    const int node = options_.first_node + static_cast<int>(i);
    for (int local = 0; local < options_.world.ranks_per_node; ++local) {
      orders.ranks.push_back({.rank = node * options_.world.ranks_per_node + local,
                              .environment = rank_variables(options_.world, node, local)});
    }
    sites_[i].is_busy = true;
    sites_[i].node->start(orders);
  }
}

void Conductor::turn() {
  loop_.turn();
  look_at_output();
}

bool Conductor::wants(int, Stream stream) const { return is_abandoned_ || output_.wants(stream); }

void Conductor::on_output(int, int rank, Stream stream, std::string_view bytes) {
  if (!is_abandoned_ && output_.knows(rank)) output_.write(rank, stream, bytes);
}

void Conductor::on_rank_end(int node, const RankEnd& end) {
  if (end.status == 0 || is_ending_) return;
  const std::string& host = options_.hosts[static_cast<std::size_t>(node)];
  if (end.pid < 0) {
    output_.say(fmt::format("hocket run: on {}: {}", host, end.text));
    return fail(end.status, false);
  }
  const bool is_ours = output_.knows(end.rank);
  if (is_ours) output_.finish(end.rank);
  output_.say(fmt::format("hocket run: rank {} failed first, on {} (pid {}), after {}: {}",
                          end.rank, host, end.pid, in_seconds(end.lasted), end.text));
  const std::string lines = is_ours ? output_.last_lines(end.rank) : "";
  if (!lines.empty()) output_.say("the last lines of its stderr:\n" + indented(lines));
  fail(end.status, true);
}

Conductor::Site& Conductor::site(int node) {
  return sites_[static_cast<std::size_t>(node - options_.first_node)];
}

void Conductor::on_attempt_end(int node) { site(node).is_busy = false; }

void Conductor::on_lost(int node, std::string_view why) {
  site(node).is_busy = false;
  if (is_ending_) return;
  output_.say(fmt::format("hocket run: {} is lost: {}",
                          options_.hosts[static_cast<std::size_t>(node)], why));
  fail(1, false);
}

void Conductor::fail(int status, bool may_restart) {
  failure_ = status;
  failure_is_final_ = !may_restart;
  end_all(SIGTERM);
}

void Conductor::end_all(int signal) {
  is_ending_ = true;
  for (const Site& site : sites_) {
    if (!site.is_busy) continue;
    site.node->signal(signal);
    site.node->kill_after(options_.grace);
  }
}

void Conductor::on_signal(int signal) {
  if (!ends_the_job(signal)) {
    for (const Site& site : sites_) {
      if (site.is_busy) site.node->signal(signal);
    }
    return;
  }
  const bool is_impatient = is_ending_ || user_signal_ || !is_busy();
  if (!user_signal_) user_signal_ = signal;
  if (!is_impatient) return end_all(signal);
  is_abandoned_ = true;
  if (!escape_) escape_.emplace(loop_, Deadline::after(loop_.clock(), escape_after));
  for (const Site& site : sites_) {
    if (site.is_busy) site.node->kill_after(Duration::zero());
  }
}

bool Conductor::has_escaped() const {
  return escape_ && escape_->deadline().passed(loop_.clock().now());
}

void Conductor::on_guardian_death() {
  is_abandoned_ = true;
  user_signal_ = SIGKILL;
  end_all(SIGTERM);
}

void Conductor::look_at_output() {
  const auto failure = output_.failure();
  if (!failure || is_abandoned_) return;
  is_abandoned_ = true;
  if (failure_ || user_signal_) return;
  if (failure->system_error() == EPIPE) return fail_here(128 + SIGPIPE, "its output was closed");
  output_.say(fmt::format("hocket run: {}", failure->to_string()));
  fail_here(1, failure->to_string());
}

void Conductor::fail_here(int status, std::string_view why) {
  for (const Site& site : sites_) {
    if (site.is_busy) site.node->tell_why(status, why);
  }
  fail(status, false);
}

bool Conductor::is_busy() const { return std::ranges::any_of(sites_, &Site::is_busy); }

bool Conductor::may_restart() const {
  return failure_ && !failure_is_final_ && !user_signal_ && !is_abandoned_ &&
         options_.world.attempt < options_.world.restarts_max;
}

int Conductor::exit_status() const {
  if (user_signal_) return 128 + *user_signal_;
  return failure_.value_or(0);
}

}  // namespace hocket::run
