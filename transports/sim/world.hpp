// A whole world in one process and one thread, in virtual time: all ranks' transports, and what a
// network and its machines may do to them. All follows from a seed, so that what failed once fails
// again, step by step. README.md says how to run a program over it.
//
//   SimWorld world({.size = 4, .seed = seed, .profile = wild_profile(seed)});
//   auto transports = …world.transport(rank)… ;
//   do {
//     for (each rank that is alive) let it post and poll until it gets nothing more;
//   } while (!all are done && world.step());
//   // Not all done: they would wait for ever, a hang. Print world.story().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "hocket/transport.hpp"

#include "base/clock.hpp"
#include "transports/sim/profile.hpp"

namespace hocket {

namespace simulated {
class Fabric;
}

struct SimWorldOptions {
  std::uint32_t size = 2;
  std::uint64_t seed = 0;
  SimProfile profile = {};
};

/// One thread at a time, together with all its transports.
class SimWorld {
 public:
  explicit SimWorld(const SimWorldOptions& options);
  SimWorld(const SimWorld&) = delete;
  SimWorld& operator=(const SimWorld&) = delete;
  ~SimWorld();

  /// Virtual time. It stands still but in step().
  [[nodiscard]] const Clock& clock() const noexcept;

  /// Once for each rank; the world must live longer. To destroy it is to leave the world in order:
  /// what was sent arrives. To die is kill(), before that. Ranks of different epochs learn that
  /// they are, and don't talk.
  [[nodiscard]] std::unique_ptr<Transport> transport(std::uint32_t rank, std::uint64_t epoch = 0);

  /// Goes on to the next event, and lets it happen. False: nothing will ever happen any more unless
  /// somebody posts. A rank that waits then, waits for ever.
  bool step();

  /// An event of its own at that time, such as a deadline that somebody waits for.
  void alarm(Instant at);

  // Faults. Those of the profile come by themselves, also in the middle of a post() or poll().

  /// From now on the rank's transport does nothing, and nobody touches the memory of its ops. After
  /// the time of detection, its peers' ops fail with peer_lost.
  void kill(std::uint32_t rank);
  /// Not dead, and its transport not destroyed. Who is not alive is not to be run on.
  [[nodiscard]] bool is_alive(std::uint32_t rank) const noexcept;
  /// Nothing passes between the two any more. Each learns it in its own time, as peer_lost.
  void cut(std::uint32_t rank, std::uint32_t peer);
  /// For so long from now the rank gets no completion, and what it posts does not leave.
  void stall(std::uint32_t rank, Duration duration);

  // What to say of a run.

  /// The first rule of the interface that a rank broke, in words: it wrote to the memory of an op
  /// in flight, gave back twice, posted on a channel that it had not opened, …; empty if none did.
  [[nodiscard]] const std::string& violation() const noexcept;
  /// Of all that has happened: the same in two runs, if the same happened.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept;
  /// For people: seed, profile, violation, and what happened last.
  [[nodiscard]] std::string story() const;
  /// Messages that the rank was lent, or will be, and has not given back.
  [[nodiscard]] std::size_t loans(std::uint32_t rank) const noexcept;

 private:
  std::uint64_t seed_;
  SimProfile profile_;
  std::unique_ptr<simulated::Fabric> fabric_;
};

}  // namespace hocket
