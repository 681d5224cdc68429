// How the ranks of a world come together over a store, or all learn why they can't.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "store/store.hpp"
#include "world/number.hpp"

namespace hocket::world {

struct Entry {
  int rank = 0;
  int size = 1;
  WorldId world = {};        // ranks of different worlds don't see each other
  std::string host = {};     // the same for two processes when they reach each other by loopback
  std::string process = {};  // "pid 12 on node7", for messages
  std::string address = {};  // by which others reach this rank
  bool is_loopback = false;  // the address is
  Status fault = {};         // what keeps this rank from taking part, if anything
};

/// The entry of this process, without rank, size and address.
[[nodiscard]] Entry describe_process();

// Once it has entered, each rank leaves a card in the store of its world: how it is reached
// (comm/card.hpp), or why it can't be.

/// The prefix of a world's own keys.
[[nodiscard]] std::string keys_of(const WorldId& world);
/// Behind that prefix.
[[nodiscard]] std::string card_key(int rank);
/// Of a rank that has none. The store says it in the rank's place, should its process end before it
/// has left one.
[[nodiscard]] std::string card_of_none(const Status& why);
/// Why there is none; success of another card.
[[nodiscard]] Status why_no_card(std::string_view card);

/// What the ranks have written of a world: that all have come, and how many its first rank says
/// there are.
[[nodiscard]] bool is_go(std::string_view verdict);
[[nodiscard]] bool is_size(std::string_view opinion, int size);
[[nodiscard]] std::string opinion_of(const Entry& who);
/// The error where `who` names another size.
[[nodiscard]] Status size_fault(const Entry& who, std::string_view first);

/// Where a rank stands among those of its host, in the order of their ranks.
struct LocalRank {
  int local_rank = 0;
  int local_size = 1;
};

/// Returns when all ranks are there. The first fault that any of them finds ends it for all, with
/// the same message: two ranks of one number, two opinions of the size, a loopback address where
/// the ranks are on several hosts, a rank that can't take part, or one that gives up because others
/// are missing. Where the store has a server, it adds what it sees itself: a rank whose connection
/// ends, also before it has left its card, and one that is refused (store/attendance.hpp). Who
/// comes when the world is complete already is refused, and harms nobody.
///
/// Returns by the deadline, as far as the store answers by then. Uses keys that begin with
/// "entry/".
[[nodiscard]] Result<LocalRank> enter(store::Store& store, const Entry& who, Deadline deadline);

/// Ends the worlds of this attempt that still wait for the rank; all others go on. `what` is what
/// the ranks of such a world are told: a whole sentence that names this one.
[[nodiscard]] Status report_end(store::Store& store, int attempt, int rank, std::string_view what);

/// The ranks that have not come yet.
[[nodiscard]] Result<std::vector<int>> missing_ranks(store::Store& store, const Entry& who);

/// Ranks for a message: "2, 5-7, 9"; of a long list the beginning and "…".
[[nodiscard]] std::string list_ranks(const std::vector<int>& sorted);

}  // namespace hocket::world
