// One communicator of a world, as the records of its ranks show it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace/dump.hpp"

namespace hocket::trace {

/// A rank of a communicator, and what it does there.
struct Member {
  const Dump* dump = nullptr;
  std::uint32_t place = 0;                      // its rank in the communicator
  const record::Entry* last = nullptr;          // the last collective operation that it called
  const record::Entry* not_done = nullptr;      // the first one that is under way or has failed
  std::vector<const record::Entry*> mail = {};  // messages that are under way or have failed

  /// The number of the last collective operation that it called. UINT64_MAX if that may have been
  /// overwritten by later operations of other communicators.
  [[nodiscard]] std::uint64_t entered() const noexcept;
  /// Its entry of the collective operation with this number, if it still has one.
  [[nodiscard]] const record::Entry* find(std::uint64_t number) const noexcept;
};

struct Communicator {
  std::uint64_t id = 0;  // as record::Entry has it
  std::uint32_t size = 0;
  std::vector<Member> members = {};  // by place; those without records are missing

  [[nodiscard]] const Member* at(std::uint32_t place) const noexcept;
  /// "rank 3", in the world's numbers where they are known.
  [[nodiscard]] std::string rank_name(std::uint32_t place) const;
  /// The number of the first collective operation that has failed on a member, or in which a member
  /// waits for another one, or its device has been busy with for long.
  [[nodiscard]] std::optional<std::uint64_t> first_stuck() const noexcept;
  [[nodiscard]] bool is_of_all() const noexcept {
    return (id & ~(record::device_bit | record::offload_bit)) >> 32 == 0;
  }
  /// What follows the name of an operation: " of the communicator of ranks 2 and 3", or nothing for
  /// that of all ranks.
  [[nodiscard]] std::string suffix() const;
};

/// For so many nanoseconds nothing is said of an offloaded operation: it may be behind others in
/// its stream, and a healthy rank may be far ahead of another one.
inline constexpr std::int64_t patience_with_devices = 1'000'000'000;

[[nodiscard]] std::vector<Communicator> communicators_of(const World& world);

/// The first operation of a rank that is under way, or else its last one; null if there is none.
[[nodiscard]] const record::Entry* current(const Dump& dump) noexcept;

/// As describe() of an operation, with the communicator; a message also with the other rank.
[[nodiscard]] std::string describe(const std::vector<Communicator>& all,
                                   const record::Entry& entry);
/// The rank that an operation waits for, or with which a message is exchanged.
[[nodiscard]] std::string awaited_rank(const std::vector<Communicator>& all,
                                       const record::Entry& entry);

/// "rank 3", "ranks 0, 2 and 5", "ranks 0 to 7"
[[nodiscard]] std::string ranks_in_words(std::vector<std::uint32_t> ranks);

}  // namespace hocket::trace
