#include "world/number.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <span>

#include <fmt/format.h>

#include "base/fd.hpp"
#include "base/limits.hpp"
#include "base/rng.hpp"
#include "base/text.hpp"
#include "wire/sha256.hpp"

namespace hocket::world {
namespace {

constexpr std::string_view mark = " #";  // between the process and what tells it apart

struct Count {
  int next = 0;
  int claimed = -1;  // the last world in whose entry this rank is
};

struct Counts {
  const std::string token = random_hex(8);
  std::mutex mutex = {};
  std::map<std::string, Count> of = {};
};

/// A child made by fork() counts anew, and is another process to the others.
Counts& counts() {
  static ProcessWide<Counts> all;
  return all.get();
}

std::string place_of(const store::Store& store, const WorldId& id, int rank) {
  return fmt::format("{} {} {} {}", rank, id.attempt, id.name, store.describe());
}

}  // namespace

Status check_world_name(std::string_view name) {
  const auto is_allowed = [](char each) {
    return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') ||
           (each >= '0' && each <= '9') || each == '.' || each == '_' || each == '-';
  };
  if (name.size() <= limits::world_name_bytes_max && std::ranges::all_of(name, is_allowed)) {
    return {};
  }
  return Status(StatusCode::invalid_argument,
                fmt::format("{} can't be the name of a world", quote(name)))
      .with_hint(fmt::format("use at most {} letters, digits, '.', '_' and '-'",
                             limits::world_name_bytes_max));
}

std::string scope_of(const WorldId& id) {
  if (id.number == 0 && id.name.empty()) return std::to_string(id.attempt);
  return fmt::format("{}.{}{}{}", id.attempt, id.number, id.name.empty() ? "" : "-", id.name);
}

std::uint64_t epoch_of(const WorldId& id) noexcept {
  constexpr int attempt_bits = 32;
  std::uint64_t world = 0;
  if (!id.name.empty()) {
    const wire::Digest digest = wire::sha256(id.name);
    for (const std::byte each : std::span(digest).first(sizeof(std::uint32_t))) {
      world = world << 8 | std::to_integer<std::uint64_t>(each);
    }
  }
  world += static_cast<std::uint32_t>(id.number);
  return world << attempt_bits | static_cast<std::uint32_t>(id.attempt);
}

std::string describe(const WorldId& id) {
  const bool is_first = id.number == 0;
  if (id.name.empty()) return is_first ? "" : fmt::format(" of world {}", id.number + 1);
  return fmt::format(" of world \"{}\"{}", id.name,
                     is_first ? "" : fmt::format(" number {}", id.number + 1));
}

std::string rank_key(const WorldId& id, int rank) {
  return fmt::format("entry/{}/rank/{}", scope_of(id), rank);
}

std::string claim_of(std::string_view process) {
  return fmt::format("{}{}{}", process, mark, counts().token);
}

std::string_view process_of(std::string_view claim) { return claim.substr(0, claim.rfind(mark)); }

Result<int> next_number(store::Store& store, const WorldId& id, int rank,
                        std::string_view process) {
  Counts& all = counts();
  const std::string place = place_of(store, id, rank);
  WorldId last = id;
  {
    const std::lock_guard lock(all.mutex);
    Count& count = all.of[place];
    if (count.claimed < 0) return count.next++;
    last.number = count.claimed;
  }
  // A store that was served anew since then does not know us.
  const Result<std::string> found = store.get(rank_key(last, rank), Duration::zero());
  const bool is_known = found.ok() && *found == claim_of(process);
  if (!found.ok() && found.status().code() != StatusCode::timeout) return found.status();
  const std::lock_guard lock(all.mutex);
  Count& count = all.of[place];
  if (!is_known && count.claimed == last.number) count = {};
  return count.next++;
}

void note_claim(store::Store& store, const WorldId& id, int rank) {
  Counts& all = counts();
  const std::lock_guard lock(all.mutex);
  all.of[place_of(store, id, rank)].claimed = id.number;
}

}  // namespace hocket::world
