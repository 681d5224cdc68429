// A channel over several connections at once, its rails, usually one for each network between the
// two ends. Messages are cut into pieces, each goes over whichever rail has room, and is put where
// it belongs when it comes. Pieces are numbered, and the other end says up to which number all have
// come: a send is over then. What a lost rail carried and is not known to have come goes again over
// the others; what comes twice is dropped.
//
// A rail is lost when its connection breaks, or when nothing comes back on it for 2 s in which
// another rail of the channel brings something: so a rank that is busy elsewhere, or the whole
// network's silence, loses no rail. That the last one is lost means what it means of a channel with
// one connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "hocket/status.hpp"
#include "hocket/transport.hpp"

#include "base/clock.hpp"
#include "transports/common/poller.hpp"
#include "transports/tcp/connection.hpp"
#include "transports/tcp/queue.hpp"
#include "transports/tcp/rail.hpp"

namespace hocket::tcp {

class Bundle {
 public:
  /// So often a channel looks after its rails.
  static constexpr Duration tick_time = std::chrono::milliseconds(250);

  /// Borrows the queues of its channel, and the poller.
  Bundle(ChannelId of, Queues& queues, std::size_t rails, common::Poller& poller);

  [[nodiscard]] bool is_linked() const noexcept;
  [[nodiscard]] bool was_linked() const noexcept { return was_linked_; }
  [[nodiscard]] Status adopt(std::size_t rail, link::Link link);
  /// That rail can't be had. Success if others may be.
  [[nodiscard]] Status give_up(std::size_t rail, const Status& why);

  /// Moves what can be moved. A failure is the channel's.
  [[nodiscard]] Status move(Scratch& scratch);
  void send();
  /// Whether move() moved anything the last time.
  [[nodiscard]] bool has_moved() const noexcept;
  /// move() has something to do.
  [[nodiscard]] bool is_ready() const noexcept;
  /// To be called every tick_time while is_owed().
  void tick();
  /// Loses the rails on which the other host has not answered for so long.
  void check_answers(Instant now, Duration limit);
  /// The other end closed the channel and said why.
  [[nodiscard]] bool peer_closed() const noexcept { return is_closed_; }
  /// Something was sent that is not known to have come.
  [[nodiscard]] bool is_owed() const noexcept { return !pieces_.empty(); }

  /// Says last words, and calls see_off(fd) for each connection. `reason`: of a channel that is
  /// closed (pack_reason).
  template <class SeeOff>
  void leave(Frame::Kind how, std::uint64_t reason, SeeOff see_off) {
    for (const auto& rail : rails_) {
      if (!rail->is_linked()) continue;
      poller_.forget(*rail, rail->socket());
      see_off(rail->leave(last_words(how, reason)));
    }
    is_due = false;
  }

  // For rails, about what they read.
  /// This piece has come, on whichever rail.
  [[nodiscard]] bool has(std::uint64_t number) const noexcept;
  /// All of that message is in the memory of its receive, which may be over: it is not to be
  /// touched again, whatever else comes of it.
  [[nodiscard]] bool is_complete(std::uint64_t message) const noexcept;
  [[nodiscard]] Status hear(const Frame& frame, Rail& rail);
  /// A piece is in the memory of its receive.
  void take(const Frame& piece);
  /// A piece has come before its receive.
  [[nodiscard]] Status keep(const Frame& piece, std::vector<std::byte> bytes);

  // For the transport's lists.
  const ChannelId channel;
  bool is_in_turn = false;
  bool is_due = false;  // ops are new, or time has passed

 private:
  struct Piece {  // of ours
    std::uint64_t message = 0;
    std::uint64_t offset = 0;
    std::uint32_t bytes = 0;
    const Rail* rail = nullptr;  // that it was given to last
  };
  struct Kept {
    Frame piece;
    std::vector<std::byte> bytes;
  };

  [[nodiscard]] Status protocol_error(const char* what) const;
  [[nodiscard]] Status check(const Frame& piece);
  [[nodiscard]] Status check_length(const Frame& piece);
  void note_arrival(std::uint64_t number);
  [[nodiscard]] Status take_kept();
  [[nodiscard]] bool is_over() const;

  [[nodiscard]] bool has_next() const noexcept;
  [[nodiscard]] bool would_delay(const Rail& rail) const noexcept;
  void spare_none() noexcept;
  [[nodiscard]] bool has_frame(const Rail& rail) const noexcept;
  [[nodiscard]] std::uint64_t next_piece();
  [[nodiscard]] bool give(Rail& rail);
  [[nodiscard]] bool is_last_heard(const Rail& rail) const noexcept;
  [[nodiscard]] Frame last_words(Frame::Kind how, std::uint64_t reason = 0) const noexcept;
  void end();
  void settle();
  void lose(std::size_t number, const Status& why);

  Queues& queues_;
  common::Poller& poller_;
  std::vector<std::unique_ptr<Rail>> rails_ = {};
  std::set<std::size_t> untold_ = {};  // that are lost, which the other end may not know
  Status end_ = {};                    // no rail is left, for this reason

  // What we send.
  common::Ring<Piece> pieces_ = {};     // that the other end is not known to have
  std::set<std::uint64_t> again_ = {};  // of them, to be sent once more
  std::uint64_t message_ = 0;           // that is cut next, from here
  std::uint64_t offset_ = 0;
  std::uint64_t arrived_there_ = 0;  // as Frame has them
  std::uint64_t taken_there_ = 0;
  std::uint64_t given_ = 0;  // bytes of all pieces so far, with headers

  // What comes.
  common::Ring<char> arrived_ = {};  // whether, from the first piece on that is missing
  std::uint64_t taken_ = 0;
  common::Ring<std::uint64_t> bytes_of_messages_ = {};  // from the first on that is not complete
  std::map<std::pair<std::uint64_t, std::uint64_t>, Kept> kept_ = {};  // by message and offset
  const Rail* last_heard_ = nullptr;
  bool owes_word_ = false;  // of what has come
  bool was_linked_ = false;
  std::uint64_t kept_bytes_ = 0;
  bool is_closed_ = false;  // by the other end, for this reason
  std::uint64_t reason_ = 0;
  std::uint64_t last_ = ~std::uint64_t{0};  // which has gone, and has sent so many pieces
};

}  // namespace hocket::tcp
