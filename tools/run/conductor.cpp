#include "run/conductor.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "run/signals.hpp"

namespace hocket::run {
namespace {

constexpr std::chrono::milliseconds failure_window{100};
/// Who sends a signal to every process of a job, and to the job as well, means it once.
constexpr std::chrono::milliseconds same_signal_max{300};
constexpr std::chrono::seconds escape_after{2};
/// When the guardian was killed, its user does not expect anything to go on for long.
constexpr std::chrono::seconds orphan_grace_max{5};

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
  look_at_failures();
  output_.finish_all();
}

void Conductor::start_attempt() {
  if (options_.records != nullptr) options_.records->begin_attempt();
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
  look_at_failures();
  look_at_output();
}

bool Conductor::wants(int, Stream stream) const { return is_abandoned_ || output_.wants(stream); }

void Conductor::on_output(int, int rank, Stream stream, std::string_view bytes) {
  if (!is_abandoned_ && output_.knows(rank)) output_.write(rank, stream, bytes);
}

void Conductor::on_rank_end(int node, const RankEnd& end) {
  if (end.status == 0 || is_ending_) return;
  if (end.pid < 0) {
    output_.say(fmt::format("hocket run: on {}: {}", host(node), end.text));
    return fail(end.status, false);
  }
  Failure failure = {.end = end, .host = host(node), .seen = loop_.clock().now()};
  if (output_.knows(end.rank)) {
    output_.finish(end.rank);
    failure.last_lines = output_.last_lines(end.rank);
  }
  if (failures_.empty()) decision_.emplace(loop_, Deadline::after(loop_.clock(), failure_window));
  failures_.add(std::move(failure));
}

/// Others that fail for the same reason do it in the same moment: before the rest is told to end.
void Conductor::look_at_failures() {
  if (failures_.empty()) return;
  if (is_busy() && !decision_->deadline().passed(loop_.clock().now())) return;
  decision_.reset();
  const Failures failures = std::exchange(failures_, {});
  output_.say(failures.story());
  if (options_.records != nullptr) {
    for (const std::string& each : options_.records->findings()) {
      output_.say(fmt::format("hocket run: the records show: {}", each));
    }
  }
  if (!failure_) fail(failures.status(), true);
}

const std::string& Conductor::host(int node) const {
  return options_.hosts[static_cast<std::size_t>(node)];
}

Conductor::Site& Conductor::site(int node) {
  return sites_[static_cast<std::size_t>(node - options_.first_node)];
}

void Conductor::on_attempt_end(int node) { site(node).is_busy = false; }

void Conductor::on_lost(int node, std::string_view why) {
  const bool is_running = is_busy();
  site(node).is_busy = false;
  if (!is_running || user_signal_) return;
  output_.say(fmt::format("hocket run: {} is lost: {}", host(node), why));
  if (!is_ending_) return fail(1, false);
  failure_is_final_ = true;  // there is nothing to start its ranks with
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
  const Instant now = loop_.clock().now();
  if (user_signal_ && now - user_signal_at_ < same_signal_max) return;
  const bool is_impatient = user_signal_ || !is_busy();
  if (!user_signal_) {
    user_signal_ = signal;
    user_signal_at_ = now;
  }
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
  options_.grace = std::min<Duration>(options_.grace, orphan_grace_max);
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
  if (failure_) return *failure_;
  return user_signal_ ? 128 + *user_signal_ : 0;
}

}  // namespace hocket::run
