#include "trace/communicator.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "trace/operation.hpp"

namespace hocket::trace {

using record::Entry;
using record::Life;

std::uint64_t Member::entered() const noexcept {
  if (last != nullptr) return last->number;
  return dump->header.operation_count > record::entries_kept ? UINT64_MAX : 0;
}

const Entry* Member::find(std::uint64_t number) const noexcept {
  const std::uint64_t id = last == nullptr ? 0 : last->communicator;
  const auto found = std::ranges::find_if(dump->entries, [&](const Entry& each) {
    return each.communicator == id && each.number == number && !is_message(each);
  });
  return last == nullptr || found == dump->entries.end() ? nullptr : &*found;
}

const Member* Communicator::at(std::uint32_t place) const noexcept {
  const auto found = std::ranges::find(members, place, &Member::place);
  return found == members.end() ? nullptr : &*found;
}

std::string Communicator::rank_name(std::uint32_t place) const {
  if (const Member* const member = at(place)) return fmt::format("rank {}", member->dump->rank());
  return is_of_all() ? fmt::format("rank {}", place) : fmt::format("rank {}{}", place, suffix());
}

std::optional<std::uint64_t> Communicator::first_stuck() const noexcept {
  std::optional<std::uint64_t> first;
  for (const Member& each : members) {
    const Entry* const entry = each.not_done;
    if (entry == nullptr) continue;
    const bool is_long = is_offloaded(*entry) && is_under_way(*entry) &&
                         each.dump->now - entry->begun >= patience_with_devices;
    if (!is_long && !is_stalled(*entry) && !has_failed(*entry)) continue;
    if (!first || entry->number < *first) first = entry->number;
  }
  return first;
}

std::string Communicator::suffix() const {
  std::string text;
  if (!is_of_all()) {
    std::vector<std::uint32_t> ranks;
    for (const Member& each : members) ranks.push_back(each.dump->rank());
    text = fmt::format(" of the communicator of {}", ranks_in_words(std::move(ranks)));
  }
  if ((id & record::device_bit) != 0) text += " on device memory";
  if ((id & record::offload_bit) != 0) text += " by NCCL";
  return text;
}

std::vector<Communicator> communicators_of(const World& world) {
  std::map<std::uint64_t, Communicator> by_id;
  for (const Dump& dump : world.dumps) {
    for (const record::GroupEntry& group : dump.header.groups) {
      if (group.size == 0) continue;
      Communicator& communicator = by_id[group.id];
      communicator.id = group.id;
      communicator.size = group.size;
      if (group.rank >= group.size || communicator.at(group.rank) != nullptr) continue;
      Member member = {.dump = &dump, .place = group.rank};
      for (const Entry& each : dump.entries) {
        if (each.communicator != group.id) continue;
        if (is_message(each)) {
          // A message may fail alone, and the program then went on with others.
          const bool is_last = &each == &dump.entries.back() && dump.life != Life::running;
          const bool counts = is_under_way(each) || (has_failed(each) && is_last);
          if (counts) member.mail.push_back(&each);
          continue;
        }
        if (member.last == nullptr || each.number > member.last->number) member.last = &each;
        // Failures of a communicator that the rank has given up are over as well.
        const bool has_ended = group.is_open == 0 && dump.life == Life::running;
        const bool counts = is_under_way(each) || (has_failed(each) && !has_ended);
        if (member.not_done == nullptr && counts) member.not_done = &each;
      }
      communicator.members.push_back(std::move(member));
    }
  }
  std::vector<Communicator> all;
  for (auto& [id, communicator] : by_id) {
    std::ranges::sort(communicator.members, {}, &Member::place);
    all.push_back(std::move(communicator));
  }
  return all;
}

const Entry* current(const Dump& dump) noexcept {
  const auto found = std::ranges::find_if(dump.entries, is_under_way);
  if (found != dump.entries.end()) return &*found;
  return dump.entries.empty() ? nullptr : &dump.entries.back();
}

std::string describe(const std::vector<Communicator>& all, const Entry& entry) {
  const auto found = std::ranges::find(all, entry.communicator, &Communicator::id);
  std::string text = describe(entry);
  if (found != all.end()) text += found->suffix();
  if (is_message(entry) && entry.peer != record::nobody) {
    text += fmt::format(" {} {}", entry.kind == record::kind_send ? "to" : "from",
                        awaited_rank(all, entry));
  }
  return text;
}

std::string awaited_rank(const std::vector<Communicator>& all, const Entry& entry) {
  const auto found = std::ranges::find(all, entry.communicator, &Communicator::id);
  return found == all.end() ? fmt::format("rank {}", entry.peer) : found->rank_name(entry.peer);
}

std::string ranks_in_words(std::vector<std::uint32_t> ranks) {
  std::ranges::sort(ranks);
  if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (end - i >= 3) {
      parts.push_back(fmt::format("{} to {}", ranks[i], ranks[end - 1]));
      i = end;
    } else {
      parts.push_back(std::to_string(ranks[i++]));
    }
  }
  std::string text = "ranks ";
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += i + 1 == parts.size() ? " and " : ", ";
    text += parts[i];
  }
  return text;
}

}  // namespace hocket::trace
