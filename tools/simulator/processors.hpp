// Processors that all ranks share. A rank that has one goes on until it has nothing to do; then
// whoever has waited longest has it next. Messages that it has to send to one rank, or got from
// one, right behind each other, it hands to the system or takes from it all at once: where ranks
// run ahead of each other, as around a ring, that is many.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "simulator/time.hpp"

namespace hocket::sim {

class Processors {
 public:
  /// None where each rank has its own.
  Processors(std::uint32_t count, std::uint32_t ranks, Time handover)
      : handover_(handover), all_(count < ranks ? count : 0), ranks_(all_.empty() ? 0 : ranks) {}

  [[nodiscard]] bool are_shared() const noexcept { return !all_.empty(); }

  /// Something that a rank has to do from a time on. Of those with one lane that were there when
  /// the first began, right behind each other, that one alone takes the time of a call.
  struct Task {
    std::uint32_t step;
    std::uint32_t lane;  // to one other rank, or from one
    Time since;
    Time call;
    Time work;
  };
  static constexpr std::uint32_t no_lane = UINT32_MAX;
  void add(std::uint32_t rank, const Task& task) {
    Rank& its = ranks_[rank];
    its.tasks.push_back(task);
    if (its.is_known) return;
    its.is_known = true;
    waiting_.push_back(rank);
  }

  struct Turn {
    std::uint32_t step;
    Time begin;
    Time end;
  };
  /// The next that begins now, if any can, on the processor that its rank had last, if that is
  /// free. To be ended by done().
  [[nodiscard]] std::optional<Turn> take(Time now) {
    if (waiting_.empty()) return {};
    const std::uint32_t rank = waiting_.front();
    const auto is_better = [&](const Processor& one, const Processor& other) {
      if (one.is_busy != other.is_busy) return other.is_busy;
      return one.rank == rank && other.rank != rank;
    };
    Processor& processor = *std::ranges::min_element(all_, is_better);
    if (processor.is_busy) return {};
    waiting_.pop_front();
    const Task task = ranks_[rank].tasks.front();
    ranks_[rank].tasks.pop_front();
    const Time begin = now + (processor.rank == rank ? 0 : handover_);
    const bool is_in_call = processor.rank == rank && processor.end == now &&
                            task.lane != no_lane && processor.lane == task.lane &&
                            task.since <= processor.call_begin;
    const Time call_begin = is_in_call ? processor.call_begin : begin;
    const Time end = begin + (is_in_call ? 0 : task.call) + task.work;
    processor = {
        .rank = rank, .lane = task.lane, .call_begin = call_begin, .end = end, .is_busy = true};
    return Turn{task.step, begin, end};
  }

  /// With what the rank had taken, and all that followed from it at that time has been added.
  void done(std::uint32_t rank) {
    const auto has_it = [&](const Processor& each) { return each.is_busy && each.rank == rank; };
    std::ranges::find_if(all_, has_it)->is_busy = false;
    ranks_[rank].is_known = !ranks_[rank].tasks.empty();
    if (ranks_[rank].is_known) waiting_.push_front(rank);
  }

 private:
  struct Rank {
    std::deque<Task> tasks;
    bool is_known = false;  // it waits, or has a processor
  };
  struct Processor {
    std::uint32_t rank = UINT32_MAX;  // that has it, or had it last
    // What it does, or did last:
    std::uint32_t lane = no_lane;
    Time call_begin = 0;
    Time end = 0;
    bool is_busy = false;
  };

  Time handover_;
  std::vector<Processor> all_;
  std::vector<Rank> ranks_;
  std::deque<std::uint32_t> waiting_;
};

}  // namespace hocket::sim
