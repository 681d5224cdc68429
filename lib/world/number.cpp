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

struct Counts {
  std::mutex mutex = {};
  std::map<std::string, int> next = {};
};

/// A child made by fork() counts anew, and is another process to the others.
Counts& counts() {
  static ProcessWide<Counts> all;
  return all.get();
}

/// Returns a random text that only this store has, whatever handle or address leads to it. If the
/// store is served again later, its identity is a new one.
Result<std::string> identity_of(store::Store& store) {
  Result<Swap> swap = store.compare_set("entry/identity", "", random_hex(8));
  if (!swap.ok()) return swap.status();
  return swap->value.value_or("");
}

/// 32 bits of it; 0 for no text.
std::uint64_t mix(std::string_view text) noexcept {
  std::uint64_t mixed = 0;
  if (text.empty()) return mixed;
  const wire::Digest digest = wire::sha256(text);
  for (const std::byte each : std::span(digest).first(sizeof(std::uint32_t))) {
    mixed = mixed << 8 | std::to_integer<std::uint64_t>(each);
  }
  return mixed;
}

}  // namespace

Status check_name(std::string_view name, std::string_view what) {
  const auto is_allowed = [](char each) {
    return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') ||
           (each >= '0' && each <= '9') || each == '.' || each == '_' || each == '-';
  };
  if (name.size() <= limits::name_bytes_max && std::ranges::all_of(name, is_allowed)) {
    return {};
  }
  return Status(StatusCode::invalid_argument,
                fmt::format("{} can't be the name of a {}", quote(name), what))
      .with_hint(
          fmt::format("use at most {} letters, digits, '.', '_' and '-'", limits::name_bytes_max));
}

std::string scope_of(const WorldId& id) {
  const std::string run = id.run.empty() ? "" : "@" + id.run;
  if (id.number == 0 && id.name.empty()) return std::to_string(id.attempt) + run;
  return fmt::format("{}.{}{}{}{}", id.attempt, id.number, id.name.empty() ? "" : "-", id.name,
                     run);
}

std::uint64_t epoch_of(const WorldId& id) noexcept {
  constexpr int attempt_bits = 32;
  const std::uint64_t world = (mix(id.name) ^ mix(id.run)) + static_cast<std::uint32_t>(id.number);
  return world << attempt_bits | static_cast<std::uint32_t>(id.attempt);
}

std::string describe(const WorldId& id) {
  const bool is_first = id.number == 0;
  if (id.name.empty()) return is_first ? "" : fmt::format(" of world {}", id.number + 1);
  return fmt::format(" of world \"{}\"{}", id.name,
                     is_first ? "" : fmt::format(" number {}", id.number + 1));
}

std::string entry_key(const WorldId& id, std::string_view name) {
  return fmt::format("entry/{}/{}", scope_of(id), name);
}

std::string rank_key(const WorldId& id, int rank) {
  return entry_key(id, fmt::format("rank/{}", rank));
}

Result<int> next_number(store::Store& store, const WorldId& id, int rank) {
  const Result<std::string> identity = identity_of(store);
  if (!identity.ok()) return identity.status();
  Counts& all = counts();
  const std::lock_guard lock(all.mutex);
  return all.next[fmt::format("{} {} {} {}", rank, id.attempt, id.name, *identity)]++;
}

}  // namespace hocket::world
