// A transport in one file, for ranks on one host: Unix-domain sockets. It shows how one is written
// outside of Hocket (docs/transports.md), and is not made to be fast.
//
// A channel has a socket for each direction: whoever opens the channel dials the peer, for what he
// is going to send. So nobody must find out which of two dials counts, and each end has a socket
// that breaks when the other end goes. A message is its length, its tag and its bytes. They go
// from the memory of the send into the socket and from there to the memory of the receive; what
// nobody receives yet stays in the socket, and holds back its sender and no one else. An end that
// closes a channel sends a last head in place of a message, with the reason; the other end fails
// with closed_by_peer().
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <hocket/transport.hpp>

namespace {

using namespace hocket;

class Fd {
 public:
  explicit Fd(int number = -1) noexcept : number_(number) {}
  Fd(Fd&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Fd() {
    if (number_ >= 0) ::close(number_);
  }
  [[nodiscard]] int get() const noexcept { return number_; }
  explicit operator bool() const noexcept { return number_ >= 0; }

 private:
  int number_;
};

/// The first that goes through a socket: for which channel of which world it is. The answer is
/// `welcome`, or why not.
struct Hello {
  std::uint64_t version = 2;
  std::uint64_t epoch = 0;
  std::uint32_t size = 0;
  std::uint32_t rank = 0;
  std::uint64_t lane = 0;
};
constexpr char welcome = 'w';

/// What goes before the bytes of a message.
struct Head {
  std::uint64_t length = 0;
  std::uint64_t tag = 0;
};
/// In place of a length: the channel is closed, for the reason in place of the tag.
constexpr std::uint64_t farewell = UINT64_MAX;
/// The answer to a hello on a lane that is over; behind it comes the reason.
constexpr char no_more = 'n';

/// One direction of a channel.
struct Flow {
  Fd socket;
  std::deque<TransportOp> ops;
  Status failure;          // of every op to come
  Head head;               // of the first op's message
  std::uint64_t done = 0;  // bytes of it, those of the head included
};

struct Channel {
  std::uint32_t peer = 0;
  std::uint64_t lane = 0;
  Flow out;
  Flow in;
  bool is_dialled = false;
  bool is_welcome = false;  // the peer has read our hello, and likes it
  bool is_due = false;      // something can be moved, perhaps
};

/// What is left of a message of so many bytes: of its head and of the op's memory.
std::size_t remaining(Flow& flow, const TransportOp& op, std::uint64_t bytes, iovec (&parts)[3]) {
  const std::uint64_t in_first = std::min(op.first.bytes, bytes);
  const iovec all[] = {
      {&flow.head, sizeof flow.head}, {op.first.data, in_first}, {op.rest.data, bytes - in_first}};
  std::size_t count = 0;
  std::size_t skipped = flow.done;
  for (const iovec& each : all) {
    const std::size_t skip = std::min(skipped, each.iov_len);
    skipped -= skip;
    if (skip == each.iov_len) continue;
    parts[count++] = {static_cast<std::byte*>(each.iov_base) + skip, each.iov_len - skip};
  }
  return count;
}

/// To one who has said hello on a lane that is closed.
void say_no_more(const Fd& socket, std::uint64_t reason) {
  std::array<char, 1 + sizeof reason> answer = {no_more};
  std::memcpy(answer.data() + 1, &reason, sizeof reason);
  ::send(socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
}

/// Processes with the same text see each other's sockets.
std::string neighborhood() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::array<char, 64> network = {};
  const ssize_t length = ::readlink("/proc/self/ns/net", network.data(), network.size() - 1);
  return boot + '/' +
         std::string(network.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
}

class Neighbor final : public Transport {
 public:
  static Result<std::unique_ptr<Transport>> make(const TransportOptions& options);

  const TransportCaps& caps() const noexcept override { return caps_; }
  std::string address() const override { return neighborhood() + ' ' + name_; }
  Status connect(std::span<const std::string> addresses) override {
    addresses_.assign(addresses.begin(), addresses.end());
    return {};
  }
  Status can_reach(std::uint32_t peer) const override;
  Result<ChannelId> open(std::uint32_t peer, std::uint64_t lane) override;
  std::size_t post(std::span<const TransportOp> ops) noexcept override;
  std::size_t poll(std::span<TransportCompletion> completions) noexcept override;
  void give_back(const std::byte*) noexcept override {}  // nothing is ever lent
  int descriptor() const noexcept override { return poller_.get(); }
  bool prepare_to_sleep() noexcept override { return completions_.empty() && due_.empty(); }
  void close(ChannelId id, const Status& reason) noexcept override;
  void close_lanes(std::uint64_t first, std::uint64_t last, const Status& reason) noexcept override;

 private:
  using Key = std::pair<std::uint32_t, std::uint64_t>;  // peer, lane

  Neighbor(const TransportOptions& options, Fd listener, std::string name)
      : options_(options), listener_(std::move(listener)), name_(std::move(name)) {}

  void watch(const Fd& fd, std::uint64_t who, std::uint32_t events) const;
  void make_due(ChannelId id);
  void advance(ChannelId id);
  void dial(ChannelId id);
  void push(ChannelId id);
  void pull(ChannelId id);
  void listen_to_out(ChannelId id);
  void accept_all();
  void hear_strangers();
  void meet(Fd socket, const Hello& hello);
  /// The packed reason, if the lane is closed.
  [[nodiscard]] std::optional<std::uint64_t> reason_closed(std::uint64_t lane) const;
  /// Ends the channel if the next thing to read is a farewell.
  void look_for_farewell(Channel& channel);
  void end(Channel& channel, const Status& why);
  void end_out(Channel& channel, const Status& why);
  void finish(Flow& flow);
  void fail(Flow& flow, const Status& why);
  [[nodiscard]] Status lost(std::uint32_t peer) const;

  static constexpr std::uint64_t the_listener = UINT64_MAX;

  TransportOptions options_;
  TransportCaps caps_;
  Fd poller_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  Fd listener_;
  std::string name_;  // of the listener, behind the byte 0 that makes it no path
  std::vector<std::string> addresses_;
  std::deque<Channel> channels_;  // by id
  std::map<Key, ChannelId> ids_;
  std::vector<ChannelId> due_;
  std::vector<Fd> strangers_;  // who have not said hello
  std::map<Key, Fd> early_;    // of channels that are not open here yet
  struct ClosedLanes {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::uint64_t reason = 0;
  };
  std::vector<ClosedLanes> closed_lanes_;
  std::deque<TransportCompletion> completions_;
};

Result<std::unique_ptr<Transport>> Neighbor::make(const TransportOptions& options) {
  Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = {}};
  socklen_t bytes = sizeof name.sun_family;  // no name: the system makes one up
  auto* const address = reinterpret_cast<sockaddr*>(&name);
  if (::bind(listener.get(), address, bytes) != 0 || ::listen(listener.get(), SOMAXCONN) != 0 ||
      ::getsockname(listener.get(), address, &(bytes = sizeof name)) != 0) {
    return Status(StatusCode::system_error, "neighbor: no Unix-domain socket to listen at")
        .with_system_error(errno);
  }
  const std::size_t length = bytes - offsetof(sockaddr_un, sun_path) - 1;
  std::unique_ptr<Neighbor> made(
      new Neighbor(options, std::move(listener), std::string(name.sun_path + 1, length)));
  made->watch(made->listener_, the_listener, EPOLLIN);
  return std::unique_ptr<Transport>(std::move(made));
}

Status Neighbor::can_reach(std::uint32_t peer) const {
  const auto no = [&](const char* why) {
    return Status(StatusCode::unsupported, "neighbor: rank " + std::to_string(peer) + why)
        .with_peer(static_cast<int>(peer));
  };
  if (peer >= options_.size || peer == options_.rank) return no(" is no other rank of this world");
  if (peer >= addresses_.size() || addresses_[peer].empty()) return no(" has not this transport");
  if (addresses_[peer].starts_with(neighborhood() + ' ')) return {};
  return no(" is on another host").with_hint("HOCKET_TRANSPORT=tcp reaches it");
}

Result<ChannelId> Neighbor::open(std::uint32_t peer, std::uint64_t lane) {
  if (Status status = can_reach(peer); !status.ok()) return status;
  const auto id = static_cast<ChannelId>(channels_.size());
  if (!ids_.emplace(Key(peer, lane), id).second) {
    return Status(StatusCode::already_exists,
                  "neighbor: lane " + std::to_string(lane) + " is open already");
  }
  Channel& channel = channels_.emplace_back();
  channel.peer = peer;
  channel.lane = lane;
  if (reason_closed(lane)) {
    close(id, Status(StatusCode::aborted, "neighbor: the lane was closed"));
    return id;
  }
  if (const auto early = early_.find({peer, lane}); early != early_.end()) {
    channel.in.socket = std::move(early->second);
    early_.erase(early);
    watch(channel.in.socket, id, EPOLLIN | EPOLLET);
  }
  dial(id);
  return id;
}

/// Says why where no message is half sent; else the other end sees its connection end.
void Neighbor::close(ChannelId id, const Status& reason) noexcept {
  Channel& channel = channels_[id];
  if (channel.out.socket && channel.out.done == 0) {
    const Head last = {.length = farewell, .tag = pack_reason(reason)};
    ::send(channel.out.socket.get(), &last, sizeof last,
           MSG_NOSIGNAL);  // if it is full, the other end only sees it close
  }
  end(channel, reason);
}

void Neighbor::end(Channel& channel, const Status& why) {
  fail(channel.out, why);
  fail(channel.in, why);
}

/// Whoever waits at one of them is told, or sees the end of its connection.
void Neighbor::close_lanes(std::uint64_t first, std::uint64_t last, const Status& reason) noexcept {
  const auto is_one = [&](std::uint64_t lane) { return first <= lane && lane <= last; };
  for (ChannelId id = 0; id < channels_.size(); ++id) {
    if (is_one(channels_[id].lane)) close(id, reason);
  }
  std::erase_if(early_, [&](const auto& each) {
    if (!is_one(each.first.second)) return false;
    say_no_more(each.second, pack_reason(reason));
    return true;
  });
  closed_lanes_.push_back({.first = first, .last = last, .reason = pack_reason(reason)});
}

std::optional<std::uint64_t> Neighbor::reason_closed(std::uint64_t lane) const {
  for (const ClosedLanes& each : closed_lanes_) {
    if (each.first <= lane && lane <= each.last) return each.reason;
  }
  return std::nullopt;
}

std::size_t Neighbor::post(std::span<const TransportOp> ops) noexcept {
  for (const TransportOp& op : ops) {
    Channel& channel = channels_[op.channel];
    Flow& flow = op.kind == TransportOp::Kind::send ? channel.out : channel.in;
    if (!flow.failure.ok()) {
      completions_.push_back({.token = op.token, .status = flow.failure});
      continue;
    }
    flow.ops.push_back(op);
    if (flow.ops.size() == 1) make_due(op.channel);  // else it waits already
  }
  return ops.size();
}

std::size_t Neighbor::poll(std::span<TransportCompletion> completions) noexcept {
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(poller_.get(), events.data(), events.size(), 0);
  for (const epoll_event& event :
       std::span(events.data(), static_cast<std::size_t>(std::max(count, 0)))) {
    if (event.data.u64 == the_listener) {
      accept_all();
    } else {
      make_due(static_cast<ChannelId>(event.data.u64));
    }
  }
  hear_strangers();
  for (const ChannelId id : std::exchange(due_, {})) advance(id);
  const std::size_t over = std::min(completions.size(), completions_.size());
  std::move(completions_.begin(), completions_.begin() + static_cast<std::ptrdiff_t>(over),
            completions.begin());
  completions_.erase(completions_.begin(),
                     completions_.begin() + static_cast<std::ptrdiff_t>(over));
  return over;
}

// --- moving bytes ---

void Neighbor::make_due(ChannelId id) {
  if (std::exchange(channels_[id].is_due, true)) return;
  due_.push_back(id);
}

void Neighbor::advance(ChannelId id) {
  channels_[id].is_due = false;
  if (!channels_[id].is_dialled) dial(id);
  listen_to_out(id);
  push(id);
  pull(id);
}

void Neighbor::push(ChannelId id) {
  Flow& flow = channels_[id].out;
  if (!channels_[id].is_welcome) return;
  while (!flow.ops.empty() && flow.socket) {
    flow.head = {.length = flow.ops.front().bytes(), .tag = flow.ops.front().tag};
    iovec parts[3];
    msghdr message = {};
    message.msg_iov = parts;
    message.msg_iovlen = remaining(flow, flow.ops.front(), flow.head.length, parts);
    const ssize_t sent = ::sendmsg(flow.socket.get(), &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN) return listen_to_out(id);  // which knows why
    if (sent < 0) return;
    flow.done += static_cast<std::uint64_t>(sent);
    if (flow.done == sizeof flow.head + flow.head.length) finish(flow);
  }
}

void Neighbor::pull(ChannelId id) {
  Channel& channel = channels_[id];
  Flow& flow = channel.in;
  while (!flow.ops.empty() && flow.socket) {
    const bool has_head = flow.done >= sizeof flow.head;
    iovec parts[3];
    msghdr message = {};
    message.msg_iov = parts;
    message.msg_iovlen = remaining(flow, flow.ops.front(), has_head ? flow.head.length : 0, parts);
    const ssize_t came = ::recvmsg(flow.socket.get(), &message, 0);
    if (came < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (came <= 0) return fail(flow, lost(channel.peer));
    flow.done += static_cast<std::uint64_t>(came);
    if (flow.done < sizeof flow.head) continue;
    if (flow.head.length == farewell) {
      return end(channel, closed_by_peer(channel.peer, flow.head.tag));
    }
    if (flow.head.length > flow.ops.front().bytes()) {
      return close(id, Status(StatusCode::mismatch,
                              "neighbor: rank " + std::to_string(channel.peer) + " sent " +
                                  std::to_string(flow.head.length) + " bytes where " +
                                  std::to_string(flow.ops.front().bytes()) + " were expected")
                           .with_peer(static_cast<int>(channel.peer)));
    }
    if (flow.done == sizeof flow.head + flow.head.length) finish(flow);
  }
}

/// Reads what the peer answers on the socket that we send on: welcome, a refusal, or its end.
void Neighbor::listen_to_out(ChannelId id) {
  Channel& channel = channels_[id];
  if (!channel.out.socket) return;
  std::array<char, 256> text;
  const ssize_t came = ::recv(channel.out.socket.get(), text.data(), text.size(), 0);
  if (came < 0 && (errno == EAGAIN || errno == EINTR)) return;
  std::string_view answer(text.data(), static_cast<std::size_t>(std::max<ssize_t>(came, 0)));
  if (answer.starts_with(welcome)) {
    channel.is_welcome = true;
    answer.remove_prefix(1);
    if (answer.empty()) return;
  }
  std::uint64_t reason = 0;
  if (answer.size() == 1 + sizeof reason && answer.starts_with(no_more)) {
    std::memcpy(&reason, answer.data() + 1, sizeof reason);
    return end_out(channel, closed_by_peer(channel.peer, reason));
  }
  if (came > 0) {
    return close(
        id, Status(StatusCode::mismatch, std::string(text.data(), static_cast<std::size_t>(came)))
                .with_peer(static_cast<int>(channel.peer)));
  }
  look_for_farewell(channel);
  end_out(channel, lost(channel.peer));
}

/// The peer takes no more. What it sent before may be on its way; what it has not begun to send by
/// now, it never will.
void Neighbor::end_out(Channel& channel, const Status& why) {
  fail(channel.out, why);
  accept_all();
  hear_strangers();
  if (!channel.in.socket) fail(channel.in, why);
}

void Neighbor::look_for_farewell(Channel& channel) {
  Head next;
  if (!channel.in.socket || channel.in.done > 0) return;
  const ssize_t came = ::recv(channel.in.socket.get(), &next, sizeof next, MSG_PEEK);
  if (came == sizeof next && next.length == farewell) {
    end(channel, closed_by_peer(channel.peer, next.tag));
  }
}

void Neighbor::finish(Flow& flow) {
  completions_.push_back(
      {.token = flow.ops.front().token, .bytes = flow.head.length, .tag = flow.head.tag});
  flow.ops.pop_front();
  flow.done = 0;
}

void Neighbor::fail(Flow& flow, const Status& why) {
  if (flow.failure.ok()) flow.failure = why;
  for (const TransportOp& op : flow.ops) {
    completions_.push_back({.token = op.token, .status = flow.failure});
  }
  flow.ops.clear();
  flow.socket = Fd();
}

Status Neighbor::lost(std::uint32_t peer) const {
  return Status(StatusCode::peer_lost,
                "neighbor: rank " + std::to_string(peer) +
                    " has ended, or closed the channel in the middle of a message")
      .with_peer(static_cast<int>(peer))
      .with_hint("see why its process has ended");
}

// --- sockets ---

void Neighbor::watch(const Fd& fd, std::uint64_t who, std::uint32_t events) const {
  epoll_event event = {.events = events, .data = {.u64 = who}};
  if (::epoll_ctl(poller_.get(), EPOLL_CTL_ADD, fd.get(), &event) == 0) return;
  ::epoll_ctl(poller_.get(), EPOLL_CTL_MOD, fd.get(), &event);  // who was a stranger
}

void Neighbor::dial(ChannelId id) {
  Channel& channel = channels_[id];
  if (!channel.out.failure.ok()) return;
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const std::string& address = addresses_[channel.peer];
  const std::string name = address.substr(address.find(' ') + 1);
  sockaddr_un there = {.sun_family = AF_UNIX, .sun_path = {}};
  name.copy(there.sun_path + 1, sizeof there.sun_path - 1);
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&there), bytes) != 0) {
    if (errno == EAGAIN) return make_due(id);     // the peer has many callers: again
    return end_out(channel, lost(channel.peer));  // what it has sent may be here
  }
  const Hello hello = {
      .epoch = options_.epoch, .size = options_.size, .rank = options_.rank, .lane = channel.lane};
  ::send(socket.get(), &hello, sizeof hello, MSG_NOSIGNAL);  // into an empty socket
  channel.is_dialled = true;
  channel.out.socket = std::move(socket);
  watch(channel.out.socket, id, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
}

/// Others of this user.
void Neighbor::accept_all() {
  while (true) {
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) return;
    ucred who = {};
    socklen_t bytes = sizeof who;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &bytes);
    if (who.uid != ::geteuid()) continue;
    watch(socket, the_listener, EPOLLIN | EPOLLET);
    strangers_.push_back(std::move(socket));
  }
}

/// They say it at once, and in one piece.
void Neighbor::hear_strangers() {
  for (Fd& stranger : std::exchange(strangers_, {})) {
    Hello hello;
    const ssize_t came = ::recv(stranger.get(), &hello, sizeof hello, 0);
    if (came < 0 && errno == EAGAIN) strangers_.push_back(std::move(stranger));
    if (came == sizeof hello) meet(std::move(stranger), hello);
  }
}

void Neighbor::meet(Fd socket, const Hello& hello) {
  if (hello.version != Hello().version || hello.epoch != options_.epoch ||
      hello.size != options_.size) {
    const std::string why = "neighbor: rank " + std::to_string(options_.rank) + " is of epoch " +
                            std::to_string(options_.epoch) + " of a world of " +
                            std::to_string(options_.size) + ", and not of epoch " +
                            std::to_string(hello.epoch) + " of " + std::to_string(hello.size);
    ::send(socket.get(), why.data(), why.size(), MSG_NOSIGNAL);
    return;
  }
  if (const auto reason = reason_closed(hello.lane)) return say_no_more(socket, *reason);
  ::send(socket.get(), &welcome, sizeof welcome, MSG_NOSIGNAL);
  const auto found = ids_.find({hello.rank, hello.lane});
  if (found == ids_.end()) {
    early_[{hello.rank, hello.lane}] = std::move(socket);
    return;
  }
  Flow& flow = channels_[found->second].in;
  if (!flow.failure.ok() || flow.socket) return;
  flow.socket = std::move(socket);
  watch(flow.socket, found->second, EPOLLIN | EPOLLET);
  make_due(found->second);
}

const TransportKind kind = {
    .name = "neighbor",
    .summary = "an example: Unix-domain sockets between ranks of one host",
    .available = [](std::span<const hocket::Setting>) { return Status(); },
    .make = Neighbor::make,
};

}  // namespace

extern "C" const hocket::TransportKind* hocket_transport_v1();
extern "C" __attribute__((visibility("default"))) const hocket::TransportKind*
hocket_transport_v1() {
  return &kind;
}
