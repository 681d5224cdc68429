// How a simulated world behaves: how fast, how roughly, and what breaks.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/clock.hpp"

namespace hocket {

/// Both ends are in it.
struct SimSpan {
  Duration least = {};
  Duration most = {};
};

/// Numbers called `…_chance` are probabilities. What stands here is a calm world.
struct SimProfile {
  // The way of a message.
  SimSpan latency = {std::chrono::microseconds(1), std::chrono::microseconds(10)};
  double bytes_per_second_min = 1e9;
  double bytes_per_second_max = 10e9;
  /// A sender's channel holds so many bytes of messages that are not received yet; what finds no
  /// room there waits for its receive. 0: every send waits for its receive.
  std::uint64_t buffer_bytes = 64 << 10;
  double buffer_chance = 0.5;       // to use the buffer where there is room
  std::uint32_t pieces_max = 1;     // in which a message is written to its receiver's memory
  double lend_chance = 0.5;         // where a receive may be lent its message
  std::uint32_t loans_max = 64;     // of a rank, at a time
  double channel_stall_chance = 0;  // of each message, to hold up its channel
  SimSpan channel_stall = {std::chrono::milliseconds(1), std::chrono::milliseconds(100)};

  // The functions of a transport.
  double refuse_chance = 0;  // that post() takes only some, and then none for a pause
  double hold_chance = 0;    // that poll() returns only some, and then none for a pause
  SimSpan pause = {std::chrono::microseconds(1), std::chrono::microseconds(100)};

  // Faults: at a random op or completion among the first of a rank, or at a random time.
  double death_chance = 0;  // of each rank
  double cut_chance = 0;    // of each rank: to lose its link to a random other one
  std::uint64_t fault_ops = 200;
  Duration fault_time = std::chrono::milliseconds(1);
  /// From a death or a cut to when a peer is told.
  SimSpan detection = {std::chrono::microseconds(10), std::chrono::milliseconds(1)};

  /// To watch the memory of ops in flight; costs a few passes over it.
  bool is_watching = true;

  /// In a line: what is not as in a calm world.
  [[nodiscard]] std::string to_string() const;
};

/// Rough, but nothing breaks. The seed decides how rough in what: many kinds of roughness are rare
/// or missing in one world, and always there in another, and so are buffers.
[[nodiscard]] SimProfile wild_profile(std::uint64_t seed) noexcept;

/// As rough, and ranks die and links break.
[[nodiscard]] SimProfile deadly_profile(std::uint64_t seed) noexcept;

}  // namespace hocket
