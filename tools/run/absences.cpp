#include "run/absences.hpp"

#include <chrono>
#include <utility>

#include "base/log.hpp"
#include "base/signals.hpp"
#include "base/text.hpp"
#include "net/endpoint.hpp"
#include "run/environment.hpp"
#include "run/job.hpp"
#include "world/entry.hpp"

namespace hocket::run {
namespace {

/// The store is there as long as the job runs; at its end nobody waits for a report.
constexpr std::chrono::seconds store_patience{1};

Result<std::unique_ptr<store::TcpStore>> connect(const std::vector<std::string>& environment) {
  auto server = net::parse_endpoint(value_of(environment, "HOCKET_STORE"));
  if (!server.ok()) return server.status();
  auto tls = tls_settings(environment);
  if (!tls.ok()) return tls.status();
  return store::TcpStore::connect(
      {.server = std::move(*server),
       .credentials = {.job = std::string(value_of(environment, "HOCKET_JOB")),
                       .secret = std::string(value_of(environment, "HOCKET_SECRET"))},
       .tls = std::move(*tls),
       .timeout = store_patience});
}

}  // namespace

Absences::~Absences() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  woken_.notify_all();
  thread_.join();
}

void Absences::set_meeting_point(std::vector<std::string> environment) {
  environment_ = std::move(environment);
}

void Absences::report(int rank, std::string text) {
  {
    const std::lock_guard lock(mutex_);
    reports_.push_back({environment_, rank, std::move(text)});
  }
  woken_.notify_all();
  if (thread_.joinable()) return;
  const SignalsBlocked blocked;  // they are for the thread that runs the loop
  thread_ = std::thread([this] { work(); });
}

void Absences::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    woken_.wait(lock, [this] { return is_over_ || !reports_.empty(); });
    if (is_over_) return;
    const Report report = std::move(reports_.front());
    reports_.pop_front();
    lock.unlock();
    tell(report);
    lock.lock();
  }
}

void Absences::tell(const Report& report) {
  if (!store_) {
    auto store = connect(report.environment);
    if (store.ok()) store_ = std::move(*store);
    if (!store.ok()) {
      return log::line(log::Level::debug, "rank {} has ended, which can't be told: {}", report.rank,
                       store.status().to_string());
    }
  }
  const auto attempt = parse_integer(value_of(report.environment, "HOCKET_ATTEMPT"));
  // If the store is gone, nobody waits for the report.
  static_cast<void>(
      world::report_end(*store_, static_cast<int>(attempt.value_or(0)), report.rank, report.text));
}

}  // namespace hocket::run
