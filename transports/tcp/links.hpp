// Where the connections of all channels come from: the listener and the strangers who come to it,
// the ones that we dial, and those that are told goodbye.
//
// Either end dials when it has something to post. When both do, the dial of the lower rank counts:
// it tells the other to try again later, which finds itself dialled before that.
#pragma once

#include <compare>
#include <cstddef>
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
#include "net/socket.hpp"
#include "transports/tcp/dial.hpp"
#include "transports/tcp/greeting.hpp"
#include "transports/tcp/link.hpp"
#include "transports/tcp/poller.hpp"

namespace hocket::tcp {

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

/// Lanes that are over. Communicators come and go, and their lanes have ever larger numbers, though
/// a rank does not see all of them, nor in order. So the set is kept as ranges, and those next to
/// each other become one: a program that all ranks run alike needs a single range, for ever.
class LaneSet {
 public:
  [[nodiscard]] bool contains(std::uint64_t lane) const noexcept;
  /// All from `first` to `last`. The lowest ranges are forgotten when there are too many.
  void add(std::uint64_t first, std::uint64_t last);
  [[nodiscard]] std::size_t ranges() const noexcept { return ranges_.size(); }

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_ = {};  // the last lane by the first
};

/// A connection that has been made, or a failure that is final.
struct LinkNews {
  LinkKey key = {};
  Link link = {};
  Status failure = {};
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
  [[nodiscard]] bool claim(const LinkKey& key, std::optional<Link>& link);
  /// Makes the connection of a key that was claimed, unless it is there.
  void dial(const LinkKey& key);
  /// One of the connections of that channel is there: the others are not tried for long any more.
  void hurry(std::uint32_t peer, std::uint64_t lane);
  /// From now on the other end is told that it is closed.
  void close(const LinkKey& key);
  [[nodiscard]] bool is_closed(const LinkKey& key) const;
  /// From the first lane to the last, that came before this end: those to be claimed and closed.
  [[nodiscard]] std::vector<LinkKey> parked(std::uint64_t first, std::uint64_t last) const;
  /// As close() of each of their keys, to every peer, but those that it has are forgotten: all are
  /// closed by now.
  void close_lanes(std::uint64_t first, std::uint64_t last);
  [[nodiscard]] bool is_closed(std::uint64_t lane) const { return closed_lanes_.contains(lane); }
  /// Closes it when the other end does, so that nothing that was sent is lost, or after a while.
  void see_off(Fd socket);

  void handle(const Event& event);
  /// Does what is due.
  void expire();
  [[nodiscard]] Deadline next() const noexcept;
  /// Nothing goes on, and nobody but the listener waits for anything.
  [[nodiscard]] bool is_quiet() const noexcept {
    return strangers_.empty() && dials_.empty() && leavers_.empty() && news_.empty() &&
           !accepts_again_;
  }
  [[nodiscard]] std::vector<LinkNews> take_news() { return std::exchange(news_, {}); }

 private:
  struct Door : Pollee {
    explicit Door(Fd of) : Pollee(Role::listener), listener(std::move(of)) {}
    Fd listener;
    net::Address address = net::local_address(listener.get());
  };
  struct Stranger : Pollee {
    Stranger(Fd socket, const Terms& terms, Instant now);
    ListenGreeting greeting;
    Deadline expiry;
    int stage = 0;
  };
  struct Leaver : Pollee {
    Leaver(Fd of, Deadline until) : Pollee(Role::leaver), socket(std::move(of)), expiry(until) {}
    Fd socket;
    Deadline expiry;
  };
  enum class Claim : std::uint8_t { none, claimed, linked, closed };
  struct Entry {
    Claim claim = Claim::none;
    std::optional<Link> parked = {};  // of none: came before this end
  };
  using Strangers = std::list<std::unique_ptr<Stranger>>;

  [[nodiscard]] Status make_terms(const TransportOptions& options);
  [[nodiscard]] Status listen(const std::string& host, bool has_secret);
  void accept_all();
  void accept_from(const Door& door);
  void advance(Stranger& stranger);
  void drop(const Stranger& stranger, const Status& why);
  [[nodiscard]] LinkVerdict judge(const LinkHello& hello) const;
  void welcome(const LinkKey& key, Link link);
  void advance(Dial& dial, Instant now);
  void send_off(Leaver& leaver);

  Poller& poller_;
  Terms terms_ = {};
  std::uint32_t rank_ = 0;
  std::uint32_t size_ = 1;
  std::uint64_t epoch_ = 0;
  std::uint32_t streams_ = 1;
  Duration connect_timeout_ = Duration::zero();

  std::list<Door> doors_ = {};
  Address here_ = {};
  bool accepts_again_ = false;  // after the system had no room
  Deadline accepts_at_ = {};

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
};

}  // namespace hocket::tcp
