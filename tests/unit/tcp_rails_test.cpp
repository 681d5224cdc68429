// Channels of the TCP transport over two connections, of which one is cut, stalled, refused or
// meant for somebody else: what is sent arrives all the same, once, and as it was.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "base/log.hpp"
#include "link/sockets.hpp"
#include "net/socket.hpp"
#include "support/require.hpp"
#include "transports/common/link.hpp"
#include "transports/tcp/bundle.hpp"
#include "transports/tcp/rail.hpp"
#include "transports/tcp/transport.hpp"

namespace hocket::testing {
namespace {

using namespace std::chrono_literals;

net::Address numbers(const std::string& host, std::uint16_t port = 0) {
  const Deadline deadline = Deadline::after(monotonic_clock(), soon);
  return require(net::resolve({.host = host, .port = port}, deadline)).front();
}

/// What is to happen to a connection when so many bytes have gone through, both ways together.
struct Fate {
  enum class Kind : std::uint8_t { none, reset, silence };
  Kind kind = Kind::none;
  std::uint64_t after = 0;
};

/// Stands between a dialler and a listener.
class Relay {
 public:
  Relay(const std::string& host, net::Address to, Fate fate)
      : to_(to), fate_(fate), listener_(require(link::listen_at(numbers(host)))) {
    thread_ = std::thread([this] { run(); });
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  ~Relay() {
    is_over_ = true;
    thread_.join();
  }

  [[nodiscard]] net::Endpoint endpoint() const {
    return net::local_address(listener_.get()).endpoint();
  }

 private:
  void run() {
    while (!is_over_) {
      std::vector<pollfd> entries = {{listener_.get(), POLLIN, 0}};
      for (const auto& pair : pairs_) {
        for (const Fd& end : pair) entries.push_back({end.get(), POLLIN, 0});
      }
      ::poll(entries.data(), entries.size(), 5);
      if (Fd caller = link::accept_next(listener_.get())) connect(std::move(caller));
      std::erase_if(pairs_, [this](auto& pair) { return !pass(pair[0], pair[1]); });
    }
  }

  void connect(Fd caller) {
    Fd callee(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(callee.get(), to_.get(), to_.bytes) != 0) return;
    pairs_.push_back({std::move(caller), std::move(callee)});
  }

  /// False when it is over.
  bool pass(const Fd& one, const Fd& other) {
    for (const auto& [from, to] : {std::pair(one.get(), other.get()), {other.get(), one.get()}}) {
      const bool has_fate = fate_.kind != Fate::Kind::none && passed_ >= fate_.after;
      if (has_fate && fate_.kind == Fate::Kind::reset) return end(one), end(other), false;
      if (has_fate) return true;
      std::array<char, 16'384> bytes;
      std::uint64_t most = bytes.size();
      if (fate_.kind != Fate::Kind::none) most = std::min(most, fate_.after - passed_);
      const ssize_t count = ::recv(from, bytes.data(), most, MSG_DONTWAIT);
      if (count == 0 || (count < 0 && errno != EAGAIN)) return false;
      for (ssize_t sent = 0; sent < count;) {
        pollfd entry = {to, POLLOUT, 0};
        if (is_over_) return false;
        if (::poll(&entry, 1, 5) == 0) continue;
        const ssize_t more = ::send(to, bytes.data() + sent, static_cast<std::size_t>(count - sent),
                                    MSG_NOSIGNAL | MSG_DONTWAIT);
        if (more < 0 && errno != EAGAIN) return false;
        sent += std::max<ssize_t>(more, 0);
      }
      passed_ += static_cast<std::uint64_t>(std::max<ssize_t>(count, 0));
    }
    return true;
  }

  static void end(const Fd& socket) {
    const linger reset = {.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  }

  const net::Address to_;
  const Fate fate_;
  Fd listener_;
  std::vector<std::array<Fd, 2>> pairs_;
  std::uint64_t passed_ = 0;
  std::atomic<bool> is_over_ = false;
  std::thread thread_;
};

std::unique_ptr<Transport> rank_of(std::uint32_t rank, const std::string& secret = "secret") {
  const std::string rails = fmt::format("127.0.0.{},127.0.1.{}", rank + 1, rank + 1);
  return require(tcp::TcpTransport::make(
      {.rank = rank, .size = 2, .connect_timeout = 10s, .job = "ours", .secret = secret}, 1,
      rails));
}

/// The number of the byte that a message has at a place.
std::byte pattern(std::size_t message, std::size_t place) {
  const std::uint64_t word = (place / 8 + message * 0x9E37'79B9) * 0xBF58'476D'1CE4'E5B9;
  return static_cast<std::byte>(word >> (8 * (place % 8)));
}

/// Two ranks; one of the connections that rank 0 dials goes through a relay.
class Pair {
 public:
  Pair(std::size_t rail, Fate fate) {
    std::string addresses[] = {ranks_[0]->address(), ranks_[1]->address()};
    auto there = require(common::parse_address(addresses[1]));
    net::Endpoint& endpoint = there.endpoints.at(rail);
    relay_.emplace_back(endpoint.host, numbers(endpoint.host, endpoint.port), fate);
    endpoint = relay_.front().endpoint();
    require(ranks_[1]->connect(addresses));
    addresses[1] = there.to_string();
    require(ranks_[0]->connect(addresses));
    for (std::uint32_t i = 0; i < 2; ++i) channels_[i] = require(ranks_[i]->open(1 - i, 0));
  }
  explicit Pair(std::vector<std::string> addresses_of_1) {
    std::string addresses[] = {ranks_[0]->address(), ranks_[1]->address()};
    require(ranks_[1]->connect(addresses));
    auto there = require(common::parse_address(addresses[1]));
    for (std::size_t i = 0; i < addresses_of_1.size(); ++i) {
      if (!addresses_of_1[i].empty()) {
        there.endpoints.at(i) = require(net::parse_endpoint(addresses_of_1[i]));
      }
    }
    addresses[1] = there.to_string();
    require(ranks_[0]->connect(addresses));
    for (std::uint32_t i = 0; i < 2; ++i) channels_[i] = require(ranks_[i]->open(1 - i, 0));
  }

  /// So many messages of mixed sizes, from both to both. Rank 0 begins, and so dials.
  void exchange(std::size_t messages) {
    static constexpr std::size_t sizes[] = {0, 1, 700, 65'536, 300'000, 65'537, 9, 150'000};
    const auto begin = first_;
    first_ += messages;
    std::deque<std::vector<std::byte>> memory;
    for (std::size_t i = begin; i < first_; ++i) {
      const std::size_t bytes = sizes[i % std::size(sizes)];
      for (std::uint32_t rank = 0; rank < 2; ++rank) {
        auto& sent = memory.emplace_back(bytes);
        for (std::size_t k = 0; k < bytes; ++k) sent[k] = pattern(2 * i + rank, k);
        post(rank, TransportOp::Kind::send, sent);
        post(rank, TransportOp::Kind::recv, memory.emplace_back(bytes));
      }
    }
    pump_until_over();
    for (std::size_t i = 0; i < messages; ++i) {
      for (std::size_t rank = 0; rank < 2; ++rank) {
        const auto& received = memory[4 * i + 2 * rank + 1];
        const auto& sent = memory[4 * i + 2 * (1 - rank)];
        if (received != sent) FAIL("message " << i << " is not as it was");
      }
    }
  }

  void post(std::uint32_t rank, TransportOp::Kind kind, std::vector<std::byte>& memory) {
    const TransportOp op = {
        .kind = kind, .channel = channels_[rank], .first = {memory.data(), memory.size()}};
    REQUIRE(ranks_[rank]->post({&op, 1}) == 1);
    ++outstanding_;
  }

  void pump_until_over() {
    const Stopwatch watch;
    while (outstanding_ > 0) {
      for (const auto& rank : ranks_) {
        std::array<TransportCompletion, 16> completions;
        const std::size_t count = rank->poll(completions);
        for (std::size_t i = 0; i < count; ++i) require(completions[i].status);
        outstanding_ -= count;
      }
      if (watch.elapsed() > soon) FAIL("in vain: " << outstanding_ << " ops are left");
    }
  }

  [[nodiscard]] Transport& at(std::uint32_t rank) { return *ranks_[rank]; }

 private:
  std::deque<Relay> relay_;
  std::unique_ptr<Transport> ranks_[2] = {rank_of(0), rank_of(1)};
  ChannelId channels_[2] = {};
  std::size_t outstanding_ = 0;
  std::size_t first_ = 0;
};

/// The lines that are logged meanwhile.
class Log {
 public:
  Log() { log::set_sink(take, &text_); }
  ~Log() { log::set_sink(nullptr, nullptr); }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  [[nodiscard]] bool has(std::string_view words) const {
    return text_.find(words) != std::string::npos;
  }

 private:
  static void take(void* context, int, const char* message) {
    *static_cast<std::string*>(context) += std::string(message) + "\n";
  }
  std::string text_;
};

std::vector<std::string> paired(const std::vector<std::string>& ours,
                                const std::vector<std::string>& theirs, bool is_first = true) {
  const auto resolved = [](const std::vector<std::string>& hosts) {
    std::vector<net::Address> addresses;
    for (const std::string& host : hosts) addresses.push_back(numbers(host));
    return addresses;
  };
  std::vector<std::string> ways;
  for (const common::Way& way :
       common::pair_addresses(resolved(ours), resolved(theirs), is_first)) {
    ways.push_back(way.ours.endpoint().host + " " + way.theirs.endpoint().host);
  }
  return ways;
}

}  // namespace

TEST_CASE("addresses of one network belong together, else those that are alike, else in order") {
  using List = std::vector<std::string>;
  CHECK(paired({"10.77.0.1", "10.77.1.1"}, {"10.77.1.2", "10.77.0.2"}) ==
        List{"10.77.0.1 10.77.0.2", "10.77.1.1 10.77.1.2"});
  CHECK(paired({"10.77.0.1", "10.77.1.1"}, {"10.77.2.2", "10.77.3.2"}) ==
        List{"10.77.0.1 10.77.2.2", "10.77.1.1 10.77.3.2"});
  CHECK(paired({"10.77.0.1", "10.77.1.1"}, {"10.77.1.2"}) == List{"10.77.1.1 10.77.1.2"});
  CHECK(paired({"10.77.0.1"}, {"192.168.0.2", "10.77.0.2"}) == List{"10.77.0.1 10.77.0.2"});
  CHECK(paired({"10.77.0.1", "10.77.1.1"}, {"10.77.0.1", "10.77.1.1"}) ==
        List{"10.77.0.1 10.77.0.1"});
  CHECK(paired({"10.77.0.1", "fd01::1"}, {"fd01::2", "10.77.0.2"}) ==
        List{"fd01::1 fd01::2", "10.77.0.1 10.77.0.2"});
  CHECK(paired({"10.77.0.1"}, {"fd01::2"}).size() == 1);
}

TEST_CASE("both ends come to the same pairs in the same order") {
  const std::vector<std::string> one = {"10.0.0.1", "10.0.0.2", "10.0.1.1", "172.16.0.1"};
  const std::vector<std::string> other = {"10.0.1.9", "10.0.0.8", "192.168.0.1"};
  const auto ours = paired(one, other, true);
  const auto theirs = paired(other, one, false);
  REQUIRE(ours.size() == 3);
  REQUIRE(theirs.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t space = theirs[i].find(' ');
    CHECK(ours[i] == theirs[i].substr(space + 1) + " " + theirs[i].substr(0, space));
  }
}

TEST_CASE("an address may be several, and says which instance they belong to") {
  const std::string text = "10.0.0.7:4711,[fd01::7]:4712 0123456789abcdef0123456789abcdef";
  const auto address = require(common::parse_address(text));
  REQUIRE(address.endpoints.size() == 2);
  CHECK(address.to_string() == text);
  for (const char* const bad :
       {" 0123456789abcdef0123456789abcdef", "10.0.0.7:1,10.0.0.8 0123456789abcdef0123456789abcdef",
        "1.1.1.1:1,1.1.1.1:1,1.1.1.1:1,1.1.1.1:1,1.1.1.1:1,1.1.1.1:1,"
        "1.1.1.1:1,1.1.1.1:1,1.1.1.1:1 0123456789abcdef0123456789abcdef"}) {
    CHECK_FALSE(common::parse_address(bad).ok());
  }
}

TEST_CASE("frames are what they were on the other side, and garbage is no frame") {
  const tcp::Frame frame = {.kind = tcp::Frame::Kind::question,
                            .bytes = 1,
                            .number = 2,
                            .arrived = 3,
                            .taken = 4,
                            .message = 5,
                            .offset = 6,
                            .length = 7};
  const tcp::Frame same = tcp::Frame::decode(frame.encode());
  CHECK(same.kind == frame.kind);
  CHECK(same.encode() == frame.encode());
  for (std::size_t i = 0; i < 4; ++i) {
    auto header = frame.encode();
    header[i] ^= std::byte{0x80};
    CHECK(tcp::Frame::decode(header).kind == tcp::Frame::Kind::count);
  }
}

TEST_CASE("a connection that is reset at any byte takes nothing with it") {
  const std::uint64_t greeting =
      60 + 43 + 32 + 33 + common::link_hello_bytes + common::link_answer_bytes;
  static constexpr std::uint64_t of_frames[] = {
      0,   1,   55,     56,     57,     111,    112,     113,     700,
      812, 900, 65'591, 65'592, 65'593, 65'648, 131'072, 200'000, 1'000'000};
  std::vector<std::uint64_t> cuts = {0, 1, 59, 60, 104, greeting - 1};
  for (const std::uint64_t more : of_frames) cuts.push_back(greeting + more);
  for (const std::uint64_t after : cuts) {
    for (const std::size_t rail : {0U, 1U}) {
      CAPTURE(after, rail);
      const Log log;
      Pair pair(rail, {.kind = Fate::Kind::reset, .after = after});
      pair.exchange(24);
      pair.exchange(8);
    }
  }
}

TEST_CASE("what a silent connection swallowed is sent over the other, and it is said") {
  for (const std::uint64_t after : {300U, 30'000U, 400'000U}) {
    for (const std::size_t rail : {0U, 1U}) {
      CAPTURE(after, rail);
      const Log log;
      Pair pair(rail, {.kind = Fate::Kind::silence, .after = after});
      Duration longest = {};
      for (int i = 0; i < 1000 && !log.has("nothing came back on it for 2 s"); ++i) {
        const Stopwatch watch;
        pair.exchange(8);
        longest = std::max(longest, watch.elapsed());
      }
      CHECK(log.has("nothing came back on it for 2 s"));
      CHECK(longest > 1s);
      CHECK(longest < 8s);
      const Stopwatch after_it;
      pair.exchange(8);
      CHECK(after_it.elapsed() < 2s);  // as it does not wait for the silent one again
      pair.exchange(16);
    }
  }
}

TEST_CASE("an address where nobody listens costs its connection, not the channel") {
  for (const std::size_t rail : {0U, 1U}) {
    Fd listener = require(link::listen_at(numbers(rail == 0 ? "127.0.0.2" : "127.0.1.2")));
    const std::string nobody = net::local_address(listener.get()).endpoint().to_string();
    listener.reset();
    const Log log;
    std::vector<std::string> addresses = {"", ""};
    addresses[rail] = nobody;
    Pair pair(addresses);
    pair.exchange(16);
    CHECK(log.has("rank 1 is reached with a connection less, over 1 other"));
    CHECK(log.has(nobody));
  }
}

TEST_CASE("who is no member becomes no connection of a channel") {
  Pair pair({"", ""});
  pair.exchange(8);
  const Log log;
  // Somebody with another secret who says he is rank 0, at both addresses; and one who is gone.
  const auto stranger = rank_of(0, "another secret");
  const std::string addresses[] = {stranger->address(), pair.at(1).address()};
  require(stranger->connect(addresses));
  const ChannelId channel = require(stranger->open(1, 0));
  std::byte memory[1] = {};
  const TransportOp send = {.channel = channel, .first = {memory, 1}};
  REQUIRE(stranger->post({&send, 1}) == 1);
  TransportCompletion completion;
  const Stopwatch watch;
  while (stranger->poll({&completion, 1}) == 0) {
    pair.pump_until_over();
    TransportCompletion none;
    REQUIRE(pair.at(1).poll({&none, 1}) == 0);
    REQUIRE(watch.elapsed() < soon);
  }
  CHECK(completion.status.code() == StatusCode::permission_denied);
  pair.exchange(8);
}

TEST_CASE("a member's second connection for one place is refused") {
  Pair pair({"", ""});
  pair.exchange(8);
  const Log log;
  const auto again = rank_of(0);
  const std::string addresses[] = {again->address(), pair.at(1).address()};
  require(again->connect(addresses));
  const ChannelId channel = require(again->open(1, 0));
  std::byte memory[1] = {};
  const TransportOp send = {.channel = channel, .first = {memory, 1}};
  REQUIRE(again->post({&send, 1}) == 1);
  TransportCompletion completion;
  const Stopwatch watch;
  while (again->poll({&completion, 1}) == 0) {
    TransportCompletion none;
    REQUIRE(pair.at(1).poll({&none, 1}) == 0);
    REQUIRE(watch.elapsed() < soon);
  }
  CHECK(completion.status.code() == StatusCode::protocol_error);
  pair.exchange(8);
}

namespace {

/// Both ends of two connections; the other side's frames are written by hand.
struct ByHand {
  ByHand() {
    const Fd listener = require(link::listen_at(numbers("127.0.0.1")));
    require(poller.open());
    const net::Address address = net::local_address(listener.get());
    for (std::size_t i = 0; i < 2; ++i) {
      theirs[i] = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      REQUIRE(::connect(theirs[i].get(), address.get(), address.bytes) == 0);
      Fd ours(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      require(bundle.adopt(i, {.socket = std::move(ours)}));
    }
  }
  void send(std::size_t rail, std::span<const std::byte> bytes) const {
    REQUIRE(::send(theirs[rail].get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(bytes.size()));
  }
  Status move() {
    for (const common::Event& event : poller.look())
      static_cast<tcp::Rail*>(event.pollee)->note(event);
    return bundle.move(scratch);
  }

  std::array<Fd, 2> theirs;
  tcp::Queues queues;
  common::Poller poller;
  tcp::Bundle bundle = tcp::Bundle(0, queues, 2, poller);
  tcp::Scratch scratch;
};

}  // namespace

TEST_CASE("a member that sends a place of a message twice touches no memory after its end") {
  ByHand pair;
  std::vector<std::byte> memory(100);
  const auto expect = [&] { pair.queues.receives.push({.first = {memory.data(), memory.size()}}); };
  expect();
  const auto piece = [&](std::uint64_t number) {
    const auto header = tcp::Frame{.bytes = 100, .number = number, .length = 100}.encode();
    std::vector<std::byte> all(header.begin(), header.end());
    all.resize(all.size() + 100, std::byte{1});
    return all;
  };
  const auto bring = [&](std::size_t rail, std::span<const std::byte> bytes) {
    pair.send(rail, bytes);
    return pair.move();
  };
  const auto first = piece(0);
  const std::span<const std::byte> all = first;
  CHECK(bring(0, all.first(tcp::frame_header_bytes + 10)).ok());
  CHECK(bring(1, piece(1)).ok());
  CHECK(pair.queues.receives.front().is_done);
  pair.queues.receives.pop();
  for (int i = 0; i < 64; ++i) expect();
  std::ranges::fill(memory, std::byte{7});  // the caller's again, and for other messages
  CHECK(bring(0, all.subspan(tcp::frame_header_bytes + 10)).ok());
  CHECK(std::ranges::all_of(memory, [](std::byte each) { return each == std::byte{7}; }));
  CHECK(bring(1, piece(2)).code() == StatusCode::protocol_error);
}

TEST_CASE("a connection that ends with the channel is not reported as lost") {
  for (const bool has_last_words : {true, false}) {
    const Log log;
    ByHand pair;
    if (has_last_words) pair.send(1, tcp::Frame{.kind = tcp::Frame::Kind::left}.encode());
    pair.theirs[0] = Fd();  // it could say none
    static_cast<void>(pair.move());
    CHECK(log.has("is reached without the connection") != has_last_words);
  }
}

}  // namespace hocket::testing
