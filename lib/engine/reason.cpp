// The reason for which a channel is closed, on its way to the other end.
#include <array>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "hocket/transport.hpp"

#include "base/limits.hpp"
#include "engine/group.hpp"
#include "engine/tag.hpp"

namespace hocket::inline v1 {
namespace {

using engine::same_calls_hint;

// In this order from the lowest bit on. Step and rank are one more than what they say, so that 0
// says nothing.
constexpr unsigned code_bits = 8;
constexpr unsigned step_bits = 24;

/// The words behind "rank 1 closed the channel: "; before `of_another` comes "rank 2 ".
struct Meaning {
  StatusCode code;
  std::string_view of_another;
  std::string_view of_itself;
  std::string_view hint;
};
constexpr std::array meanings{
    Meaning{StatusCode::peer_lost, "is lost",
            "it left the communicator, or receives nothing from other hosts",
            "find out why its process ended, or whether the network between the ranks works"},
    Meaning{StatusCode::timeout, "did not take part in time", "its deadline passed",
            "check that the named rank calls the same operations in the same order, and is not "
            "stopped or overloaded"},
    Meaning{StatusCode::mismatch, "called another operation", "ranks called different operations",
            same_calls_hint},
    Meaning{StatusCode::limit_exceeded, "ran out of memory or another resource",
            "it ran out of memory or another resource",
            "see that rank's own error, which says what ran out"},
    Meaning{StatusCode::aborted, "aborted the communicator",
            "it aborted the communicator, or failed for a reason of its own",
            "see that rank's own error, which says why"},
};

/// A code that is not listed concerns only the rank that closed: to the other end it is `aborted`.
const Meaning& meaning_of(std::uint64_t code) noexcept {
  for (const Meaning& each : meanings) {
    if (static_cast<std::uint64_t>(each.code) == code) return each;
  }
  return meanings.back();
}

}  // namespace

std::uint64_t pack_reason(const Status& reason) noexcept {
  if (reason.ok()) return 0;
  const auto code = static_cast<std::uint64_t>(reason.code()) & ((1U << code_bits) - 1);
  const auto step = (static_cast<std::uint64_t>(reason.step()) + 1) & ((1U << step_bits) - 1);
  const auto rank = static_cast<std::uint64_t>(reason.peer()) + 1;
  return code | step << code_bits | rank << (code_bits + step_bits);
}

Status closed_by_peer(std::uint32_t peer, std::uint64_t reason) {
  if (reason == 0) {
    return Status(StatusCode::peer_lost, fmt::format("rank {} closed the channel", peer))
        .with_peer(static_cast<int>(peer));
  }
  const Meaning& meaning = meaning_of(reason & ((1U << code_bits) - 1));
  const auto step = static_cast<int>(reason >> code_bits & ((1U << step_bits) - 1)) - 1;
  const auto rank = static_cast<std::int64_t>(reason >> (code_bits + step_bits)) - 1;
  const bool is_another =
      rank >= 0 && rank < limits::world_size_max && rank != static_cast<std::int64_t>(peer);
  const std::string why = is_another ? fmt::format("rank {} {}", rank, meaning.of_another)
                                     : std::string(meaning.of_itself);
  return Status(meaning.code, fmt::format("rank {} closed the channel: {}", peer, why))
      .with_peer(is_another ? static_cast<int>(rank) : static_cast<int>(peer))
      .with_step(step)
      .with_hint(std::string(meaning.hint));
}

}  // namespace hocket::inline v1

namespace hocket::engine {

/// closed_by_peer() has made it, whoever has added to it since.
bool is_told_by_peer(const Status& failure) noexcept {
  return std::string_view(failure.where().file) == SourceLocation::here().file;
}

}  // namespace hocket::engine
