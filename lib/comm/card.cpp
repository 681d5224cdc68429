#include "comm/card.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "wire/fields.hpp"

namespace hocket::comm {
namespace {

std::string encode(const Card& card) {
  std::string text;
  wire::FieldWriter fields(text);
  fields.text(card.transport);
  fields.text(card.address);
  fields.integer(card.segment_bytes);
  fields.integer(card.local_rank);
  fields.integer(card.local_size);
  fields.integer(card.processors);
  fields.text(card.tuning);
  return text;
}

Result<Card> decode(std::string_view text, std::size_t rank) {
  wire::FieldReader fields(text);
  Card card;
  card.transport = fields.text();
  card.address = fields.text();
  card.segment_bytes = fields.integer<std::uint64_t>();
  card.local_rank = fields.integer<std::uint32_t>();
  card.local_size = fields.integer<std::uint32_t>();
  card.processors = fields.integer<std::uint32_t>();
  card.tuning = fields.text();
  if (fields.ended_well()) return card;
  return Status(StatusCode::protocol_error,
                fmt::format("what rank {} says of itself can't be read", rank))
      .with_hint("do all ranks use the same version of Hocket?");
}

std::string key_of(std::uint32_t rank) { return fmt::format("card/{}", rank); }

Status disagreement(std::string_view what, std::uint32_t rank, std::string_view ours,
                    std::size_t other, std::string_view theirs) {
  const auto shown = [](std::string_view text) { return text.empty() ? "nothing" : text; };
  return Status(StatusCode::mismatch,
                fmt::format("ranks have different {}: rank {} has {}, rank {} has {}", what, rank,
                            shown(ours), other, shown(theirs)))
      .with_peer(static_cast<int>(other))
      .with_hint("give all ranks the same HOCKET_* variables and tuning file");
}

}  // namespace

Result<std::vector<Card>> exchange(const Card& ours, std::uint32_t rank, std::uint32_t size,
                                   store::Store& store) {
  if (Status status = store.set(key_of(rank), encode(ours)); !status.ok()) return status;
  std::vector<std::string> keys;
  for (std::uint32_t each = 0; each < size; ++each) keys.push_back(key_of(each));
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
    if (theirs.transport != ours.transport) {
      return disagreement("transports", rank, ours.transport, other, theirs.transport);
    }
    if (theirs.segment_bytes != ours.segment_bytes) {
      return disagreement("segments", rank, std::to_string(ours.segment_bytes), other,
                          std::to_string(theirs.segment_bytes));
    }
    if (theirs.tuning != ours.tuning) {
      return disagreement("rules for algorithms", rank, ours.tuning, other, theirs.tuning);
    }
  }
  return {};
}

std::uint32_t ranks_per_processor(std::span<const Card> cards) noexcept {
  std::uint32_t most = 1;
  for (const Card& card : cards) {
    const std::uint32_t others = std::max(card.local_size, 1U) - 1;
    most = std::max(most, others / std::max(card.processors, 1U) + 1);
  }
  return most;
}

std::uint32_t ranks_per_host(std::span<const Card> cards) noexcept {
  const auto size = static_cast<std::uint32_t>(cards.size());
  const std::uint32_t all = std::max(cards.front().local_size, 1U);
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    const std::uint32_t here = std::min(all, size - rank / all * all);
    if (cards[rank].local_rank != rank % all || cards[rank].local_size != here) return 1;
  }
  return all;
}

}  // namespace hocket::comm
