#include "trace/verdict.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "trace/communicator.hpp"
#include "trace/operation.hpp"

namespace hocket::trace {
namespace {

using record::Entry;
using record::Life;

/// A list of waits is cut behind so many.
constexpr std::size_t waits_shown = 8;
/// What lasts no longer than so many nanoseconds is nothing to speak of: ranks compute, and their
/// records are read one after the other.
constexpr std::int64_t worth_telling = 30'000'000;

std::string capitalized(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] -= 'a' - 'A';
  return text;
}

bool has_error(const Dump& dump) { return dump.header.failure[0] != '\0'; }

/// Whether it ended after its program, or at least its operation, had been told of a failure: so it
/// is hardly the cause.
bool is_victim(const Dump& dump) {
  if (dump.life != Life::gone) return false;
  const Entry* const last = current(dump);
  // A receive may have failed alone, long ago.
  return has_error(dump) ||
         (last != nullptr && last->state == record::State::failed && !is_message(*last));
}

/// Whether a sentence of its own says why it does not take part.
bool is_told(const Dump& dump) { return dump.life == Life::gone || dump.life == Life::stopped; }

class Judge {
 public:
  explicit Judge(const World& world) : world_(world), communicators_(communicators_of(world)) {}

  std::vector<std::string> find() {
    for (const Dump& each : world_.dumps) {
      if (each.life == Life::gone && !is_victim(each)) tell_gone(each);
    }
    for (const Dump& each : world_.dumps) {
      if (each.life == Life::stopped) tell_stopped(each);
    }
    for (const Communicator& each : communicators_) {
      if (const auto number = each.first_stuck()) tell_operation(each, *number);
      tell_messages(each);
    }
    tell_victims();
    tell_unknown();
    tell_missing();
    return std::move(sentences_);
  }

  std::vector<std::string> judge() {
    sentences_ = find();
    if (sentences_.empty()) tell_quiet();
    tell_errors();
    return std::move(sentences_);
  }

 private:
  void say(std::string sentence) { sentences_.push_back(capitalized(std::move(sentence))); }

  [[nodiscard]] std::string in_words(const Entry& entry) const {
    return describe(communicators_, entry);
  }

  // --- processes ---

  void tell_gone(const Dump& dump) {
    const Entry* const last = current(dump);
    std::string text = fmt::format("{} ended without leaving the world", dump.name());
    if (last == nullptr) {
      text += " before its first operation.";
    } else if (last->state == record::State::done) {
      text += fmt::format(". Its last operation, {}, was done.", in_words(*last));
    } else {
      text += fmt::format(" while it ran {}.", in_words(*last));
    }
    say(text + waiting_for(dump));
  }

  void tell_stopped(const Dump& dump) {
    const Entry* const last = current(dump);
    std::string text = fmt::format("{} is stopped by a signal or a debugger.", dump.name());
    if (last != nullptr && is_under_way(*last)) {
      text += fmt::format(" It is in {}.", in_words(*last));
    } else if (last != nullptr) {
      text += fmt::format(" Its last operation was {}.", in_words(*last));
    }
    say(text + waiting_for(dump));
  }

  void tell_victims() {
    std::vector<std::uint32_t> ranks;
    for (const Dump& each : world_.dumps) {
      if (is_victim(each)) ranks.push_back(each.rank());
    }
    if (ranks.empty()) return;
    say(fmt::format("{} ended after a failure had reached {}.", ranks_in_words(ranks),
                    ranks.size() == 1 ? "it" : "them"));
  }

  void tell_unknown() {
    std::vector<std::uint32_t> ranks;
    for (const Dump& each : world_.dumps) {
      if (each.life == Life::unknown) ranks.push_back(each.rank());
    }
    if (ranks.empty()) return;
    const bool is_one = ranks.size() == 1;
    say(
        fmt::format("it is not known whether {} still run{}, because {} records are a copy or "
                    "belong to another host.",
                    ranks_in_words(ranks), is_one ? "s" : "", is_one ? "its" : "their"));
  }

  void tell_missing() {
    const auto missing = world_.missing();
    if (missing.empty()) return;
    std::string text = fmt::format(
        "there are no records of {} here: {} may have ended, run on another host, or belong to "
        "another user.",
        ranks_in_words(missing), missing.size() == 1 ? "it" : "they");
    for (const std::uint32_t rank : missing) text += waiting_for(rank);
    say(text);
  }

  // --- who waits ---

  /// " Rank 0 waits for it in step 4 of all_reduce(…) #812.", or at least who is held up.
  [[nodiscard]] std::string waiting_for(const Dump& dump) const {
    const std::string text =
        waits("it", [&](const Communicator& communicator, std::uint32_t place) {
          const Member* const awaited = communicator.at(place);
          return awaited != nullptr && awaited->dump == &dump;
        });
    return text.empty() ? held_up_with(dump) : text;
  }

  /// The same for a rank without records. Its number is known in the communicator of all ranks
  /// only.
  [[nodiscard]] std::string waiting_for(std::uint32_t missing) const {
    return waits(fmt::format("rank {}", missing),
                 [&](const Communicator& communicator, std::uint32_t place) {
                   return communicator.is_of_all() && place == missing;
                 });
  }

  template <class IsAwaited>
  [[nodiscard]] std::string waits(std::string_view whom, const IsAwaited& is_awaited) const {
    std::string text;
    std::size_t count = 0;
    for (const Communicator& communicator : communicators_) {
      for (const Member& member : communicator.members) {
        const Entry* const entry = member.not_done;
        if (entry == nullptr || entry->peer == record::nobody) continue;
        if (!is_awaited(communicator, entry->peer) || ++count > waits_shown) continue;
        text += fmt::format(" Rank {} {} for {} in step {} of {}.", member.dump->rank(),
                            has_failed(*entry) ? "waited" : "waits", whom, entry->step,
                            in_words(*entry));
      }
    }
    if (count > waits_shown) {
      text += fmt::format(" So do {} more ranks.", count - waits_shown);
    }
    return text;
  }

  /// " Ranks 0 to 2 were in all_reduce(…) #812, which it never entered.": a rank may wait for
  /// another one first, and learn of the failure before its turn comes to wait for this one.
  [[nodiscard]] std::string held_up_with(const Dump& dump) const {
    std::string text;
    for (const Communicator& communicator : communicators_) {
      const auto number = communicator.first_stuck();
      const auto self = std::ranges::find(communicator.members, &dump, &Member::dump);
      if (!number || self == communicator.members.end()) continue;
      std::vector<std::uint32_t> ranks;
      const Entry* call = nullptr;
      for (const Member& member : communicator.members) {
        const Entry* const entry = member.not_done;
        if (&member == &*self || entry == nullptr || entry->number != *number) continue;
        ranks.push_back(member.dump->rank());
        call = entry;
      }
      if (call == nullptr) continue;
      std::string_view verb = ranks.size() == 1 ? "is" : "are";
      if (has_failed(*call)) verb = ranks.size() == 1 ? "was" : "were";
      std::string_view itself = dump.life == Life::gone ? "never entered" : "has not entered";
      if (self->entered() >= *number) itself = "entered, too";
      text += fmt::format(" {} {} in {}, which it {}.", capitalized(ranks_in_words(ranks)), verb,
                          in_words(*call), itself);
    }
    return text;
  }

  // --- one operation of a communicator ---

  void tell_operation(const Communicator& communicator, std::uint64_t number) {
    // Several may be in flight, of which a later one is the cause.
    for (std::uint64_t each = number; each < number + limits::overlap_max; ++each) {
      if (tell_mismatch(communicator, each)) return;
    }
    tell_late(communicator, number);
    tell_waits(communicator, number);
    tell_devices(communicator, number);
  }

  struct Call {
    const Entry* entry = nullptr;
    std::vector<std::uint32_t> ranks = {};
  };

  bool tell_mismatch(const Communicator& communicator, std::uint64_t number) {
    std::vector<Call> calls;  // different ones; the most frequent first
    for (const Member& member : communicator.members) {
      const Entry* const entry = member.find(number);
      if (entry == nullptr) continue;
      auto found = std::ranges::find_if(
          calls, [&](const Call& each) { return each.entry->tag == entry->tag; });
      if (found == calls.end()) found = calls.insert(calls.end(), {.entry = entry});
      found->ranks.push_back(member.dump->rank());
    }
    if (calls.size() < 2) return false;
    std::ranges::stable_sort(calls, std::ranges::greater(),
                             [](const Call& each) { return each.ranks.size(); });
    const bool looks_alike = describe(*calls[0].entry) == describe(*calls[1].entry);
    std::string text;
    for (const Call& each : calls) {
      text += fmt::format("{}{} called {}", text.empty() ? "" : "; ", ranks_in_words(each.ranks),
                          in_words(*each.entry));
      if (looks_alike) text += fmt::format(" by {}", algorithm_name(*each.entry));
    }
    say(text + (looks_alike ? ". All ranks must have the same HOCKET_ALGORITHM and "
                              "HOCKET_TUNING_FILE."
                            : ". All ranks must call the same operations in the same order."));
    return true;
  }

  /// The member that called it first.
  [[nodiscard]] static const Member* first_caller(const Communicator& communicator,
                                                  std::uint64_t number) {
    const Member* first = nullptr;
    for (const Member& member : communicator.members) {
      const Entry* const entry = member.find(number);
      if (entry == nullptr) continue;
      if (first == nullptr || member.dump->universal(entry->begun) <
                                  first->dump->universal(first->find(number)->begun)) {
        first = &member;
      }
    }
    return first;
  }

  void tell_late(const Communicator& communicator, std::uint64_t number) {
    const Member* const caller = first_caller(communicator, number);
    if (caller == nullptr) return;
    const Entry& call = *caller->find(number);
    const std::int64_t called = caller->dump->universal(call.begun);
    for (const Member& member : communicator.members) {
      const Dump& dump = *member.dump;
      const bool was_waited_for = dump.universal(dump.now) - called >= worth_telling;
      const bool is_over = dump.life == Life::left || has_failed(call);
      if (member.entered() >= number || is_told(dump) || (!is_over && !was_waited_for)) continue;
      say(fmt::format("{} {} entered {}, which rank {} called {} {}.{}", dump.name(),
                      is_over ? "never" : "has not", in_words(call), caller->dump->rank(),
                      format_age((is_over && call.ended != 0 ? call.ended : caller->dump->now) -
                                 call.begun),
                      has_failed(call) ? "before it failed" : "ago", whereabouts(dump)) +
          waiting_for(dump));
    }
  }

  /// " It has left the world.", " It has been in … for 2s."
  [[nodiscard]] std::string whereabouts(const Dump& dump) const {
    if (dump.life == Life::left) return " It has left the world.";
    const Entry* const last = current(dump);
    if (last == nullptr) return " It has recorded no operation.";
    if (is_under_way(*last)) {
      return fmt::format(" It has been in {} for {}.", in_words(*last),
                         format_age(dump.now - last->begun));
    }
    return fmt::format(" Its last recorded operation, {}, ended {} ago.", in_words(*last),
                       format_age(dump.now - last->ended));
  }

  /// Of those that are in it, as far as they wait for others that are in it as well.
  void tell_waits(const Communicator& communicator, std::uint64_t number) {
    std::string text;
    const Entry* call = nullptr;
    std::size_t count = 0;
    for (const Member& member : communicator.members) {
      const Entry* const entry = member.not_done;
      if (entry == nullptr || entry->number != number || entry->peer == record::nobody) continue;
      const Member* const awaited = communicator.at(entry->peer);
      if (awaited == nullptr || awaited->entered() < number || is_told(*awaited->dump)) continue;
      if (++count > waits_shown) continue;
      call = entry;
      text += fmt::format("{}rank {} {} for {} in step {}", text.empty() ? "" : ", ",
                          member.dump->rank(), has_failed(*entry) ? "waited" : "waits",
                          communicator.rank_name(entry->peer), entry->step);
    }
    if (call == nullptr) return;
    if (count > waits_shown) text += fmt::format(", and {} more ranks wait", count - waits_shown);
    say(fmt::format("in {}, {}.", in_words(*call), text));
  }

  /// Of an offloaded operation that every rank has called.
  void tell_devices(const Communicator& communicator, std::uint64_t number) {
    std::vector<std::uint32_t> ranks;
    const Entry* call = nullptr;
    std::int64_t since = INT64_MAX;  // the last call
    for (const Member& member : communicator.members) {
      const Entry* const entry = member.find(number);
      if (entry == nullptr || !is_offloaded(*entry)) return;
      if (!is_under_way(*entry) || is_told(*member.dump)) continue;
      ranks.push_back(member.dump->rank());
      call = entry;
      since = std::min(since, member.dump->now - entry->begun);
    }
    if (call == nullptr || since < patience_with_devices) return;
    const std::string_view whose = ranks.size() == 1 ? "device of" : "devices of";
    const std::string_view have = ranks.size() == 1 ? "has" : "have";
    say(fmt::format("the {} {} {} not finished {}, which was called {} ago.", whose,
                    ranks_in_words(std::move(ranks)), have, in_words(*call), format_age(since)));
  }

  // --- messages ---

  void tell_messages(const Communicator& communicator) {
    std::size_t count = 0;
    for (const Member& member : communicator.members) {
      for (const Entry* each : member.mail) {
        const std::int64_t age = member.dump->now - each->begun;
        if (is_under_way(*each) && age < worth_telling) continue;
        if (++count > waits_shown) continue;
        say(has_failed(*each)
                ? fmt::format("rank {} was in {}.", member.dump->rank(), in_words(*each))
                : fmt::format("rank {} has been in {} for {}.", member.dump->rank(),
                              in_words(*each), format_age(age)));
      }
    }
    if (count > waits_shown) {
      say(fmt::format("{} more messages are not done.", count - waits_shown));
    }
  }

  // --- the rest ---

  void tell_quiet() {
    const auto has_left = [](const Dump& each) { return each.life == Life::left; };
    if (std::ranges::all_of(world_.dumps, has_left)) {
      return say("all ranks have left the world, and all their operations were done.");
    }
    const bool is_busy = std::ranges::any_of(world_.dumps, [](const Dump& each) {
      return std::ranges::any_of(each.entries, is_under_way);
    });
    say(is_busy ? "operations are under way, and none of them has stalled."
                : "no recorded operation is under way.");
  }

  void tell_errors() {
    std::map<std::string, std::vector<std::uint32_t>> ranks_by_text;
    for (const Dump& each : world_.dumps) {
      if (has_error(each)) ranks_by_text[each.header.failure.data()].push_back(each.rank());
    }
    for (const auto& [text, ranks] : ranks_by_text) {
      say(fmt::format("the program{} on {} received this error: {}", ranks.size() == 1 ? "" : "s",
                      ranks_in_words(ranks), text));
    }
  }

  const World& world_;
  const std::vector<Communicator> communicators_;
  std::vector<std::string> sentences_;
};

}  // namespace

std::vector<std::string> findings(const World& world) { return Judge(world).find(); }
std::vector<std::string> verdict(const World& world) { return Judge(world).judge(); }

}  // namespace hocket::trace
