// A queue pair: its way from nothing to connected, and the sends that are under way on it. Slots
// that a send reads are its own until it is over.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <infiniband/verbs.h>

#include "hocket/status.hpp"

#include "transports/common/ring.hpp"
#include "transports/verbs/rail.hpp"
#include "transports/verbs/regions.hpp"
#include "transports/verbs/slots.hpp"
#include "transports/verbs/wire.hpp"

namespace hocket::verbs {

struct Channel;

/// What a send reads: a slot, or memory of that message of a channel; neither when it was copied
/// into its request.
struct Hold {
  Slots* slots = nullptr;
  Slots::Index slot = 0;
  Region* region = nullptr;
  Channel* channel = nullptr;
  std::uint64_t number = 0;

  [[nodiscard]] bool is_copied() const noexcept { return slots == nullptr && region == nullptr; }
};

/// A send's id: of the peer, the rail and the send, so that a completion finds them.
struct SendId {
  std::uint32_t peer = 0;
  std::uint32_t rail = 0;
  std::uint32_t number = 0;  // of the send, low bits

  static constexpr std::uint64_t mark = std::uint64_t{1} << 63;
  [[nodiscard]] static bool is_one(std::uint64_t id) noexcept { return (id & mark) != 0; }
  [[nodiscard]] static SendId of(std::uint64_t id) noexcept {
    return {.peer = static_cast<std::uint32_t>(id >> 32 & 0xFF'FFFF),
            .rail = static_cast<std::uint32_t>(id >> 56 & 0x7F),
            .number = static_cast<std::uint32_t>(id)};
  }
  [[nodiscard]] std::uint64_t value() const noexcept {
    return mark | std::uint64_t{rail} << 56 | std::uint64_t{peer} << 32 | number;
  }
};

class QueuePair {
 public:
  /// Sends under way at most. Rings of a power of two, of which one place is kept free, are common.
  static constexpr std::uint32_t depth = 63;

  [[nodiscard]] static Result<std::unique_ptr<QueuePair>> make(Rail& rail, std::uint32_t peer);
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;
  ~QueuePair() = default;

  [[nodiscard]] const End& end() const noexcept { return end_; }
  [[nodiscard]] Status connect(const End& other);
  [[nodiscard]] std::uint32_t number() const noexcept { return pair_->qp_num; }
  [[nodiscard]] std::uint32_t inline_bytes_max() const noexcept { return inline_bytes_max_; }
  [[nodiscard]] const Rail& rail() const noexcept { return rail_; }

  [[nodiscard]] bool has_room() const noexcept {
    return under_way_.size() < depth && rail_.sends_left > 0;
  }
  [[nodiscard]] bool is_idle() const noexcept { return under_way_.empty(); }
  /// There must be room. Its id and flags are set here; `is_last`: nothing may follow for long, so
  /// its end is to be heard of. Fails with system_error, and then holds nothing.
  [[nodiscard]] Status post(ibv_send_wr& request, Hold hold, bool is_last = false) noexcept;
  /// That send is over, and with it all before it: release(hold) for each.
  template <class Release>
  void complete(std::uint32_t number, Release release) {
    while (!under_way_.empty()) {
      const auto first = static_cast<std::uint32_t>(under_way_.begin());
      if (static_cast<std::int32_t>(number - first) < 0) return;
      ++rail_.sends_left;
      release(under_way_.pop());
    }
  }
  /// What is under way fails.
  void stop() noexcept;
  /// Nothing is read or written by it any more: release(hold) for all that were under way.
  template <class Release>
  void end(Release release) {
    pair_.reset();
    complete(static_cast<std::uint32_t>(under_way_.end()), release);
  }

 private:
  QueuePair(Rail& rail, std::uint32_t peer, Owned<ibv_qp> pair);
  [[nodiscard]] Status begin();
  [[nodiscard]] ibv_ah_attr way_to(const End& other) const noexcept;

  Rail& rail_;
  std::uint32_t peer_;
  Owned<ibv_qp> pair_;
  End end_ = {};
  std::uint32_t inline_bytes_max_ = 0;
  common::Ring<Hold> under_way_ = {};
  std::uint64_t signalled_ = 0;  // number behind the last one that is
};

}  // namespace hocket::verbs
