// The ranks of which this process is one: those of a launcher, or of a world of its own here.
#pragma once

#include <string>
#include <vector>

#include "hocket/hocket.hpp"

#include "program/parser.hpp"

namespace hocket::bench {

/// The program of that name that was built or installed together with this one; empty for none.
[[nodiscard]] std::string beside_this_program(const std::string& name);

struct WorldOptions {
  int ranks = 0;  // of a world of its own; 0: as many as processors, at least 2
  std::string transport = {};
  int root = 0;  // must be one of them
};

/// Sets the first two.
void add_world_options(program::Parser& parser, WorldOptions& options);

/// Where a launcher says which rank this is, joins that world. Else becomes `hocket run`, the ranks
/// of which run this program with the same words; then it does not return. Throws when neither can
/// be.
[[nodiscard]] Communicator join_world(const WorldOptions& options,
                                      const std::vector<std::string>& words);

/// All ranks call these two. Hosts that share their processors are one machine.
[[nodiscard]] int count_hosts(Communicator& world);
[[nodiscard]] int count_machines(Communicator& world);

// The value of all ranks, on each.
[[nodiscard]] double max_over_ranks(Communicator& world, double value);
[[nodiscard]] std::uint64_t sum_over_ranks(Communicator& world, std::uint64_t value);

/// Says what is measured, on stderr: on a terminal in one line that is written over; elsewhere only
/// if asked to.
class Progress {
 public:
  explicit Progress(bool is_asked);
  void show(const std::string& what) const;
  void clear() const;

 private:
  bool is_terminal_;
  bool is_asked_;
};

}  // namespace hocket::bench
