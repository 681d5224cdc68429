#include "transports/tcp/rail.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/exception.hpp"
#include "net/socket.hpp"
#include "transports/tcp/bundle.hpp"

namespace hocket::tcp {
namespace {

constexpr std::uint32_t frame_mark = 0x4C'49'52'00;
/// Read behind a piece: the next header, and little of what would have to be copied.
constexpr std::size_t behind_bytes = 4 << 10;
/// What the system keeps unsent: so little that a slow connection takes no more than it can carry.
constexpr int unsent_bytes_max = 128 << 10;

}  // namespace

Frame::Header Frame::encode() const noexcept {
  Header header;
  store_little_endian(header.data(), frame_mark | static_cast<std::uint32_t>(kind));
  store_little_endian(header.data() + 4, bytes);
  std::byte* to = header.data() + 8;
  for (const std::uint64_t each : {number, arrived, taken, message, offset, length, tag}) {
    store_little_endian(to, each);
    to += 8;
  }
  return header;
}

Frame Frame::decode(const Header& header) noexcept {
  const std::uint32_t kind = load_little_endian<std::uint32_t>(header.data()) - frame_mark;
  const auto field = [&](std::size_t i) {
    return load_little_endian<std::uint64_t>(header.data() + 8 + 8 * i);
  };
  return {
      .kind = static_cast<Kind>(std::min(kind, static_cast<std::uint32_t>(Kind::count))),
      .bytes = load_little_endian<std::uint32_t>(header.data() + 4),
      .number = field(0),
      .arrived = field(1),
      .taken = field(2),
      .message = field(3),
      .offset = field(4),
      .length = field(5),
      .tag = field(6),
  };
}

void Rail::adopt(link::Link link) {
  adopt_link(std::move(link));
  static_cast<void>(::setsockopt(socket(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent_bytes_max,
                                 sizeof unsent_bytes_max));
  net::Address there;
  static_cast<void>(::getpeername(socket(), there.get(), &there.bytes));
  name_ = fmt::format("{} to {}", net::local_address(socket()).endpoint().host,
                      there.endpoint().to_string());
}

// --- receiving ---

template <class Visit>
void Rail::visit_place(std::uint64_t bytes, Visit visit) {
  // Another connection may have brought it, or all of its message if the other end is no Hocket.
  if (bundle.has(in_.number) || bundle.is_complete(in_.message)) place_ = Place::nowhere;
  if (place_ == Place::aside && bytes > 0) visit(aside_.data() + got_, bytes);
  if (place_ != Place::receive) return;
  const std::uint64_t begin = in_.offset + got_;
  queues_.receives[in_.message].visit(begin, begin + bytes, visit);
}

Status Rail::receive(Scratch& scratch) {
  if (!link_.surplus.empty()) {
    const std::string surplus = std::exchange(link_.surplus, {});
    return take(std::as_bytes(std::span(surplus)));
  }
  if (link_.tls != nullptr) return receive_encrypted(scratch);
  std::array<iovec, 3> list;
  int pieces = 0;
  std::size_t direct = 0;
  if (is_open_) {
    visit_place(in_.bytes - got_, [&](std::byte* data, std::uint64_t size) {
      list.at(static_cast<std::size_t>(pieces++)) = {.iov_base = data, .iov_len = size};
      direct += size;
    });
  }
  list.at(static_cast<std::size_t>(pieces++)) = {.iov_base = scratch.overflow(),
                                                 .iov_len = behind_bytes};
  const ssize_t count = ::readv(socket(), list.data(), pieces);
  Status status = note_read(count, direct + behind_bytes);
  if (count <= 0 || !status.ok()) return status;
  const std::size_t in_place = std::min(static_cast<std::size_t>(count), direct);
  got_ += in_place;
  if (is_open_ && got_ == in_.bytes) status = close_frame();
  if (!status.ok()) return status;
  return take({scratch.overflow(), static_cast<std::size_t>(count) - in_place});
}

Status Rail::take(std::span<const std::byte> bytes) {
  Status status;
  while (status.ok() && !bytes.empty()) {
    std::uint64_t used = 0;
    if (!is_open_) {
      used = std::min(header_.size() - header_got_, bytes.size());
      std::memcpy(header_.data() + header_got_, bytes.data(), used);
      header_got_ += used;
      if (header_got_ == header_.size()) status = open_frame();
    } else {
      used = std::min<std::uint64_t>(in_.bytes - got_, bytes.size());
      const std::byte* from = bytes.data();
      visit_place(used, [&from](std::byte* to, std::uint64_t size) {
        std::memcpy(to, from, size);
        from += size;
      });
      got_ += used;
    }
    if (status.ok() && is_open_ && got_ == in_.bytes) status = close_frame();
    bytes = bytes.subspan(used);
  }
  return status;
}

Status Rail::open_frame() {
  header_got_ = 0;
  in_ = Frame::decode(header_);
  if (Status status = bundle.hear(in_, *this); !status.ok()) return status;
  if (in_.kind != Frame::Kind::piece) return {};
  is_open_ = true;
  got_ = 0;
  const bool is_awaited = in_.message < queues_.receives.end();
  place_ = bundle.has(in_.number) ? Place::nowhere : is_awaited ? Place::receive : Place::aside;
  if (place_ == Place::aside) aside_.resize(in_.bytes);
  return {};
}

Status Rail::close_frame() {
  is_open_ = false;
  const bool is_needed = !bundle.has(in_.number) && !bundle.is_complete(in_.message);
  if (place_ == Place::nowhere || !is_needed) return {};
  if (place_ == Place::aside) return bundle.keep(in_, std::exchange(aside_, {}));
  bundle.take(in_);
  return {};
}

// --- sending ---

double Rail::piece_time() const noexcept {
  tcp_info info = {};
  socklen_t bytes = sizeof info;
  if (::getsockopt(socket(), IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return 0;
  const double segment = info.tcpi_snd_mss;
  const double at_once = segment * info.tcpi_snd_cwnd;  // in a round trip
  int unsent = 0;  // <netinet/tcp.h> has no tcpi_notsent_bytes, and clashes with <linux/tcp.h>
  if (::ioctl(socket(), SIOCOUTQNSD, &unsent) != 0) return 0;
  const double waiting = segment * info.tcpi_unacked + unsent;
  return (waiting + frame_bytes_max) * info.tcpi_rtt / std::max(at_once, 1.0);
}

void Rail::begin(const Frame& frame) {
  out_ = frame;
  out_header_ = frame.encode();
  sent_ = 0;
  if (link_.tls == nullptr) return;
  Status status = link_.tls->send(as_text(out_header_));
  const auto seal = [&](const std::byte* data, std::uint64_t size) {
    if (status.ok()) status = link_.tls->send({reinterpret_cast<const char*>(data), size});
  };
  if (frame.bytes > 0) {
    queues_.sends[frame.message].visit(frame.offset, frame.offset + frame.bytes, seal);
  }
  encrypted_ += link_.tls->take_output();
  sent_ = frame.cost();
  if (!status.ok()) ::shutdown(socket(), SHUT_RDWR);  // and so it is lost
}

ssize_t Rail::send_plain() noexcept {
  std::array<iovec, 3> list;
  msghdr message = {};
  message.msg_iov = list.data();
  const auto add = [&](std::byte* data, std::uint64_t size) {
    list.at(message.msg_iovlen++) = {.iov_base = data, .iov_len = size};
  };
  if (sent_ < frame_header_bytes) add(out_header_.data() + sent_, frame_header_bytes - sent_);
  if (out_.bytes > 0) {
    const std::uint64_t begun = std::max<std::uint64_t>(sent_, frame_header_bytes);
    queues_.sends[out_.message].visit(out_.offset + begun - frame_header_bytes,
                                      out_.offset + out_.bytes, add);
  }
  const ssize_t count = ::sendmsg(socket(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count > 0) sent_ += static_cast<std::uint64_t>(count);
  return count;
}

void Rail::send() noexcept {
  ssize_t count = 0;
  if (link_.tls == nullptr) {
    count = send_plain();
  } else {
    count = ::send(socket(), encrypted_.data(), encrypted_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) encrypted_.erase(0, static_cast<std::size_t>(count));
  }
  if (count > 0) has_moved_ = true;
  if (count >= 0 || errno == EINTR) return;
  is_writable_ = false;
  if (errno == EAGAIN) return;
  is_readable_ = true;
  if (errno != EPIPE) send_error_ = errno;  // a closed connection's own end says more
}

Fd Rail::leave(const Frame& last) noexcept {
  if (is_writable() && !is_sending()) {
    const Status status = described([&] {
      begin(last);
      return Status();
    });
    if (status.ok()) send();  // as far as it can go without waiting
  }
  ::shutdown(socket(), SHUT_WR);
  sent_ = out_.cost();
  encrypted_.clear();
  return std::move(link_.socket);
}

}  // namespace hocket::tcp
