#include "engine/program.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace hocket::engine {
namespace {

using plan::Buffer;
using plan::Plan;
using plan::Range;
using plan::Step;

/// Whether a block is in both. A range that goes on at the beginning of its buffer has two parts.
bool overlap(const Plan& plan, const Range& one, const Range& other) noexcept {
  const std::uint32_t blocks =
      one.buffer == Buffer::scratch ? plan.shape.vector_blocks() : plan.blocks(one.buffer);
  if (one.first / blocks != other.first / blocks) return false;  // of different copies
  const std::uint32_t to_other = (other.first % blocks + blocks - one.first % blocks) % blocks;
  const std::uint32_t to_one = (blocks - to_other) % blocks;
  return to_other < one.count || to_one < other.count;
}

/// Whether two ranges that a step each touches, and not both only read, let the later step be
/// abreast of the earlier.
bool keep_pace(const Plan& plan, const Range& one, const Range& other) noexcept {
  // in and out may be one memory.
  if (one.buffer != other.buffer) {
    return one.buffer == Buffer::scratch || other.buffer == Buffer::scratch;
  }
  return one == other || !overlap(plan, one, other);
}

bool is_abreast(const Plan& plan, const Step& earlier, const Step& later) noexcept {
  if (earlier.count != later.count) return false;
  const bool both_write = earlier.has_target() && later.has_target();
  if (both_write && !keep_pace(plan, earlier.target(), later.target())) return false;
  if (earlier.has_target() && later.has_source() &&
      !keep_pace(plan, earlier.target(), later.source())) {
    return false;
  }
  return !(earlier.has_source() && later.has_target()) ||
         keep_pace(plan, earlier.source(), later.target());
}

}  // namespace

Program::Program(Plan plan)
    : plan_(std::move(plan)),
      places_(plan_.steps.size()),
      waits_(plan_.steps.size()),
      waits_abreast_(plan_.steps.size()) {
  find_ports();
  find_followers();
  for (std::uint32_t i = 0; i < plan_.steps.size(); ++i) {
    if (waits_[i] == 0) first_steps_.push_back(i);
    if (waits_abreast_[i] == 0) first_steps_abreast_.push_back(i);
  }
}

void Program::find_ports() {
  std::vector<std::uint32_t> last;  // step, by port
  for (std::uint32_t i = 0; i < plan_.steps.size(); ++i) {
    const Step& step = plan_.steps[i];
    if (!step.sends() && !step.receives()) continue;
    const Port port{.peer = step.peer, .lane = step.lane, .sends = step.sends()};
    const auto found = std::ranges::find(ports_, port);
    const auto index = static_cast<std::size_t>(found - ports_.begin());
    if (found == ports_.end()) {
      ports_.push_back(port);
      last.push_back(i);
    } else {
      places_[std::exchange(last[index], i)].next_on_port = i;
      ++waits_[i];
      ++waits_abreast_[i];
    }
    places_[i].port = static_cast<std::uint32_t>(index);
  }
}

void Program::find_followers() {
  for (const Step& step : plan_.steps) {
    for (const std::uint32_t earlier : plan_.awaited(step)) ++places_[earlier].follower_count;
  }
  std::uint32_t first = 0;
  for (Place& place : places_) {
    place.first_follower = first;
    first += std::exchange(place.follower_count, 0);
  }
  followers_.resize(first);
  abreast_first_.push_back(0);
  for (std::uint32_t i = 0; i < plan_.steps.size(); ++i) {
    const Step& step = plan_.steps[i];
    for (const std::uint32_t earlier : plan_.awaited(step)) {
      const bool abreast = is_abreast(plan_, plan_.steps[earlier], step);
      Place& place = places_[earlier];
      followers_[place.first_follower + place.follower_count++] = {i, abreast};
      ++waits_[i];
      abreast ? abreast_.push_back(earlier) : static_cast<void>(++waits_abreast_[i]);
    }
    abreast_first_.push_back(static_cast<std::uint32_t>(abreast_.size()));
  }
}

}  // namespace hocket::engine
