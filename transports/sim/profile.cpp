#include "transports/sim/profile.hpp"

#include <array>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/rng.hpp"
#include "base/text.hpp"

namespace hocket {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

template <class T, std::size_t count>
[[nodiscard]] T one_of(SeededRandom& random, const T (&choices)[count]) noexcept {
  return choices[random.below(count)];
}

[[nodiscard]] double some_chance(SeededRandom& random) noexcept {
  return one_of(random, {0.0, 0.02, 0.2, 0.7});
}

}  // namespace

SimProfile wild_profile(std::uint64_t seed) noexcept {
  SeededRandom random(seed);
  SimProfile wild;
  wild.latency.least = nanoseconds(0);
  wild.latency.most =
      one_of<Duration>(random, {microseconds(1), microseconds(50), milliseconds(5)});
  wild.bytes_per_second_min = one_of(random, {1e6, 1e9});
  wild.buffer_bytes = one_of<std::uint64_t>(random, {0, 64, 4096, 64 << 10, UINT64_MAX});
  wild.buffer_chance = one_of(random, {0.5, 0.9, 1.0});
  wild.pieces_max = one_of<std::uint32_t>(random, {1, 2, 5});
  wild.lend_chance = one_of(random, {0.0, 0.5, 1.0});
  wild.loans_max = one_of<std::uint32_t>(random, {1, 4, 64});
  wild.channel_stall_chance = one_of(random, {0.0, 0.01, 0.1});
  wild.refuse_chance = some_chance(random);
  wild.hold_chance = some_chance(random);
  wild.pause.most = one_of<Duration>(random, {microseconds(1), microseconds(100), milliseconds(5)});
  return wild;
}

SimProfile deadly_profile(std::uint64_t seed) noexcept {
  SimProfile deadly = wild_profile(seed);
  SeededRandom random(seed ^ UINT64_MAX);
  deadly.death_chance = one_of(random, {0.0, 0.1, 0.3, 0.8});
  deadly.cut_chance = deadly.death_chance > 0 ? one_of(random, {0.0, 0.1, 0.3}) : 0.5;
  deadly.fault_ops = one_of<std::uint64_t>(random, {4, 40, 400});
  deadly.fault_time =
      one_of<Duration>(random, {microseconds(20), milliseconds(1), milliseconds(50)});
  return deadly;
}

std::string SimProfile::to_string() const {
  const SimProfile calm;
  std::string text;
  const auto add = [&](const char* what, const auto& value, const auto& usual) {
    if (value == usual) return;
    fmt::format_to(std::back_inserter(text), "{}{} {}", text.empty() ? "" : ", ", what, value);
  };
  add("latency up to", format_duration(latency.most), format_duration(calm.latency.most));
  add("bytes a second from", bytes_per_second_min, calm.bytes_per_second_min);
  add("buffers of", buffer_bytes, calm.buffer_bytes);
  add("used by", buffer_chance, calm.buffer_chance);
  add("pieces up to", pieces_max, calm.pieces_max);
  add("lends", lend_chance, calm.lend_chance);
  add("loans up to", loans_max, calm.loans_max);
  add("channels stall", channel_stall_chance, calm.channel_stall_chance);
  add("post refuses", refuse_chance, calm.refuse_chance);
  add("poll holds back", hold_chance, calm.hold_chance);
  add("pauses up to", format_duration(pause.most), format_duration(calm.pause.most));
  add("ranks die", death_chance, calm.death_chance);
  add("links break", cut_chance, calm.cut_chance);
  add("in the first ops", fault_ops, calm.fault_ops);
  return text.empty() ? "calm" : text;
}

}  // namespace hocket
