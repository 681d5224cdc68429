#include "run/mail.hpp"

#include <chrono>
#include <cstdint>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include <fmt/format.h>

#include "run/channel.hpp"
#include "run/meeting.hpp"

namespace hocket::run {
namespace {

constexpr std::chrono::seconds heartbeat{2};
constexpr std::chrono::seconds launcher_silence_max{20};
constexpr std::chrono::seconds mail_patience{20};   // with the store
constexpr std::chrono::seconds farewell{5};         // for the others to hear that it is over
constexpr std::chrono::seconds farewell_moment{1};  // for what was posted last
constexpr std::string_view over = "over";

std::string key(int attempt, std::string_view name) {
  return fmt::format("launch/{}/{}", attempt, name);
}

std::string key(int attempt, std::string_view name, int node) {
  return fmt::format("launch/{}/{}/{}", attempt, name, node);
}

std::string to_json(const Reason& reason) {
  return Json{{"node", reason.node},
              {"rank", reason.end.rank},
              {"pid", reason.end.pid},
              {"status", reason.end.status},
              {"text", to_text(reason.end.text)},
              {"lasted_ns", reason.end.lasted.count()}}
      .dump();
}

Reason from_json(std::string_view text) {
  const Json json = Json::parse(text);
  return {.node = json.at("node").get<int>(),
          .end = {.rank = json.at("rank").get<int>(),
                  .pid = json.at("pid").get<pid_t>(),
                  .status = json.at("status").get<int>(),
                  .text = to_bytes(json.at("text").get<std::string>()),
                  .lasted = Duration(json.at("lasted_ns").get<Duration::rep>())}};
}

}  // namespace

Mail::Mail(Loop& loop, MailListener& listener, std::shared_ptr<store::TcpStore> store, int node,
           int nodes)
    : loop_(loop),
      listener_(listener),
      store_(std::move(store)),
      node_(node),
      nodes_(nodes),
      bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  store_->set_timeout(mail_patience);
  loop_.add(*this);
  sender_ = std::thread([this] { send_posts(); });
}

Mail::~Mail() {
  loop_.remove(*this);
  {
    std::unique_lock lock(mutex_);
    is_closing_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, farewell_moment, [this] { return posts_.empty(); });
  }
  // Whatever the threads wait for.
  store_->close(Status(StatusCode::aborted, "it was closed on this side"));
  sender_.join();
  if (ear_.joinable()) ear_.join();
}

void Mail::start() {
  if (ear_.joinable()) ear_.join();  // it has said its last
  ++attempt_;
  ear_ = std::thread([this, attempt = attempt_] { listen(attempt); });
}

void Mail::post(Reason reason) {
  hand_in({.attempt = attempt_, .node = node_, .reason = std::move(reason)});
}

void Mail::post_end() { hand_in({.attempt = attempt_, .node = node_}); }

void Mail::hand_in(Post post) {
  const std::lock_guard lock(mutex_);
  posts_.push_back(std::move(post));
  changed_.notify_all();
}

void Mail::hand_over(Event event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t put = ::write(bell_.get(), &one, sizeof one);
}

void Mail::ready() {
  std::uint64_t rings = 0;
  [[maybe_unused]] const ssize_t got = ::read(bell_.get(), &rings, sizeof rings);
  std::deque<Event> events;
  {
    const std::lock_guard lock(mutex_);
    events.swap(events_);
  }
  for (const Event& event : events) {
    if (event.attempt != attempt_) continue;
    if (event.reason) {
      listener_.on_end_of_all(*event.reason);
    } else if (!event.cut_off.ok()) {
      listener_.on_cut_off(event.cut_off);
    } else {
      listener_.on_over();
    }
  }
}

/// Until all was sent and no more will come.
void Mail::send_posts() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_closing_ || !posts_.empty(); });
    if (posts_.empty()) return;
    const Post& post = posts_.front();
    lock.unlock();
    Status status = send(post);
    // Who listens finds out by the next beat; unless it has heard that all is over, and node 0
    // gone.
    if (!status.ok()) store_->close(std::move(status));
    lock.lock();
    posts_.pop_front();
    changed_.notify_all();
  }
}

Status Mail::send(const Post& post) {
  if (post.reason) return send_reason(post.attempt, *post.reason);
  return send_end(post.attempt, post.node);
}

/// Only the first failure of all nodes counts, and every node hears of it.
Status Mail::send_reason(int attempt, const Reason& reason) {
  const auto swap = store_->compare_set(key(attempt, "failed"), "", to_json(reason));
  const bool is_first = !swap.ok() || swap->is_set;
  hand_over({.attempt = attempt, .reason = is_first ? reason : from_json(*swap->value)});
  if (!swap.ok()) return swap.status();
  return swap->is_set ? tell_all(attempt, to_json(reason)) : Status();
}

/// Who finds that all have ended says so; that two find it does no harm.
Status Mail::send_end(int attempt, int node) {
  if (Status status = store_->set(key(attempt, "ended", node), "yes"); !status.ok()) return status;
  std::vector<std::string> keys;
  for (int each = 0; each < nodes_; ++each) keys.push_back(key(attempt, "ended", each));
  const auto have_ended = store_->check(std::move(keys));
  if (!have_ended.ok()) return have_ended.status();
  return *have_ended ? tell_all(attempt, std::string(over)) : Status();
}

Status Mail::tell_all(int attempt, const std::string& news) {
  for (int node = 0; node < nodes_; ++node) {
    Status status = store_->queue_push(key(attempt, "news", node), news);
    if (!status.ok()) return status;
  }
  return {};
}

/// Until the attempt is over for all or the store is gone.
void Mail::listen(int attempt) {
  const std::string queue = key(attempt, "news", node_);
  std::vector<Pulse> pulses(static_cast<std::size_t>(nodes_), {"", loop_.clock().now()});
  for (;;) {
    const auto beat = store_->add(alive_key(node_), 1);
    if (!beat.ok()) return hand_over({.attempt = attempt, .cut_off = beat.status()});
    if (node_ == 0) look_for_the_dead(attempt, pulses);
    const auto news = store_->queue_pop(queue, heartbeat);
    if (!news.ok()) continue;  // no news; should the store be gone, the next beat tells
    if (*news == over) break;
    hand_over({.attempt = attempt, .reason = from_json(*news)});
  }
  spread_that_it_is_over(attempt);
  hand_over({.attempt = attempt});
}

/// Node 0 serves the store, and may be gone soon: it waits for the others, but not for ever.
void Mail::spread_that_it_is_over(int attempt) {
  std::vector<std::string> others;
  for (int node = 1; node < nodes_; ++node) others.push_back(key(attempt, "heard", node));
  const Status status = node_ == 0 ? store_->wait(std::move(others), farewell)
                                   : store_->set(key(attempt, "heard", node_), "yes");
  static_cast<void>(status.ok());  // who doesn't hear it is lost, and hears that
}

/// On node 0, which speaks for them.
void Mail::look_for_the_dead(int attempt, std::vector<Pulse>& pulses) {
  const Instant now = loop_.clock().now();
  for (int node = 1; node < nodes_; ++node) {
    Pulse& pulse = pulses[static_cast<std::size_t>(node)];
    const auto count = store_->get(alive_key(node), Duration::zero());
    if (count.ok() && *count != pulse.count) pulse = {*count, now};
    if (now - pulse.since < launcher_silence_max) continue;
    pulse.since = now;
    const std::string text =
        fmt::format("its launcher has not been heard of for {} s", launcher_silence_max.count());
    const RankEnd end = {.rank = -1, .status = 1, .text = text};
    hand_in({.attempt = attempt, .node = node, .reason = Reason{.node = node, .end = end}});
    hand_in({.attempt = attempt, .node = node});
    static_cast<void>(store_->set(key(attempt, "heard", node), "yes").ok());
  }
}

}  // namespace hocket::run
