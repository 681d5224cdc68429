#include "trace/verdict.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "engine/mailbox.hpp"
#include "trace/communicator.hpp"
#include "trace/operation.hpp"

namespace hocket::trace {
namespace {

using record::Entry;
using record::Life;

/// A list of waits is cut behind so many.
constexpr std::size_t waits_shown = 8;

std::string lasting(std::int64_t nanoseconds) {
  return format_duration(std::chrono::round<std::chrono::milliseconds>(Duration(nanoseconds)));
}

std::string capitalized(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] -= 'a' - 'A';
  return text;
}

class Judge {
 public:
  explicit Judge(const World& world) : world_(world), communicators_(communicators_of(world)) {}

  std::vector<std::string> find() {
    for (const Dump& each : world_.dumps) {
      if (each.life == Life::gone) tell_gone(each);
    }
    for (const Dump& each : world_.dumps) {
      if (each.life == Life::stopped) tell_stopped(each);
    }
    tell_missing();
    for (const Communicator& each : communicators_) {
      if (const auto number = each.first_open()) tell_operation(each, *number);
      tell_messages(each);
    }
    return std::move(sentences_);
  }

  std::vector<std::string> judge() {
    sentences_ = find();
    if (sentences_.empty()) tell_quiet();
    tell_failures();
    return std::move(sentences_);
  }

 private:
  void say(std::string sentence) { sentences_.push_back(capitalized(std::move(sentence))); }

  void tell_gone(const Dump& dump) {
    say(fmt::format("{} ended without leaving the world{}.{}", dump.name(), doing(dump),
                    waiting_for(dump)));
  }

  void tell_stopped(const Dump& dump) {
    say(fmt::format("{} is stopped, by a signal or a debugger{}.{}", dump.name(), doing(dump),
                    waiting_for(dump)));
  }

  /// ", in all_reduce(…) #812"
  [[nodiscard]] std::string doing(const Dump& dump) const {
    const Entry* last = nullptr;
    for (const Entry& each : dump.entries) {
      last = &each;
      if (is_unfinished(each)) return fmt::format(", in {}", in_words(each));
    }
    if (last == nullptr) return ", before its first operation";
    return fmt::format(", after {} was done", in_words(*last));
  }

  [[nodiscard]] std::string in_words(const Entry& entry) const {
    const auto found = std::ranges::find(communicators_, entry.communicator, &Communicator::id);
    if (found == communicators_.end()) return describe(entry);
    std::string text = describe(entry) + found->suffix();
    if (is_message(entry) && entry.peer != engine::any_rank) {
      text += fmt::format(" {} {}", entry.kind == record::kind_send ? "to" : "from",
                          found->rank_name(entry.peer));
    }
    return text;
  }

  /// " Rank 0 waits for it in step 4 of all_reduce(…) #812."
  [[nodiscard]] std::string waiting_for(const Dump& dump) const {
    std::string text;
    std::size_t count = 0;
    for (const Communicator& communicator : communicators_) {
      for (const Member& member : communicator.members) {
        const Entry* const open = member.open;
        if (open == nullptr || open->peer == record::nobody || member.dump == &dump) continue;
        const Member* const awaited = communicator.at(open->peer);
        if (awaited == nullptr || awaited->dump != &dump || ++count > waits_shown) continue;
        text += fmt::format(" Rank {} {} for it in step {} of {}.", member.dump->rank(),
                            open->state == record::State::failed ? "waited" : "waits", open->step,
                            in_words(*open));
      }
    }
    return text;
  }

  void tell_missing() {
    const auto missing = world_.missing();
    if (missing.empty()) return;
    say(fmt::format("there are no records of {}: {} may have died, or {} on another host.",
                    ranks_in_words(missing), missing.size() == 1 ? "it" : "they",
                    missing.size() == 1 ? "runs" : "run"));
    for (const std::uint32_t rank : missing) {
      if (const std::string waits = waits_for_missing(rank); !waits.empty()) say(waits.substr(1));
    }
  }

  [[nodiscard]] std::string waits_for_missing(std::uint32_t rank) const {
    std::string text;
    for (const Communicator& communicator : communicators_) {
      if (communicator.id != 0) continue;  // others' numbers of that rank are not known
      for (const Member& member : communicator.members) {
        const Entry* const open = member.open;
        if (open == nullptr || open->peer != rank) continue;
        text += fmt::format(" Rank {} waits for rank {} in step {} of {}.", member.dump->rank(),
                            rank, open->step, in_words(*open));
      }
    }
    return text;
  }

  // --- one operation of a communicator ---

  void tell_operation(const Communicator& communicator, std::uint64_t number) {
    if (tell_mismatch(communicator, number)) return;
    const bool someone_is_late = tell_late(communicator, number);
    tell_waits(communicator, number, someone_is_late);
  }

  bool tell_mismatch(const Communicator& communicator, std::uint64_t number) {
    std::map<std::uint64_t, std::vector<std::uint32_t>> ranks_by_call;
    std::map<std::uint64_t, const Entry*> calls;
    for (const Member& member : communicator.members) {
      const Entry* const entry = member.find(number);
      if (entry == nullptr) continue;
      ranks_by_call[entry->tag].push_back(member.dump->rank());
      calls[entry->tag] = entry;
    }
    if (calls.size() < 2) return false;
    std::string text;
    for (const auto& [tag, ranks] : ranks_by_call) {
      if (!text.empty()) text += "; ";
      text += fmt::format("{} called {}", ranks_in_words(ranks), in_words(*calls[tag]));
    }
    say(text + ". All ranks must call the same operations in the same order.");
    return true;
  }

  bool tell_late(const Communicator& communicator, std::uint64_t number) {
    bool someone_is_late = false;
    const Entry* call = nullptr;
    for (const Member& member : communicator.members) {
      if (call == nullptr) call = member.find(number);
    }
    for (const Member& member : communicator.members) {
      if (member.entered() >= number || call == nullptr) continue;
      someone_is_late = true;
      if (member.dump->life == Life::gone || member.dump->life == Life::stopped) continue;  // told
      std::string text =
          fmt::format("rank {} never entered {}", member.dump->rank(), in_words(*call));
      text += whereabouts(member);
      say(text + "." + waiting_for(*member.dump));
    }
    return someone_is_late;
  }

  /// ": it has left the world", ": it is in …"
  [[nodiscard]] std::string whereabouts(const Member& member) const {
    const Dump& dump = *member.dump;
    if (dump.life == Life::left) return ": it has left the world";
    for (const Entry& each : dump.entries) {
      if (each.state != record::State::running && each.state != record::State::queued) continue;
      return fmt::format(": it is in {} since {}", in_words(each), lasting(dump.now - each.begun));
    }
    if (member.last == nullptr) return ": it has called nothing yet";
    return fmt::format(": it ended {} {} ago, and has called nothing since", in_words(*member.last),
                       lasting(dump.now - member.last->ended));
  }

  /// Of those that are in it, as far as they wait for others that are in it as well.
  void tell_waits(const Communicator& communicator, std::uint64_t number, bool someone_is_late) {
    std::string text;
    std::size_t count = 0;
    for (const Member& member : communicator.members) {
      const Entry* const open = member.open;
      if (open == nullptr || open->number != number || open->peer == record::nobody) continue;
      const Member* const awaited = communicator.at(open->peer);
      const bool is_told = awaited == nullptr || awaited->entered() < number ||
                           awaited->dump->life == Life::gone ||
                           awaited->dump->life == Life::stopped;
      if (is_told) continue;
      if (++count > waits_shown) continue;
      const bool is_over = open->state == record::State::failed;
      text += fmt::format("{}rank {} {} for {} in step {}", text.empty() ? "" : ", ",
                          member.dump->rank(), is_over ? "waited" : "waits",
                          communicator.rank_name(open->peer), open->step);
      if (!is_over) text += fmt::format(" since {}", lasting(member.dump->now - open->begun));
    }
    if (count > waits_shown) text += fmt::format(", and {} more wait", count - waits_shown);
    if (!text.empty()) {
      const Entry* const call = first_open(communicator, number);
      return say(fmt::format("in {}, {}.", in_words(*call), text));
    }
    if (someone_is_late || !sentences_.empty()) return;
    const Entry* const call = first_open(communicator, number);
    say(fmt::format("all ranks are in {}, and none has waited for long.", in_words(*call)));
  }

  [[nodiscard]] static const Entry* first_open(const Communicator& communicator,
                                               std::uint64_t number) {
    for (const Member& member : communicator.members) {
      if (member.open != nullptr && member.open->number == number) return member.open;
    }
    return nullptr;
  }

  // --- messages ---

  void tell_messages(const Communicator& communicator) {
    std::size_t count = 0;
    for (const Member& member : communicator.members) {
      for (const Entry* each : member.mail) {
        if (++count > waits_shown) continue;
        const bool is_over = each->state == record::State::failed;
        say(fmt::format(
            "rank {} {} in {}{}.", member.dump->rank(), is_over ? "was" : "is", in_words(*each),
            is_over ? std::string() : " since " + lasting(member.dump->now - each->begun)));
      }
    }
    if (count > waits_shown)
      say(fmt::format("{} more messages are not done.", count - waits_shown));
  }

  // --- the rest ---

  void tell_quiet() {
    const auto has_left = [](const Dump& each) { return each.life == Life::left; };
    if (std::ranges::all_of(world_.dumps, has_left)) {
      return say("all ranks have left the world, and all their operations were done.");
    }
    say("no operation is under way.");
  }

  void tell_failures() {
    std::map<std::string, std::vector<std::uint32_t>> ranks_by_text;
    for (const Dump& each : world_.dumps) {
      if (each.header.failure[0] == '\0') continue;
      ranks_by_text[each.header.failure.data()].push_back(each.rank());
    }
    for (const auto& [text, ranks] : ranks_by_text) {
      say(fmt::format("{} {} told: {}", ranks_in_words(ranks), ranks.size() == 1 ? "was" : "were",
                      text));
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
