// Recursive doubling and halving: partners whose numbers differ in one bit. Where the size is no
// power of two, the ranks in excess give what they have to a neighbour first and get the result
// from it.
#pragma once

#include <bit>
#include <cstdint>

#include "plan/builders/phases.hpp"
#include "plan/catalog.hpp"

namespace hocket::plan {

/// A world whose size is no power of two, folded to one that is: of the first pairs of neighbours,
/// the one with the even number is the *guest* of the other, its *host*; all but the guests are
/// *members*.
class Fold {
 public:
  Fold(std::uint32_t size, std::uint32_t rank) noexcept
      : members_(std::bit_floor(size)), guests_(size - members_), rank_(rank) {}

  [[nodiscard]] std::uint32_t members() const noexcept { return members_; }
  [[nodiscard]] bool is_guest() const noexcept { return is_in_pair() && rank_ % 2 == 0; }
  [[nodiscard]] bool is_host() const noexcept { return is_in_pair() && rank_ % 2 == 1; }
  /// The guest's host, and the host's guest.
  [[nodiscard]] std::uint32_t partner() const noexcept { return rank_ ^ 1; }

  /// Its number among the members; of a guest, its host's.
  [[nodiscard]] std::uint32_t member() const noexcept {
    return is_in_pair() ? rank_ / 2 : rank_ - guests_;
  }
  [[nodiscard]] std::uint32_t rank_of(std::uint32_t member) const noexcept {
    return member < guests_ ? 2 * member + 1 : member + guests_;
  }
  /// The first rank that a member stands for: its own, or its guest's.
  [[nodiscard]] std::uint32_t first_rank_of(std::uint32_t member) const noexcept {
    return member < guests_ ? 2 * member : member + guests_;
  }

 private:
  [[nodiscard]] bool is_in_pair() const noexcept { return rank_ < 2 * guests_; }

  std::uint32_t members_;
  std::uint32_t guests_;
  std::uint32_t rank_;
};

/// What has been reduced is in two copies of scratch by turns: in one place, each rank would have
/// to receive before it could send.
inline constexpr Algorithm recursive_doubling_all_reduce_algorithm = {
    .name = "recursive_doubling",
    .operation = Operation::all_reduce,
    .summary = "fewest rounds, all bytes in each; for tiny vectors",
    .build =
        [](PlanWriter& plan) {
          const Fold fold(plan.size(), plan.rank());
          Range held = {Buffer::in, 0, 1};
          if (fold.is_guest()) {
            plan.send(fold.partner(), held);
            return plan.recv(fold.partner(), {Buffer::out, 0, 1});
          }
          std::uint32_t turn = 0;
          const auto next = [&] { return Range{Buffer::scratch, turn++ % 2, 1}; };
          if (fold.is_host()) {
            const Range sum = next();
            plan.recv_reduce(fold.partner(), held, sum);
            held = sum;
          }
          for (std::uint32_t skip = 1; skip < fold.members(); skip *= 2) {
            const std::uint32_t peer = fold.rank_of(fold.member() ^ skip);
            // Out may be the same memory as in, which is still being sent in the first round.
            const bool is_result = 2 * skip == fold.members() && held.buffer != Buffer::in;
            const Range sum = is_result ? Range{Buffer::out, 0, 1} : next();
            plan.send(peer, held);
            plan.recv_reduce(peer, held, sum);
            held = sum;
          }
          plan.copy(held, {Buffer::out, 0, 1});
          if (fold.is_host()) plan.send(fold.partner(), held);
        },
    .bound = [](const Problem& problem) -> Bound {
      const std::uint32_t rounds = std::bit_width(problem.size) - 1U;
      const bool folds = !std::has_single_bit(problem.size);
      return {.rounds = rounds + (folds ? 2U : 0U), .blocks_sent = rounds + (folds ? 1U : 0U)};
    },
    .reach = Reach::powers,
};

/// Who exchanges with whom, in the round in which a member keeps or has the blocks of so many: the
/// *span*, a power of two.
struct Pairing {
  std::uint32_t (*peer)(std::uint32_t members, std::uint32_t member, std::uint32_t span);
  /// A member's number in an order in which those that are left with each other at any span are in
  /// a row.
  std::uint32_t (*place)(std::uint32_t members, std::uint32_t member);
};

inline constexpr Pairing pairing_by_bits = {
    .peer = [](std::uint32_t /*members*/, std::uint32_t member,
               std::uint32_t span) { return member ^ span; },
    .place = [](std::uint32_t /*members*/, std::uint32_t member) { return member; },
};

/// The peer of an even member is 1, -1, 3, -5, 11, … ahead of it: (1 - (-2)^(i + 1)) / 3 in round
/// i.
[[nodiscard]] inline std::uint32_t swing_peer(std::uint32_t members, std::uint32_t member,
                                              std::uint32_t span) noexcept {
  const std::int64_t size = members;
  const std::int64_t power = size / span;  // 2^(i + 1)
  const bool is_negative = std::bit_width(members / span) % 2 == 0;
  const std::int64_t distance = (1 - (is_negative ? -power : power)) / 3;
  const std::int64_t peer = member % 2 == 0 ? member + distance : member - distance;
  return static_cast<std::uint32_t>((peer + size) % size);
}

/// At a span, the even members that are left with each other are the same in their lowest bits, and
/// the odd ones are their peers: so the bits of the even one of the last pair count from the
/// lowest.
[[nodiscard]] inline std::uint32_t swing_place(std::uint32_t members,
                                               std::uint32_t member) noexcept {
  std::uint32_t even = member % 2 == 0 ? member : swing_peer(members, member, 1);
  std::uint32_t place = 0;
  for (std::uint32_t span = members / 2; span > 1; span /= 2) {
    even /= 2;
    place += even % 2 * span;
  }
  return place + member % 2;
}

inline constexpr Pairing pairing_by_swing = {.peer = swing_peer, .place = swing_place};

/// The blocks of a member are those of the ranks that the member whose number is its place stands
/// for, in the vector of one block for each rank.
class Halves {
 public:
  Halves(const Fold& fold, const Pairing& pairing) noexcept : fold_(fold), pairing_(pairing) {}

  [[nodiscard]] std::uint32_t peer(std::uint32_t span) const noexcept {
    return pairing_.peer(fold_.members(), fold_.member(), span);
  }
  /// Of all members that are left with this one at the span.
  [[nodiscard]] Range blocks(Buffer buffer, std::uint32_t member,
                             std::uint32_t span) const noexcept {
    const std::uint32_t first = pairing_.place(fold_.members(), member) / span * span;
    const std::uint32_t begin = fold_.first_rank_of(first);
    return {buffer, begin, fold_.first_rank_of(first + span) - begin};
  }

 private:
  const Fold& fold_;
  const Pairing& pairing_;
};

/// From in to partials of what the member stands for. What is left is halved in every round.
inline void halving_reduce_scatter(PlanWriter& plan, const Fold& fold, const Partials& partials,
                                   const Pairing& pairing = pairing_by_bits) {
  const Halves halves(fold, pairing);
  Buffer held = Buffer::in;
  if (fold.is_host()) {
    const std::uint32_t all = plan.size();
    plan.recv_reduce(fold.partner(), {Buffer::in, 0, all}, {partials.buffer, 0, all});
    held = partials.buffer;
  }
  for (std::uint32_t span = fold.members() / 2; span > 0; span /= 2) {
    const std::uint32_t peer = halves.peer(span);
    const Range kept = halves.blocks(held, fold.member(), span);
    plan.send(fold.rank_of(peer), halves.blocks(held, peer, span));
    plan.recv_reduce(fold.rank_of(peer), kept, {partials.buffer, kept.first, kept.count});
    held = partials.buffer;
  }
}

/// Of what each member stands for, in out, to all.
inline void doubling_all_gather(PlanWriter& plan, const Fold& fold,
                                const Pairing& pairing = pairing_by_bits) {
  const Halves halves(fold, pairing);
  for (std::uint32_t span = 1; span < fold.members(); span *= 2) {
    const std::uint32_t peer = halves.peer(span);
    plan.send(fold.rank_of(peer), halves.blocks(Buffer::out, fold.member(), span));
    plan.recv(fold.rank_of(peer), halves.blocks(Buffer::out, peer, span));
  }
}

/// What rank 1 sends in a doubling where there are guests: what it has, in every round, and all of
/// it to its guest. No other rank sends more.
[[nodiscard]] inline std::uint64_t doubled_blocks(std::uint32_t size) noexcept {
  const Fold fold(size, 1);
  std::uint64_t blocks = size;
  for (std::uint32_t span = 1; span < fold.members(); span *= 2) blocks += fold.first_rank_of(span);
  return blocks;
}

inline void halving_all_reduce(PlanWriter& plan, const Pairing& pairing) {
  const Fold fold(plan.size(), plan.rank());
  const std::uint32_t all = plan.size();
  if (fold.is_guest()) {
    plan.send(fold.partner(), {Buffer::in, 0, all});
    return plan.recv(fold.partner(), {Buffer::out, 0, all});
  }
  halving_reduce_scatter(plan, fold, partials_of(plan), pairing);
  doubling_all_gather(plan, fold, pairing);
  if (fold.is_host()) plan.send(fold.partner(), {Buffer::out, 0, all});
}

[[nodiscard]] inline Bound halving_all_reduce_bound(const Problem& problem) {
  const std::uint32_t members = std::bit_floor(problem.size);
  const std::uint32_t rounds = 2 * (std::bit_width(problem.size) - 1U);
  if (members == problem.size) return {.rounds = rounds, .blocks_sent = 2 * (members - 1ULL)};
  const std::uint64_t sent = problem.size - 2 + doubled_blocks(problem.size);
  return {.rounds = rounds + 2, .blocks_sent = sent, .blocks_in_line = sent + problem.size};
}

inline constexpr Algorithm rabenseifner_all_reduce_algorithm = {
    .name = "rabenseifner",
    .operation = Operation::all_reduce,
    .summary = "few rounds, and fewest bytes where the size is a power of two",
    .build = [](PlanWriter& plan) { halving_all_reduce(plan, pairing_by_bits); },
    .blocks_per_chunk = one_for_each_rank,
    .bound = halving_all_reduce_bound,
    .reach = Reach::paired_halves,
};

/// De Sensi et al., "Swing: Short-cutting Rings for Higher Bandwidth Allreduce".
inline constexpr Algorithm swing_all_reduce_algorithm = {
    .name = "swing",
    .operation = Operation::all_reduce,
    .summary = "as rabenseifner, but most bytes go to near ranks; for rings and tori of links",
    .build = [](PlanWriter& plan) { halving_all_reduce(plan, pairing_by_swing); },
    .blocks_per_chunk = one_for_each_rank,
    .bound = halving_all_reduce_bound,
    .reach = Reach::nearest_first,
};

inline constexpr Algorithm halving_reduce_scatter_algorithm = {
    .name = "recursive_halving",
    .operation = Operation::reduce_scatter,
    .summary = "fewest rounds, and fewest bytes where the size is a power of two",
    .build =
        [](PlanWriter& plan) {
          const Fold fold(plan.size(), plan.rank());
          const std::uint32_t rank = plan.rank();
          if (fold.is_guest()) {
            plan.send(fold.partner(), {Buffer::in, 0, plan.size()});
            return plan.recv(fold.partner(), {Buffer::out, 0, 1});
          }
          halving_reduce_scatter(plan, fold, {Buffer::scratch, {}});
          if (fold.is_host()) plan.send(fold.partner(), {Buffer::scratch, rank - 1, 1});
          plan.copy({Buffer::scratch, rank, 1}, {Buffer::out, 0, 1});
        },
    .bound = [](const Problem& problem) -> Bound {
      const std::uint32_t rounds = std::bit_width(problem.size) - 1U;
      if (std::has_single_bit(problem.size)) {
        return {.rounds = rounds, .blocks_sent = problem.size - 1U};
      }
      return {.rounds = rounds + 2,
              .blocks_sent = problem.size,  // of a guest
              .blocks_in_line = 2ULL * problem.size};
    },
    .allows_uneven = true,
    .reach = Reach::paired_halves,
};

inline constexpr Algorithm doubling_all_gather_algorithm = {
    .name = "recursive_doubling",
    .operation = Operation::all_gather,
    .summary = "fewest rounds, and fewest bytes where the size is a power of two",
    .build =
        [](PlanWriter& plan) {
          const Fold fold(plan.size(), plan.rank());
          const std::uint32_t all = plan.size();
          if (fold.is_guest()) {
            plan.send(fold.partner(), {Buffer::in, 0, 1});
            return plan.recv(fold.partner(), {Buffer::out, 0, all});
          }
          own_block_to_out(plan);
          if (fold.is_host()) plan.recv(fold.partner(), {Buffer::out, fold.partner(), 1});
          doubling_all_gather(plan, fold);
          if (fold.is_host()) plan.send(fold.partner(), {Buffer::out, 0, all});
        },
    .bound = [](const Problem& problem) -> Bound {
      const std::uint32_t rounds = std::bit_width(problem.size) - 1U;
      if (std::has_single_bit(problem.size)) {
        return {.rounds = rounds, .blocks_sent = problem.size - 1U};
      }
      return {.rounds = rounds + 2, .blocks_sent = doubled_blocks(problem.size)};
    },
    .allows_uneven = true,
    .only_moves = true,
    .reach = Reach::paired_halves,
};

}  // namespace hocket::plan
