// An operation in the background, from its start until its Work lets go of it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "hocket/message.hpp"

#include "comm/planner.hpp"
#include "device/operation.hpp"
#include "engine/mailbox.hpp"
#include "engine/run.hpp"
#include "engine/work.hpp"

namespace hocket::comm {

class Group;
class Path;
class Reports;

/// A collective in the form that the engine runs, with the plan that it needs.
struct HostCall {
  engine::Task task = {};
  std::shared_ptr<const BoundPlan> plan = {};  // which the task borrows
};

struct Operation {
  std::shared_ptr<Group> group = {};
  Path* path = nullptr;                // of the group, which runs it
  const engine::Work* work = nullptr;  // what became of it: our own, or the device's
  std::atomic<int> holders = 0;        // the Work, its queue, and functions to be called at its end

  // If it reports to a queue.
  Reports* reports = nullptr;
  std::uint64_t tag = 0;
  std::atomic<int> until_reported = 0;  // it must have begun, and ended
  Operation* next = nullptr;            // in the queue

  // The path uses these until let_go().
  engine::Work own_work = {};
  HostCall call = {};
  std::vector<Piece> in_pieces = {};  // the caller's lists may be gone before it is over
  std::vector<Piece> out_pieces = {};
  std::optional<Message> message = {};
  engine::Received received = {};
  device::Operation* device = nullptr;
  bool is_ordered = false;  // a stream waits for it, so ~Work need not

  // Of many as one (batch.hpp).
  std::vector<std::unique_ptr<Operation>> parts = {};
  std::atomic<int> parts_left = 0;  // to end, and one until all have been started
  Status start_failure = {};        // of the first that could not begin
};

/// Keeps operations that have ended for reuse, so that starting one needs no memory. Any thread may
/// call it.
class OperationPool {
 public:
  [[nodiscard]] std::unique_ptr<Operation> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      free_.reserve(made_ + 1);  // so that give_back() needs no memory
      auto operation = std::make_unique<Operation>();
      ++made_;
      return operation;
    }
    std::unique_ptr<Operation> operation = std::move(free_.back());
    free_.pop_back();
    return operation;
  }
  void give_back(std::unique_ptr<Operation> operation) noexcept {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(operation));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Operation>> free_;
  std::size_t made_ = 0;
};

}  // namespace hocket::comm
