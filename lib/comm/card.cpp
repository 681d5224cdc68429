#include "comm/card.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include <sched.h>

#include <fmt/format.h>

#include "base/text.hpp"
#include "wire/fault.hpp"
#include "wire/fields.hpp"
#include "world/entry.hpp"

namespace hocket::comm {
namespace {

std::string encode(const Card& card) {
  std::string text;
  wire::FieldWriter fields(text);
  fields.text(card.transport);
  fields.text(card.address);
  fields.text(card.memory_domain);
  fields.integer(card.segment_bytes);
  fields.integer(card.overlap);
  fields.integer(card.local_rank);
  fields.integer(card.local_size);
  fields.text(card.host);
  fields.text(card.machine);
  fields.text(card.processors);
  fields.text(card.tuning);
  fields.text(card.monitor);
  fields.text(card.process);
  return text;
}

Result<Card> decode(std::string_view text, std::size_t rank) {
  if (Status why = world::why_no_card(text); !why.ok()) return why;
  wire::FieldReader fields(text);
  Card card;
  card.transport = fields.text();
  card.address = fields.text();
  card.memory_domain = fields.text();
  card.segment_bytes = fields.integer<std::uint64_t>();
  card.overlap = fields.integer<std::uint32_t>();
  card.local_rank = fields.integer<std::uint32_t>();
  card.local_size = fields.integer<std::uint32_t>();
  card.host = fields.text();
  card.machine = fields.text();
  card.processors = fields.text();
  card.tuning = fields.text();
  card.monitor = fields.text();
  card.process = fields.text();
  if (fields.ended_well()) return card;
  return Status(StatusCode::protocol_error,
                fmt::format("what rank {} says of itself can't be read", rank))
      .with_hint("do all ranks use the same version of Hocket?");
}

Status disagreement(std::string_view what, std::uint32_t rank, std::string_view ours,
                    std::size_t other, std::string_view theirs) {
  const auto shown = [](std::string_view text) { return text.empty() ? "nothing" : text; };
  return Status(StatusCode::mismatch,
                fmt::format("ranks have different {}: rank {} has {}, rank {} has {}", what, rank,
                            shown(ours), other, shown(theirs)))
      .with_peer(static_cast<int>(other))
      .with_hint("give all ranks the same HOCKET_* variables and tuning file");
}

/// Both are lists of names with commas.
bool share_transport(std::string_view one, std::string_view other) {
  while (!one.empty()) {
    const std::string_view name = take_until(one, ",");
    for (std::string_view rest = other; !rest.empty();) {
      if (take_until(rest, ",") == name) return true;
    }
  }
  return false;
}

/// Of one host or machine.
using RanksByProcessors = std::map<std::string_view, std::uint32_t>;

bool overlap(std::string_view one, std::string_view other) noexcept {
  for (std::size_t i = 0; i < std::min(one.size(), other.size()); ++i) {
    if ((one[i] & other[i]) != 0) return true;
  }
  return false;
}

std::uint32_t count_bits(std::string_view processors) noexcept {
  std::uint32_t count = 0;
  for (const char bits : processors) {
    count += static_cast<std::uint32_t>(std::popcount(static_cast<unsigned char>(bits)));
  }
  return count;
}

std::uint32_t ranks_for_each(std::string_view processors, const RanksByProcessors& ranks) noexcept {
  const std::uint32_t count = count_bits(processors);
  std::uint32_t sharing = 0;
  for (const auto& [theirs, number] : ranks) sharing += overlap(processors, theirs) ? number : 0;
  return count == 0 || sharing == 0 ? 1 : (sharing - 1) / count + 1;
}

}  // namespace

Result<std::vector<Card>> exchange(const Result<Card>& ours, std::uint32_t rank, std::uint32_t size,
                                   store::Store& store) {
  const std::string key = world::card_key(static_cast<int>(rank));
  if (!ours.ok()) {
    const Status fault =
        wire::fault_of(static_cast<int>(rank), world::describe_process().process, ours.status());
    // Whether the others are told or not, this one ends.
    static_cast<void>(store.set(key, world::card_of_none(fault)));
    return ours.status();
  }
  if (Status status = store.set(key, encode(*ours)); !status.ok()) return status;
  std::vector<std::string> keys;
  for (std::uint32_t each = 0; each < size; ++each) {
    keys.push_back(world::card_key(static_cast<int>(each)));
  }
  const auto texts = store.multi_get(std::move(keys));
  if (!texts.ok()) return texts.status();
  std::vector<Card> cards;
  for (const std::string& text : *texts) {
    auto card = decode(text, cards.size());
    if (!card.ok()) return card.status();
    cards.push_back(std::move(*card));
  }
  return cards;
}

Status check_agreement(std::span<const Card> cards, std::uint32_t rank) {
  const Card& ours = cards[rank];
  for (std::size_t other = 0; other < cards.size(); ++other) {
    const Card& theirs = cards[other];
    if (!share_transport(theirs.transport, ours.transport)) {
      return disagreement("transports", rank, ours.transport, other, theirs.transport);
    }
    if (theirs.segment_bytes != ours.segment_bytes) {
      return disagreement("segments", rank, std::to_string(ours.segment_bytes), other,
                          std::to_string(theirs.segment_bytes));
    }
    if (theirs.overlap != ours.overlap) {
      return disagreement("values of HOCKET_OVERLAP", rank, std::to_string(ours.overlap), other,
                          std::to_string(theirs.overlap));
    }
    if (theirs.tuning != ours.tuning) {
      return disagreement("rules for algorithms", rank, ours.tuning, other, theirs.tuning);
    }
  }
  return {};
}

std::string own_processors() {
  std::array<cpu_set_t, 8> sets = {};  // for hosts of up to 8,192
  if (::sched_getaffinity(0, sizeof sets, sets.data()) != 0) return {};
  std::string bits(sizeof sets, '\0');
  std::memcpy(bits.data(), sets.data(), sizeof sets);
  bits.resize(bits.find_last_not_of('\0') + 1);
  return bits;
}

std::uint32_t ranks_per_processor(std::span<const Card> cards, const Card& of) {
  RanksByProcessors ranks;
  for (const Card& card : cards) {
    const bool is_here =
        card.host == of.host || (!of.machine.empty() && card.machine == of.machine);
    ranks[card.processors] += is_here ? 1U : 0U;
  }
  return ranks_for_each(of.processors, ranks);
}

std::uint32_t ranks_per_processor(std::span<const Card> cards) {
  std::map<std::string_view, RanksByProcessors> hosts;
  for (const Card& card : cards) ++hosts[card.host][card.processors];
  std::uint32_t most = 1;
  for (const auto& [host, ranks] : hosts) {
    for (const auto& [processors, count] : ranks) {
      most = std::max(most, ranks_for_each(processors, ranks));
    }
  }
  return most;
}

std::uint32_t shared_processors(std::span<const Card> cards) {
  const Card& first = cards.front();
  std::string all;
  bool has_hosts = false;
  for (const Card& card : cards) {
    if (card.machine.empty() || card.machine != first.machine) return 0;
    has_hosts = has_hosts || card.host != first.host;
    all.resize(std::max(all.size(), card.processors.size()));
    std::ranges::transform(card.processors, all, all.begin(),
                           [](char one, char other) { return static_cast<char>(one | other); });
  }
  const std::uint32_t count = count_bits(all);
  return has_hosts && count < cards.size() ? count : 0;
}

std::vector<std::uint32_t> hosts_of(std::span<const Card> cards) {
  const auto follows = [&](std::uint32_t rank) {
    return rank > 0 && cards[rank].local_rank == cards[rank - 1].local_rank + 1 &&
           cards[rank].local_size == cards[rank - 1].local_size;
  };
  std::vector<std::uint32_t> hosts(cards.size());
  bool are_consecutive = true;
  for (std::uint32_t rank = 0; rank < cards.size(); ++rank) {
    are_consecutive = are_consecutive && (cards[rank].local_rank == 0 || follows(rank));
    hosts[rank] = rank - cards[rank].local_rank;
  }
  if (are_consecutive) return hosts;
  std::map<std::string_view, std::uint32_t> first_ranks;
  for (std::uint32_t rank = 0; rank < cards.size(); ++rank) {
    hosts[rank] = first_ranks.try_emplace(cards[rank].host, rank).first->second;
  }
  return hosts;
}

bool share_memory(std::span<const Card> cards, std::span<const std::uint32_t> hosts) {
  bool is_any_shared = false;
  std::map<std::uint32_t, std::string_view> domains;  // by host
  for (std::size_t rank = 0; rank < cards.size(); ++rank) {
    const std::string& domain = cards[rank].memory_domain;
    const auto [first, is_first] = domains.try_emplace(hosts[rank], domain);
    if (is_first) continue;
    if (domain.empty() || domain != first->second) return false;
    is_any_shared = true;
  }
  return is_any_shared;
}

HostOrder order_by_host(std::span<const std::uint32_t> hosts) {
  std::vector<std::vector<std::uint32_t>> of_hosts;  // ranks, by the host's first one
  std::map<std::uint32_t, std::size_t> places;       // by host
  for (std::uint32_t rank = 0; rank < hosts.size(); ++rank) {
    const auto place = places.try_emplace(hosts[rank], of_hosts.size()).first->second;
    if (place == of_hosts.size()) of_hosts.emplace_back();
    of_hosts[place].push_back(rank);
  }
  const auto count = [](const std::vector<std::uint32_t>& ranks) { return ranks.size(); };
  const std::size_t most = std::ranges::max(of_hosts, {}, count).size();
  const auto has_fewer = [&](const auto& ranks) { return ranks.size() < most; };
  if (most == 1 || std::ranges::count_if(of_hosts, has_fewer) > 1) return {};
  std::ranges::stable_sort(of_hosts, std::ranges::greater(), count);
  HostOrder order = {.ranks_per_host = static_cast<std::uint32_t>(most)};
  for (const auto& ranks : of_hosts) {
    order.ranks.insert(order.ranks.end(), ranks.begin(), ranks.end());
  }
  if (std::ranges::is_sorted(order.ranks)) order.ranks.clear();
  return order;
}

}  // namespace hocket::comm
