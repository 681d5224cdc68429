#include "trace/communicator.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "trace/operation.hpp"

namespace hocket::trace {

using record::Entry;

const Entry* Member::find(std::uint64_t number) const noexcept {
  const std::uint32_t id = last == nullptr ? 0 : last->communicator;
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
  if (id == 0) return fmt::format("rank {}", place);
  return fmt::format("the rank that is {} of communicator {}", place, id);
}

std::optional<std::uint64_t> Communicator::first_open() const noexcept {
  std::optional<std::uint64_t> first;
  for (const Member& each : members) {
    if (each.open != nullptr && (!first || each.open->number < *first)) first = each.open->number;
  }
  return first;
}

std::string Communicator::suffix() const {
  return id == 0 ? std::string() : fmt::format(" of communicator {}", id);
}

std::vector<Communicator> communicators_of(const World& world) {
  std::map<std::uint32_t, Communicator> by_id;
  for (const Dump& dump : world.dumps) {
    for (const record::GroupEntry& group : dump.header.groups) {
      if (group.size == 0) continue;
      Communicator& communicator = by_id[group.id];
      communicator.id = group.id;
      communicator.size = group.size;
      if (communicator.at(group.rank) != nullptr) continue;
      Member member = {.dump = &dump, .place = group.rank};
      for (const Entry& each : dump.entries) {
        if (each.communicator != group.id) continue;
        if (is_message(each)) {
          if (is_unfinished(each)) member.mail.push_back(&each);
          continue;
        }
        if (member.last == nullptr || each.number > member.last->number) member.last = &each;
        if (member.open == nullptr && is_unfinished(each)) member.open = &each;
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
