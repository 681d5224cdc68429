// Operations in the background: what a Work holds on to.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <variant>
#include <vector>

#include "hocket/message.hpp"

#include "comm/planner.hpp"
#include "device/operation.hpp"
#include "engine/mailbox.hpp"
#include "engine/work.hpp"

namespace hocket::comm {

class Group;

struct Started {
  std::shared_ptr<Group> group = {};
  std::variant<Message, Operation> operation = {};
  engine::Received received = {};       // of a message
  device::Operation* device = nullptr;  // in place of `operation` and `work`
  bool is_ordered = false;              // a stream waits for it, so that nobody else must
  std::vector<Piece> pieces = {};       // of a batch: the caller's may be gone before it is over
  engine::Work work = {};
};

/// Those that are over, for the next ones, so that starting one takes no memory. Any thread.
class StartedPool {
 public:
  [[nodiscard]] std::unique_ptr<Started> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      free_.reserve(made_ + 1);  // so that give_back() needs no memory
      auto started = std::make_unique<Started>();
      ++made_;
      return started;
    }
    std::unique_ptr<Started> started = std::move(free_.back());
    free_.pop_back();
    return started;
  }
  void give_back(std::unique_ptr<Started> started) noexcept {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(started));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Started>> free_;
  std::size_t made_ = 0;
};

}  // namespace hocket::comm
