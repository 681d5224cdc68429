// What happened last in a simulated world, and a number for all that ever happened there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"

namespace hocket::simulated {

enum class Happening : std::uint8_t {
  open,
  post_send,
  post_recv,
  refuse,
  buffer,
  arrive,
  mismatch,
  complete,
  fail,
  lend,
  give_back,
  close,
  lose,
  cut,
  stall,
  die,
  leave,
};

struct TraceEntry {
  Instant at = {};
  Happening what = Happening::open;
  bool is_send = false;  // of a completion
  std::uint32_t rank = 0;
  std::uint32_t peer = 0;
  std::uint64_t lane = 0;
  std::uint64_t number = 0;  // of the op on its channel, for its kind
  std::uint64_t bytes = 0;
};

class Trace {
 public:
  void add(const TraceEntry& entry);

  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return fingerprint_; }
  /// A line for each of the last ones.
  [[nodiscard]] std::string to_string() const;

 private:
  static constexpr std::size_t entries_max = 512;

  std::vector<TraceEntry> entries_;  // number i of all at i mod entries_max
  std::uint64_t count_ = 0;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace hocket::simulated
