#include "trace/show.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "trace/communicator.hpp"
#include "trace/operation.hpp"
#include "trace/verdict.hpp"

namespace hocket::trace {
namespace {

using program::Json;
using record::Entry;
using record::Life;

std::string_view life_name(Life life) {
  switch (life) {
    case Life::left:
      return "left";
    case Life::running:
    case Life::joined:
      return "running";
    case Life::stopped:
      return "stopped";
    case Life::gone:
      return "ended";
    case Life::unknown:
      break;
  }
  return "unknown";
}

/// How long it has run, or how long ago it ended.
std::int64_t age(const Dump& dump, const Entry& entry) {
  return dump.now - (entry.ended != 0 ? entry.ended : entry.begun);
}

using Communicators = std::vector<Communicator>;

bool names_a_rank(const Entry& entry) {
  return entry.state != record::State::done && entry.peer != record::nobody;
}

double microseconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e3; }

Json metadata(std::string_view what, std::uint64_t pid, std::uint64_t tid, std::string name) {
  return {{"ph", "M"},
          {"name", what},
          {"pid", pid},
          {"tid", tid},
          {"args", {{"name", std::move(name)}}}};
}

Json event(const Dump& dump, const Entry& entry, std::uint64_t pid, std::uint64_t tid) {
  const std::int64_t end = entry.ended != 0 ? entry.ended : dump.now;
  Json arguments = {{"state", state_name(entry)},
                    {"number", entry.number},
                    {"bytes", entry.bytes},
                    {"algorithm", algorithm_name(entry)}};
  if (entry.arrived != 0)
    arguments["first segment after, us"] = microseconds(entry.arrived - entry.begun);
  if (names_a_rank(entry)) {
    arguments["step"] = std::uint64_t{entry.step};
    arguments["peer"] = std::uint64_t{entry.peer};
  }
  const std::string name = entry.state != record::State::done
                               ? fmt::format("{} ({})", trace::describe(entry), state_name(entry))
                               : trace::describe(entry);
  return {{"ph", "X"},
          {"name", name},
          {"cat", kind_name(entry.kind)},
          {"pid", pid},
          {"tid", tid},
          {"ts", microseconds(dump.universal(entry.begun))},
          {"dur", microseconds(std::max<std::int64_t>(end - entry.begun, 0))},
          {"args", std::move(arguments)}};
}

void add_events(const Communicators& all, const Dump& dump, std::uint64_t pid, Json& events) {
  events.push_back(metadata("process_name", pid, 0, dump.name()));
  // A track for each communicator, and one for its messages.
  std::vector<std::pair<std::uint64_t, bool>> tracks;
  for (const Entry& entry : dump.entries) {
    const std::pair key(entry.communicator, is_message(entry));
    const auto track = static_cast<std::uint64_t>(std::ranges::find(tracks, key) - tracks.begin());
    if (track == tracks.size()) {
      tracks.push_back(key);
      const auto found = std::ranges::find(all, entry.communicator, &Communicator::id);
      const std::string suffix = found == all.end() ? std::string() : found->suffix();
      events.push_back(
          metadata("thread_name", pid, track, (key.second ? "messages" : "operations") + suffix));
    }
    events.push_back(event(dump, entry, pid, track));
  }
}

}  // namespace

std::string title(const World& world) {
  std::string text = fmt::format("World of {} rank{}", world.size, world.size == 1 ? "" : "s");
  if (!world.dumps.empty()) {
    text += fmt::format(" over {}", world.dumps.front().header.transport.data());
  }
  if (world.dumps.size() < world.size) {
    text += fmt::format(", with records of {} of them", world.dumps.size());
  }
  return text;
}

std::vector<std::vector<std::string>> table(const World& world) {
  const Communicators communicators = communicators_of(world);
  std::vector<std::vector<std::string>> rows = {{"rank", "process", "", "calls", "operation",
                                                 "algorithm", "state", "time", "step",
                                                 "waits for"}};
  for (const Dump& dump : world.dumps) {
    std::vector<std::string> row = {
        fmt::format("{}", dump.rank()), fmt::format("{} on {}", dump.header.pid, dump.host()),
        std::string(life_name(dump.life)), fmt::format("{}", dump.header.operation_count)};
    if (const Entry* const entry = current(dump)) {
      const bool waits = names_a_rank(*entry);
      row.insert(row.end(),
                 {describe(communicators, *entry), algorithm_name(*entry), state_name(*entry),
                  format_age(age(dump, *entry)) + (is_under_way(*entry) ? "" : " ago"),
                  waits && !is_message(*entry) ? fmt::format("{}", entry->step) : "",
                  waits && !is_message(*entry) ? awaited_rank(communicators, *entry) : ""});
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Json to_json(const World& world) {
  const Communicators communicators = communicators_of(world);
  Json ranks = Json::array();
  for (const Dump& dump : world.dumps) {
    Json rank = {{"rank", dump.rank()},
                 {"pid", dump.header.pid},
                 {"host", dump.host()},
                 {"process", life_name(dump.life)},
                 {"operations", dump.header.operation_count},
                 {"failure", dump.header.failure.data()}};
    if (const Entry* const entry = current(dump)) {
      rank["operation"] = describe(communicators, *entry);
      rank["algorithm"] = algorithm_name(*entry);
      rank["state"] = state_name(*entry);
      rank["seconds"] = static_cast<double>(age(dump, *entry)) / 1e9;
      if (names_a_rank(*entry)) {
        rank["step"] = entry->step;
        rank["awaits"] = awaited_rank(communicators, *entry);
      }
    }
    ranks.push_back(std::move(rank));
  }
  return {{"world", fmt::format("{:016x}", world.id)},
          {"size", world.size},
          {"missing", world.missing()},
          {"verdict", verdict(world)},
          {"ranks", std::move(ranks)}};
}

Json perfetto(const std::vector<World>& worlds) {
  Json events = Json::array();
  std::uint64_t first_pid = 0;
  for (const World& world : worlds) {
    const Communicators all = communicators_of(world);
    for (const Dump& each : world.dumps) add_events(all, each, first_pid + each.rank(), events);
    first_pid += world.size;
  }
  return {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ns"}};
}

}  // namespace hocket::trace
