// Much at once: both directions, many lanes, many peers, and lanes that nobody empties.
#include <cstdint>
#include <deque>
#include <vector>

#include <sys/mman.h>

#include "base/fd.hpp"
#include "conformance/transport_conformance.hpp"
#include "conformance/transport_world.hpp"

namespace hocket::testing {
namespace {

constexpr std::uint64_t mebi = 1 << 20;

/// More memory than there is: a small piece of it, again and again.
class Endless {
 public:
  explicit Endless(std::uint64_t bytes) : bytes_(bytes), file_(memfd_create("endless", 0)) {
    REQUIRE(ftruncate(file_.get(), static_cast<off_t>(piece_bytes)) == 0);
    const std::uint64_t rounded = (bytes + piece_bytes - 1) / piece_bytes * piece_bytes;
    mapped_ = rounded;
    void* const start = mmap(nullptr, rounded, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(start != MAP_FAILED);
    data_ = static_cast<std::byte*>(start);
    for (std::uint64_t at = 0; at < rounded; at += piece_bytes) {
      REQUIRE(mmap(data_ + at, piece_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                   file_.get(), 0) != MAP_FAILED);
    }
  }
  Endless(const Endless&) = delete;
  Endless& operator=(const Endless&) = delete;
  ~Endless() { munmap(data_, mapped_); }

  [[nodiscard]] MemoryPart all() const { return {data_, bytes_}; }

 private:
  static constexpr std::uint64_t piece_bytes = 64 * mebi;

  std::uint64_t bytes_;
  Fd file_;
  std::uint64_t mapped_ = 0;
  std::byte* data_ = nullptr;
};

}  // namespace

TRANSPORT_TEST("both sides send far more than any buffer holds") {
  constexpr int messages = 48;
  TransportWorld world(subject, 2);
  std::deque<Parcel> sent;
  std::deque<Parcel> received;
  for (const std::uint32_t rank : {0U, 1U}) {
    sent.emplace_back(mebi).fill(rank);
    for (int i = 0; i < messages; ++i) world.send(rank, 1 - rank, 0, sent.back());
  }
  world.pump_rounds(100);
  for (int i = 0; i < messages; ++i) {
    for (const std::uint32_t rank : {0U, 1U}) {
      world.receive(rank, 1 - rank, 0, received.emplace_back(mebi));
    }
  }
  world.finish();
  for (std::size_t i = 0; i < received.size(); ++i) REQUIRE(received[i].holds(1 - i % 2));
}

TRANSPORT_TEST("many lanes and many peers at once") {
  const std::pair<std::uint32_t, std::uint64_t> shapes[] = {{2, 64}, {8, 6}};
  constexpr Duration patience = 3 * soon;  // with hundreds of handshakes under a sanitizer
  for (const auto& shape : shapes) {
    const std::uint32_t size = shape.first;
    TransportWorld world(subject, size);
    std::deque<Parcel> sent;
    std::deque<Parcel> received;
    for (int round = 0; round < 3; ++round) {
      for (std::uint32_t rank = 0; rank < size; ++rank) {
        for (std::uint32_t peer = 0; peer < size; ++peer) {
          for (std::uint64_t lane = 0; rank != peer && lane < shape.second; ++lane) {
            sent.emplace_back(500 + lane).fill((rank * size + peer) * 100 + lane);
            world.send(rank, peer, lane, sent.back());
            received.emplace_back(500 + lane);
            world.receive(rank, peer, lane, received.back());
          }
        }
      }
      world.finish(patience);
      std::size_t i = 0;
      for (std::uint32_t rank = 0; rank < size; ++rank) {
        for (std::uint32_t peer = 0; peer < size; ++peer) {
          for (std::uint64_t lane = 0; rank != peer && lane < shape.second; ++lane) {
            REQUIRE(received[i++].holds((peer * size + rank) * 100 + lane));
          }
        }
      }
      sent.clear();
      received.clear();
    }
  }
}

TRANSPORT_TEST("a lane that nobody empties stops no other, and fills no memory") {
  constexpr int messages = 384;
  TransportWorld world(subject, 2);
  Parcel large(mebi);
  large.fill(1);
  Parcel from(100);
  Parcel to(100);
  const Token opening = world.send(1, 0, 1, from);
  world.require_success(world.receive(0, 1, 1, to));
  world.require_success(opening);
  const std::uint64_t before = resident_bytes();
  std::vector<Token> stuck;
  for (int i = 0; i < messages; ++i) stuck.push_back(world.send(0, 1, 0, large));
  for (std::uint64_t i = 0; i < 200; ++i) {
    from.fill(i);
    const bool is_answer = i % 2 == 1;
    const Token sent = world.send(is_answer ? 1 : 0, is_answer ? 0 : 1, 1, from);
    world.require_success(world.receive(is_answer ? 0 : 1, is_answer ? 1 : 0, 1, to));
    world.require_success(sent);
    REQUIRE(to.holds(i));
  }
  REQUIRE_FALSE(world.outcome(stuck.back()).is_over);
  REQUIRE(resident_bytes() < before + 64 * mebi);
  Parcel room(mebi);
  for (int i = 0; i < messages; ++i) world.require_success(world.receive(1, 0, 0, room));
  world.finish();
  require(world.outcome(stuck.back()).status);
  REQUIRE(room.holds(1));
}

TRANSPORT_TEST("what is not accepted is accepted later") {
  constexpr std::uint64_t messages = 20'000;
  TransportWorld world(subject, 2);
  world.set_post_batch(messages);
  Parcel from(24);
  from.fill(3);
  std::deque<Parcel> received;
  for (std::uint64_t i = 0; i < messages; ++i) world.send(0, 1, 0, from);
  world.pump_rounds(20);
  for (std::uint64_t i = 0; i < messages; ++i) {
    world.receive(1, 0, 0, received.emplace_back(24 + i % 3));
  }
  world.finish();
  for (Parcel& each : received) {
    if (!each.holds(3, 24)) FAIL("a message is not as it was");
  }
}

#if !defined(__SANITIZE_THREAD__)  // which keeps a book of all that memory: too slow
TRANSPORT_TEST("a message may be larger than 4 GiB") {
  constexpr std::uint64_t bytes = (std::uint64_t{4} << 30) + 7;
  TransportWorld world(subject, 2);
  const Endless from(bytes);
  const Endless to(bytes);
  Parcel end(64);
  end.fill(4);
  // The last bytes are those of the first piece as well: so the end is what is seen.
  std::copy_n(end.first().data, 64, from.all().data);
  const std::uint64_t head = bytes - 3;
  const auto op = [&](std::uint32_t rank, TransportOp::Kind kind, MemoryPart memory) {
    return world.post(rank, {.kind = kind,
                             .channel = world.channel(rank, 1 - rank, 0),
                             .first = {memory.data, head},
                             .rest = {memory.data + head, memory.bytes - head}});
  };
  const Token sent = op(0, TransportOp::Kind::send, from.all());
  const Token received = op(1, TransportOp::Kind::recv, to.all());
  world.finish(std::chrono::minutes(4));
  world.require_success(sent);
  world.require_success(received);
  REQUIRE(world.outcome(received).bytes == bytes);
  REQUIRE(std::equal(end.first().data, end.first().data + 64, to.all().data));
  Parcel small(3);
  Parcel room(3);
  small.fill(5);
  world.send(0, 1, 0, small);
  world.require_success(world.receive(1, 0, 0, room));
  REQUIRE(room.holds(5));
}
#endif

}  // namespace hocket::testing
