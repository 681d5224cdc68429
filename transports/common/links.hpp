// Where the connections of all channels come from: the listener and the strangers who come to it,
// the ones that we dial, and those that are told goodbye.
//
// Where memory runs out, a stranger is dropped, and a dial fails.
//
// Either end dials when it has something to post. When both do, the dial of the lower rank counts:
// it tells the other to try again later, which finds itself dialled before that.
#pragma once

#include <compare>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "hocket/status.hpp"
#include "hocket/transport.hpp"

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "base/limits.hpp"
#include "link/greeting.hpp"
#include "net/socket.hpp"
#include "net/token_bucket.hpp"
#include "transports/common/dial.hpp"
#include "transports/common/lane_set.hpp"
#include "transports/common/link.hpp"
#include "transports/common/poller.hpp"

namespace hocket::common {

struct LinkKey {
  std::uint32_t peer = 0;
  std::uint64_t lane = 0;
  std::uint32_t stream = 0;
  bool operator==(const LinkKey&) const = default;
  /// By lane first: lanes end together.
  auto operator<=>(const LinkKey& other) const noexcept {
    return std::tie(lane, peer, stream) <=> std::tie(other.lane, other.peer, other.stream);
  }
};

/// A connection that has been made, or a failure that is final.
struct LinkNews {
  LinkKey key = {};
  link::Link link = {};
  Status failure = {};
  bool peer_closed = false;  // and said why
};

class Links {
 public:
  /// Borrows the poller.
  explicit Links(Poller& poller) : poller_(poller) {}

  /// Listens at all of these addresses.
  [[nodiscard]] Status open(const TransportOptions& options, std::uint32_t streams,
                            std::span<const std::string> hosts);
  [[nodiscard]] std::string address() const { return here_.to_string(); }
  /// From our addresses to those of a peer; and how many connections each channel to it has.
  [[nodiscard]] std::size_t ways(std::uint32_t peer) const { return peers_[peer].ways.size(); }
  [[nodiscard]] std::uint32_t streams(std::uint32_t peer) const {
    return peer < peers_.size() ? streams_ * static_cast<std::uint32_t>(ways(peer)) : streams_;
  }
  [[nodiscard]] Status connect(std::span<const std::string> addresses);
  [[nodiscard]] Status can_reach(std::uint32_t peer) const;

  /// This end is there from now on. Gives the connection if the other has dialled already. False
  /// when it has been claimed before.
  [[nodiscard]] bool claim(const LinkKey& key, std::optional<link::Link>& link);
  /// Makes the connection of a key that was claimed, unless it is there.
  /// Throws without memory; the key must be closed then.
  void dial(const LinkKey& key);
  /// Asks the other end of a connection that has ended why that is; the failure comes as news,
  /// soon. Throws without memory.
  void ask(const LinkKey& key);
  /// One of the connections of that channel is there: the others are not tried for long any more.
  void hurry(std::uint32_t peer, std::uint64_t lane);
  /// From now on the other end is told that it is closed, and why (pack_reason).
  void close(const LinkKey& key, std::uint64_t reason) noexcept;
  [[nodiscard]] bool is_closed(const LinkKey& key) const noexcept;
  /// From the first lane to the last, that came before this end: those to be claimed and closed.
  [[nodiscard]] std::vector<LinkKey> parked(std::uint64_t first, std::uint64_t last) const;
  /// As close() of each of their keys, to every peer, but those that it has are forgotten: all are
  /// closed by now.
  void close_lanes(std::uint64_t first, std::uint64_t last, std::uint64_t reason) noexcept;
  /// So that close_lanes() needs no memory.
  void make_room_for_closed_lanes() { closed_lanes_.make_room(); }
  [[nodiscard]] bool is_closed(std::uint64_t lane) const noexcept {
    return closed_lanes_.contains(lane);
  }
  /// Closes it when the other end does, so that nothing that was sent is lost, or after a while.
  void see_off(Fd socket) noexcept;

  void handle(const Event& event) noexcept;
  /// Does what is due.
  void expire() noexcept;
  [[nodiscard]] Deadline next() const noexcept;
  /// Nothing goes on, and nobody but the listener waits for anything.
  [[nodiscard]] bool is_quiet() const noexcept {
    return strangers_.empty() && dials_.empty() && leavers_.empty() && news_.empty() &&
           !has_starved_;
  }
  /// expire() has nothing to do, now or later.
  [[nodiscard]] bool is_idle() const noexcept { return is_quiet() && !accepts_again_; }
  [[nodiscard]] bool has_news() const noexcept { return !news_.empty() || has_starved_; }
  /// Leaves the memory of `news` for those to come.
  void take_news(std::vector<LinkNews>& news) noexcept {
    news.clear();
    news_.swap(news);
  }
  /// A connection that failed for want of memory, of those that there are.
  [[nodiscard]] std::optional<LinkKey> take_starved() noexcept;

 private:
  struct Door : Pollee {
    explicit Door(Fd of) : Pollee(Role::listener), listener(std::move(of)) {}
    Fd listener;
    net::Address address = net::local_address(listener.get());
  };
  struct Stranger : Pollee {
    Stranger(Fd socket, const link::Terms& terms, Instant now);
    link::ListenGreeting greeting;
    Deadline expiry;
    int stage = 0;
    bool is_member = false;  // and gave its token back
  };
  struct Leaver : Pollee {
    Leaver(Fd of, Deadline until) : Pollee(Role::leaver), socket(std::move(of)), expiry(until) {}
    Fd socket;
    Deadline expiry;
  };
  enum class Claim : std::uint8_t { none, claimed, linked, closed };
  struct Entry {
    Claim claim = Claim::none;
    std::optional<link::Link> parked = {};  // of none: came before this end
    std::uint64_t reason = 0;               // of closed
    bool has_starved = false;
  };
  using Strangers = std::list<std::unique_ptr<Stranger>>;

  [[nodiscard]] Status make_terms(const TransportOptions& options);
  [[nodiscard]] Status listen(const std::string& host, bool may_leave_loopback);
  void accept_all() noexcept;
  void accept_from(const Door& door, Instant now);
  void set_flooded(bool is_flooded);
  void advance(Stranger& stranger);
  void drop(const Stranger& stranger, const Status& why) noexcept;
  void log_drop(const Stranger& stranger, const Status& why) const;
  void remove(const Stranger& stranger) noexcept;
  [[nodiscard]] LinkVerdict judge(const LinkHello& hello) const;
  [[nodiscard]] LinkAnswer answer_to(const LinkHello& hello) const;
  /// Of a key that is closed.
  [[nodiscard]] std::uint64_t reason_of(const LinkKey& key) const noexcept;
  [[nodiscard]] DialOptions dial_options(const LinkKey& key) const;
  void begin_dial(const LinkKey& key, DialOptions options);
  void prepare_welcome(const LinkKey& key);
  void welcome(const LinkKey& key, link::Link link) noexcept;
  void advance(Dial& dial, Instant now);
  /// What throws for want of memory is the end of it.
  void advance_or_end(Stranger& stranger) noexcept;
  void advance_or_end(Dial& dial, Instant now) noexcept;
  void send_off(Leaver& leaver);

  Poller& poller_;
  link::Terms terms_ = {};
  std::uint32_t rank_ = 0;
  std::uint32_t size_ = 1;
  std::uint64_t epoch_ = 0;
  std::uint32_t streams_ = 1;
  Duration connect_timeout_ = Duration::zero();

  std::list<Door> doors_ = {};
  Address here_ = {};
  bool accepts_again_ = false;  // after a pause: the system had no room, or strangers are too many
  Deadline accepts_at_ = {};
  TokenBucket tokens_{limits::strangers_at_once, limits::strangers_per_second};
  bool is_flooded_ = false;

  struct Peer {
    std::string instance = {};  // empty: it has no address
    std::vector<Way> ways = {};
  };
  std::vector<Peer> peers_ = {};
  using Entries = std::map<LinkKey, Entry>;
  Entries entries_ = {};
  LaneSet closed_lanes_ = {};
  std::size_t parked_ = 0;
  Strangers strangers_ = {};  // the oldest first
  std::map<LinkKey, std::unique_ptr<Dial>> dials_ = {};
  std::list<Leaver> leavers_ = {};
  std::vector<LinkNews> news_ = {};
  bool has_starved_ = false;  // some entry
};

}  // namespace hocket::common
