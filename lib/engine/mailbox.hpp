// Messages from rank to rank, with tags: beside the collective operations of a group, and in any
// order with them.
//
// Two ranks have two channels for it. On one go letters: small messages whole, and of others word
// of them. On the other go their payloads, straight between the callers' memory. A message of
// middle size is pushed: its payload goes together with the letter. Of a large one goes an offer,
// which the receiver clears once it knows where the payload is to go. Nothing is pushed while an
// offer is open, so that both ends have all payloads in one order. What nobody expects yet is kept;
// so that this takes little, a sender may only be so far ahead, and then makes offers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hocket/status.hpp"
#include "hocket/transport.hpp"
#include "hocket/types.hpp"

#include "base/clock.hpp"
#include "engine/buffers.hpp"
#include "engine/op_list.hpp"
#include "engine/work.hpp"

namespace hocket::engine {

class TimedRecorder;

inline constexpr std::uint32_t any_rank = UINT32_MAX;
inline constexpr std::uint32_t any_tag = UINT32_MAX;

/// What a receive got.
struct Received {
  std::uint32_t peer = 0;
  std::uint32_t tag = 0;
  std::uint64_t bytes = 0;
};

/// A send or a receive. What it points to is borrowed until its work is over.
struct Parcel {
  bool sends = false;
  std::uint32_t peer = 0;  // of a receive also any_rank
  std::uint32_t tag = 0;   // of a receive also any_tag
  DataType type = DataType::u8;
  std::byte* memory = nullptr;
  std::uint64_t bytes = 0;  // of a receive: room
  Work* work = nullptr;
  Received* received = nullptr;  // of a receive
  bool fails_alone = false;      // of a receive: at its deadline, if no message has come for it
  Instant begun = {};            // when the program called it
  Deadline deadline = {};
};

class Mailbox {
 public:
  /// Of a rank among so many.
  Mailbox(std::uint32_t rank, std::uint32_t size);
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  /// One of the messages that are not over; null if all are.
  [[nodiscard]] const Parcel* any_under_way() const noexcept;

  // All below belongs to the engine. Ops go into `outgoing`; what they carry in `token`, with those
  // of the base, comes back by complete(). What throws, for want of memory, leaves the mailbox such
  // that fail() ends all that is not over.
  void attach(std::uint64_t token_base, TimedRecorder& recorder,
              std::uint64_t communicator) noexcept {
    token_base_ = token_base;
    recorder_ = &recorder;
    communicator_ = communicator;
  }
  [[nodiscard]] std::uint32_t rank() const noexcept { return rank_; }
  /// With whom an op is that the transport has.
  [[nodiscard]] std::uint32_t peer_of(std::uint32_t op) const noexcept { return ops_[op].peer; }
  [[nodiscard]] bool is_open(std::uint32_t peer) const noexcept {
    return peer == rank_ || peers_[peer].is_open;
  }
  void open(std::uint32_t peer, ChannelId letters, ChannelId payloads, OpList& outgoing);

  // These fail with what the whole group is to fail with.
  [[nodiscard]] Status start(const Parcel& parcel, OpList& outgoing);
  [[nodiscard]] Status complete(std::uint32_t op, const TransportCompletion& completion,
                                OpList& outgoing);
  /// Ends the receives whose deadline has passed and that fail alone. If the deadline of another
  /// message has passed, returns the failure of the whole group.
  [[nodiscard]] Status expire(Instant now);

  /// Ends what is not over, now and later, as soon as nothing touches its memory.
  void fail(const Status& why) noexcept;

  [[nodiscard]] Deadline deadline() const noexcept;
  /// Sends and receives that are not over.
  [[nodiscard]] std::size_t active() const noexcept { return items_.size() - free_items_.size(); }
  /// Of the first peer that is gone, if one is.
  [[nodiscard]] Status loss() const;
  /// Whether the transport has ops of ours.
  [[nodiscard]] bool is_posted() const noexcept { return ops_.size() > free_ops_.size(); }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  enum class LetterKind : std::uint16_t { message, offer, clear, credit, push };
  struct Letter {
    LetterKind kind = LetterKind::message;
    DataType type = DataType::u8;  // of a message
    std::uint32_t tag = 0;
    std::uint64_t bytes = 0;   // of the message
    std::uint64_t number = 0;  // of an offer and its clear: the sender's item; of a credit: units
  };
  enum class OpKind : std::uint8_t {
    letter_out,
    credit_out,
    letter_in,
    payload_out,
    payload_in,
    push_in,
  };
  struct Op {
    OpKind kind = OpKind::letter_out;
    std::uint32_t peer = 0;
    std::uint32_t buffer = none;
    std::uint32_t item = none;
  };
  struct Item {
    Parcel parcel = {};
    bool is_used = false;
    bool is_offered = false;   // and not cleared
    std::uint32_t posted = 0;  // ops that have its memory, or its letter
    std::uint64_t record = 0;  // its sequence number in the recorder
  };
  struct Peer {
    bool is_open = false;
    ChannelId letters = 0;
    ChannelId payloads = 0;
    std::uint32_t credits = 0;  // units that may go ahead (units_of)
    std::uint32_t kept = 0;     // units of what came from it that it got no credit for yet
    std::uint32_t owed = 0;     // of these, those that were taken
    std::uint32_t offers = 0;   // to it, not cleared
    Status lost = {};
  };
  /// What came before anybody expected it.
  struct Arrived {
    std::uint32_t peer = 0;
    Letter letter = {};
    std::uint32_t buffer = none;  // of a message, or of what is pushed
    std::uint32_t op = none;      // that still brings what is pushed
  };

  [[nodiscard]] Status send(std::uint32_t item, OpList& outgoing);
  [[nodiscard]] Status receive(std::uint32_t item, OpList& outgoing);
  [[nodiscard]] Status take_letter(std::uint32_t peer, std::uint32_t buffer, std::uint64_t bytes,
                                   OpList& outgoing);
  [[nodiscard]] Status take_credit(std::uint32_t peer, const Letter& letter);
  [[nodiscard]] Status take_clear(std::uint32_t peer, const Letter& letter, OpList& outgoing);
  [[nodiscard]] Status arrive(const Arrived& arrived, OpList& outgoing);
  void keep_push(Arrived& arrived, OpList& outgoing);
  [[nodiscard]] std::vector<Arrived>::iterator kept_by(std::uint32_t op);
  [[nodiscard]] Status accept(std::uint32_t item, const Arrived& arrived, OpList& outgoing);
  void hand_over(std::uint32_t item, std::uint32_t peer, std::uint32_t buffer, OpList& outgoing);
  [[nodiscard]] Status lose(std::uint32_t peer, const Status& why);
  [[nodiscard]] Status hopeless(const Parcel& parcel) const;
  void give_up(std::uint32_t item);
  [[nodiscard]] static bool fits(const Parcel& expected, const Arrived& arrived) noexcept;

  void post_letter(std::uint32_t peer, const Letter& letter, std::uint32_t item, OpList& outgoing);
  void post_payload(std::uint32_t peer, std::uint32_t item, std::uint64_t bytes, OpList& outgoing);
  void expect_letter(std::uint32_t peer, OpList& outgoing);
  void give_credit(std::uint32_t peer, std::uint64_t bytes, OpList& outgoing);
  [[nodiscard]] std::uint32_t add_op(const Op& op);
  [[nodiscard]] std::uint32_t add_item(const Parcel& parcel);
  void finish(std::uint32_t item, const Status& status) noexcept;
  [[nodiscard]] static Letter read(const std::byte* from) noexcept;
  static void write(const Letter& letter, std::byte* to) noexcept;

  const std::uint32_t rank_;
  std::uint64_t token_base_ = 0;
  TimedRecorder* recorder_ = nullptr;
  std::uint64_t communicator_ = 0;
  std::vector<Peer> peers_;
  std::vector<Item> items_;
  std::vector<std::uint32_t> free_items_;
  std::vector<Op> ops_;
  std::vector<std::uint32_t> free_ops_;
  Buffers buffers_;
  std::vector<std::uint32_t> expected_;  // receives, in their order
  std::vector<Arrived> unexpected_;      // in their order
  Status failure_;
};

}  // namespace hocket::engine
