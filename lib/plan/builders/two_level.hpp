// Inside the hosts and between them: each byte crosses a host's network once in each direction of
// the work, and all ranks of a host carry their share of it. Ranks of different hosts with the same
// slot are a team.
#pragma once

#include <algorithm>
#include <cstdint>

#include "plan/builders/phases.hpp"
#include "plan/catalog.hpp"

namespace hocket::plan {

/// Ranks by host. A rank's *slot* is its number on its host; where the last host has fewer ranks
/// than the others, those that it has stand for the slots that it lacks, in turns.
class Hosts {
 public:
  explicit Hosts(const Problem& problem) noexcept
      : slots_(std::clamp(problem.ranks_per_host, 1U, problem.size)),
        count_((problem.size - 1) / slots_ + 1),
        last_ranks_(problem.size - (count_ - 1) * slots_) {}

  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint32_t slots() const noexcept { return slots_; }
  [[nodiscard]] std::uint32_t ranks(std::uint32_t host) const noexcept {
    return host + 1 == count_ ? last_ranks_ : slots_;
  }
  [[nodiscard]] bool are_even() const noexcept { return last_ranks_ == slots_; }
  /// How many slots a rank stands for, its own among them.
  [[nodiscard]] std::uint32_t slots_of(std::uint32_t rank) const noexcept {
    return (slots_ - 1 - slot_of(rank)) / ranks(host_of(rank)) + 1;
  }
  [[nodiscard]] std::uint32_t slots_max() const noexcept {
    return slots_of(rank_of(count_ - 1, 0));
  }
  /// Hosts that have a rank of that slot.
  [[nodiscard]] std::uint32_t with_slot(std::uint32_t slot) const noexcept {
    return slot < last_ranks_ ? count_ : count_ - 1;
  }

  [[nodiscard]] std::uint32_t host_of(std::uint32_t rank) const noexcept { return rank / slots_; }
  [[nodiscard]] std::uint32_t slot_of(std::uint32_t rank) const noexcept { return rank % slots_; }
  /// The one that stands for the slot, if the host has none of that.
  [[nodiscard]] std::uint32_t rank_of(std::uint32_t host, std::uint32_t slot) const noexcept {
    return host * slots_ + slot % ranks(host);
  }

 private:
  std::uint32_t slots_;
  std::uint32_t count_;
  std::uint32_t last_ranks_;
};

/// Where the rank of a plan is.
struct Seat {
  explicit Seat(const PlanWriter& plan) noexcept
      : hosts(plan.problem()),
        host(hosts.host_of(plan.rank())),
        slot(hosts.slot_of(plan.rank())),
        mates(hosts.ranks(host)) {}

  /// The ranks `steps` further on and further back on the same host, by slot.
  [[nodiscard]] std::uint32_t ahead(std::uint32_t steps) const noexcept {
    return (slot + steps) % mates;
  }
  [[nodiscard]] std::uint32_t behind(std::uint32_t steps) const noexcept {
    return (slot + mates - steps) % mates;
  }
  [[nodiscard]] std::uint32_t mate(std::uint32_t of_slot) const noexcept {
    return hosts.rank_of(host, of_slot);
  }
  /// The slots that a mate stands for, its own first.
  template <typename Use>
  void each_slot(std::uint32_t of_mate, Use use) const {
    for (std::uint32_t each = of_mate; each < hosts.slots(); each += mates) use(each);
  }

  Hosts hosts;
  std::uint32_t host;
  std::uint32_t slot;
  std::uint32_t mates;  // ranks of the host
};

/// A vector of a slice for each slot, and of as many blocks in each.
class Slices {
 public:
  Slices(const Seat& seat, std::uint32_t blocks) noexcept : seat_(seat), blocks_(blocks) {}

  /// One rank of each host.
  [[nodiscard]] Team team(PlanWriter& plan, std::uint32_t slot) const noexcept {
    const Hosts& hosts = seat_.hosts;
    return {plan,
            {.size = hosts.count(),
             .self = seat_.host,
             .first_rank = slot,
             .rank_step = hosts.slots(),
             .last_rank = hosts.rank_of(hosts.count() - 1, slot),
             .first_block = slot * blocks_}};
  }
  /// What a mate takes care of.
  template <typename Use>
  void each_range(Buffer buffer, std::uint32_t mate, Use use) const {
    seat_.each_slot(mate, [&](std::uint32_t slot) { use(Range{buffer, slot * blocks_, blocks_}); });
  }

 private:
  const Seat& seat_;
  std::uint32_t blocks_;
};

/// A vector of a block for each rank.
class Chunks {
 public:
  explicit Chunks(const Seat& seat) noexcept : seat_(seat) {}

  /// The ranks with the own slot.
  [[nodiscard]] Team team(PlanWriter& plan) const noexcept {
    const std::uint32_t size = seat_.hosts.with_slot(seat_.slot);
    return {plan,
            {.size = size,
             .self = seat_.host,
             .first_rank = seat_.slot,
             .rank_step = seat_.hosts.slots(),
             .last_rank = seat_.slot + (size - 1) * seat_.hosts.slots(),
             .first_block = seat_.slot,
             .block_step = seat_.hosts.slots()}};
  }
  template <typename Use>
  void each_range(Buffer buffer, std::uint32_t mate, Use use) const {
    seat_.each_slot(mate, [&](std::uint32_t slot) {
      for (std::uint32_t host = 0; host < seat_.hosts.with_slot(slot); ++host) {
        use(Range{buffer, seat_.hosts.rank_of(host, slot), 1});
      }
    });
  }
  /// A slot that the last host lacks has no rank there in its team: whoever stands for it there
  /// exchanges the blocks of all in the team with their owners. Calls, at either side,
  /// use(the other rank, the block, whether this rank is the one that stands for the slot).
  template <typename Use>
  void each_exchange_outside_team(Use use) const {
    const Hosts& hosts = seat_.hosts;
    const std::uint32_t last = hosts.count() - 1;
    if (seat_.host < last) {
      const bool is_lacking = hosts.with_slot(seat_.slot) == last;
      if (is_lacking) use(hosts.rank_of(last, seat_.slot), seat_.mate(seat_.slot), false);
      return;
    }
    seat_.each_slot(seat_.slot, [&](std::uint32_t slot) {
      for (std::uint32_t host = 0; slot != seat_.slot && host < last; ++host) {
        use(hosts.rank_of(host, slot), hosts.rank_of(host, slot), true);
      }
    });
  }

 private:
  const Seat& seat_;
};

/// Each rank of a host gets what it takes care of from the others. Gives where it has that then.
template <typename Parts>
Buffer reduce_inside(PlanWriter& plan, const Seat& seat, const Parts& parts, Buffer sums) {
  Buffer from = Buffer::in;
  for (std::uint32_t i = 1; i < seat.mates; ++i) {
    const std::uint32_t to = seat.mate(seat.ahead(i));
    const std::uint32_t back = seat.mate(seat.behind(i));
    parts.each_range(Buffer::in, seat.ahead(i), [&](const Range& range) { plan.send(to, range); });
    parts.each_range(from, seat.slot, [&](const Range& range) {
      plan.recv_reduce(back, range, {sums, range.first, range.count});
    });
    from = sums;
  }
  return from;
}

/// Each rank of a host gives what it takes care of, in out, to the others.
template <typename Parts>
void gather_inside(PlanWriter& plan, const Seat& seat, const Parts& parts) {
  for (std::uint32_t i = 1; i < seat.mates; ++i) {
    const std::uint32_t to = seat.mate(seat.ahead(i));
    const std::uint32_t back = seat.mate(seat.behind(i));
    parts.each_range(Buffer::out, seat.slot, [&](const Range& range) { plan.send(to, range); });
    parts.each_range(Buffer::out, seat.behind(i),
                     [&](const Range& range) { plan.recv(back, range); });
  }
}

inline constexpr Algorithm two_level_all_reduce_algorithm = {
    .name = "two_level",
    .operation = Operation::all_reduce,
    .summary = "inside the hosts, then between them, each rank a slice; for several ranks a host",
    .build =
        [](PlanWriter& plan) {
          const Seat seat(plan);
          const std::uint32_t hosts = seat.hosts.count();
          const Slices slices(seat, hosts);
          const Buffer from = reduce_inside(plan, seat, slices, Buffer::out);
          seat.each_slot(seat.slot, [&](std::uint32_t slot) {
            const Range own = {Buffer::out, slot * hosts + seat.host, 1};
            circulant_reduce_scatter(slices.team(plan, slot), from, {Buffer::out, own});
            circulant_all_gather(slices.team(plan, slot));
          });
          gather_inside(plan, seat, slices);
        },
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
              .rounds_are_exact = hosts.are_even()};
    },
    .knows_hosts = true,
    .reach = Reach::hosts,
};

/// A reduce-scatter is an all-gather backwards, in as many rounds.
[[nodiscard]] inline Bound two_level_all_gather_bound(const Problem& problem) {
  const Hosts hosts(problem);
  const std::uint64_t others = hosts.count() - 1;
  const std::uint64_t slots = hosts.slots_max();  // of a rank of the last host
  const std::uint64_t last_mates = hosts.ranks(hosts.count() - 1) - 1;
  const std::uint64_t last_blocks = hosts.count() + (slots - 1) * others;
  const std::uint64_t inside =
      std::max((hosts.slots() - 1) * (others + 1), last_mates * last_blocks);
  return {.rounds = hosts.slots() == 1 ? rounds_min(problem.size) : slots * others + inside,
          .blocks_sent = std::max(others + (hosts.slots() - 1) * (others + 1),
                                  others + last_mates * last_blocks),
          .rounds_are_exact = hosts.are_even()};
}

inline constexpr Algorithm two_level_reduce_scatter_algorithm = {
    .name = "two_level",
    .operation = Operation::reduce_scatter,
    .summary = "inside the hosts, then between them, all ranks at once; for several ranks a host",
    .build =
        [](PlanWriter& plan) {
          const Seat seat(plan);
          const Chunks chunks(seat);
          const Buffer from = reduce_inside(plan, seat, chunks, Buffer::scratch);
          chunks.each_exchange_outside_team(
              [&](std::uint32_t peer, std::uint32_t block, bool stands_for_slot) {
                const Range sum = {from, block, 1};
                if (stands_for_slot) return plan.send(peer, sum);
                plan.recv_reduce(peer, sum, sum);
              });
          circulant_reduce_scatter(chunks.team(plan), from, {Buffer::scratch, {Buffer::out, 0, 1}});
        },
    .bound = [](const Problem& problem) -> Bound {
      Bound bound = two_level_all_gather_bound(problem);
      bound.blocks_sent = problem.size - 1;
      return bound;
    },
    .allows_uneven = true,
    .knows_hosts = true,
    .reach = Reach::hosts,
};

inline constexpr Algorithm two_level_all_gather_algorithm = {
    .name = "two_level",
    .operation = Operation::all_gather,
    .summary = "between the hosts, all ranks at once, then inside them; for several ranks a host",
    .build =
        [](PlanWriter& plan) {
          const Seat seat(plan);
          const Chunks chunks(seat);
          own_block_to_out(plan);
          chunks.each_exchange_outside_team(
              [&](std::uint32_t peer, std::uint32_t block, bool stands_for_slot) {
                const Range chunk = {Buffer::out, block, 1};
                if (stands_for_slot) return plan.recv(peer, chunk);
                plan.send(peer, chunk);
              });
          circulant_all_gather(chunks.team(plan));
          gather_inside(plan, seat, chunks);
        },
    .bound = two_level_all_gather_bound,
    .allows_uneven = true,
    .knows_hosts = true,
    .only_moves = true,
    .reach = Reach::hosts,
};

inline constexpr Algorithm two_level_broadcast_algorithm = {
    .name = "two_level",
    .operation = Operation::broadcast,
    .summary = "a slice from each rank of a host to the others; for several ranks a host",
    .build =
        [](PlanWriter& plan) {
          const Seat seat(plan);
          const Hosts& hosts = seat.hosts;
          const Slices slices(seat, 1);
          const std::uint32_t root = plan.problem().root;
          const std::uint32_t first_host = hosts.host_of(root);
          const bool is_root = plan.rank() == root;
          for (std::uint32_t i = 1; is_root && i < seat.mates; ++i) {
            slices.each_range(Buffer::in, seat.ahead(i), [&](const Range& range) {
              plan.send(seat.mate(seat.ahead(i)), range);
            });
          }
          if (is_root) plan.copy({Buffer::in, 0, hosts.slots()}, {Buffer::out, 0, hosts.slots()});
          seat.each_slot(seat.slot, [&](std::uint32_t slot) {
            const Range slice = {Buffer::out, slot, 1};
            if (seat.host == first_host && !is_root) plan.recv(root, slice);
            binomial_broadcast(plan, slices.team(plan, slot), first_host, slice);
          });
          gather_inside(plan, seat, slices);
        },
    .blocks_per_chunk = [](const Problem& problem) { return Hosts(problem).slots(); },
    .bound = [](const Problem& problem) -> Bound {
      const Hosts hosts(problem);
      const std::uint64_t rounds = rounds_min(hosts.count());
      const std::uint64_t mates = hosts.slots() - 1;
      const std::uint64_t slots = hosts.slots_max();  // of the first rank of the last host
      const std::uint64_t last_mates = hosts.ranks(hosts.count() - 1) - 1;
      const std::uint32_t first_host = hosts.host_of(problem.root);
      const std::uint64_t roots_mates = hosts.ranks(first_host) - 1;
      const std::uint64_t roots_slots = hosts.slots_of(problem.root);
      return {.rounds = mates + slots * rounds + std::max(mates, last_mates * slots),
              .blocks_sent =
                  std::max(mates + 1 - roots_slots + roots_slots * (rounds + roots_mates),
                           slots * (last_mates + binomial_children(hosts.count() - 1 - first_host,
                                                                   hosts.count()))),
              .rounds_are_exact = hosts.are_even()};
    },
    .knows_hosts = true,
    .only_moves = true,
    .reach = Reach::hosts,
};

/// The broadcast backwards.
inline constexpr Algorithm two_level_reduce_algorithm = {
    .name = "two_level",
    .operation = Operation::reduce,
    .summary = "a slice in each rank of a host, then to the root; for several ranks a host",
    .build =
        [](PlanWriter& plan) {
          const Seat seat(plan);
          const Slices slices(seat, 1);
          const std::uint32_t root = plan.problem().root;
          const bool is_root = plan.rank() == root;
          const std::uint32_t last_host = seat.hosts.host_of(root);
          const Buffer sums = is_root ? Buffer::out : Buffer::scratch;
          const Buffer from = reduce_inside(plan, seat, slices, sums);
          seat.each_slot(seat.slot, [&](std::uint32_t slot) {
            const Range sum = binomial_reduce(plan, slices.team(plan, slot), last_host,
                                              {from, slot, 1}, {sums, slot, 1});
            if (is_root) return plan.copy(sum, {Buffer::out, slot, 1});
            if (seat.host == last_host) plan.send(root, sum);
          });
          for (std::uint32_t i = 1; is_root && i < seat.mates; ++i) {
            slices.each_range(Buffer::out, seat.behind(i), [&](const Range& range) {
              plan.recv(seat.mate(seat.behind(i)), range);
            });
          }
        },
    .blocks_per_chunk = [](const Problem& problem) { return Hosts(problem).slots(); },
    .bound = [](const Problem& problem) -> Bound {
      Bound bound = two_level_broadcast_algorithm.bound(problem);
      bound.blocks_sent = Hosts(problem).slots();
      return bound;
    },
    .knows_hosts = true,
    .reach = Reach::hosts,
};

}  // namespace hocket::plan
