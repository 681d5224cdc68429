#include "trace/show.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/text.hpp"
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
      return "runs";
    case Life::stopped:
      return "stopped";
    case Life::gone:
      break;
  }
  return "gone";
}

/// The first that is not done, or else the last one.
const Entry* current(const Dump& dump) {
  const auto open = std::ranges::find_if(dump.entries, is_unfinished);
  if (open != dump.entries.end()) return &*open;
  return dump.entries.empty() ? nullptr : &dump.entries.back();
}

/// How long it has run, or how long ago it ended.
std::int64_t age(const Dump& dump, const Entry& entry) {
  return dump.now - (entry.ended != 0 ? entry.ended : entry.begun);
}

std::string awaited_rank(const World& world, const Entry& entry) {
  if (entry.peer == record::nobody) return "";
  for (const Communicator& each : communicators_of(world)) {
    if (each.id == entry.communicator) return each.rank_name(entry.peer);
  }
  return fmt::format("rank {}", entry.peer);
}

std::string in_milliseconds(std::int64_t nanoseconds) {
  return format_duration(std::chrono::round<std::chrono::milliseconds>(Duration(nanoseconds)));
}

double microseconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e3; }

/// Perfetto shows numbers of threads; those of communicators are below this.
constexpr std::uint32_t messages_track = 1'000'000;

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
    arguments["first message after, us"] = microseconds(entry.arrived - entry.begun);
  if (entry.peer != record::nobody) {
    arguments["step"] = std::uint64_t{entry.step};
    arguments["peer"] = std::uint64_t{entry.peer};
  }
  const std::string name = is_unfinished(entry)
                               ? fmt::format("{} ({})", describe(entry), state_name(entry))
                               : describe(entry);
  return {{"ph", "X"},
          {"name", name},
          {"cat", kind_name(entry.kind)},
          {"pid", pid},
          {"tid", tid},
          {"ts", microseconds(dump.universal(entry.begun))},
          {"dur", microseconds(std::max<std::int64_t>(end - entry.begun, 0))},
          {"args", std::move(arguments)}};
}

void add_events(const Dump& dump, std::uint64_t pid, Json& events) {
  events.push_back(metadata("process_name", pid, 0, dump.name()));
  std::vector<std::uint64_t> tracks;
  for (const Entry& entry : dump.entries) {
    const std::uint64_t track = entry.communicator + (is_message(entry) ? messages_track : 0);
    if (std::ranges::find(tracks, track) == tracks.end()) {
      tracks.push_back(track);
      events.push_back(metadata("thread_name", pid, track,
                                fmt::format("communicator {}{}", entry.communicator,
                                            is_message(entry) ? ", messages" : "")));
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
    text += fmt::format(", with records of {}", world.dumps.size());
  }
  return text;
}

std::vector<std::vector<std::string>> table(const World& world) {
  std::vector<std::vector<std::string>> rows = {{"rank", "process", "", "calls", "operation",
                                                 "algorithm", "state", "for", "step", "waits for"}};
  for (const Dump& dump : world.dumps) {
    std::vector<std::string> row = {
        fmt::format("{}", dump.rank()), fmt::format("{} on {}", dump.header.pid, dump.host()),
        std::string(life_name(dump.life)), fmt::format("{}", dump.header.begun)};
    if (const Entry* const entry = current(dump)) {
      const bool waits = is_unfinished(*entry) && entry->peer != record::nobody;
      row.insert(row.end(), {describe(*entry), algorithm_name(*entry), state_name(*entry),
                             in_milliseconds(age(dump, *entry)),
                             waits && !is_message(*entry) ? fmt::format("{}", entry->step) : "",
                             waits ? awaited_rank(world, *entry) : ""});
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Json to_json(const World& world) {
  Json ranks = Json::array();
  for (const Dump& dump : world.dumps) {
    Json rank = {{"rank", dump.rank()},
                 {"pid", dump.header.pid},
                 {"host", dump.host()},
                 {"life", life_name(dump.life)},
                 {"operations", dump.header.begun},
                 {"failure", dump.header.failure.data()}};
    if (const Entry* const entry = current(dump)) {
      rank["operation"] = describe(*entry);
      rank["communicator"] = entry->communicator;
      rank["algorithm"] = algorithm_name(*entry);
      rank["state"] = state_name(*entry);
      rank["seconds"] = static_cast<double>(age(dump, *entry)) / 1e9;
      if (is_unfinished(*entry) && entry->peer != record::nobody) {
        rank["step"] = entry->step;
        rank["awaits"] = awaited_rank(world, *entry);
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
    for (const Dump& each : world.dumps) add_events(each, first_pid + each.rank(), events);
    first_pid += world.size;
  }
  return {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ns"}};
}

}  // namespace hocket::trace
