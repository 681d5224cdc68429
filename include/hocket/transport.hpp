// What carries messages between the ranks of a world. A transport is one class, for those that come
// with Hocket as for those that a program loads (HOCKET_TRANSPORT_PATH); docs/transports.md is the
// manual, and the conformance suite there decides what is one.
//
// A transport moves messages on *channels*. A channel is this rank's end of an ordered stream to
// one peer; both ends know it by the same lane number. Messages keep their order and their
// boundaries within a channel: the first receive posted gets the first message sent, whatever
// happens on other channels. Both ends may send at once, and no channel waits for another.
//
// One thread at a time calls a transport, except where a function says otherwise. No function
// blocks, throws or calls back.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hocket/export.h"
#include "hocket/setting.hpp"
#include "hocket/status.hpp"

namespace hocket::inline v1 {

/// Identifies this end of a channel; open() returns it. Ids are below channel_ids_end, because the
/// library uses the bits above to combine transports. After close() an id may be reused, but only
/// after 255 other ids, so that an op posted late fails.
using ChannelId = std::uint32_t;
inline constexpr ChannelId channel_ids_end = ChannelId{1} << 28;

/// A stretch of memory; may be null when it is empty.
struct MemoryPart {
  std::byte* data = nullptr;
  std::uint64_t bytes = 0;
};

/// A message to be sent or received: its first part, and behind it the rest. The memory is borrowed
/// until the completion: a send's is not to be written, a receive's is the transport's to write to,
/// also behind the end of a message that is shorter.
struct TransportOp {
  enum class Kind : std::uint8_t { send, recv };

  Kind kind = Kind::send;
  /// Of a receive: the completion may lend the message where it arrived, and leave the memory
  /// alone.
  bool may_lend = false;
  ChannelId channel = 0;
  MemoryPart first = {};  // of a receive: room for the longest message that is expected
  MemoryPart rest = {};
  std::uint64_t token = 0;  // comes back with the completion
  /// Of a send: comes with the message to the other end, and means nothing to a transport.
  std::uint64_t tag = 0;

  /// Of both parts.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return first.bytes + rest.bytes; }
};

/// What became of an op.
struct TransportCompletion {
  std::uint64_t token = 0;
  std::uint64_t bytes = 0;  // of the message
  /// The message's. Of a failure 0, or that of the message that met the receive.
  std::uint64_t tag = 0;
  /// The message, aligned to 16 bytes, until give_back(); null: it is in the op's memory.
  const std::byte* lent = nullptr;
  /// peer_lost: the peer died or left. mismatch: a message was longer than its receive. timeout:
  /// the peer could not be reached. What closed_by_peer() returns: the peer closed the channel.
  /// Else the reason that close() was given. peer() is the other end, or the rank that the other
  /// end named. Every later op of the channel fails as well, except receives of what a lost peer
  /// had sent.
  Status status = {};
};

struct TransportCaps {
  /// Messages up to so many bytes cost about the same as an empty one.
  std::uint64_t small_bytes_max = 0;
  /// Large messages are cut into pieces of at most so many bytes: a multiple of 16, at least
  /// HOCKET_BYTES_MAX, the same on all ranks.
  std::uint64_t segment_bytes = 256 << 10;
};

/// What the other end is told of why a channel is closed: the code, the rank of the world that
/// caused it (the reason's peer()), and the step. 0 if the reason is a success.
[[nodiscard]] HOCKET_API std::uint64_t pack_reason(const Status& reason) noexcept;
/// The failure of an op whose peer closed the channel with that packed reason. Its peer() is the
/// rank that caused it, which may be a third one, so that all ranks name the same.
[[nodiscard]] HOCKET_API Status closed_by_peer(std::uint32_t peer, std::uint64_t reason);

/// Memory that ops will use again and again.
struct RegisteredMemory {
  const std::byte* data = nullptr;
  std::uint64_t bytes = 0;
  bool may_receive = false;  // else only sends are from it

  friend bool operator==(const RegisteredMemory&, const RegisteredMemory&) = default;
};

class HOCKET_API Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  /// Ends all connections. Ops without a completion get none any more; their memory is not touched
  /// again.
  virtual ~Transport() = default;

  /// What it can do, the same all its life.
  [[nodiscard]] virtual const TransportCaps& caps() const noexcept = 0;

  /// By what the other ranks reach this one: any bytes, to be handed to their connect().
  [[nodiscard]] virtual std::string address() const = 0;

  /// The addresses of all ranks, this one's included; of a rank without this transport it is empty.
  /// Called once, before open(). Does not wait for anybody: connections are made when they are
  /// needed.
  [[nodiscard]] virtual Status connect(std::span<const std::string> addresses) = 0;

  /// Called once, at the end of a join, after connect() and before open(). Waits until the other
  /// ranks have connected so far that they receive what this rank sends even if it ends right
  /// afterwards; a few seconds at most. By default there is nothing to wait for.
  virtual void await_peers() noexcept {}

  /// Success if messages can go to another rank, else why not. After connect().
  [[nodiscard]] virtual Status can_reach(std::uint32_t peer) const = 0;

  /// This rank's end of the channel to a peer, another rank, which opens it by the same lane sooner
  /// or later. Once for each peer and lane.
  [[nodiscard]] virtual Result<ChannelId> open(std::uint32_t peer, std::uint64_t lane) = 0;

  /// Takes the first so many ops, in order, and says how many; fewer than offered when it has no
  /// room for more: the others are to be offered again after the next poll(). Each op that was
  /// taken gives one completion, whatever happens.
  [[nodiscard]] virtual std::size_t post(std::span<const TransportOp> ops) noexcept = 0;

  /// Moves what can be moved, and says which ops are over. Those of one kind on one channel come in
  /// the order in which they were posted.
  [[nodiscard]] virtual std::size_t poll(std::span<TransportCompletion> completions) noexcept = 0;
  /// Whether bytes have moved since the last poll() began. Then more may follow soon, so whoever
  /// waits polls again instead of going to sleep, even if no op is over.
  [[nodiscard]] virtual bool has_moved() const noexcept { return false; }

  /// Ends a loan.
  virtual void give_back(const std::byte* lent) noexcept = 0;

  /// To sleep until there is something to poll: call prepare_to_sleep(), and if it says true, wait
  /// for the descriptor to be readable. False: poll again. -1 for a transport that must be polled.
  [[nodiscard]] virtual int descriptor() const noexcept = 0;
  [[nodiscard]] virtual bool prepare_to_sleep() noexcept = 0;

  /// No further ops on a channel. Those that are under way fail for this reason, except receives
  /// whose message is complete and sends that are on their way. The reason goes to the other end,
  /// packed (pack_reason), and what is under way there fails with closed_by_peer() of it; or with
  /// peer_lost, where a message is half sent and nothing can follow it.
  virtual void close(ChannelId channel, const Status& reason) noexcept = 0;

  /// All lanes from `first` to `last`, to every peer, are over for good: as close() for channels
  /// that are open. For lanes that this rank never opened, the peer's end fails in the same way,
  /// whether the peer has opened it or opens it later. This rank must keep polling for that.
  /// A later open() of such a lane here returns a channel that is already closed. Callers end what
  /// belongs together by this, so that nothing need be remembered of each channel.
  virtual void close_lanes(std::uint64_t first, std::uint64_t last,
                           const Status& reason) noexcept = 0;

  /// This memory stays mapped as it is until it is deregistered and all ops in it are over: so an
  /// adapter may send from it and write to it without a copy. Nobody need say so, and a transport
  /// need not use it. What is registered twice is deregistered twice.
  virtual void register_memory(const RegisteredMemory& /*memory*/) noexcept {}
  virtual void deregister_memory(const RegisteredMemory& /*memory*/) noexcept {}

  /// The same of memory that no processor of the host may touch: ops of any length in it, and all
  /// of an op, go between it and these peers by adapters alone, or fail; nothing of it is ever
  /// lent, and no message is on its way before its receive is there. Until deregister_memory().
  /// `dma_buf`: a descriptor of just this memory, borrowed; -1: there is none, and the address says
  /// all. No bytes: whether it could be. Fails where it can't, and says why not: with unsupported,
  /// or limit_exceeded.
  [[nodiscard]] virtual Status register_device_memory(const RegisteredMemory& /*memory*/,
                                                      int /*dma_buf*/,
                                                      std::span<const std::uint32_t> /*peers*/) {
    return {StatusCode::unsupported, "the transport has no adapter that reaches device memory"};
  }

  /// Ranks that return the same text, and not an empty one, share memory with each other. If all
  /// ranks of each host do, algorithms are chosen by the costs of shared memory.
  [[nodiscard]] virtual std::string memory_domain() const { return {}; }
};

/// What a transport is told of the world it is made for.
struct TransportOptions {
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::uint64_t epoch = 0;  // of the world's membership: ends of different epochs don't talk
  std::string host = {};    // the address by which other hosts reach this one
  std::chrono::nanoseconds connect_timeout = std::chrono::minutes(5);

  // What all ranks share, to prove to each other who they are; an empty secret proves nothing.
  std::string job = {};
  std::string secret = {};
  std::string tls = "off";  // or "psk", "certificate" with the files in PEM
  std::string tls_certificate_file = {};
  std::string tls_key_file = {};
  std::string tls_ca_file = {};

  /// Hocket's variables that are set for this world, by the program or else by the environment.
  /// HOCKET_SECRET is among them, so do not log them. A transport reads variables of its own from
  /// the environment.
  std::vector<Setting> settings = {};
};

/// A kind of transport. A loadable one exports `hocket_transport_v1`, a function without arguments
/// that returns a pointer to one of these, which lives as long as the process.
struct TransportKind {
  std::string_view name;     // "tcp"
  std::string_view summary;  // for people, in one line
  /// Success where it can serve on this machine with these settings, else why not and what would
  /// help.
  Status (*available)(std::span<const Setting> settings);
  Result<std::unique_ptr<Transport>> (*make)(const TransportOptions& options);
};

}  // namespace hocket::inline v1
