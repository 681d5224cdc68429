// Inside the hosts and between them: each byte crosses a host's network once in each direction of
// the work, and all ranks of a host carry their share of it. Ranks of different hosts with the same
// slot are a team.
#pragma once

#include "plan/builders/hosts.hpp"
#include "plan/builders/phases.hpp"
#include "plan/catalog.hpp"

namespace hocket::plan {

/// Where the rank of a plan is.
struct Seat {
  explicit Seat(const PlanWriter& plan) noexcept
      : hosts(plan.problem()),
        host(hosts.host_of(plan.rank())),
        slot(hosts.slot_of(plan.rank())),
        mates(hosts.ranks(host)) {}

  /// Those `steps` further on and further back on the same host, by slot.
  [[nodiscard]] std::uint32_t ahead(std::uint32_t steps) const noexcept {
    return (slot + steps) % mates;
  }
  [[nodiscard]] std::uint32_t behind(std::uint32_t steps) const noexcept {
    return (slot + mates - steps) % mates;
  }
  [[nodiscard]] std::uint32_t mate(std::uint32_t of_slot) const noexcept {
    return hosts.rank_of(host, of_slot);
  }

  Hosts hosts;
  std::uint32_t host;
  std::uint32_t slot;
  std::uint32_t mates;  // ranks of the host
};

/// A vector of as many slices as a host has slots, each of as many blocks as there are hosts.
inline void two_level_all_reduce(PlanWriter& plan) {
  const Seat seat(plan);
  const Hosts& hosts = seat.hosts;
  const auto slice = [&](Buffer buffer, std::uint32_t slot) {
    return Range{buffer, slot * hosts.count(), hosts.count()};
  };
  const auto each_slot_of = [&](std::uint32_t mate, auto use) {
    for (std::uint32_t slot = mate; slot < hosts.slots(); slot += seat.mates) use(slot);
  };
  Buffer from = Buffer::in;
  for (std::uint32_t i = 1; i < seat.mates; ++i) {
    const std::uint32_t to = seat.ahead(i);
    each_slot_of(to, [&](std::uint32_t s) { plan.send(seat.mate(to), slice(Buffer::in, s)); });
    each_slot_of(seat.slot, [&](std::uint32_t s) {
      plan.recv_reduce(seat.mate(seat.behind(i)), slice(from, s), slice(Buffer::out, s));
    });
    from = Buffer::out;
  }
  each_slot_of(seat.slot, [&](std::uint32_t s) {
    const Team team(plan, {.size = hosts.count(),
                           .self = seat.host,
                           .first_rank = s,
                           .rank_step = hosts.slots(),
                           .last_rank = hosts.rank_of(hosts.count() - 1, s),
                           .first_block = s * hosts.count()});
    circulant_reduce_scatter(team, from,
                             {Buffer::out, {Buffer::out, s * hosts.count() + seat.host, 1}});
    circulant_all_gather(team);
  });
  for (std::uint32_t i = 1; i < seat.mates; ++i) {
    const std::uint32_t back = seat.behind(i);
    each_slot_of(seat.slot, [&](std::uint32_t s) {
      plan.send(seat.mate(seat.ahead(i)), slice(Buffer::out, s));
    });
    each_slot_of(back, [&](std::uint32_t s) { plan.recv(seat.mate(back), slice(Buffer::out, s)); });
  }
}

inline constexpr Algorithm two_level_all_reduce_algorithm = {
    .name = "two_level",
    .operation = Operation::all_reduce,
    .summary = "inside the hosts, then between them, each rank a slice; for several ranks a host",
    .build = two_level_all_reduce,
    .blocks_per_chunk =
        [](const Problem& problem) {
          const Hosts hosts(problem);
          return hosts.slots() * hosts.count();
        },
    .bound = [](const Problem& problem) -> Bound {
      const Hosts hosts(problem);
      const std::uint64_t slots = hosts.slots_max();  // of a rank of the last host
      const std::uint64_t last_ranks = hosts.ranks(hosts.count() - 1);
      const std::uint64_t inside =
          std::max<std::uint64_t>(hosts.slots() - 1, (last_ranks - 1) * slots);
      const std::uint64_t between =
          hosts.slots() == 1 ? rounds_min(hosts.count()) : circulant_messages(hosts.count());
      const std::uint64_t all = std::uint64_t{hosts.slots()} * hosts.count();
      return {.rounds = 2 * (inside + slots * between),
              .blocks_sent = std::max(2 * all - 2, all + slots * (last_ranks * hosts.count() - 2)),
              .is_tight = hosts.are_even()};
    },
};

}  // namespace hocket::plan
