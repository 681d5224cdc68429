// How long the plans of all ranks take together on a network, event by event in virtual time.
//
// A step begins when all that it waits for is over, and then waits for what it uses, first come
// first served: the core of its rank, or, where all share a few, one of those (processors.hpp), and
// the links (links.hpp). A large message leaves when both its send and its receive can begin: a
// rendezvous, as in the proof, for which it does not matter how large buffers are. A small one is
// eager: it goes ahead, and waits in a buffer for its receive. Either leaves after those before it
// on its lane. The sender's core spends the overhead, the bytes cross the links, the latency goes
// by, and the receiver's core spends the overhead again and the reduction, if there is one. The
// send is over when the last byte has crossed the links, the receive with the work of the core.
//
// What real networks have besides, and this has not: a message is reduced or sent on only when it
// is there as a whole; switches neither drop nor pause, so that what many send to one at once is
// slower in truth (incast); all of a switch's uplinks are one; cores are never taken away.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hocket/status.hpp"

#include "choose/network.hpp"
#include "plan/catalog.hpp"
#include "plan/layout.hpp"
#include "plan/plan.hpp"

namespace hocket::sim {

struct SimulateOptions {
  std::uint64_t elements = 0;   // of the vector: the larger one of in and out
  plan::ChunkSizes sizes = {};  // or of each chunk (Layout)
  std::uint32_t element_bytes = 1;
  bool keep_steps = false;
};

/// Seconds since the beginning.
struct StepTime {
  double begin = 0;
  double end = 0;
};

struct Timing {
  double seconds = 0;             // until the last rank is done, one call after the other
  std::vector<double> rank_ends;  // by rank
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;                   // of all messages
  std::string busiest_link;                  // none if none carried a byte
  double busiest_share = 0;                  // of the whole time that it was busy
  std::vector<std::vector<StepTime>> steps;  // by rank and step, if they were to be kept
};

/// Plans that passed check_plan, by rank, all of one problem. Memory and time grow with their
/// steps. Fails when plans do not fit together, or the network makes no sense.
[[nodiscard]] Result<Timing> simulate(std::span<const plan::Plan> plans,
                                      const choose::Network& network,
                                      const SimulateOptions& options);

/// Whether one rank is enough, because all do the same and the network is the same to each.
[[nodiscard]] bool are_alike(const plan::Algorithm& algorithm, std::uint32_t ranks,
                             const choose::Network& network) noexcept;
/// The same for ranks that are alike, in the memory and time of one. Blocks of different sizes come
/// in the order of rank 0 on all of them.
[[nodiscard]] Result<Timing> simulate_alike(const plan::Plan& of_rank_0,
                                            const choose::Network& network,
                                            const SimulateOptions& options);

}  // namespace hocket::sim
