#include "health/monitor.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/exception.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/rng.hpp"
#include "base/text.hpp"
#include "health/cause_finder.hpp"
#include "health/hello.hpp"
#include "health/watch.hpp"
#include "link/sockets.hpp"
#include "net/endpoint.hpp"
#include "net/socket.hpp"

namespace hocket::health {
namespace {

using namespace std::chrono_literals;

/// To find out what happened; beyond it a rank tells its own side.
constexpr Duration story_patience = 200ms;
static_assert(CauseFinder::decision_patience < story_patience);
constexpr Duration farewell_patience = 200ms;
constexpr Duration retry_pause = 1ms;  // while there is no memory

/// Those that say good-bye when the process ends without having left its worlds: to others it would
/// have died.
class Living {
 public:
  void add(Monitor& monitor) {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(is_watched_, true)) std::atexit([] { of_process().leave(); });
    monitors_.push_back(&monitor);
  }
  void remove(Monitor& monitor) noexcept {
    const std::lock_guard lock(mutex_);
    std::erase(monitors_, &monitor);
  }
  void leave() noexcept {
    const std::lock_guard lock(mutex_);
    const Deadline deadline = Deadline::after(monotonic_clock(), farewell_patience);
    for (Monitor* const each : monitors_) each->leave(deadline);
  }
  [[nodiscard]] static Living& of_process() {
    static ProcessWide<Living> living;
    return living.get();
  }

 private:
  std::mutex mutex_;
  bool is_watched_ = false;
  std::vector<Monitor*> monitors_;
};

/// Names are looked up; most are numbers.
Result<net::Address> resolve(const net::Endpoint& endpoint) {
  const auto found =
      net::resolve(endpoint, Deadline::after(monotonic_clock(), limits::handshake_timeout));
  if (!found.ok()) return found.status();
  return found->front();
}

Result<Watch::Peer> peer_of(const Monitor::Contact& contact, std::size_t rank) {
  std::string_view rest = contact.address;
  std::string_view list = take_until(rest, " ");
  Watch::Peer peer = {.instance = std::string(rest), .process = contact.process};
  while (!list.empty()) {
    const auto endpoint = net::parse_endpoint(take_until(list, ","));
    const auto address = endpoint.ok() ? resolve(*endpoint) : endpoint.status();
    if (!address.ok()) return address.status();
    peer.addresses.push_back(*address);
  }
  if (peer.addresses.empty() || rest.size() != instance_bytes) {
    return Status(StatusCode::protocol_error,
                  fmt::format("rank {} can't be watched: {} is no address", rank,
                              quote(contact.address)))
        .with_peer(static_cast<int>(rank));
  }
  return peer;
}

Result<Fd> listen(const std::string& host, const MonitorOptions& options) {
  const auto here = resolve({.host = host, .port = 0});
  if (!here.ok()) return here.status();
  if (options.credentials.secret.empty() && !here->is_loopback() && !options.allow_without_secret) {
    return Status(StatusCode::permission_denied,
                  fmt::format("without a secret, everybody could connect to {}", host))
        .with_hint("set HOCKET_SECRET, or HOCKET_ALLOW_WITHOUT_SECRET=1 if that is meant");
  }
  return link::listen_at(*here);
}

}  // namespace

void leave_all_worlds() noexcept { Living::of_process().leave(); }

Result<std::unique_ptr<Monitor>> Monitor::open(MonitorOptions options) {
  auto terms = link::Terms::make(options.credentials, options.tls);
  if (!terms.ok()) return terms.status();
  auto reactor = link::Reactor::of_process();
  if (!reactor.ok()) return reactor.status();
  std::vector<Fd> listeners;
  for (const std::string& host : options.hosts) {
    auto listener = listen(host, options);
    if (!listener.ok()) return listener.status();
    listeners.push_back(std::move(*listener));
  }
  std::unique_ptr<Monitor> monitor(new Monitor(std::move(options), std::move(*reactor),
                                               std::move(*terms), std::move(listeners)));
  Living::of_process().add(*monitor);
  return monitor;
}

Monitor::Monitor(MonitorOptions options, std::shared_ptr<link::Reactor> reactor, link::Terms terms,
                 std::vector<Fd> listeners)
    : options_(std::move(options)), reactor_(std::move(reactor)), terms_(std::move(terms)) {
  const std::string instance = random_hex(instance_bytes / 2);
  for (const Fd& each : listeners) {
    address_ += fmt::format("{}{}", address_.empty() ? "" : ",",
                            net::local_address(each.get()).endpoint().to_string());
  }
  address_ += ' ' + instance;
  watch_ =
      std::make_shared<Watch>(options_, *reactor_, terms_, groups_, instance, std::move(listeners));
  reactor_->post([watch = watch_] { watch->open(); });
}

Monitor::~Monitor() {
  Living::of_process().remove(*this);
  leave(Deadline::never());  // what the thread borrows of this must outlast its use
}

Status Monitor::connect(const std::vector<Contact>& contacts) {
  std::vector<Watch::Peer> peers(options_.size);
  for (std::uint32_t rank = 0; rank < options_.size; ++rank) {
    peers[rank].process = contacts[rank].process;
    if (rank == options_.rank) continue;
    auto peer = peer_of(contacts[rank], rank);
    if (!peer.ok()) return peer.status();
    peers[rank] = std::move(*peer);
  }
  reactor_->post(
      [watch = watch_, peers = std::move(peers)]() mutable { watch->connect(std::move(peers)); });
  return {};
}

void Monitor::leave(Deadline deadline) noexcept {
  struct Farewell {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_over = false;
  };
  std::shared_ptr<Farewell> farewell;
  while (farewell == nullptr && !deadline.passed(monotonic_clock().now())) {
    try {
      auto made = std::make_shared<Farewell>();
      // The second behind all that the first has left in the queue: timers that were due.
      reactor_->post([watch = watch_, reactor = reactor_.get(), made] {
        watch->close();
        const auto end = [watch, made] {
          const std::lock_guard lock(made->mutex);
          made->is_over = true;
          made->changed.notify_all();
        };
        try {
          reactor->post(end);
        } catch (const std::bad_alloc&) {
          end();
        }
      });
      farewell = std::move(made);
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(retry_pause);
    }
  }
  if (farewell == nullptr) return;
  std::unique_lock lock(farewell->mutex);
  const auto is_over = [&] { return farewell->is_over; };
  if (deadline.is_never()) return farewell->changed.wait(lock, is_over);
  farewell->changed.wait_until(lock, deadline.at(), is_over);
}

void Monitor::remove(WatchedGroup& group) noexcept {
  if (!groups_.remove(group)) return;
  // Without memory for it, what is known of the communicator is kept.
  static_cast<void>(described([&] {
    reactor_->post([watch = watch_, id = group.id] { watch->forget(id); });
    return Status();
  }));
}

void Monitor::report(WatchedGroup& group, const Report& report) noexcept {
  const bool is_alarmed = groups_.note_failure(group);
  // Without memory for it the others are not told by this rank, nor is this rank.
  const Status told = described([&] {
    Notice notice = notice_of(report, group.id, options_.rank, universal_time());
    notice.is_second_hand = notice.is_second_hand || is_alarmed;
    reactor_->post([watch = watch_, notice = std::move(notice), ends = report.ends_when_told] {
      ends ? watch->note_and_end(notice) : watch->note(notice);
    });
    return Status();
  });
  if (report.ends_when_told && !told.ok()) group.fail(report.why);
}

void Monitor::ask(Question question) noexcept {
  question.from = options_.rank;
  // Without memory for it, it is asked again later.
  static_cast<void>(described([&] {
    reactor_->post(question_memory_, [watch = watch_, question] { watch->ask(question); });
    return Status();
  }));
}

void Monitor::warn(std::string text) noexcept {
  // Without memory for it, nobody is warned.
  static_cast<void>(described([&] {
    reactor_->post([text = std::move(text)] { log::line(log::Level::warning, "{}", text); });
    return Status();
  }));
}

void Monitor::mention(std::uint32_t rank, std::string operation) noexcept {
  static_cast<void>(described([&] {
    reactor_->post([watch = watch_, rank, operation = std::move(operation)] {
      watch->mention(rank, operation);
    });
    return Status();
  }));
}

Status Monitor::cause_of(WatchedGroup& group, bool expects_failure) noexcept {
  return groups_.cause_of(group, story_patience, expects_failure);
}

}  // namespace hocket::health
