// What a proof of plans is asked for, and what it tells.
#pragma once

#include <cstdint>

namespace hocket::proof {

struct Proof {
  std::uint64_t steps = 0;
  std::uint64_t messages = 0;
  std::uint64_t blocks_sent = 0;  // by the rank that sends most
  std::uint64_t rounds = 0;       // as in Schedule
  // If that was to be found out:
  bool allows_uneven = false;  // chunks may differ in size
  bool is_canonical = false;   // what is reduced is combined in the canonical tree
  bool breaks_order = false;   // it is combined in another order than that of the ranks

  friend bool operator==(const Proof&, const Proof&) = default;
};

struct VerifyOptions {
  /// Also where in and out are the same memory, if the problem allows it.
  bool in_place = false;
  // What to find out besides:
  bool uneven = true;
  bool canonical = true;
  bool order = false;  // by all ranks
  std::uint64_t seed = 1;
};

}  // namespace hocket::proof
