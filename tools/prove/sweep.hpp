// Proofs of many algorithms at many sizes.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "hocket/status.hpp"

#include "plan/catalog.hpp"

namespace hocket::prove {

/// What came of one algorithm.
struct Row {
  const plan::Algorithm* algorithm = nullptr;
  std::size_t sizes = 0;  // at which it was proved
  std::uint64_t worlds = 0;
  std::uint64_t steps = 0;
  std::chrono::duration<double> time = {};  // of a processor
  Status failure = {};                      // the one at the smallest size
  std::vector<std::uint32_t> skipped =
      {};  // sizes at which the plans of all ranks are too much for memory
};

struct Progress {
  std::size_t done = 0;  // algorithms times sizes
  std::size_t all = 0;
};

struct Options {
  std::vector<const plan::Algorithm*> algorithms = {};
  std::vector<std::uint32_t> sizes = {};
  unsigned threads = 1;
  /// That all threads may take together, but for up to 512 MiB of each.
  std::uint64_t memory_bytes = std::uint64_t{3} << 30;
  /// Called by each thread, one at a time.
  std::function<void(const Progress&)> on_progress = [](const Progress&) {};
};

/// A row for each algorithm, in the same order. Each algorithm at each size, where in and out are
/// apart; and so many of its variants:
/// - up to 8 ranks, also on real numbers of several counts in several orders;
/// - up to 16, all roots, and up to 32, three of them, and several numbers of pieces, of ranks on a
///   host and of contributions: all of these with each other, and also in place;
/// - above 32, one root and number of pieces, and one number of ranks on a host and of
///   contributions that changes with the size; also in place at every eighth size, and above 256 at
///   every 64th.
/// A size above 1024 for which memory_bytes should be too little is skipped, and said to be.
[[nodiscard]] std::vector<Row> sweep(const Options& options);

}  // namespace hocket::prove
