// What the ranks of a world tell each other before they talk: how to reach each, and what all must
// have in common.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hocket/status.hpp"

#include "store/store.hpp"

namespace hocket::comm {

/// Of one rank.
struct Card {
  std::string transport = {};       // or several, with commas
  std::string address = {};         // a list, as lib/engine/mixed.hpp has it
  std::string memory_domain = {};   // equal if ranks share memory; empty: this one shares none
  std::uint64_t segment_bytes = 0;  // into which messages are cut
  std::uint32_t overlap = 1;        // operations of a communicator at once
  std::uint32_t local_rank = 0;
  std::uint32_t local_size = 1;
  std::string host = {};        // what all ranks there call it
  std::string machine = {};     // the same, of all hosts that share its processors
  std::string processors = {};  // that it may run on: a bit for each
  std::string tuning = {};      // by which algorithms are chosen
  std::string monitor = {};     // the address of what watches over it
  std::string process = {};     // for people: "pid 7 on node1"

  friend bool operator==(const Card&, const Card&) = default;
};

/// Puts this rank's card into the store, or why it has none, and waits for those of all ranks.
/// Fails where one has none, and says why.
[[nodiscard]] Result<std::vector<Card>> exchange(const Result<Card>& ours, std::uint32_t rank,
                                                 std::uint32_t size, store::Store& store);

/// Fails where another rank has no transport in common with this one, or another tuning, and says
/// both.
[[nodiscard]] Status check_agreement(std::span<const Card> cards, std::uint32_t rank);

/// What a card says of processors.
[[nodiscard]] std::string own_processors();

/// How many ranks there are for each of the processors that this one may run on, of those that may
/// run there as well, on any host of its machine.
[[nodiscard]] std::uint32_t ranks_per_processor(std::span<const Card> cards, const Card& of);
/// Where they are the most, of the ranks of one host.
[[nodiscard]] std::uint32_t ranks_per_processor(std::span<const Card> cards);

/// How many processors all ranks share, where hosts are one machine that has fewer than ranks; else
/// 0.
[[nodiscard]] std::uint32_t shared_processors(std::span<const Card> cards);

/// Returns the host of each rank, as a number that ranks share if they are on one host. If the
/// ranks of each host are consecutive, this follows from the launcher's local ranks, else from host
/// names.
[[nodiscard]] std::vector<std::uint32_t> hosts_of(std::span<const Card> cards);

/// Whether all ranks of each host reach each other through memory, and some host has several.
/// `hosts` as hosts_of() has them.
[[nodiscard]] bool share_memory(std::span<const Card> cards, std::span<const std::uint32_t> hosts);

/// An order in which the ranks of each host are consecutive, and only the last host has fewer.
struct HostOrder {
  std::uint32_t ranks_per_host = 1;
  std::vector<std::uint32_t> ranks = {};  // in that order; empty if it is their own
};
/// Hosts of one rank each, in the ranks' own order, if there is no such order. `hosts` has one
/// number for each rank of a communicator.
[[nodiscard]] HostOrder order_by_host(std::span<const std::uint32_t> hosts);

}  // namespace hocket::comm
