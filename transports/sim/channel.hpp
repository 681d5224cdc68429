// One end of a channel in a simulated world: its ops, and the messages that left it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <utility>
#include <vector>

#include "hocket/transport.hpp"

#include "base/clock.hpp"
#include "transports/sim/memory.hpp"

namespace hocket::simulated {

/// Things with numbers in a row, which leave in their order.
template <class T>
class Sequence {
 public:
  [[nodiscard]] bool empty() const noexcept { return items_.empty(); }
  [[nodiscard]] std::uint64_t first() const noexcept { return first_; }
  [[nodiscard]] std::uint64_t end() const noexcept { return first_ + items_.size(); }

  /// Null if it has left, or has not come yet.
  [[nodiscard]] T* find(std::uint64_t number) noexcept {
    return number >= first_ && number < end() ? &items_[number - first_] : nullptr;
  }
  [[nodiscard]] T& front() noexcept { return items_.front(); }

  T& add(T item) {
    items_.push_back(std::move(item));
    return items_.back();
  }
  void pop() noexcept {
    items_.pop_front();
    ++first_;
  }
  void clear() noexcept {
    first_ = end();
    items_.clear();
  }

 private:
  std::deque<T> items_;
  std::uint64_t first_ = 0;
};

/// An op whose memory is borrowed.
struct BorrowedOp {
  Memory memory = {};
  std::uint64_t token = 0;
  std::uint64_t tag = 0;    // of a receive, once its message is there
  std::uint64_t print = 0;  // of the memory, as it has to be
};

struct Send {
  BorrowedOp op = {};
  bool is_done = false;     // nothing can make it fail any more
  bool is_visible = false;  // and its program may know
  Status failure = {};
};

struct Receive {
  BorrowedOp op = {};
  bool may_lend = false;
  std::byte* lent = nullptr;
  std::uint64_t arrived = 0;  // so many bytes
  bool is_done = false;
  Status failure = {};

  /// Where the message goes.
  [[nodiscard]] Memory target(std::uint64_t bytes) const noexcept {
    return lent != nullptr ? Memory{{lent, bytes}, {}} : op.memory;
  }
};

/// On its way: from its send until its receive is done.
struct Message {
  Memory source = {};  // the sender's memory, or the copy
  std::uint64_t tag = 0;
  std::vector<std::byte> copy = {};
  bool uses_buffer = false;
  bool is_copied = false;  // it needs its sender no more
  bool is_gone = false;    // it never arrives
  Instant here = {};       // when the last byte can be there, if it uses the buffer
};

struct Finished {
  TransportCompletion completion = {};
  BorrowedOp op = {};
  std::uint64_t number = 0;
};

struct End {
  std::uint32_t rank = 0;
  std::uint32_t peer = 0;
  std::uint64_t lane = 0;
  End* other = nullptr;  // this one, of a channel to oneself
  bool is_open = false;  // by its rank

  Sequence<Send> sends = {};        // numbered as the messages are
  Sequence<Message> messages = {};  // to the other end
  std::uint64_t buffered_bytes = 0;
  Instant last_here = {};     // messages arrive in their order
  std::uint64_t matched = 0;  // of our messages, those that know their receive

  Sequence<Receive> receives = {};
  /// Of the messages that can still come, once the other end is gone.
  std::uint64_t messages_max = std::numeric_limits<std::uint64_t>::max();

  Status lost = {};     // why the other end is gone
  Status failure = {};  // of all ops from now on

  std::deque<Finished> ready[2] = {};  // by the kind of op
};

}  // namespace hocket::simulated
