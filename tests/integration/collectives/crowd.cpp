#include "integration/collectives/crowd.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "integration/collectives/model.hpp"
#include "integration/collectives/operation.hpp"

namespace hocket::testing {
namespace {

/// Any case, the same on all ranks that draw from the same seed.
Model draw(std::mt19937_64& random, std::size_t size) {
  Model model;
  model.kind = static_cast<CollectiveKind>(random() % 11);
  model.type = all_data_types()[random() % all_data_types().size()];
  do {
    model.op = all_reduce_ops()[random() % all_reduce_ops().size()];
  } while (!is_possible(model.kind, model.type, model.op));
  constexpr std::size_t limits[] = {2, 100, 3000, 30'000};
  model.count = random() % limits[random() % std::size(limits)];
  model.root = static_cast<int>(random() % size);
  model.is_in_place = random() % 2 == 0 && model.kind != CollectiveKind::all_to_all;
  model.number = random() % 1'000'000;
  model.size = size;
  if (model.kind == CollectiveKind::barrier) model.count = 0;
  return model;
}

Way any_way(std::mt19937_64& random) { return static_cast<Way>(random() % ways); }

/// One thread's communicator: operations in a row, up to four under way.
class Player {
 public:
  Player(Communicator communicator, std::uint64_t seed, int rank_in_world)
      : communicator_(std::move(communicator)),
        cases_(seed),
        habits_(seed + static_cast<std::uint64_t>(rank_in_world) * 7919) {}

  void play(int rounds, Report& report) {
    try {
      for (int i = 0; i < rounds; ++i) {
        begin();
        while (under_way_.size() > habits_() % 5) end(report);
      }
      while (!under_way_.empty()) end(report);
    } catch (const std::exception& error) {
      report.add(error.what());
      under_way_.clear();
    }
  }

  void begin() {
    const Model model = draw(cases_, static_cast<std::size_t>(communicator_.size()));
    const auto rank = static_cast<std::size_t>(communicator_.rank());
    under_way_.push_back(std::make_unique<Operation>(model, rank));
    under_way_.back()->begin(communicator_, any_way(habits_));
  }

  /// Begins one and does not wait.
  void start() {
    const Model model = draw(cases_, static_cast<std::size_t>(communicator_.size()));
    const auto rank = static_cast<std::size_t>(communicator_.rank());
    under_way_.push_back(std::make_unique<Operation>(model, rank));
    under_way_.back()->begin(communicator_, Way::start);
  }

  /// In any order, the memory being each one's own.
  void end(Report& report) {
    const std::size_t which = habits_() % under_way_.size();
    report.add(under_way_[which]->end());
    under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(which));
  }
  [[nodiscard]] bool is_idle() const { return under_way_.empty(); }

 private:
  Communicator communicator_;
  std::mt19937_64 cases_;   // the same on all ranks
  std::mt19937_64 habits_;  // each rank's own
  std::vector<std::unique_ptr<Operation>> under_way_;
};

/// Communicators of all ranks, of every second one, and in other orders.
Communicator some_group(Communicator& world, int number) {
  if (number % 3 == 0) return world.dup();
  if (number % 3 == 1) return world.split(world.rank() % 2, world.rank());
  return world.split(0, (world.rank() + number) % world.size());
}

}  // namespace

void try_threads(Communicator& world, Report& report) {
  constexpr int threads = 5;
  std::vector<std::unique_ptr<Player>> players;
  for (int i = 0; i < threads; ++i) {
    const auto seed = static_cast<std::uint64_t>(i + 100);
    players.push_back(std::make_unique<Player>(some_group(world, i), seed, world.rank()));
  }
  std::vector<std::thread> running;
  for (const auto& player : players) {
    running.emplace_back([&player, &report] { player->play(60, report); });
  }
  for (std::thread& each : running) each.join();
}

void try_orders(Communicator& world, Report& report) {
  constexpr std::size_t groups = 16;
  std::vector<std::unique_ptr<Player>> players;
  for (std::size_t i = 0; i < groups; ++i) {
    players.push_back(
        std::make_unique<Player>(some_group(world, static_cast<int>(i)), i, world.rank()));
  }
  std::mt19937_64 random(static_cast<std::uint64_t>(world.rank()));
  for (int round = 0; round < 12; ++round) {
    std::ranges::shuffle(players, random);  // players know their seeds
    for (const auto& player : players) {
      for (int i = 0; i < 3; ++i) player->start();
    }
    std::ranges::shuffle(players, random);
    for (const auto& player : players) {
      while (!player->is_idle()) player->end(report);
    }
  }
}

}  // namespace hocket::testing
