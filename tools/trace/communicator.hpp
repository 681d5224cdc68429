// One communicator of a world, as the dumps of its ranks show it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace/dump.hpp"

namespace hocket::trace {

/// A rank of it, and what that rank does there.
struct Member {
  const Dump* dump = nullptr;
  std::uint32_t place = 0;                      // its rank in the communicator
  const record::Entry* last = nullptr;          // the last collective operation that it called
  const record::Entry* open = nullptr;          // the first one that is not done
  std::vector<const record::Entry*> mail = {};  // messages that are not done

  [[nodiscard]] std::uint64_t entered() const noexcept { return last ? last->number : 0; }
  /// Its entry of that operation, if it still has one.
  [[nodiscard]] const record::Entry* find(std::uint64_t number) const noexcept;
};

struct Communicator {
  std::uint32_t id = 0;
  std::uint32_t size = 0;
  std::vector<Member> members = {};  // by place; those without a dump are missing

  [[nodiscard]] const Member* at(std::uint32_t place) const noexcept;
  /// "rank 3", in the world's numbers where they are known.
  [[nodiscard]] std::string rank_name(std::uint32_t place) const;
  /// The first collective operation that some member has not done.
  [[nodiscard]] std::optional<std::uint64_t> first_open() const noexcept;
  /// Behind the name of an operation: " of communicator 5", or nothing for that of the whole world.
  [[nodiscard]] std::string suffix() const;
};

[[nodiscard]] std::vector<Communicator> communicators_of(const World& world);

/// "rank 3", "ranks 0, 2 and 5", "ranks 0 to 7"
[[nodiscard]] std::string ranks_in_words(std::vector<std::uint32_t> ranks);

}  // namespace hocket::trace
