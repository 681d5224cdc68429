#include "transports/common/links.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <new>

#include <sys/socket.h>

#include <fmt/format.h>

#include "base/config.hpp"
#include "base/exception.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "link/sockets.hpp"
#include "net/interfaces.hpp"

namespace hocket::common {
namespace {

using namespace std::chrono_literals;

constexpr Duration accept_pause = 100ms;
constexpr Duration farewell_time = 5s;
constexpr Duration other_rails_time = 5s;
/// A live rank answers far sooner, and a dead process refuses at once: only a dead host takes this
/// long.
constexpr Duration ask_time = 500ms;

/// The name of this host may have to be looked up; after that all addresses are numbers.
Result<net::Address> resolve(const net::Endpoint& endpoint) {
  const auto found =
      net::resolve(endpoint, Deadline::after(monotonic_clock(), limits::handshake_timeout));
  if (!found.ok()) return found.status();
  return found->front();
}

/// Of one who dials us.
LinkKey key_of(const LinkHello& hello) noexcept {
  return {.peer = hello.rank, .lane = hello.lane, .stream = hello.stream};
}

/// Of ours.
LinkKey key_of(const Dial& dial) noexcept {
  const LinkHello& hello = dial.options().hello;
  return {.peer = dial.options().peer, .lane = hello.lane, .stream = hello.stream};
}

Result<wire::TlsMode> tls_mode(const std::string& name) {
  const auto& modes = variables::tls_modes;
  const auto found = std::ranges::find(modes, name);
  if (found != std::end(modes)) return static_cast<wire::TlsMode>(found - std::begin(modes));
  return Status(StatusCode::invalid_argument, fmt::format("\"{}\" is no mode of TLS", name));
}

std::string name_of(int socket) {
  net::Address there;
  if (::getpeername(socket, there.get(), &there.bytes) != 0) return "one who has gone";
  return there.endpoint().to_string();
}

}  // namespace

Links::Stranger::Stranger(Fd socket, const link::Terms& terms, Instant now)
    : Pollee(Role::stranger),
      greeting(std::move(socket), terms, link_words),
      expiry(Deadline(now + limits::handshake_timeout)) {}

// --- before the first connection ---

Status Links::make_terms(const TransportOptions& options) {
  const auto mode = tls_mode(options.tls);
  if (!mode.ok()) return mode.status();
  auto terms = link::Terms::make({.job = options.job, .secret = options.secret},
                                 {.mode = *mode,
                                  .certificate_file = options.tls_certificate_file,
                                  .key_file = options.tls_key_file,
                                  .ca_file = options.tls_ca_file});
  if (terms.ok()) terms_ = std::move(*terms);
  return terms.status();
}

Status Links::open(const TransportOptions& options, std::uint32_t streams,
                   std::span<const std::string> hosts) {
  rank_ = options.rank;
  size_ = options.size;
  epoch_ = options.epoch;
  streams_ = streams;
  connect_timeout_ = options.connect_timeout;
  if (Status status = make_terms(options); !status.ok()) return status;
  const bool may_leave_loopback =
      !options.secret.empty() || Config(options.settings).get(variables::allow_without_secret);
  here_.instance = new_instance();
  for (const std::string& host : hosts) {
    if (Status status = listen(host, may_leave_loopback); !status.ok()) return status;
  }
  return {};
}

Status Links::listen(const std::string& host, bool may_leave_loopback) {
  const auto local = resolve({.host = host, .port = 0});
  if (!local.ok()) return local.status();
  if (!may_leave_loopback && !local->is_loopback()) {
    return Status(StatusCode::permission_denied,
                  fmt::format("without a secret, everybody could connect to {}", host))
        .with_hint("set HOCKET_SECRET, or HOCKET_ALLOW_WITHOUT_SECRET=1 if that is meant");
  }
  auto listener = link::listen_at(*local);
  if (!listener.ok()) return listener.status();
  Door& door = doors_.emplace_back(std::move(*listener));
  here_.endpoints.push_back(door.address.endpoint());
  return poller_.add(door.listener.get(), door);
}

Status Links::connect(std::span<const std::string> addresses) {
  const auto bad = [](std::size_t rank, const Status& why) {
    return Status(why.code(), fmt::format("the address of rank {}: {}", rank, why.what()))
        .with_peer(static_cast<int>(rank));
  };
  if (addresses.size() != size_) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("{} addresses for a world of {}", addresses.size(), size_));
  }
  std::vector<net::Address> ours;
  for (const Door& door : doors_) ours.push_back(door.address);
  std::vector<Peer> peers(size_);
  for (std::size_t i = 0; i < size_; ++i) {
    if (addresses[i].empty()) continue;
    const auto parsed = parse_address(addresses[i]);
    if (!parsed.ok()) return bad(i, parsed.status());
    std::vector<net::Address> theirs;
    for (const net::Endpoint& endpoint : parsed->endpoints) {
      const auto address = resolve(endpoint);
      if (!address.ok()) return bad(i, address.status());
      theirs.push_back(*address);
    }
    peers[i] = {.instance = parsed->instance, .ways = pair_addresses(ours, theirs, rank_ < i)};
  }
  peers_ = std::move(peers);
  return {};
}

Status Links::can_reach(std::uint32_t peer) const {
  if (peer < peers_.size() && peer != rank_ && !peers_[peer].instance.empty()) return {};
  std::string why = fmt::format("rank {} has no data port", peer);
  if (peer >= size_) why = fmt::format("there is no rank {} in a world of {}", peer, size_);
  if (peer == rank_) why = fmt::format("rank {} has no connection to itself", peer);
  if (peers_.empty()) why = "the addresses of the other ranks are not known yet: call connect()";
  return Status(StatusCode::unsupported, std::move(why)).with_peer(static_cast<int>(peer));
}

// --- what the transport wants ---

bool Links::claim(const LinkKey& key, std::optional<link::Link>& link) {
  Entry& entry = entries_[key];
  if (entry.claim != Claim::none) return false;
  link = std::exchange(entry.parked, std::nullopt);
  if (link) --parked_;
  entry.claim = link ? Claim::linked : Claim::claimed;
  return true;
}

DialOptions Links::dial_options(const LinkKey& key) const {
  const Peer& peer = peers_[key.peer];
  const Way& way = peer.ways[key.stream % peer.ways.size()];
  return {
      .peer = key.peer,
      .to = way.theirs,
      .from = way.ours,
      .hello = {.epoch = epoch_,
                .size = size_,
                .rank = rank_,
                .lane = key.lane,
                .stream = key.stream,
                .streams = streams(key.peer),
                .instance = peer.instance},
      .timeout = connect_timeout_,
  };
}

void Links::begin_dial(const LinkKey& key, DialOptions options) {
  auto dial = std::make_unique<Dial>(std::move(options), terms_, poller_);
  advance(*(dials_[key] = std::move(dial)), monotonic_clock().now());
}

void Links::dial(const LinkKey& key) {
  if (entries_[key].claim != Claim::claimed || dials_.contains(key)) return;
  begin_dial(key, dial_options(key));
}

void Links::ask(const LinkKey& key) {
  dials_.erase(key);
  DialOptions options = dial_options(key);
  options.timeout = std::min(options.timeout, ask_time);
  options.is_inquiry = true;
  begin_dial(key, std::move(options));
}

void Links::hurry(std::uint32_t peer, std::uint64_t lane) {
  const Deadline soon = Deadline::after(monotonic_clock(), other_rails_time);
  for (auto& [key, dial] : dials_) {
    if (key.peer == peer && key.lane == lane) dial->hurry(soon);
  }
}

void Links::close(const LinkKey& key, std::uint64_t reason) noexcept {
  if (const auto found = entries_.find(key); found != entries_.end()) {
    found->second.claim = Claim::closed;
    found->second.reason = reason;
  }
  dials_.erase(key);
}

bool Links::is_closed(const LinkKey& key) const noexcept {
  const auto found = entries_.find(key);
  return is_closed(key.lane) || (found != entries_.end() && found->second.claim == Claim::closed);
}

std::uint64_t Links::reason_of(const LinkKey& key) const noexcept {
  if (const auto reason = closed_lanes_.find(key.lane)) return *reason;
  const auto found = entries_.find(key);
  return found != entries_.end() ? found->second.reason : 0;
}

std::vector<LinkKey> Links::parked(std::uint64_t first, std::uint64_t last) const {
  std::vector<LinkKey> keys;
  auto entry = entries_.lower_bound({.lane = first});
  for (; entry != entries_.end() && entry->first.lane <= last; ++entry) {
    if (entry->second.parked) keys.push_back(entry->first);
  }
  return keys;
}

void Links::close_lanes(std::uint64_t first, std::uint64_t last, std::uint64_t reason) noexcept {
  auto entry = entries_.lower_bound({.lane = first});
  while (entry != entries_.end() && entry->first.lane <= last) {
    if (entry->second.parked) --parked_;
    entry = entries_.erase(entry);
  }
  closed_lanes_.add(first, last, reason);
}

void Links::see_off(Fd socket) noexcept {
  const Deadline until = Deadline::after(monotonic_clock(), farewell_time);
  try {
    leavers_.emplace_back(std::move(socket), until);
  } catch (const std::bad_alloc&) {
    return;  // it is closed at once
  }
  Leaver& leaver = leavers_.back();
  // From now on it is told, and now it is: what has come is dropped then.
  if (!poller_.add(leaver.socket.get(), leaver).ok()) leavers_.pop_back();
}

std::optional<LinkKey> Links::take_starved() noexcept {
  if (!has_starved_) return std::nullopt;
  const auto found =
      std::ranges::find_if(entries_, [](const auto& each) { return each.second.has_starved; });
  has_starved_ = found != entries_.end();
  if (!has_starved_) return std::nullopt;
  found->second.has_starved = false;
  return found->first;
}

// --- what happens ---

void Links::handle(const Event& event) noexcept {
  switch (event.pollee->role) {
    case Pollee::Role::listener:
      return accepts_again_ ? void() : accept_all();  // in a pause it may well be told again
    case Pollee::Role::stranger:
      return advance_or_end(static_cast<Stranger&>(*event.pollee));
    case Pollee::Role::dial:
      return advance_or_end(static_cast<Dial&>(*event.pollee), monotonic_clock().now());
    case Pollee::Role::leaver:
      return send_off(static_cast<Leaver&>(*event.pollee));
    case Pollee::Role::stream:
    case Pollee::Role::rail:
      break;
  }
}

void Links::accept_all() noexcept {
  const Instant now = monotonic_clock().now();
  accepts_again_ = false;
  try {
    if (is_flooded_ && tokens_.is_full(now)) set_flooded(false);
    for (const Door& door : doors_) accept_from(door, now);
  } catch (const std::bad_alloc&) {
    accepts_again_ = true;
    accepts_at_ = Deadline::after(monotonic_clock(), accept_pause);
  }
}

void Links::accept_from(const Door& door, Instant now) {
  for (;;) {
    if (!tokens_.take(now)) {
      if (!is_flooded_) set_flooded(true);
      accepts_again_ = true;
      accepts_at_ = Deadline(tokens_.when(limits::strangers_together, now));
      return;
    }
    Fd socket = link::accept_next(door.listener.get());
    if (!socket) break;
    if (strangers_.size() >= limits::data_strangers_max) {
      drop(*strangers_.front(), Status(StatusCode::limit_exceeded, "too many strangers are here"));
    }
    const int file = socket.get();
    auto& stranger =
        strangers_.emplace_back(std::make_unique<Stranger>(std::move(socket), terms_, now));
    // Told of what has come already, too.
    if (!poller_.add(file, *stranger).ok()) strangers_.pop_back();
  }
  tokens_.give_back();
  if (errno == EAGAIN) return;
  accepts_again_ = true;
  accepts_at_ = Deadline::after(monotonic_clock(), accept_pause);
  log::line(log::Level::warning, "rank {}: the data port can't accept connections: errno {}", rank_,
            errno);
}

/// Too many have come of late who did not prove who they are. Short queues outside: a member must
/// not stand behind thousands of others.
void Links::set_flooded(bool is_flooded) {
  is_flooded_ = is_flooded;
  for (const Door& door : doors_) {
    static_cast<void>(
        ::listen(door.listener.get(), is_flooded ? limits::flooded_backlog : SOMAXCONN));
  }
  log::line(is_flooded ? log::Level::warning : log::Level::info,
            "rank {}: strangers come to the data port {} {} a second", rank_,
            is_flooded ? "faster than" : "no longer faster than", limits::strangers_per_second);
}

/// Members are refused for a reason that somebody should know, but for those that pass by
/// themselves: they try again, have been told that the lane is closed, or dialled while our dial,
/// which counts, was on its way.
void Links::log_drop(const Stranger& stranger, const Status& why) const {
  const bool is_member = stranger.greeting.is_member();
  const bool is_usual = why.code() == StatusCode::already_exists ||
                        why.code() == StatusCode::timeout || why.code() == StatusCode::peer_lost;
  log::line(is_member && !is_usual ? log::Level::warning : log::Level::info,
            "rank {}: the data port refused {}: {}", rank_, name_of(stranger.greeting.socket()),
            why.what());
}

void Links::drop(const Stranger& stranger, const Status& why) noexcept {
  try {
    log_drop(stranger, why);
  } catch (const std::bad_alloc&) {
  }
  remove(stranger);
}

void Links::remove(const Stranger& stranger) noexcept {
  poller_.forget(stranger, stranger.greeting.socket());
  strangers_.remove_if([&](const auto& each) { return each.get() == &stranger; });
}

void Links::advance_or_end(Stranger& stranger) noexcept {
  try {
    advance(stranger);
  } catch (...) {
    drop(stranger, status_of_exception());
  }
}

void Links::advance(Stranger& stranger) {
  link::ListenGreeting& greeting = stranger.greeting;
  const auto is_over = greeting.advance();
  if (!is_over.ok()) return drop(stranger, is_over.status());
  if (greeting.stage() != stranger.stage) {
    if (greeting.is_member() && !stranger.is_member) tokens_.give_back();
    stranger.is_member = greeting.is_member();
    stranger.stage = greeting.stage();
    stranger.expiry = Deadline::after(monotonic_clock(), limits::handshake_timeout);
  }
  if (!*is_over) return;
  const LinkHello hello = LinkHello::decode(greeting.hello());
  const LinkKey key = key_of(hello);
  const LinkAnswer answer = answer_to(hello);
  // Who hears that it is welcome must be: without memory for it, it tries again.
  if (answer.verdict == LinkVerdict::welcome) prepare_welcome(key);
  Status status = greeting.answer(answer.encode());
  if (status.ok()) status = answer.status(hello, rank_);
  if (!status.ok()) {
    const bool has_lost_race = answer.verdict == LinkVerdict::taken && rank_ < hello.rank;
    const bool is_usual = has_lost_race || answer.verdict == LinkVerdict::closed;
    return drop(stranger, Status(is_usual ? StatusCode::already_exists : status.code(),
                                 fmt::format("rank {} of {}, lane {}: {}", hello.rank, hello.size,
                                             hello.lane, status.what())));
  }
  poller_.forget(stranger, greeting.socket());
  link::Link link = greeting.take();
  remove(stranger);
  welcome(key, std::move(link));
}

LinkAnswer Links::answer_to(const LinkHello& hello) const {
  const LinkVerdict verdict = judge(hello);
  return {.verdict = verdict,
          .epoch = epoch_,
          .size = size_,
          .streams = streams(hello.rank),
          .reason = verdict == LinkVerdict::closed ? reason_of(key_of(hello)) : 0};
}

LinkVerdict Links::judge(const LinkHello& hello) const {
  if (hello.version != link_version) return LinkVerdict::version_differs;
  if (hello.instance != here_.instance) return LinkVerdict::other_instance;
  if (hello.epoch != epoch_) return LinkVerdict::epoch_differs;
  if (hello.size != size_ || hello.rank >= size_ || hello.rank == rank_) {
    return LinkVerdict::world_differs;
  }
  // How many connections there are is known when the addresses are, or if ours is but one.
  if (peers_.empty() && doors_.size() > 1) return LinkVerdict::later;
  const std::uint32_t streams = this->streams(hello.rank);
  if (hello.streams != streams || hello.stream >= streams) return LinkVerdict::streams_differ;
  if (is_closed(hello.lane)) return LinkVerdict::closed;
  const LinkKey key = key_of(hello);
  const auto found = entries_.find(key);
  const Claim claim = found == entries_.end() ? Claim::none : found->second.claim;
  switch (claim) {
    case Claim::none:
      return parked_ < limits::parked_links_max ? LinkVerdict::welcome : LinkVerdict::later;
    case Claim::claimed:
      return dials_.contains(key) && rank_ < hello.rank ? LinkVerdict::later : LinkVerdict::welcome;
    case Claim::closed:
      return LinkVerdict::closed;
    case Claim::linked:
      break;
  }
  return LinkVerdict::taken;
}

/// All that takes memory.
void Links::prepare_welcome(const LinkKey& key) {
  entries_.try_emplace(key);
  news_.emplace_back();
  news_.pop_back();
}

void Links::welcome(const LinkKey& key, link::Link link) noexcept {
  dials_.erase(key);
  Entry& entry = entries_.find(key)->second;
  if (entry.claim == Claim::none) {
    if (!entry.parked) ++parked_;
    entry.parked = std::move(link);  // a former one of this rank is gone: it came again
    return;
  }
  entry.claim = Claim::linked;
  news_.push_back({.key = key, .link = std::move(link)});
}

void Links::advance(Dial& dial, Instant now) {
  const Dial::State state = dial.advance(now);
  if (state == Dial::State::going) return;
  const LinkKey key = key_of(dial);
  prepare_welcome(key);
  if (state == Dial::State::connected && !dial.options().is_inquiry) {
    poller_.forget(dial, dial.socket());
    return welcome(key, dial.take());
  }
  news_.push_back({.key = key, .failure = dial.failure(), .peer_closed = dial.peer_closed()});
  dials_.erase(key);
}

void Links::advance_or_end(Dial& dial, Instant now) noexcept {
  try {
    advance(dial, now);
  } catch (...) {
    const LinkKey key = key_of(dial);
    entries_.find(key)->second.has_starved = has_starved_ = true;
    dials_.erase(key);
  }
}

void Links::send_off(Leaver& leaver) {
  if (link::discard_input(leaver.socket.get())) return;
  poller_.forget(leaver, leaver.socket.get());
  leavers_.remove_if([&](const Leaver& each) { return &each == &leaver; });
}

// --- time ---

void Links::expire() noexcept {
  const Instant now = monotonic_clock().now();
  if (accepts_again_ && accepts_at_.passed(now)) accept_all();
  while (!strangers_.empty()) {
    const auto late = std::ranges::find_if(
        strangers_, [now](const auto& each) { return each->expiry.passed(now); });
    if (late == strangers_.end()) break;
    drop(**late, described([] {
      return Status(StatusCode::timeout, fmt::format("it did not prove within {} who it is",
                                                     format_duration(limits::handshake_timeout)));
    }));
  }
  for (auto next = dials_.begin(); next != dials_.end();) {
    Dial& dial = *(next++)->second;  // which may be over after this
    if (dial.next().passed(now)) advance_or_end(dial, now);
  }
  leavers_.remove_if([&](const Leaver& each) {
    if (!each.expiry.passed(now)) return false;
    poller_.forget(each, each.socket.get());
    return true;
  });
}

Deadline Links::next() const noexcept {
  Deadline next = accepts_again_ ? accepts_at_ : Deadline::never();
  for (const auto& each : strangers_) next = next.or_sooner(each->expiry);
  for (const auto& [key, dial] : dials_) next = next.or_sooner(dial->next());
  for (const Leaver& each : leavers_) next = next.or_sooner(each.expiry);
  return next;
}

}  // namespace hocket::common
