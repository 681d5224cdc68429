#include "transports/sim/trace.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

#include "base/rng.hpp"

namespace hocket::simulated {
namespace {

[[nodiscard]] std::string_view name(Happening what) noexcept {
  switch (what) {
    case Happening::open:
      return "opens";
    case Happening::post_send:
      return "posts send";
    case Happening::post_recv:
      return "posts receive";
    case Happening::refuse:
      return "takes no more ops:";
    case Happening::buffer:
      return "has buffered send";
    case Happening::arrive:
      return "has all of receive";
    case Happening::mismatch:
      return "has too much for receive";
    case Happening::complete:
      return "completes";
    case Happening::fail:
      return "fails";
    case Happening::lend:
      return "lends receive";
    case Happening::give_back:
      return "gives back";
    case Happening::close:
      return "closes";
    case Happening::lose:
      return "loses";
    case Happening::cut:
      return "is cut off from";
    case Happening::stall:
      return "stalls";
    case Happening::die:
      return "dies";
    case Happening::leave:
      return "leaves";
  }
  return "?";
}

void append(std::string& text, const TraceEntry& entry) {
  const auto to = std::back_inserter(text);
  fmt::format_to(to, "{:>14} ns  rank {} {}", entry.at.time_since_epoch().count(), entry.rank,
                 name(entry.what));
  switch (entry.what) {
    case Happening::complete:
    case Happening::fail:
      fmt::format_to(to, " {}", entry.is_send ? "send" : "receive");
      [[fallthrough]];
    case Happening::post_send:
    case Happening::post_recv:
    case Happening::buffer:
    case Happening::arrive:
    case Happening::mismatch:
    case Happening::lend:
      fmt::format_to(to, " #{} of {} bytes; peer {}, lane {}", entry.number, entry.bytes,
                     entry.peer, entry.lane);
      break;
    case Happening::open:
    case Happening::close:
      fmt::format_to(to, " lane {} to {}", entry.lane, entry.peer);
      break;
    case Happening::cut:
    case Happening::lose:
      fmt::format_to(to, " rank {}", entry.peer);
      break;
    case Happening::refuse:
      fmt::format_to(to, " {} refused", entry.number);
      break;
    case Happening::give_back:
      fmt::format_to(to, " {} bytes", entry.bytes);
      break;
    case Happening::stall:
    case Happening::die:
    case Happening::leave:
      break;
  }
  text += '\n';
}

}  // namespace

void Trace::add(const TraceEntry& entry) {
  const std::uint64_t what =
      static_cast<std::uint64_t>(entry.what) << 1 | static_cast<std::uint64_t>(entry.is_send);
  for (const std::uint64_t part :
       {static_cast<std::uint64_t>(entry.at.time_since_epoch().count()), what,
        std::uint64_t{entry.rank} << 32 | entry.peer, entry.lane, entry.number, entry.bytes}) {
    fingerprint_ = SeededRandom(fingerprint_ ^ part).next();
  }
  if (entries_.size() < entries_max) {
    entries_.push_back(entry);
  } else {
    entries_[count_ % entries_max] = entry;
  }
  ++count_;
}

std::string Trace::to_string() const {
  std::string text;
  const std::uint64_t first = count_ - entries_.size();
  if (first > 0) text = fmt::format("({} earlier)\n", first);
  for (std::uint64_t i = first; i < count_; ++i) append(text, entries_[i % entries_max]);
  return text;
}

}  // namespace hocket::simulated
