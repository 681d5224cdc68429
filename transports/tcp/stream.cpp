#include "transports/tcp/stream.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/socket.h>

#include <fmt/format.h>

#include "base/exception.hpp"

namespace hocket::tcp {
namespace {

/// A receive that is not longer is read through scratch memory: copying is cheaper than describing
/// to the kernel where its parts are.
constexpr std::uint64_t small_room_bytes_max = 2048;
/// To be sent they are copied to one place up to this, for the same reason.
constexpr std::uint64_t gathered_bytes_max = 512;
/// In one call of the system; more it would not do either.
constexpr std::uint64_t call_bytes_max = 1 << 30;
constexpr std::size_t call_pieces_max = 60;
/// A message has a header and up to two parts.
constexpr std::size_t message_pieces_max = 3;

struct Pieces {
  std::array<iovec, call_pieces_max + 1> list;
  std::size_t count = 0;
  std::uint64_t bytes = 0;

  void add(std::byte* data, std::uint64_t size) noexcept {
    if (size == 0) return;
    list[count++] = {.iov_base = data, .iov_len = size};
    bytes += size;
  }
  void add(Slot& slot, std::uint64_t begin, std::uint64_t end) noexcept {
    slot.visit(begin, end, [this](std::byte* data, std::uint64_t size) { add(data, size); });
  }
  [[nodiscard]] bool has_room() const noexcept {
    return count + message_pieces_max <= call_pieces_max && bytes < call_bytes_max;
  }

  [[nodiscard]] ssize_t send(int socket) noexcept {
    constexpr int flags = MSG_NOSIGNAL | MSG_DONTWAIT;
    if (bytes <= gathered_bytes_max) {
      std::array<std::byte, gathered_bytes_max> together;
      gather(0, bytes, together.data());
      return ::send(socket, together.data(), bytes, flags);
    }
    msghdr message = {};
    message.msg_iov = list.data();
    message.msg_iovlen = count;
    return ::sendmsg(socket, &message, flags);
  }

  /// Copies the bytes from `begin` to `end` of all to `to`.
  void gather(std::uint64_t begin, std::uint64_t end, std::byte* to) const noexcept {
    std::uint64_t place = 0;
    for (std::size_t i = 0; i < count && place < end; ++i) {
      const std::uint64_t from = std::max(begin, place);
      const std::uint64_t upto = std::min(end, place + list[i].iov_len);
      if (from < upto) {
        std::memcpy(to, static_cast<std::byte*>(list[i].iov_base) + (from - place), upto - from);
        to += upto - from;
      }
      place += list[i].iov_len;
    }
  }
};

}  // namespace

/// Where a read puts what comes.
struct Stream::Reach {
  Pieces pieces;
  std::uint64_t direct = 0;                              // bytes before the overflow
  std::array<std::uint64_t, call_pieces_max> stretches;  // of each message's bytes, in place
};

void Stream::adopt(link::Link link) {
  const auto bytes = std::as_bytes(std::span(link.surplus));
  surplus_.assign(bytes.begin(), bytes.end());
  sealed_ = sending_;
  adopt_link(std::move(link));
}

void Stream::note(const common::Event& event) noexcept {
  Connection::note(event);
  if (event.is_ending()) is_ending_ = true;
}

// --- receiving ---

Status Stream::receive(Scratch& scratch) {
  if (has_surplus()) {
    if (Status status = take_surplus(); !status.ok()) return status;
  }
  if (!is_readable_ || !wants_input()) return {};
  if (link_.tls != nullptr) return receive_encrypted(scratch);
  const bool is_small = received_ < header_bytes && incoming().room() <= small_room_bytes_max;
  return is_small ? receive_small(scratch) : receive_scattered(scratch);
}

Status Stream::receive_small(Scratch& scratch) {
  const std::span<std::byte> room(scratch.overflow(), overflow_bytes);
  const ssize_t count = ::recv(socket(), room.data(), room.size(), 0);
  Status status = note_read(count, room.size());
  if (count <= 0 || !status.ok()) return status;
  return take(room.first(static_cast<std::size_t>(count)));
}

Status Stream::receive_scattered(Scratch& scratch) {
  Reach reach;
  std::uint64_t ahead = ahead_bytes_max;
  bool is_open = true;  // every receive so far is read to its end
  for (std::uint64_t i = receiving_, message = 0;
       is_open && i < queues_.receives.end() && reach.pieces.has_room();
       i += queues_.streams, ++message) {
    Slot& slot = queues_.receives[i];
    const std::uint64_t begun = i == receiving_ ? received_ : 0;
    const bool is_known = begun >= header_bytes;
    const std::uint64_t from = is_known ? begun - header_bytes : 0;
    const std::uint64_t wanted = is_known ? slot.bytes : slot.room();
    const std::uint64_t stretch = std::min(wanted - from, is_known ? call_bytes_max : ahead);
    if (!is_known) {
      reach.pieces.add(slot.header.data() + begun, header_bytes - begun);
      ahead -= stretch;
    }
    reach.pieces.add(slot, from, from + stretch);
    reach.stretches[message] = stretch;
    is_open = stretch == wanted - from;
  }
  reach.direct = reach.pieces.bytes;
  if (is_open) reach.pieces.add(scratch.overflow(), overflow_bytes);
  const ssize_t count =
      ::readv(socket(), reach.pieces.list.data(), static_cast<int>(reach.pieces.count));
  Status status = note_read(count, reach.pieces.bytes);
  if (count <= 0 || !status.ok()) return status;
  return settle(reach, static_cast<std::uint64_t>(count), scratch);
}

Status Stream::settle(const Reach& reach, std::uint64_t count, Scratch& scratch) {
  const std::uint64_t direct = std::min(count, reach.direct);
  std::uint64_t place = 0;
  if (Status status = settle_in_place(reach, direct, place); !status.ok()) return status;
  const std::uint64_t moving = direct - place;
  std::byte* const begin = scratch.overflow() - moving;
  reach.pieces.gather(place, direct, begin);
  return take({begin, static_cast<std::size_t>(moving + (count - direct))});
}

/// Takes note of what lies where it belongs: the first `place` bytes of `count`.
Status Stream::settle_in_place(const Reach& reach, std::uint64_t count, std::uint64_t& place) {
  for (std::size_t message = 0; place < count; ++message) {
    if (received_ < header_bytes) {
      const std::uint64_t more = std::min(header_bytes - received_, count - place);
      received_ += more;
      place += more;
      if (received_ < header_bytes) return {};
      if (Status status = open_message(); !status.ok()) return status;
    }
    const std::uint64_t left = header_bytes + incoming().bytes - received_;
    const std::uint64_t more = std::min(left, count - place);
    received_ += more;
    place += more;
    if (more < left) return {};
    close_message();
    if (left < reach.stretches[message]) return {};  // what comes behind it is not in its place
  }
  return {};
}

Status Stream::take_surplus() {
  std::size_t used = 0;
  Status status = consume(std::span(surplus_).subspan(surplus_begin_), used);
  surplus_begin_ += used;
  if (!has_surplus()) {
    surplus_.clear();
    surplus_begin_ = 0;
  }
  return status;
}

/// Puts bytes where they belong, and keeps those for which there is no receive. There is no older
/// surplus.
Status Stream::take(std::span<const std::byte> bytes) {
  std::size_t used = 0;
  Status status = consume(bytes, used);
  surplus_.assign(bytes.begin() + static_cast<std::ptrdiff_t>(used), bytes.end());
  surplus_begin_ = 0;
  return status;
}

Status Stream::consume(std::span<const std::byte> bytes, std::size_t& used) {
  while (used < bytes.size() && wants_input()) {
    const auto rest = bytes.subspan(used);
    Slot& slot = incoming();
    if (received_ < header_bytes) {
      const std::size_t more = std::min<std::size_t>(header_bytes - received_, rest.size());
      std::memcpy(slot.header.data() + received_, rest.data(), more);
      received_ += more;
      used += more;
      if (received_ < header_bytes) return {};
      if (Status status = open_message(); !status.ok()) return status;
    } else {
      const std::uint64_t begin = received_ - header_bytes;
      const std::uint64_t end = std::min<std::uint64_t>(slot.bytes, begin + rest.size());
      const std::byte* from = rest.data();
      slot.visit(begin, end, [&from](std::byte* to, std::uint64_t size) {
        std::memcpy(to, from, size);
        from += size;
      });
      received_ += end - begin;
      used += end - begin;
    }
    if (received_ == header_bytes + slot.bytes) close_message();
  }
  const auto rest = bytes.subspan(used);
  const bool is_farewell =
      received_ == 0 && rest.size() == header_bytes && length_in(rest.data()) == farewell_length;
  return is_farewell ? farewell(rest.data()) : Status();
}

/// The header of the message is there.
Status Stream::open_message() {
  Slot& slot = incoming();
  slot.bytes = length_in(slot.header.data());
  if (mark_in(slot.header.data()) != mark_of(receiving_)) {
    return Status(StatusCode::protocol_error,
                  fmt::format("rank {} sent what is no message where number {} should begin",
                              queues_.peer, receiving_))
        .with_peer(static_cast<int>(queues_.peer))
        .with_hint("is something between that alters the traffic? HOCKET_TLS would tell");
  }
  if (slot.bytes == farewell_length) {
    Status why = farewell(slot.header.data());
    slot.header = {};
    return why;
  }
  if (slot.bytes <= slot.room()) return {};
  return common::too_long(queues_.peer, slot.bytes, slot.room());
}

void Stream::close_message() noexcept {
  incoming().is_done = true;
  receiving_ += queues_.streams;
  received_ = 0;
}

Status Stream::look_for_end() {
  is_ending_ = false;
  if (wants_input() || has_surplus() || !is_linked()) return {};
  std::array<std::byte, header_bytes + 1> next;
  const ssize_t count = ::recv(socket(), next.data(), next.size(), MSG_PEEK);
  if (count == 0) return lost("its connection ended");
  if (count < 0) return errno == EAGAIN ? Status() : lost("its connection broke", errno);
  const bool is_farewell = link_.tls == nullptr && count == header_bytes && received_ == 0 &&
                           length_in(next.data()) == farewell_length;
  return is_farewell ? farewell(next.data()) : Status();
}

// --- sending ---

Status Stream::send() {
  if (!is_writable_) return {};
  if (link_.tls != nullptr) return send_encrypted();
  Pieces pieces;
  for (std::uint64_t i = sending_; i < queues_.sends.end() && pieces.has_room();
       i += queues_.streams) {
    Slot& slot = queues_.sends[i];
    const std::uint64_t begun = i == sending_ ? sent_ : 0;
    if (begun < header_bytes) {
      pieces.add(slot.header.data() + begun, header_bytes - begun);
    }
    const std::uint64_t from = std::max<std::uint64_t>(begun, header_bytes) - header_bytes;
    pieces.add(slot, from, std::min(slot.bytes, from + call_bytes_max));
    if (from + call_bytes_max < slot.bytes) break;
  }
  const ssize_t count = pieces.send(socket());
  if (count < 0) {
    if (errno == EINTR) return {};
    if (errno != EAGAIN) return broke_sending(errno);
    is_writable_ = false;
    return {};
  }
  const auto bytes = static_cast<std::uint64_t>(count);
  has_moved_ = true;
  if (bytes < std::min(pieces.bytes, call_bytes_max)) is_writable_ = false;
  note_sent(bytes);
  return {};
}

/// What came before that can be read still, to its end.
Status Stream::broke_sending(int error) {
  has_ended_ = is_readable_ = true;
  return lost("its connection broke", error);
}

void Stream::note_sent(std::uint64_t count) noexcept {
  while (count > 0) {
    Slot& slot = queues_.sends[sending_];
    const std::uint64_t left = header_bytes + slot.bytes - sent_;
    if (count < left) {
      sent_ += count;
      return;
    }
    count -= left;
    slot.is_done = link_.tls == nullptr;
    sending_ += queues_.streams;
    sent_ = 0;
  }
}

/// A message is over when what it was encrypted to is sent.
Status Stream::send_encrypted() {
  if (encrypted_.empty()) {
    if (Status status = encrypt(); !status.ok()) return status;
  }
  const ssize_t count =
      ::send(socket(), encrypted_.data(), encrypted_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count < 0) {
    if (errno == EINTR) return {};
    if (errno != EAGAIN) return broke_sending(errno);
    is_writable_ = false;
    return {};
  }
  has_moved_ = true;
  encrypted_.erase(0, static_cast<std::size_t>(count));
  if (!encrypted_.empty()) return {};
  for (; sealed_ < sending_; sealed_ += queues_.streams) queues_.sends[sealed_].is_done = true;
  return {};
}

Status Stream::encrypt() {
  std::size_t room = ahead_bytes_max;
  while (room > 0 && sending_ < queues_.sends.end()) {
    Slot& slot = queues_.sends[sending_];
    const std::uint64_t end = std::min(header_bytes + slot.bytes, sent_ + room);
    Status status;
    const auto seal = [&](const std::byte* data, std::uint64_t size) {
      if (status.ok()) status = link_.tls->send({reinterpret_cast<const char*>(data), size});
    };
    if (sent_ < header_bytes) {
      seal(slot.header.data() + sent_, std::min<std::uint64_t>(end, header_bytes) - sent_);
    }
    if (end > header_bytes) {
      slot.visit(std::max<std::uint64_t>(sent_, header_bytes) - header_bytes, end - header_bytes,
                 seal);
    }
    if (!status.ok()) return lost(status.what());
    room -= end - sent_;
    note_sent(end - sent_);
  }
  encrypted_ += link_.tls->take_output();
  return {};
}

/// Nothing where that fails.
std::string_view Stream::encrypt_farewell(std::string_view words) noexcept {
  const Status status = described([&] {
    Status sent = link_.tls->send(words);
    if (sent.ok()) encrypted_ = link_.tls->take_output();
    return sent;
  });
  return status.ok() ? encrypted_ : std::string_view();
}

Fd Stream::leave(std::optional<std::uint64_t> reason) noexcept {
  if (reason && sent_ == 0 && encrypted_.empty()) {
    const Header header = make_header(farewell_length, *reason, sending_);
    std::string_view words = as_text(header);
    if (link_.tls != nullptr) words = encrypt_farewell(words);
    // As far as it can go without waiting: who does not read it sees the end of the connection.
    static_cast<void>(::send(socket(), words.data(), words.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  }
  ::shutdown(socket(), SHUT_WR);
  return std::move(link_.socket);
}

}  // namespace hocket::tcp
