// One connection of a channel: carries every K-th of its messages, straight between the socket and
// the memory of the ops.
//
// What is read goes to where the receives that are posted would have it if each message filled its
// receive, and behind them into scratch memory. A message that turns out shorter makes what was
// read behind it move. Nothing is read that is more than a little beyond the receives, so that the
// kernel holds back the sender.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/uio.h>

#include "hocket/status.hpp"

#include "base/fd.hpp"
#include "transports/common/failures.hpp"
#include "transports/tcp/connection.hpp"
#include "transports/tcp/queue.hpp"

namespace hocket::tcp {

class Stream final : public Connection {
 public:
  /// Borrows the queues of its channel. Its first message is number `index`.
  Stream(ChannelId of, Queues& queues, std::uint32_t index)
      : Connection(Role::stream),
        channel(of),
        queues_(queues),
        sending_(index),
        receiving_(index) {}

  void adopt(link::Link link);
  void note(const common::Event& event) noexcept;
  /// Reads at the next turn, whether or not there was an event.
  void try_to_read() noexcept { is_readable_ = true; }

  /// Of the ops that are posted, some are not over.
  [[nodiscard]] bool has_receives() const noexcept { return receiving_ < queues_.receives.end(); }
  [[nodiscard]] bool has_sends() const noexcept {
    return sending_ < queues_.sends.end() || !encrypted_.empty();
  }
  /// And it can do something about them.
  [[nodiscard]] bool wants_input() const noexcept {
    return is_linked() && has_receives() && !has_end();
  }
  [[nodiscard]] bool wants_output() const noexcept {
    return is_linked() && has_sends() && !has_end();
  }
  /// Number of the message that it is to receive next.
  [[nodiscard]] std::uint64_t receiving() const noexcept { return receiving_; }
  [[nodiscard]] bool is_blocked() const noexcept { return wants_output() && !is_writable_; }
  /// There is something to do.
  [[nodiscard]] [[gnu::always_inline]] bool is_ready() const noexcept {
    return (wants_input() && (is_readable_ || has_surplus())) || (wants_output() && is_writable_) ||
           (is_linked() && is_ending_ && !has_end());
  }

  /// Moves what one call of the system can. A failure is final.
  [[nodiscard]] Status receive(Scratch& scratch);
  [[nodiscard]] Status send();
  /// Whether nothing will come any more, when the other end seems to have gone.
  [[nodiscard]] Status look_for_end();

  /// Says farewell and why, if no message is half sent, and gives the connection away.
  [[nodiscard]] Fd leave(std::optional<std::uint64_t> reason) noexcept;

  /// The other end is gone, for this reason; nothing moves any more.
  void end(Status why) noexcept { end_ = std::move(why); }
  [[nodiscard]] bool has_end() const noexcept { return !end_.ok(); }
  [[nodiscard]] const Status& why() const noexcept { return end_; }
  /// The other end closed the channel and said why.
  [[nodiscard]] bool peer_closed() const noexcept { return peer_closed_; }

  /// It has been seen that the other end goes.
  [[nodiscard]] bool is_ending() const noexcept { return is_ending_; }

  // For the transport's lists.
  static constexpr std::size_t nowhere = ~std::size_t{0};
  const ChannelId channel;
  bool is_in_turn = false;
  bool counts_as_blocked = false;
  std::size_t waiting_at = nowhere;

 private:
  struct Reach;

  [[nodiscard]] bool has_surplus() const noexcept { return surplus_begin_ < surplus_.size(); }
  [[nodiscard]] Slot& incoming() noexcept { return queues_.receives[receiving_]; }
  [[nodiscard]] Status lost(std::string_view how, int error = 0) const override {
    return common::lost_peer(queues_.peer, how, error);
  }
  [[nodiscard]] Status farewell(const std::byte* header) {
    peer_closed_ = true;
    return closed_by_peer(queues_.peer, tag_in(header));
  }

  [[nodiscard]] Status receive_small(Scratch& scratch);
  [[nodiscard]] Status receive_scattered(Scratch& scratch);
  [[nodiscard]] Status settle(const Reach& reach, std::uint64_t count, Scratch& scratch);
  [[nodiscard]] Status settle_in_place(const Reach& reach, std::uint64_t count,
                                       std::uint64_t& place);
  [[nodiscard]] Status take_surplus();
  [[nodiscard]] Status take(std::span<const std::byte> bytes) override;
  [[nodiscard]] Status consume(std::span<const std::byte> bytes, std::size_t& used);
  [[nodiscard]] Status open_message();
  void close_message() noexcept;

  [[nodiscard]] Status send_encrypted();
  [[nodiscard]] Status encrypt();
  [[nodiscard]] std::string_view encrypt_farewell(std::string_view words) noexcept;
  [[nodiscard]] Status broke_sending(int error);
  void note_sent(std::uint64_t count) noexcept;

  Queues& queues_;
  bool is_ending_ = false;  // it has been seen only now that the other end sends no more
  Status end_ = {};
  bool peer_closed_ = false;

  std::uint64_t sending_;    // number of the message that is being sent
  std::uint64_t sent_ = 0;   // of it and its header
  std::uint64_t receiving_;  // and of the one that is being received
  std::uint64_t received_ = 0;

  std::vector<std::byte> surplus_ = {};  // came, and no receive is there for it
  std::size_t surplus_begin_ = 0;

  std::uint64_t sealed_ = 0;  // with TLS: from it on up to `sending_` are in encrypted_
};

}  // namespace hocket::tcp
