// Whether a collective operation can be, as far as one rank can tell, and what of it the plan must
// know.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hocket/collective.hpp"
#include "hocket/communicator.hpp"
#include "hocket/status.hpp"
#include "hocket/transport.hpp"

#include "base/position.hpp"
#include "plan/problem.hpp"
#include "reduce/reduction.hpp"

namespace hocket::comm {

/// Operations that are alike in all of this have the same plans and move the same bytes.
struct Signature {
  plan::Operation operation = plan::Operation::barrier;
  std::uint32_t root = 0;
  std::uint64_t element_bytes = 1;
  std::uint64_t count = 0;  // elements of each chunk, if they are alike
  std::vector<std::uint64_t> counts =
      {};                     // else by chunk; of all_to_all for each rank, then from each
  bool is_of_device = false;  // the memory of both: no step may touch it
  bool keeps_order = false;   // of the ranks, for an op that is not commutative

  friend bool operator==(const Signature&, const Signature&) = default;
};

/// Fails with what is wrong and what it should be; says nothing of other ranks.
[[nodiscard]] Status check(const Collective& collective, const Position& position);
/// Likewise, of any operation's.
[[nodiscard]] Status check(const OperationOptions& options);
/// Each is a rank of that communicator, and none is named twice.
[[nodiscard]] Status check_ranks(std::span<const int> ranks, const Position& position);
[[nodiscard]] Status check(const JoinOptions& options);

[[nodiscard]] bool ranges_overlap(const void* one, std::uint64_t one_bytes, const void* other,
                                  std::uint64_t other_bytes) noexcept;

/// What this rank gives to a collective that passed check().
[[nodiscard]] std::uint64_t in_bytes(const Collective& collective,
                                     const Position& position) noexcept;

/// What a collective that passed check() sends from and receives into, where that is much.
[[nodiscard]] std::vector<RegisteredMemory> lasting_memory(const Collective& collective,
                                                           const Position& position);

/// Of a collective that passed check(). Writes into `to`, whose memory it uses again.
void write_signature(const Collective& collective, Signature& to);

/// Bytes of the vector: what the choice of an algorithm goes by.
[[nodiscard]] std::uint64_t vector_bytes(const Signature& signature, std::uint32_t size) noexcept;

[[nodiscard]] Result<reduce::Reduction> make_reduction(const Collective& collective,
                                                       std::uint32_t size);

}  // namespace hocket::comm
