// Makes links longer: frames that arrive at an interface leave by another one some time later, in
// their order. For kernels without netem; tools/netlab --delay puts one into each host's links.
//
// usage: netlab-delay-line MICROSECONDS A B [A B]…
// Frames from A leave by B after that time, and those from B by A at once. "ready" is printed when
// none is missed any more. Frames may be as large as TCP offload makes them, and their checksums
// may be unfinished: both is passed on in the header that the kernel puts before each
// (PACKET_VNET_HDR).
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/fd.hpp"

namespace hocket {
namespace {

constexpr std::size_t frame_bytes_max = (1U << 16) + 256;
constexpr std::size_t kernel_header_bytes = 10;    // virtio_net_hdr, whose header is not C++
constexpr std::size_t held_bytes_max = 32U << 20;  // 1 Gbit/s for a quarter of a second
constexpr int socket_bytes = 16 << 20;             // what arrives while other processes run
constexpr int frames_at_once = 64;
constexpr std::uint16_t every_protocol = 0x0003;  // ETH_P_ALL

/// Frames on their way, in a ring of bytes that each of them lies in without a break.
class Line {
 public:
  /// Where the next frame may be put, or nothing when too much is held.
  [[nodiscard]] std::span<std::byte> room() noexcept {
    std::size_t at = 0;
    if (!frames_.empty()) {
      const std::size_t begin = frames_.front().at;
      at = frames_.back().at + frames_.back().size;
      const bool wraps = at <= begin;
      if (!wraps && bytes_.size() - at < frame_bytes_max) at = 0;
      if (at <= begin && begin - at <= frame_bytes_max) return {};
    }
    next_ = at;
    return bytes_.subspan(at, frame_bytes_max);
  }

  /// The frame that was put there.
  void add(std::size_t size, Instant due) { frames_.push_back({due, next_, size}); }

  [[nodiscard]] bool is_empty() const noexcept { return frames_.empty(); }
  [[nodiscard]] Instant due() const noexcept { return frames_.front().due; }
  [[nodiscard]] std::span<const std::byte> front() const noexcept {
    return bytes_.subspan(frames_.front().at, frames_.front().size);
  }
  void pop() noexcept { frames_.pop_front(); }

 private:
  struct Frame {
    Instant due;
    std::size_t at;
    std::size_t size;
  };

  // Not written to before it is needed: most lines never hold much.
  std::unique_ptr<std::byte[]> memory_ =
      std::make_unique_for_overwrite<std::byte[]>(held_bytes_max);
  std::span<std::byte> bytes_ = {memory_.get(), held_bytes_max};
  std::deque<Frame> frames_;
  std::size_t next_ = 0;
};

struct Direction {
  int from;
  int to;
  Duration delay;
  Line line;
};

[[noreturn]] void fail(const char* what, const char* why) {
  std::fprintf(stderr, "netlab-delay-line: %s: %s\n", what, why);
  std::exit(1);
}

void set(int socket, int level, int option, int value, const char* what) {
  if (::setsockopt(socket, level, option, &value, sizeof value) != 0)
    fail(what, std::strerror(errno));
}

/// Sees all frames that arrive at an interface, and none that leave by it.
Fd tap(const char* interface) {
  sockaddr_ll address = {};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(every_protocol);
  address.sll_ifindex = static_cast<int>(::if_nametoindex(interface));
  if (address.sll_ifindex == 0) fail(interface, "there is no such interface");
  Fd socket(::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) fail("no packet socket", std::strerror(errno));
  set(socket.get(), SOL_PACKET, PACKET_VNET_HDR, 1, "PACKET_VNET_HDR");
  set(socket.get(), SOL_PACKET, PACKET_IGNORE_OUTGOING, 1, "PACKET_IGNORE_OUTGOING");
  set(socket.get(), SOL_SOCKET, SO_RCVBUFFORCE, socket_bytes, "SO_RCVBUFFORCE");
  set(socket.get(), SOL_SOCKET, SO_SNDBUFFORCE, socket_bytes, "SO_SNDBUFFORCE");
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    fail(interface, std::strerror(errno));
  }
  return socket;
}

/// Takes what has arrived; what there is no room for is lost, as in a full queue.
void receive(Direction& way, Instant now) {
  for (int i = 0; i < frames_at_once; ++i) {
    std::array<std::byte, kernel_header_bytes> nowhere;
    const std::span<std::byte> room = way.line.room();
    const std::span<std::byte> into = room.empty() ? std::span<std::byte>(nowhere) : room;
    const ssize_t size = ::recv(way.from, into.data(), into.size(), MSG_TRUNC);
    if (size < 0) return;
    const auto bytes = static_cast<std::size_t>(size);
    if (bytes <= room.size()) way.line.add(bytes, now + way.delay);
  }
}

void send(Direction& way, Instant now) {
  while (!way.line.is_empty() && way.line.due() <= now) {
    const std::span<const std::byte> frame = way.line.front();
    // An interface that takes none loses it, as a cable would.
    static_cast<void>(::send(way.to, frame.data(), frame.size(), MSG_DONTWAIT));
    way.line.pop();
  }
}

/// Until a frame arrives or is due.
void wait(std::vector<pollfd>& polled, const std::vector<Direction>& ways, Instant now) {
  Instant next = Instant::max();
  for (const Direction& way : ways) {
    if (!way.line.is_empty()) next = std::min(next, way.line.due());
  }
  timespec left = {};
  if (next > now && next != Instant::max()) {
    const auto nanoseconds = (next - now).count();
    left = {.tv_sec = nanoseconds / 1'000'000'000, .tv_nsec = nanoseconds % 1'000'000'000};
  }
  const timespec* timeout = next == Instant::max() ? nullptr : &left;
  if (::ppoll(polled.data(), polled.size(), timeout, nullptr) < 0 && errno != EINTR) {
    fail("ppoll", std::strerror(errno));
  }
}

[[noreturn]] void carry(std::vector<Direction>& ways, const Clock& clock) {
  std::vector<pollfd> polled;
  for (const Direction& way : ways)
    polled.push_back({.fd = way.from, .events = POLLIN, .revents = 0});
  while (true) {
    wait(polled, ways, clock.now());
    for (std::size_t i = 0; i < ways.size(); ++i) {
      if (polled[i].revents != 0) receive(ways[i], clock.now());
      send(ways[i], clock.now());
    }
  }
}

}  // namespace
}  // namespace hocket

int main(int count, char** words) {
  using namespace hocket;
  const std::string_view text = count > 1 ? words[1] : "";
  std::int64_t microseconds = -1;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), microseconds);
  if (parsed.ptr != text.data() + text.size() || microseconds < 0 || count < 4 || count % 2 != 0) {
    fail("usage", "netlab-delay-line MICROSECONDS A B [A B]…");
  }
  // A wait is otherwise 50 us longer than asked for.
  if (::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL) != 0) fail("prctl", std::strerror(errno));

  std::vector<Fd> sockets;
  std::vector<Direction> ways;
  for (int i = 2; i < count; i += 2) {
    sockets.push_back(tap(words[i]));
    const int a = sockets.back().get();
    sockets.push_back(tap(words[i + 1]));
    const int b = sockets.back().get();
    ways.push_back(
        {.from = a, .to = b, .delay = std::chrono::microseconds(microseconds), .line = {}});
    ways.push_back({.from = b, .to = a, .delay = Duration::zero(), .line = {}});
  }
  std::puts("ready");
  std::fflush(stdout);
  carry(ways, monotonic_clock());
}
