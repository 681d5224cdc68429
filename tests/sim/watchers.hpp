// Simulated monitors: each rank of a simulated world gets a health::Story. They exchange notices in
// virtual time, over the same pattern of lines that real monitors have. One of them may stand still
// for a moment, as one that gets no processor.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "engine/group.hpp"
#include "transports/sim/world.hpp"

namespace hocket::testing {

class Watchers {
 public:
  /// Borrows the groups, which become members of one communicator. `fail` ends that of a rank.
  Watchers(SimWorld& world, std::vector<engine::Group>& groups, std::uint64_t seed,
           std::function<void(std::uint32_t rank, const Status& why)> fail);
  Watchers(const Watchers&) = delete;
  Watchers& operator=(const Watchers&) = delete;
  ~Watchers();

  /// What is due at this time of the world.
  void work();

  /// Checks what the survivors were told of the victim's death. Returns the first error, or
  /// nothing.
  [[nodiscard]] std::string check(std::uint32_t victim) const;

 private:
  class Rank;

  [[nodiscard]] Instant now() const;
  [[nodiscard]] Duration between(Duration least, Duration most);
  [[nodiscard]] bool stands_still(std::uint32_t rank) const;
  /// Runs `happens` at that time if the rank is still alive then; later, if it stands still.
  void at(Instant when, std::uint32_t rank, std::function<void()> happens);
  void send(std::uint32_t from, std::uint32_t to, std::function<void(Rank&)> arrive);
  void end_lines_of(std::uint32_t dead);
  [[nodiscard]] bool has_line(std::uint32_t a, std::uint32_t b) const;

  SimWorld& world_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::multimap<Instant, std::function<void()>> agenda_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Instant>
      last_arrival_;  // by line and direction
  std::map<std::uint32_t, Instant> deaths_;
  std::uint32_t slow_rank_ = 0;
  Instant stands_still_from_ = {};
  Instant stands_still_until_ = {};
};

}  // namespace hocket::testing
