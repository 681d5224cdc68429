// Virtual time, and what is to happen in it.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "base/clock.hpp"

namespace hocket::simulated {

struct End;

struct Event {
  enum class Kind : std::uint8_t {
    nothing,     // time goes on
    buffer,      // a send's message has left its memory
    arrive,      // a message's first `bytes` are at the receiver
    sent,        // the completion of a send that waited for its receive
    peer_close,  // the end hears that its other end was closed, for the reason in `number`
    peer_lost,   // the rank hears that the peer is gone, in the way that `number` says
    fate,        // number `number` of the world's
  };

  Kind kind = Kind::nothing;
  std::uint32_t rank = 0;
  std::uint32_t peer = 0;
  End* end = nullptr;  // the sender's
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;
};

class Timeline final : public Clock {
 public:
  [[nodiscard]] Instant now() const noexcept override { return now_; }
  [[nodiscard]] bool empty() const noexcept { return queue_.empty(); }

  /// Not before now; those of one time happen in the order of their adding.
  void add(Instant at, const Event& event) { queue_.push({at, added_++, event}); }

  /// There must be one. Its time is now.
  Event take_next() {
    const Entry next = queue_.top();
    queue_.pop();
    now_ = next.at;
    return next.event;
  }

 private:
  struct Entry {
    Instant at;
    std::uint64_t order;
    Event event;

    [[nodiscard]] friend bool operator<(const Entry& a, const Entry& b) noexcept {
      return a.at != b.at ? a.at > b.at : a.order > b.order;  // the top of a queue is its largest
    }
  };

  std::priority_queue<Entry> queue_;
  Instant now_ = {};
  std::uint64_t added_ = 0;
};

}  // namespace hocket::simulated
