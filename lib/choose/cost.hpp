// What an operation must cost, and what an algorithm for it does cost, in closed form: for choosing
// among algorithms, where a simulation would take too long.
#pragma once

#include <cstdint>

#include "choose/network.hpp"
#include "plan/catalog.hpp"
#include "plan/problem.hpp"

namespace hocket::choose {

/// Seconds that no algorithm can do without where a rank sends one message and receives one at a
/// time: the latency of ceil(log2(ranks)) rounds, or the time that the bytes take which some host
/// or rank must send or receive, whichever is more. `bytes` are those of the vector. A network that
/// lets a rank have many messages on their way at once can be a little faster.
[[nodiscard]] double bound_seconds(const plan::Problem& problem, double bytes,
                                   const Network& network) noexcept;

/// Bandwidth on the bus is bytes through seconds times this: what each rank's link carries if the
/// algorithm is as good as can be, as the tests of NCCL have it.
[[nodiscard]] double bus_factor(plan::Operation operation, std::uint32_t size) noexcept;

/// Seconds, close to what a simulation says. For each leg of the algorithm (legs.hpp), inside hosts
/// and between them:
///   hops · latency and overheads + bytes one after the other / bandwidth + reduced bytes / speed
/// where of a pipeline's later pieces only the slowest part counts, and where ranks share a NIC the
/// time that it is busy, if that is more.
/// On one switch, with vectors that divide evenly: within 1 % for the simplest, from 0.7 to 1.4
/// times what a simulation says for the others, from 0.55 to 2.1 times for pipelines and trees. On
/// hosts of several ranks from 0.5 to 2.2 times, swing apart, which it thinks slower.
[[nodiscard]] double estimate_seconds(const plan::Algorithm& algorithm,
                                      const plan::Problem& problem, double bytes,
                                      const Network& network);

/// Whether the problem's pieces make a difference to the algorithm.
[[nodiscard]] bool is_pipeline(const plan::Algorithm& algorithm);
/// The number of pieces, a power of two, that the estimate is lowest for.
[[nodiscard]] std::uint32_t best_pieces(const plan::Algorithm& algorithm, plan::Problem problem,
                                        double bytes, const Network& network);

}  // namespace hocket::choose
