// How long a rank that has to be heard of regularly has been silent.
//
// Only time in which this process could have heard something counts: who was stopped himself, or
// got no processor, knows nothing of others.
#pragma once

#include <algorithm>

#include "base/clock.hpp"

namespace hocket::health {

class Silence {
 public:
  /// Of one who says something every `beat`, looked at about as often.
  Silence(Duration beat, Instant now) noexcept : beat_(beat), looked_(now) {}

  void hear(Instant now) noexcept {
    lasted_ = Duration::zero();
    looked_ = now;
  }
  /// How long it has lasted by now.
  Duration look(Instant now) noexcept {
    lasted_ += std::min(now - looked_, 2 * beat_);
    looked_ = now;
    return lasted_;
  }

 private:
  const Duration beat_;
  Instant looked_;
  Duration lasted_ = Duration::zero();
};

}  // namespace hocket::health
