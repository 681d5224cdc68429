#include "run/peers.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "run/channel.hpp"
#include "run/signals.hpp"
#include "store/tcp_store.hpp"

namespace hocket::run {
namespace {

constexpr std::chrono::seconds heartbeat{2};
constexpr std::chrono::seconds farewell{5};
constexpr std::chrono::seconds launcher_silence_max{20};
constexpr std::chrono::seconds patience{20};  // with the store
constexpr std::chrono::seconds slice{1};      // of a long wait, after which it looks up

std::string node_key(int node) { return fmt::format("launch/node/{}", node); }

/// Who is missing, in place of what the store says of keys.
Status name_missing(store::Store& store, int nodes, Status why) {
  std::vector<int> missing;
  for (int node = 0; node < nodes; ++node) {
    const auto is_there = store.check({node_key(node)});
    if (!is_there.ok()) return why;
    if (!*is_there) missing.push_back(node);
  }
  const StatusCode code = why.code();
  return Status(code, fmt::format("no launcher has come for node {} of {}",
                                  fmt::join(missing, ", "), nodes))
      .with_hint("each node runs `hocket run --node-rank …` with the same --nnodes and --master")
      .caused_by(std::move(why));
}

Status come(store::Store& store, const MeetingOptions& options) {
  const auto count = store.add(fmt::format("launch/taken/{}", options.node), 1);
  if (!count.ok()) return count.status();
  if (*count != 1) {
    return Status(StatusCode::already_exists,
                  fmt::format("another launcher came as node {} before", options.node))
        .with_hint("each node has a --node-rank of its own");
  }
  return store.set(node_key(options.node), Json{{"host", to_text(options.host)},
                                                {"ranks", options.ranks},
                                                {"nodes", options.nodes},
                                                {"master_port", options.master_port}}
                                               .dump());
}

Status compare(const Json& other, int node, const MeetingOptions& options) {
  for (const auto& [name, own] : {std::pair("ranks", options.ranks), {"nodes", options.nodes}}) {
    const int theirs = other.at(name).get<int>();
    if (theirs == own) continue;
    return Status(StatusCode::mismatch, fmt::format("node {} has {} {}, node {} has {}", node,
                                                    theirs, name, options.node, own))
        .with_hint("every launcher gets the same -n and --nnodes");
  }
  return {};
}

/// What every node says of itself.
template <class TryAgain>
Result<std::vector<std::string>> await_nodes(store::Store& store, int nodes, TryAgain try_again) {
  std::vector<std::string> keys;
  for (int node = 0; node < nodes; ++node) keys.push_back(node_key(node));
  auto values = store.multi_get(keys, slice);
  while (try_again(values.status())) values = store.multi_get(keys, slice);
  if (!values.ok()) return name_missing(store, nodes, values.status());
  return values;
}

/// Node 0 serves the store: it goes last, unless somebody takes too long.
void take_leave(store::Store& store, int nodes) {
  const Status status = store.barrier("launch/farewell", nodes, farewell);
  static_cast<void>(status.ok());
}

}  // namespace

Result<Meeting> meet(const MeetingOptions& options, const std::function<bool()>& goes_on) {
  const Deadline deadline = Deadline::after(monotonic_clock(), options.timeout);
  const auto try_again = [&](const Status& status) {
    return status.code() == StatusCode::timeout && !deadline.passed(monotonic_clock().now()) &&
           goes_on();
  };
  store::ConnectOptions connect = {.server = options.server,
                                   .credentials = options.credentials,
                                   .tls = options.tls,
                                   .timeout = slice};
  auto store = store::TcpStore::connect(connect);
  while (try_again(store.status())) store = store::TcpStore::connect(connect);
  if (!store.ok()) return store.status();
  (*store)->set_timeout(patience);
  if (Status status = come(**store, options); !status.ok()) return status;

  auto values = await_nodes(**store, options.nodes, try_again);
  Status status = values.status();
  Meeting meeting;
  for (int node = 0; node < options.nodes && status.ok(); ++node) {
    const Json other = Json::parse((*values)[static_cast<std::size_t>(node)]);
    status = compare(other, node, options);
    meeting.hosts.push_back(to_bytes(other.at("host").get<std::string>()));
    if (node == 0) meeting.master_port = other.at("master_port").get<std::uint16_t>();
  }
  if (!status.ok()) {
    // The others are to find out as well, and not only that the store is gone.
    if (goes_on()) take_leave(**store, options.nodes);
    return status;
  }
  meeting.store = std::move(*store);
  return meeting;
}

Peers::Peers(Loop& loop, NodeListener& listener, Meeting& meeting, int node, CrewOptions crew)
    : loop_(loop),
      listener_(listener),
      meeting_(meeting),
      node_(node),
      crew_(loop, *this, std::move(crew)),
      bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  loop_.add(*this);
}

Peers::~Peers() {
  loop_.remove(*this);
  is_stopping_ = true;
  if (thread_.joinable()) thread_.join();
  if (!has_store_ || !is_over_) return;
  take_leave(*meeting_.store, static_cast<int>(meeting_.hosts.size()));
}

std::string Peers::key(std::string_view name) const {
  return fmt::format("launch/{}/{}", attempt_, name);
}

void Peers::start(const Orders& orders) {
  is_stopping_ = true;
  if (thread_.joinable()) thread_.join();
  is_stopping_ = false;
  ++attempt_;
  is_told_ = false;
  is_over_ = false;
  thread_ = std::thread([this, attempt = attempt_] { listen(attempt); });
  crew_.start(orders);
}

void Peers::signal(int signal) {
  if (crew_.is_busy()) crew_.signal(signal);
  if (!ends_the_job(signal) || is_told_) return;
  is_told_ = true;  // this node's listener is who wants it
  publish({{"node", node_},
           {"rank", -1},
           {"pid", -1},
           {"status", 128 + signal},
           {"text", fmt::format("its launcher was told to end by {}", signal_name(signal))},
           {"lasted_ns", 0}});
}

void Peers::kill_after(Duration grace) {
  if (crew_.is_busy()) crew_.kill_after(grace);
}

bool Peers::wants(int, Stream stream) const { return listener_.wants(node_, stream); }

void Peers::on_output(int, int rank, Stream stream, std::string_view bytes) {
  listener_.on_output(node_, rank, stream, bytes);
}

void Peers::on_rank_end(int, const RankEnd& end) {
  if (end.status == 0 || is_told_) return;
  publish({{"node", node_},
           {"rank", end.rank},
           {"pid", end.pid},
           {"status", end.status},
           {"text", to_text(end.text)},
           {"lasted_ns", end.lasted.count()}});
}

void Peers::on_lost(int, std::string_view) {}

void Peers::on_attempt_end(int) {
  if (!has_store_) {
    is_over_ = true;
    return listener_.on_attempt_end(node_);
  }
  count_end(node_);
}

void Peers::count_end(int node) {
  // Once for each node: for one that died, node 0 does it.
  const auto swap = meeting_.store->compare_set(key(fmt::format("ended/{}", node)), "", "yes");
  if (!swap.ok()) return lose_store(swap.status());
  if (!swap->is_set) return;
  const auto ended = meeting_.store->add(key("ended"), 1);
  if (!ended.ok()) return lose_store(ended.status());
  if (*ended == static_cast<std::int64_t>(meeting_.hosts.size())) tell_all("over");
}

void Peers::tell_all(const std::string& news) {
  for (std::size_t node = 0; node < meeting_.hosts.size(); ++node) {
    const Status status = meeting_.store->queue_push(key(fmt::format("news/{}", node)), news);
    if (!status.ok()) return lose_store(status);
  }
}

/// Only the first failure of all nodes counts, and every node hears of it.
void Peers::publish(const Json& failure) {
  if (!has_store_) return tell(failure);
  const auto swap = meeting_.store->compare_set(key("failed"), "", failure.dump());
  if (!swap.ok()) {
    tell(failure);
    return lose_store(swap.status());
  }
  if (!swap->is_set) return tell(Json::parse(*swap->value));
  tell(failure);
  tell_all(Json{{"failed", failure}}.dump());
}

void Peers::tell(const Json& failure) {
  if (std::exchange(is_told_, true)) return;
  listener_.on_rank_end(failure.at("node").get<int>(),
                        {.rank = failure.at("rank").get<int>(),
                         .pid = failure.at("pid").get<pid_t>(),
                         .status = failure.at("status").get<int>(),
                         .text = to_bytes(failure.at("text").get<std::string>()),
                         .lasted = Duration(failure.at("lasted_ns").get<Duration::rep>())});
}

void Peers::lose_store(const Status& why) {
  if (!std::exchange(has_store_, false) || is_over_) return;
  tell({{"node", 0},
        {"rank", -1},
        {"pid", -1},
        {"status", 1},
        {"text", to_text(fmt::format("its launcher is gone: {}", why.to_string()))},
        {"lasted_ns", 0}});
  if (!crew_.is_busy()) on_attempt_end(0);
}

void Peers::ready() {
  std::uint64_t rings = 0;
  [[maybe_unused]] const ssize_t got = ::read(bell_.get(), &rings, sizeof rings);
  std::deque<std::string> news;
  {
    const std::lock_guard lock(mutex_);
    news.swap(news_);
  }
  for (const std::string& each : news) {
    if (each == "over") {
      if (!std::exchange(is_over_, true)) listener_.on_attempt_end(node_);
      continue;
    }
    const Json message = Json::parse(each);
    if (message.contains("failed")) tell(message.at("failed"));
    if (message.contains("dead")) {
      publish(message.at("dead"));
      count_end(message.at("dead").at("node").get<int>());
    }
    if (message.contains("lost")) {
      lose_store(Status(StatusCode::peer_lost, message.at("lost").get<std::string>()));
    }
  }
}

void Peers::hand_over(std::string news) {
  const std::lock_guard lock(mutex_);
  news_.push_back(std::move(news));
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t put = ::write(bell_.get(), &one, sizeof one);
}

/// In the thread, until the attempt is over for all or the store is gone.
void Peers::listen(int attempt) {
  const std::string queue = fmt::format("launch/{}/news/{}", attempt, node_);
  alive_.assign(meeting_.hosts.size(), {"", loop_.clock().now()});
  while (!is_stopping_) {
    const auto beat = meeting_.store->add(fmt::format("launch/alive/{}", node_), 1);
    if (!beat.ok()) return hand_over(Json{{"lost", beat.status().to_string()}}.dump());
    if (node_ == 0) look_for_the_dead();
    const auto news = meeting_.store->queue_pop(queue, heartbeat);
    if (!news.ok()) continue;  // no news; should the store be gone, the next beat tells
    hand_over(*news);
    if (*news == "over") return;
  }
}

void Peers::look_for_the_dead() {
  const Instant now = loop_.clock().now();
  for (std::size_t node = 1; node < alive_.size(); ++node) {
    auto& [count, since] = alive_[node];
    const auto found = meeting_.store->get(fmt::format("launch/alive/{}", node), Duration::zero());
    if (found.ok() && *found != count) {
      count = *found;
      since = now;
    }
    if (now - since < launcher_silence_max) continue;
    since = now;
    hand_over(Json{{"dead",
                    {{"node", node},
                     {"rank", -1},
                     {"pid", -1},
                     {"status", 1},
                     {"text", fmt::format("its launcher has not been heard of for {} s",
                                          launcher_silence_max.count())},
                     {"lasted_ns", 0}}}}
                  .dump());
  }
}

}  // namespace hocket::run
