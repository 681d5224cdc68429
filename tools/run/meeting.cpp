#include "run/meeting.hpp"

#include <charconv>
#include <chrono>
#include <map>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/rng.hpp"
#include "base/text.hpp"
#include "run/channel.hpp"

namespace hocket::run {
namespace {

constexpr std::chrono::seconds slice{1};        // of a long wait, after which it looks up
constexpr std::chrono::seconds absence_max{6};  // of a launcher that beats every slice
constexpr std::chrono::seconds hearing_max{
    2};  // for the others to hear what node 0 says at the end
constexpr std::chrono::milliseconds look_interval{20};  // between looks at what the others do
constexpr std::string_view node_prefix = "launch/node/";
constexpr std::string_view word_key = "launch/word";

std::string node_key(int node) { return fmt::format("{}{}", node_prefix, node); }

/// Of node_key(); -1 for what is none.
int node_of(std::string_view key) {
  const std::string_view digits = key.substr(node_prefix.size());
  int node = -1;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), node);
  return parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size() ? node : -1;
}

Status compare(const Json& other, int node, const MeetingOptions& options) {
  const std::pair<const char*, int> wanted[] = {
      {"nodes", options.nodes}, {"ranks", options.ranks}, {"restarts_max", options.restarts_max}};
  const char* const flags[] = {"--nnodes", "-n", "--max-restarts"};
  for (std::size_t i = 0; i < std::size(wanted); ++i) {
    const auto& [name, own] = wanted[i];
    const int theirs = other.value(name, -1);
    if (theirs == own) continue;
    return Status(StatusCode::mismatch, fmt::format("node {} has {} {}, node {} has {}", node,
                                                    flags[i], theirs, options.node, own))
        .with_hint("every launcher gets the same -n, --nnodes and --max-restarts");
  }
  return {};
}

/// A launcher in the store where all meet.
class Attendee {
 public:
  Attendee(store::Store& store, const MeetingOptions& options, Deadline deadline,
           const std::function<bool()>& goes_on)
      : store_(store),
        options_(options),
        deadline_(deadline),
        goes_on_(goes_on),
        key_(node_key(options.node)),
        entry_(Json{{"launcher", id_},
                    {"host", to_text(options.host)},
                    {"ranks", options.ranks},
                    {"nodes", options.nodes},
                    {"restarts_max", options.restarts_max}}
                   .dump()) {}

  /// Takes the place of its node.
  Status come();
  /// On all nodes but 0: node 0's word.
  Result<Json> await_word();
  /// On node 0.
  Result<Json> decide();
  /// Frees the place.
  void leave();

 private:
  using Entries = std::map<int, Json>;
  struct Pulse {
    std::string count = {};
    Instant since = {};
  };

  /// Whether there is time, and nobody wants an end.
  [[nodiscard]] Status may_wait();
  /// Whether the failure is but that something was not there within a slice.
  [[nodiscard]] Status wait_on(Status status);
  Status beat();
  Result<Json> take(const Json& word);
  /// Who is there. Those that fell silent are not: their place is free then.
  Result<Entries> look();
  [[nodiscard]] bool is_silent(int node);
  Status compare_all(const Entries& entries) const;
  [[nodiscard]] Status missing(const Entries& entries) const;
  Result<Json> announce(const Entries& entries);
  Status refuse(Status why);

  store::Store& store_;
  const MeetingOptions& options_;
  const Deadline deadline_;
  const std::function<bool()>& goes_on_;
  const std::string id_ = random_hex(8);
  const std::string key_;
  const std::string entry_;
  std::map<int, Pulse> pulses_;
};

Status Attendee::may_wait() {
  if (!goes_on_()) {
    return Status(StatusCode::aborted,
                  fmt::format("the launcher of node {} was told to end", options_.node));
  }
  if (deadline_.passed(monotonic_clock().now())) {
    return Status(StatusCode::timeout, "not all launchers came in the time that --timeout gives");
  }
  return {};
}

Status Attendee::wait_on(Status status) {
  return status.code() == StatusCode::timeout ? may_wait() : std::move(status);
}

Status Attendee::come() {
  std::optional<std::string> seen;  // of who holds the place
  for (;;) {
    const auto swap = store_.compare_set(key_, "", entry_);
    if (swap.ok() && (swap->is_set || swap->value == entry_)) return {};
    if (Status status = swap.ok() ? may_wait() : wait_on(swap.status()); !status.ok()) {
      return status;
    }
    // It may be dead: then its count stands still, and node 0 frees the place.
    auto alive = store_.get(alive_key(options_.node), Duration::zero());
    if (alive.ok() && seen && *seen != *alive) {
      return Status(StatusCode::already_exists,
                    fmt::format("another launcher came as node {} before", options_.node))
          .with_hint("each node has a --node-rank of its own");
    }
    if (alive.ok()) seen = std::move(*alive);
    std::this_thread::sleep_for(slice);
  }
}

Status Attendee::beat() {
  const auto alive = store_.add(alive_key(options_.node), 1);
  if (!alive.ok()) return wait_on(alive.status());
  const auto swap = store_.compare_set(key_, entry_, entry_);
  if (!swap.ok()) return wait_on(swap.status());
  // After a long silence the place may have been freed, or be another's.
  return swap->is_set ? Status() : come();
}

Result<Json> Attendee::await_word() {
  for (;;) {
    if (Status status = beat(); !status.ok()) return status;
    auto word = store_.get(word_key, slice);
    if (word.ok()) return take(Json::parse(*word));
    Status status = wait_on(word.status());
    if (status.ok()) continue;
    if (status.code() != StatusCode::timeout) return status;
    // Node 0's time ends about now: it would miss this node too, were it gone by then.
    word = store_.get(word_key, hearing_max);
    if (word.ok()) return take(Json::parse(*word));
    const auto entries = look();
    return entries.ok() ? missing(*entries) : status;
  }
}

Result<Json> Attendee::take(const Json& word) {
  if (const Json* const refused = word.find("refused")) {
    return Status(static_cast<StatusCode>(word.at("code").get<int>()),
                  to_bytes(refused->get<std::string>()))
        .with_hint(to_bytes(word.at("hint").get<std::string>()));
  }
  const Json::Array& launchers = word.at("launchers").items();
  if (launchers.at(static_cast<std::size_t>(options_.node)).get<std::string>() == id_) return word;
  return Status(StatusCode::already_exists,
                fmt::format("another launcher came as node {} meanwhile", options_.node))
      .with_hint("each node has a --node-rank of its own");
}

Result<Json> Attendee::decide() {
  std::vector<std::string> keys;
  for (int node = 0; node < options_.nodes; ++node) keys.push_back(node_key(node));
  for (;;) {
    if (Status status = beat(); !status.ok()) return refuse(std::move(status));
    const Status waited = store_.wait(keys, slice);
    const auto entries = look();
    if (!entries.ok()) return entries.status();
    if (Status status = compare_all(*entries); !status.ok()) return refuse(std::move(status));
    if (entries->size() == keys.size()) return announce(*entries);
    Status status = waited.ok() ? may_wait() : wait_on(waited);
    if (status.code() == StatusCode::timeout) status = missing(*entries);
    if (!status.ok()) return refuse(std::move(status));
  }
}

Result<Attendee::Entries> Attendee::look() {
  const auto keys = store_.keys(node_prefix);
  if (!keys.ok()) return keys.status();
  Entries entries;
  for (const std::string& key : *keys) {
    const int node = node_of(key);
    const auto entry = store_.get(key, Duration::zero());
    if (!entry.ok()) continue;  // it has just left
    if (options_.node == 0 && node != 0 && is_silent(node)) {
      const auto freed = store_.delete_key(key);
      if (!freed.ok()) return freed.status();
    } else {
      entries.emplace(node, Json::parse(*entry));
    }
  }
  return entries;
}

bool Attendee::is_silent(int node) {
  const Instant now = monotonic_clock().now();
  const auto alive = store_.get(alive_key(node), Duration::zero());
  const std::string count = alive.ok() ? *alive : "";
  Pulse& pulse = pulses_.try_emplace(node, Pulse{count, now}).first->second;
  if (pulse.count != count) pulse = {count, now};
  return now - pulse.since > absence_max;
}

Status Attendee::compare_all(const Entries& entries) const {
  for (const auto& [node, entry] : entries) {
    if (Status status = compare(entry, node, options_); !status.ok()) return status;
  }
  return {};
}

Status Attendee::missing(const Entries& entries) const {
  std::vector<int> nodes;
  for (int node = 0; node < options_.nodes; ++node) {
    if (!entries.contains(node)) nodes.push_back(node);
  }
  return Status(StatusCode::timeout, fmt::format("no launcher has come for node {} of {}",
                                                 joined(nodes, ", "), options_.nodes))
      .with_hint("each node runs `hocket run --node-rank …` with the same --nnodes and --master");
}

Result<Json> Attendee::announce(const Entries& entries) {
  Json word{{"launchers", Json::array()},
            {"hosts", Json::array()},
            {"master_port", options_.master_port}};
  for (const auto& [node, entry] : entries) {
    word["launchers"].push_back(entry.at("launcher"));
    word["hosts"].push_back(entry.at("host"));
  }
  if (Status status = store_.set(word_key, word.dump()); !status.ok()) return status;
  return word;
}

/// So that the others find out as well, and not only that the store is gone.
Status Attendee::refuse(Status why) {
  const Json word{{"refused", to_text(why.what())},
                  {"code", static_cast<int>(why.code())},
                  {"hint", to_text(why.hint())}};
  if (!store_.set(word_key, word.dump()).ok()) return why;
  const Deadline deadline = Deadline::after(monotonic_clock(), hearing_max);
  for (;;) {
    const auto there = store_.keys(node_prefix);
    const bool is_alone = !there.ok() || there->size() <= 1;
    if (is_alone || deadline.passed(monotonic_clock().now())) return why;
    std::this_thread::sleep_for(look_interval);
  }
}

void Attendee::leave() {
  const auto entry = store_.get(key_, Duration::zero());
  if (!entry.ok() || *entry != entry_) return;  // the place is another's
  const auto freed = store_.delete_key(key_);
  static_cast<void>(freed.ok());
}

Status not_found(const MeetingOptions& options, Status why) {
  if (why.code() != StatusCode::timeout) return why;
  return Status(StatusCode::timeout,
                fmt::format("no launcher of node 0 was found at {}", options.server.to_string()))
      .with_hint("node 0 runs `hocket run --node-rank 0 …` on the host that --master names")
      .caused_by(std::move(why));
}

}  // namespace

std::string alive_key(int node) { return fmt::format("launch/alive/{}", node); }

Result<Meeting> meet(const MeetingOptions& options, const std::function<bool()>& goes_on) {
  const Deadline deadline = Deadline::after(monotonic_clock(), options.timeout);
  const auto connect = [&] {
    return store::TcpStore::connect({.server = options.server,
                                     .credentials = options.credentials,
                                     .tls = options.tls,
                                     .timeout = slice});
  };
  const auto may_try_again = [&] { return !deadline.passed(monotonic_clock().now()) && goes_on(); };
  Result<std::unique_ptr<store::TcpStore>> store = connect();
  std::optional<Attendee> attendee;
  for (;; store = connect()) {
    if (store.status().code() == StatusCode::timeout && may_try_again()) continue;
    if (!store.ok()) return not_found(options, store.status());
    attendee.emplace(**store, options, deadline, goes_on);
    Status status = attendee->come();
    if (status.ok()) break;
    // A store that ends now may be that of the job before this one at the same place.
    const bool has_ended = status.code() == StatusCode::peer_lost && options.node != 0;
    if (!has_ended || !may_try_again()) return status;
  }
  const auto word = options.node == 0 ? attendee->decide() : attendee->await_word();
  if (!word.ok()) {
    attendee->leave();
    return word.status();
  }
  Meeting meeting;
  meeting.store = std::move(*store);
  for (const Json& host : word->at("hosts").items()) {
    meeting.hosts.push_back(to_bytes(host.get<std::string>()));
  }
  meeting.master_port = word->at("master_port").get<std::uint16_t>();
  return meeting;
}

}  // namespace hocket::run
