#include "prove/sweep.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "proof/rehearsal.hpp"
#include "proof/symmetric.hpp"
#include "proof/verify.hpp"

namespace hocket::prove {
namespace {

using plan::Algorithm;
using plan::Operation;
using plan::Plan;
using plan::Problem;
using proof::Verifier;

/// A proof that takes more has memory of its own, which it gives back; others keep it for the next.
constexpr std::uint64_t kept_bytes_max = std::uint64_t{512} << 20;
constexpr std::uint32_t all_roots_size_max = 16;
constexpr std::uint32_t all_variants_size_max = 32;
constexpr std::uint32_t often_in_place_size_max = 256;
/// Above it, the order of the ranks is not proved: that takes as much memory again. The second: if
/// without it the plan of one rank would do.
constexpr std::uint32_t ordered_size_max = 2048;
constexpr std::uint32_t ordered_symmetric_size_max = 128;
/// Above, each size is one problem, of which it is known before how much memory it takes: hosts
/// have 32 to 64 ranks, and only one rank has more than one contribution.
constexpr std::uint32_t simple_above = 1024;
constexpr std::uint32_t rehearsed_size_max = 8;

std::vector<std::uint32_t> roots(const Algorithm& algorithm, std::uint32_t size) {
  if (!has_root(algorithm.operation)) return {0};
  if (size > all_variants_size_max) return {size / 3};
  if (size > all_roots_size_max) return {0, size / 2, size - 1};
  std::vector<std::uint32_t> all(size);
  for (std::uint32_t i = 0; i < size; ++i) all[i] = i;
  return all;
}

std::vector<std::uint32_t> pieces(const Algorithm& algorithm, std::uint32_t size) {
  const Problem whole{.operation = algorithm.operation, .size = size, .pieces = 1};
  Problem halves = whole;
  halves.pieces = 2;
  if (algorithm.blocks_per_chunk(whole) == algorithm.blocks_per_chunk(halves)) return {1};
  if (size > all_variants_size_max) return {5};
  return {1, 2, 3, 8};
}

std::vector<std::uint32_t> hosts(const Algorithm& algorithm, std::uint32_t size) {
  if (!algorithm.knows_hosts) return {1};
  if (size > simple_above) return {32 + size % 33};
  if (size > all_variants_size_max) return {2 + size % 7};
  return {1, 2, 3, 4, 7};
}

/// Also as many as ranks, which is not the same as one of each: not in place.
std::vector<std::uint32_t> contributions(const Algorithm& algorithm, std::uint32_t size) {
  if (!takes_contributions(algorithm)) return {0};
  if (size > simple_above) return {size % 2 == 0 ? 0U : size + 1};
  const std::uint32_t power = std::bit_ceil(size + 1);
  if (size <= all_variants_size_max) return {0, size, size + 1, power, 3 * size, 7 * power};
  return {std::array{0U, size, size + 1, power}.at(size % 4)};
}

std::vector<Problem> problems(const Algorithm& algorithm, std::uint32_t size) {
  std::vector<Problem> all;
  for (const std::uint32_t root : roots(algorithm, size)) {
    for (const std::uint32_t count : pieces(algorithm, size)) {
      for (const std::uint32_t ranks : hosts(algorithm, size)) {
        for (const std::uint32_t vectors : contributions(algorithm, size)) {
          all.push_back({.operation = algorithm.operation,
                         .size = size,
                         .root = root,
                         .pieces = count,
                         .ranks_per_host = ranks,
                         .contributions = vectors});
        }
      }
    }
  }
  return all;
}

/// With real numbers, of counts about the size among others.
Status rehearse_all(const Algorithm& algorithm, const Problem& problem,
                    std::span<const Plan> plans) {
  if (problem.operation == Operation::barrier) return {};
  const std::uint64_t size = problem.size;
  std::uint64_t seed = 1;
  for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, size - 1, size, size + 1,
                                    std::uint64_t{1000}, std::uint64_t{1009}}) {
    for (const bool is_uneven : {false, true}) {
      if (is_uneven && !algorithm.allows_uneven) continue;
      const auto sizes = is_uneven ? uneven_sizes(problem, count) : even_sizes(problem, count);
      for (const bool in_place : {false, true}) {
        Status status =
            proof::rehearse(plans, {.sizes = sizes, .in_place = in_place, .seed = seed++});
        if (!status.ok()) return status;
      }
    }
  }
  return {};
}

bool is_also_in_place(std::uint32_t size) {
  if (size <= all_variants_size_max) return true;
  return size % (size <= often_in_place_size_max ? 8 : 64) == 0;
}

proof::VerifyOptions verify_options(const Algorithm& algorithm, std::uint32_t size) {
  const bool needs_all_ranks = algorithm.symmetry == plan::Symmetry::none;
  const std::uint32_t ordered_max = needs_all_ranks ? ordered_size_max : ordered_symmetric_size_max;
  return {.in_place = is_also_in_place(size),
          .uneven = algorithm.allows_uneven,
          .canonical = algorithm.is_canonical,
          .order = algorithm.keeps_order && size <= ordered_max};
}

/// Of a rank in a run: what is in its buffers, with what else may be on large pages with that, and
/// the places in scratch that it writes.
std::uint64_t blocks_touched(const Plan& plan) {
  std::uint64_t in_scratch = 0;
  for (const plan::Step& step : plan.steps) {
    if (step.has_target() && step.to_buffer == plan::Buffer::scratch) in_scratch += step.count;
  }
  return std::min<std::uint64_t>(in_scratch, plan.blocks(plan::Buffer::scratch)) +
         (std::uint64_t{plan.blocks(plan::Buffer::in)} + plan.blocks(plan::Buffer::out)) * 4 / 3;
}

/// About what a proof takes, judged by the plans of the root and a few other ranks; 0 for little.
std::uint64_t bytes_taken(const Algorithm& algorithm, const Problem& problem) {
  const std::uint32_t size = problem.size;
  if (is_proved_by_one(algorithm, verify_options(algorithm, size))) return 0;
  plan::Builder builder(algorithm, problem);
  const bool is_in_place = is_also_in_place(size) && can_be_in_place(problem);
  const std::uint64_t worlds =
      1U + (is_in_place ? 1U : 0U) + (verify_options(algorithm, size).order ? 1U : 0U);
  const auto bytes_of = [&](std::uint32_t rank) {
    const Plan plan = builder.build(rank);
    return plan.steps.size() * Verifier::bytes_per_step +
           blocks_touched(plan) * worlds * Verifier::bytes_per_block;
  };
  std::uint64_t most = 0;
  for (const std::uint32_t distance : {1U, size / 2, size - 1}) {
    most = std::max(most, bytes_of((problem.root + distance) % size));
  }
  const std::uint64_t bytes = bytes_of(problem.root) + most * (size - 1);
  return bytes > kept_bytes_max ? bytes : 0;
}

Status prove_problem(const Algorithm& algorithm, const Problem& problem, Verifier& verifier,
                     Row& row) {
  const auto proof =
      verifier.build_and_verify(algorithm, problem, verify_options(algorithm, problem.size));
  if (!proof.ok()) return proof.status();
  ++row.worlds;
  row.steps += proof->steps;
  if (Status status = check_promises(algorithm, problem, *proof); !status.ok()) return status;
  if (problem.size > rehearsed_size_max) return {};
  return rehearse_all(algorithm, problem, build_all(algorithm, problem));
}

std::string describe(const Problem& problem) {
  std::string text = fmt::format("{} ranks", problem.size);
  if (has_root(problem.operation)) text += fmt::format(", root {}", problem.root);
  if (problem.pieces > 1) text += fmt::format(", {} pieces", problem.pieces);
  if (problem.ranks_per_host > 1) text += fmt::format(", {} on a host", problem.ranks_per_host);
  if (problem.contributions > 0) text += fmt::format(", {} contributions", problem.contributions);
  return text;
}

/// What one algorithm and size add to the algorithm's row.
Row prove_size(const Algorithm& algorithm, std::uint32_t size, Verifier& verifier) {
  Row row{.algorithm = &algorithm};
  const Instant start = monotonic_clock().now();
  for (const Problem& problem : problems(algorithm, size)) {
    const Status status = prove_problem(algorithm, problem, verifier, row);
    if (status.ok()) continue;
    row.failure = Status(status.code(), fmt::format("{}: {}", describe(problem), status.what()));
    break;
  }
  row.sizes = row.failure.ok() ? 1 : 0;
  row.time = monotonic_clock().now() - start;
  return row;
}

struct Task {
  std::size_t algorithm = 0;
  std::uint32_t size = 0;
  std::uint64_t bytes = 0;  // that it takes and gives back; what is little is the thread's own
  bool is_taken = false;
};

class Sweep {
 public:
  explicit Sweep(const Options& options);

  void work();
  /// No thread begins another one.
  void stop();
  [[nodiscard]] std::vector<Row> take_rows();

 private:
  /// The first for which there is memory; null when none is left.
  [[nodiscard]] const Task* take_task();
  void end(const Task& task, Row row);

  const Options& options_;

  std::mutex mutex_;  // of what follows
  std::condition_variable given_back_;
  std::uint64_t bytes_free_;
  std::vector<Task> tasks_;
  std::size_t first_left_ = 0;  // of the tasks
  std::size_t done_ = 0;
  std::vector<Row> rows_;
  std::vector<std::uint32_t> failed_at_;  // by algorithm: the smallest size
};

/// The largest first, so that in the end no thread is alone with one.
Sweep::Sweep(const Options& options)
    : options_(options),
      bytes_free_(options.memory_bytes),
      failed_at_(options.algorithms.size(), UINT32_MAX) {
  for (std::size_t i = 0; i < options.algorithms.size(); ++i) {
    const Algorithm& algorithm = *options.algorithms[i];
    rows_.push_back({.algorithm = &algorithm});
    for (const std::uint32_t size : options.sizes) {
      Task task = {.algorithm = i, .size = size};
      if (size > simple_above)
        task.bytes = bytes_taken(algorithm, problems(algorithm, size).front());
      if (task.bytes <= options.memory_bytes) {
        tasks_.push_back(task);
      } else {
        rows_[i].skipped.push_back(size);
      }
    }
  }
  std::ranges::stable_sort(tasks_, std::ranges::greater(), &Task::size);
}

const Task* Sweep::take_task() {
  std::unique_lock lock(mutex_);
  while (first_left_ < tasks_.size()) {
    const auto next = std::find_if(
        tasks_.begin() + static_cast<std::ptrdiff_t>(first_left_), tasks_.end(),
        [this](const Task& task) { return !task.is_taken && task.bytes <= bytes_free_; });
    if (next == tasks_.end()) {
      given_back_.wait(lock);
      continue;
    }
    next->is_taken = true;
    bytes_free_ -= next->bytes;
    while (first_left_ < tasks_.size() && tasks_[first_left_].is_taken) ++first_left_;
    return &*next;
  }
  return nullptr;
}

void Sweep::work() {
  Verifier verifier;
  while (const Task* const task = take_task()) {
    Row row = prove_size(*options_.algorithms[task->algorithm], task->size, verifier);
    if (task->bytes > 0) verifier = Verifier();
    end(*task, std::move(row));
  }
}

void Sweep::stop() {
  const std::lock_guard lock(mutex_);
  first_left_ = tasks_.size();
  given_back_.notify_all();
}

void Sweep::end(const Task& task, Row row) {
  const std::lock_guard lock(mutex_);
  bytes_free_ += task.bytes;
  given_back_.notify_all();
  Row& sum = rows_[task.algorithm];
  sum.sizes += row.sizes;
  sum.worlds += row.worlds;
  sum.steps += row.steps;
  sum.time += row.time;
  if (!row.failure.ok() && task.size < failed_at_[task.algorithm]) {
    sum.failure = std::move(row.failure);
    failed_at_[task.algorithm] = task.size;
  }
  options_.on_progress({++done_, tasks_.size()});
}

std::vector<Row> Sweep::take_rows() {
  for (Row& row : rows_) std::ranges::sort(row.skipped);
  return std::move(rows_);
}

}  // namespace

std::vector<Row> sweep(const Options& options) {
  Sweep sweep(options);
  std::vector<std::exception_ptr> thrown(std::max(options.threads, 1U));
  std::vector<std::jthread> threads;  // joined also when one more can't be started
  try {
    for (std::exception_ptr& each : thrown) {
      threads.emplace_back([&sweep, &each] {
        try {
          sweep.work();
        } catch (...) {
          each = std::current_exception();  // out of memory, say
          sweep.stop();
        }
      });
    }
  } catch (...) {
    sweep.stop();
    throw;
  }
  threads.clear();
  for (const std::exception_ptr& each : thrown) {
    if (each) std::rethrow_exception(each);
  }
  return sweep.take_rows();
}

}  // namespace hocket::prove
