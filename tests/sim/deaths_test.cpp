// Each rank dies before and after each of its steps, in each plan of small worlds. Whoever is left
// comes to an end, and either has the right result or names the dead rank; so does what is queued
// behind; and what a rank had when its operation ended stays as it is. Where the world is watched
// over, all are soon told the same story of it, also those that had no more to do.
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/executor.hpp"
#include "sim/sim_case.hpp"
#include "sim/watchers.hpp"
#include "support/catch.hpp"
#include "support/forwarding_transport.hpp"
#include "support/seeds.hpp"
#include "transports/sim/world.hpp"

namespace hocket::testing {
namespace {

constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

/// At an op of a rank: before the transport has so many of them, or before the rank has so many
/// completions.
struct Moment {
  std::uint64_t posted = never;
  std::uint64_t completed = never;

  [[nodiscard]] std::string to_string() const {
    return posted != never ? fmt::format("before it posts op {}", posted)
                           : fmt::format("before it gets completion {}", completed);
  }
};

/// A rank's transport, which dies at that moment.
class Mortal final : public ForwardingTransport {
 public:
  Mortal(SimWorld& world, std::uint32_t rank)
      : ForwardingTransport(world.transport(rank)), world_(world), rank_(rank) {}
  void die_at(const Moment& moment) { moment_ = moment; }
  [[nodiscard]] std::uint64_t posted() const noexcept { return posted_; }
  [[nodiscard]] std::uint64_t completed() const noexcept { return completed_; }

  [[nodiscard]] std::size_t post(std::span<const TransportOp> ops) noexcept override {
    std::size_t count = 0;
    for (; count < ops.size(); ++count) {
      if (posted_ == moment_.posted) world_.kill(rank_);
      if (inner_->post(ops.subspan(count, 1)) == 0) break;
      ++posted_;
    }
    return count;
  }
  [[nodiscard]] std::size_t poll(std::span<TransportCompletion> completions) noexcept override {
    const std::size_t count = inner_->poll(completions.first(1));
    if (count == 0) return 0;
    if (completed_ == moment_.completed) {
      world_.kill(rank_);
      return 0;
    }
    completed_ += count;
    return count;
  }

 private:
  SimWorld& world_;
  const std::uint32_t rank_;
  Moment moment_ = {};
  std::uint64_t posted_ = 0;
  std::uint64_t completed_ = 0;
};

struct Share {
  std::unique_ptr<engine::Program> program = {};
  std::unique_ptr<engine::Binding> binding = {};
  engine::Work work = {};
  Bytes at_end = {};
  bool has_end = false;
};

/// Two operations, one queued behind the other, and a barrier that is begun when all is over.
class MortalWorld {
 public:
  MortalWorld(const plan::Algorithm& algorithm, const plan::Problem& problem, std::uint64_t seed,
              bool is_watched)
      : random_(seed),
        size_(problem.size),
        world_({.size = size_, .seed = seed}),
        first_(random_, algorithm, problem),
        second_(random_, algorithm, problem),
        later_(random_, *plan::find_algorithm(plan::Operation::barrier, "dissemination"),
               {.operation = plan::Operation::barrier, .size = size_}),
        groups_(size_),
        told_(size_),
        channels_(size_) {
    std::vector<std::string> addresses;
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      transports_.push_back(std::make_unique<Mortal>(world_, rank));
      executors_.push_back(std::make_unique<engine::Executor>(*transports_.back()));
      addresses.push_back(transports_.back()->address());
    }
    for (const auto& each : transports_) REQUIRE(each->connect(addresses).ok());
    if (!is_watched) return;
    watchers_.emplace(world_, groups_, seed,
                      [this](std::uint32_t rank, const Status& why) { told_[rank] = why; });
  }

  /// What is wrong; nothing: all is right.
  std::string run(std::uint32_t victim, const Moment& moment) {
    transports_[victim]->die_at(moment);
    start(first_);
    start(second_);
    run();
    if (!world_.is_alive(victim)) start(later_);
    run();
    return check(victim);
  }

  [[nodiscard]] bool is_alive(std::uint32_t rank) const { return world_.is_alive(rank); }
  [[nodiscard]] const Mortal& transport(std::uint32_t rank) const { return *transports_[rank]; }
  [[nodiscard]] std::string to_string() const { return first_.to_string(); }
  [[nodiscard]] std::string story() const { return world_.story(); }

 private:
  struct Operation {
    SimCase* wanted = nullptr;
    std::vector<Share> shares = {};  // by rank
  };

  void start(SimCase& wanted) {
    operations_.push_back({.wanted = &wanted});
    operations_.back().shares = std::vector<Share>(size_);
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      if (world_.is_alive(rank)) start(rank, wanted, operations_.back().shares[rank]);
    }
  }

  void run() {
    do {
      for (bool has_moved = true; has_moved;) has_moved = progress();
    } while (world_.step());
  }

  void start(std::uint32_t rank, SimCase& wanted, Share& share) {
    share.program =
        std::make_unique<engine::Program>(plan::build(wanted.algorithm(), wanted.problem(), rank));
    std::vector<ChannelId> channels;
    for (const engine::Port& port : share.program->ports()) {
      const auto [found, is_new] = channels_[rank].try_emplace({port.peer, port.lane}, 0);
      if (is_new) {
        found->second = transports_[rank]->open(port.peer, port.lane).value();
        groups_[rank].channels.push_back(found->second);
      }
      channels.push_back(found->second);
    }
    groups_[rank].lanes = {.first = 0, .last = 0xFF};
    share.binding = std::make_unique<engine::Binding>(*share.program, wanted.sizes(),
                                                      wanted.element_bytes(), std::move(channels));
    executors_[rank]->start({.binding = share.binding.get(),
                             .in = wanted.in(rank),
                             .out = wanted.out(rank),
                             .reduction = wanted.reduction(),
                             .tag = engine::Tag(wanted.algorithm(), wanted.problem().root, 0),
                             .number = operations_.size(),
                             .group = &groups_[rank],
                             .work = &share.work});
  }

  bool progress() {
    bool has_moved = false;
    if (watchers_) watchers_->work();
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      if (const Status why = std::exchange(told_[rank], {}); !why.ok() && world_.is_alive(rank)) {
        executors_[rank]->fail(groups_[rank], why);
        has_moved = true;
      }
      if (world_.is_alive(rank)) has_moved |= executors_[rank]->progress();
      for (Operation& each : operations_) {
        Share& share = each.shares[rank];
        if (share.has_end || !share.work.is_over()) continue;
        share.has_end = true;
        share.at_end = each.wanted->memory(rank);
      }
    }
    return has_moved;
  }

  [[nodiscard]] std::string check(std::uint32_t victim) const {
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      if (rank == victim || world_.is_alive(victim)) continue;
      for (const Operation& each : operations_) {
        const std::string wrong = check(rank, victim, each);
        if (wrong.empty()) continue;
        return fmt::format("rank {}, {}: {}", rank, each.wanted->to_string(), wrong);
      }
    }
    return watchers_ && world_.violation().empty() ? watchers_->check(victim) : world_.violation();
  }

  [[nodiscard]] std::string check(std::uint32_t rank, std::uint32_t victim,
                                  const Operation& operation) const {
    const Share& share = operation.shares[rank];
    const SimCase& wanted = *operation.wanted;
    if (!share.work.is_over()) return "it waits for ever";
    const Status& status = share.work.status();
    if (status.ok()) return &wanted == &later_ ? "success" : wanted.check(rank);
    const bool has_step = status.step() >= 0 || watchers_;  // which may tell of it between steps
    if (status.code() != StatusCode::peer_lost || status.peer() != static_cast<int>(victim) ||
        !has_step) {
      return status.to_string();
    }
    return share.at_end == wanted.memory(rank) ? "" : "its memory was touched behind the end";
  }

  Random random_;
  std::uint32_t size_;
  SimWorld world_;
  SimCase first_;
  SimCase second_;
  SimCase later_;
  std::vector<engine::Group> groups_;
  std::vector<Status> told_;  // by rank: its group is to fail for this
  std::vector<std::map<std::pair<std::uint32_t, std::uint64_t>, ChannelId>> channels_;
  std::vector<std::unique_ptr<Mortal>> transports_;
  std::vector<std::unique_ptr<engine::Executor>> executors_;
  std::vector<Operation> operations_;
  std::optional<Watchers> watchers_;
};

plan::Problem problem_of(const plan::Algorithm& algorithm, std::uint32_t size) {
  return {.operation = algorithm.operation,
          .size = size,
          .root = plan::has_root(algorithm.operation) ? size / 2 : 0,
          .pieces = 2,
          .ranks_per_host = algorithm.knows_hosts ? 2U : 1U};
}

void kill_at_each_step(std::uint32_t size_max, bool is_watched) {
  std::uint64_t runs = 0;
  std::uint64_t deaths = 0;
  for (const plan::Algorithm& algorithm : plan::catalog()) {
    for (std::uint32_t size = 2; size <= size_max; ++size) {
      const plan::Problem problem = problem_of(algorithm, size);
      if (!plan::can_solve(algorithm, problem)) continue;
      for (std::uint32_t victim = 0; victim < size; ++victim) {
        const auto kill = [&](const Moment& moment) {
          MortalWorld world(algorithm, problem, ++runs, is_watched);
          const std::string wrong = world.run(victim, moment);
          if (!wrong.empty()) {
            FAIL(world.to_string()
                 << ": rank " << victim << " dies " << moment.to_string() << ": " << wrong << '\n'
                 << world.story());
          }
          if (!world.is_alive(victim)) ++deaths;
          return !world.is_alive(victim);
        };
        for (std::uint64_t i = 0; kill({.posted = i}); ++i) continue;
        for (std::uint64_t i = 0; kill({.completed = i}); ++i) continue;
      }
    }
  }
  WARN(deaths << " deaths in worlds of up to " << size_max << " ranks");
}

}  // namespace

TEST_CASE("whoever is left when a rank dies names it, at every step of every plan") {
  // A whole run goes up to 8.
  kill_at_each_step(static_cast<std::uint32_t>(runs_or(4)), false);
}

TEST_CASE("all are told the same story of a rank that dies, at every step of every plan") {
  kill_at_each_step(static_cast<std::uint32_t>(runs_or(4)), true);
}

}  // namespace hocket::testing
