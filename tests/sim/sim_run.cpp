#include "sim/sim_run.hpp"

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "engine/executor.hpp"
#include "sim/sim_case.hpp"
#include "transports/sim/world.hpp"

namespace hocket::testing {
namespace {

/// An operation on one rank.
struct Part {
  std::unique_ptr<engine::Program> program;
  std::unique_ptr<engine::Binding> binding;
  engine::Work work;
};

/// A communicator of all ranks: what they do on it, in this order, so many at once.
struct Sequence {
  std::uint32_t overlap = 1;
  std::vector<std::unique_ptr<SimCase>> cases;
};

struct Rank {
  std::unique_ptr<Transport> transport;
  std::unique_ptr<engine::Executor> executor;
  std::vector<std::unique_ptr<engine::Group>> groups;                     // by sequence
  std::vector<std::vector<std::unique_ptr<Part>>> parts;                  // by sequence and case
  std::map<std::pair<std::uint32_t, std::uint64_t>, ChannelId> channels;  // by peer and lane

  ChannelId channel(std::uint32_t peer, std::uint64_t lane, engine::Group& group) {
    const auto [found, is_new] = channels.try_emplace({peer, lane}, 0);
    if (is_new) {
      found->second = transport->open(peer, lane).value();
      group.channels.push_back(found->second);
    }
    return found->second;
  }
};

class SimRun {
 public:
  explicit SimRun(const SimRunOptions& options);

  [[nodiscard]] std::optional<std::string> run();

 private:
  void set_up(std::uint32_t rank);
  void start(std::uint32_t rank, std::size_t sequence, std::size_t number);
  [[nodiscard]] bool is_over(std::uint32_t rank) const;
  void run_ranks();
  [[nodiscard]] std::string check() const;
  [[nodiscard]] std::string story(const std::string& what) const;

  SimRunOptions options_;
  Random random_;
  std::uint32_t size_;
  SimWorld world_;
  engine::ExecutorOptions executor_options_;
  std::vector<Sequence> sequences_;
  std::vector<Rank> ranks_;
};

SimProfile profile_of(const SimRunOptions& options) {
  return options.is_deadly ? deadly_profile(options.seed) : wild_profile(options.seed);
}

SimRun::SimRun(const SimRunOptions& options)
    : options_(options),
      random_(options.seed),
      size_(static_cast<std::uint32_t>(between(random_, 1, 8))),
      world_({.size = size_, .seed = options.seed, .profile = profile_of(options)}),
      executor_options_{.segment_bytes = 16 * between(random_, 1, 40),
                        .segments_max = static_cast<std::uint32_t>(between(random_, 1, 4))},
      sequences_(between(random_, 1, 3)),
      ranks_(size_) {
  for (Sequence& sequence : sequences_) {
    sequence.overlap = static_cast<std::uint32_t>(between(random_, 1, 3));
    sequence.cases.resize(between(random_, 1, 6));
    for (auto& each : sequence.cases) each = std::make_unique<SimCase>(random_, size_);
  }
  std::vector<std::string> addresses;
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    ranks_[rank].transport = world_.transport(rank);
    addresses.push_back(ranks_[rank].transport->address());
  }
  for (const Rank& rank : ranks_) {
    if (Status status = rank.transport->connect(addresses); !status.ok()) throw_error(status);
  }
  for (std::uint32_t rank = 0; rank < size_; ++rank) set_up(rank);
}

void SimRun::set_up(std::uint32_t rank) {
  Rank& self = ranks_[rank];
  self.executor = std::make_unique<engine::Executor>(*self.transport, executor_options_);
  self.parts.resize(sequences_.size());
  for (std::size_t sequence = 0; sequence < sequences_.size(); ++sequence) {
    self.groups.push_back(std::make_unique<engine::Group>());
    engine::Group& group = *self.groups.back();
    group.lanes = {.first = sequence << 8, .last = sequence << 8 | 0xFF};
    group.overlap = group.room = sequences_[sequence].overlap;
    for (std::size_t i = 0; i < sequences_[sequence].cases.size(); ++i) start(rank, sequence, i);
  }
}

void SimRun::start(std::uint32_t rank, std::size_t sequence, std::size_t number) {
  Rank& self = ranks_[rank];
  SimCase& wanted = *sequences_[sequence].cases[number];
  auto part = std::make_unique<Part>();
  part->program =
      std::make_unique<engine::Program>(plan::build(wanted.algorithm(), wanted.problem(), rank));
  std::vector<ChannelId> channels;
  const std::uint64_t bank = number % sequences_[sequence].overlap;
  for (const engine::Port& port : part->program->ports()) {
    const std::uint64_t lane = sequence << 8 | bank * limits::plan_lanes_max | port.lane;
    channels.push_back(self.channel(port.peer, lane, *self.groups[sequence]));
  }
  part->binding = std::make_unique<engine::Binding>(*part->program, wanted.sizes(),
                                                    wanted.element_bytes(), std::move(channels));
  self.executor->start({.binding = part->binding.get(),
                        .in = wanted.in(rank),
                        .out = wanted.out(rank),
                        .reduction = wanted.reduction(),
                        .group = self.groups[sequence].get(),
                        .work = &part->work});
  self.parts[sequence].push_back(std::move(part));
}

bool SimRun::is_over(std::uint32_t rank) const {
  if (!world_.is_alive(rank)) return true;
  for (const auto& parts : ranks_[rank].parts) {
    for (const auto& part : parts) {
      if (!part->work.is_over()) return false;
    }
  }
  return true;
}

void SimRun::run_ranks() {
  for (bool has_moved = true; has_moved;) {
    has_moved = false;
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      if (world_.is_alive(rank)) has_moved |= ranks_[rank].executor->progress();
    }
  }
}

std::string SimRun::check() const {
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    if (!world_.is_alive(rank)) continue;
    for (std::size_t sequence = 0; sequence < sequences_.size(); ++sequence) {
      for (std::size_t i = 0; i < ranks_[rank].parts[sequence].size(); ++i) {
        const engine::Work& work = ranks_[rank].parts[sequence][i]->work;
        const SimCase& wanted = *sequences_[sequence].cases[i];
        if (work.status().ok()) {
          const std::string wrong = wanted.check(rank);
          if (!wrong.empty()) return fmt::format("{}: {}", wanted.to_string(), wrong);
        } else if (!options_.is_deadly) {
          return fmt::format("{}: {}", wanted.to_string(), work.status().to_string());
        }
      }
    }
  }
  return world_.violation();
}

std::string SimRun::story(const std::string& what) const {
  std::string text = fmt::format("seed {}{}: {}\nsegments of {} bytes, {} at once\n", options_.seed,
                                 options_.is_deadly ? " (deadly)" : "", what,
                                 executor_options_.segment_bytes, executor_options_.segments_max);
  for (std::size_t sequence = 0; sequence < sequences_.size(); ++sequence) {
    for (const auto& each : sequences_[sequence].cases) {
      text += fmt::format("communicator {}: {}\n", sequence, each->to_string());
    }
  }
  return text + world_.story();
}

std::optional<std::string> SimRun::run() {
  const auto all_over = [&] {
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      if (!is_over(rank)) return false;
    }
    return true;
  };
  do {
    run_ranks();
  } while (!all_over() && world_.step());
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    if (!is_over(rank)) return story(fmt::format("rank {} waits for ever", rank));
  }
  const std::string wrong = check();
  if (wrong.empty()) return {};
  return story(wrong);
}

}  // namespace

std::optional<std::string> run_simulated(const SimRunOptions& options) {
  return std::make_unique<SimRun>(options)->run();
}

}  // namespace hocket::testing
