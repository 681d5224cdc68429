// Ranks that call different operations: for each pair of calls that differ, one rank makes one and
// all others make the other. A rank that skips a call and goes on with the next one is such a pair,
// too. For each call, there is also a run in which one rank leaves the communicator instead of
// making it. A success must be for the data that the rank's own call asked for, and soon all fail,
// for one reason, which names both calls. All ranks of a world run it; it prints what is wrong, and
// fails then. With "all" as its argument it tries each pair both ways, and large counts too.
// With "stops", ranks may be stopped from outside during the run: then the only rank that knows a
// call may be unable to name it.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "hocket/hocket.hpp"

#include "integration/collectives/kinds.hpp"
#include "integration/collectives/report.hpp"
#include "support/failure_of.hpp"
#include "support/stopwatch.hpp"

namespace {

using namespace std::chrono_literals;
using hocket::Collective;
using hocket::CollectiveKind;
using hocket::Communicator;
using hocket::DataType;
using hocket::Duration;
using hocket::ReduceOp;
using hocket::Status;
using hocket::StatusCode;
using hocket::testing::failure_of;
using hocket::testing::has_root;
using hocket::testing::reduces;
using hocket::testing::Report;
using hocket::testing::Stopwatch;

/// After it a rank gives up waiting, which none must.
constexpr auto timeout = 5s;
/// So many calls later everybody knows at last.
constexpr int calls_max = 3;

struct Call {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::size_t count = 0;
  DataType type = DataType::f32;
  ReduceOp op = ReduceOp::sum;
  int root = 0;

  [[nodiscard]] std::string words() const {
    return fmt::format("{}({}, {}, {}, root {})", name(kind), name(op), name(type), count, root);
  }
};

/// What a rank gives and gets.
struct Memory {
  std::vector<std::byte> in;
  std::vector<std::byte> out;

  /// For whatever is called with so many elements, or one more.
  Memory(const Communicator& world, std::size_t count)
      : in(8 * (count + 1) * static_cast<std::size_t>(world.size())), out(in.size()) {
    fill(world.rank());
  }

  /// Small numbers of whichever type, not the same on any two ranks.
  void fill(int rank) {
    std::vector<std::uint32_t> values(in.size() / 4);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<std::uint32_t>(rank * 1000 + static_cast<int>(i % 999) + 1);
    }
    std::memcpy(in.data(), values.data(), in.size());
  }
};

Status make(Communicator& group, const Call& call, Memory& memory,
            std::optional<std::chrono::nanoseconds> time = timeout) {
  std::ranges::fill(memory.out, std::byte{0});
  // What a root gives is what others get.
  const bool is_broadcast = call.kind == CollectiveKind::broadcast;
  if (is_broadcast) std::memcpy(memory.out.data(), memory.in.data(), memory.in.size());
  return failure_of([&] {
    group.run({.kind = call.kind,
               .in = is_broadcast ? memory.out.data() : memory.in.data(),
               .out = memory.out.data(),
               .type = call.type,
               .count = call.count,
               .reduction = call.op,
               .root = call.root,
               .options = {.timeout = time}});
  });
}

/// Every kind, and around one call all that may differ from it.
std::vector<Call> calls_of(std::size_t count) {
  std::vector<Call> calls;
  for (int i = 0; i <= static_cast<int>(CollectiveKind::exscan); ++i) {
    calls.push_back({.kind = static_cast<CollectiveKind>(i), .count = count});
  }
  for (const CollectiveKind kind :
       {CollectiveKind::all_reduce, CollectiveKind::reduce, CollectiveKind::broadcast}) {
    calls.push_back({.kind = kind, .count = count, .op = ReduceOp::max});
    calls.push_back({.kind = kind, .count = count, .type = DataType::i32});
    calls.push_back({.kind = kind, .count = count / 2, .type = DataType::f64});
    calls.push_back({.kind = kind, .count = count, .root = 1});
    calls.push_back({.kind = kind, .count = count + 1});
  }
  return calls;
}

/// Whether it makes a difference, as an op does not to a broadcast.
bool differ(const Call& one, const Call& other) {
  if (one.kind != other.kind) return true;
  if (one.kind == CollectiveKind::barrier) return false;
  return one.count != other.count || one.type != other.type ||
         (reduces(one.kind) && one.op != other.op) ||
         (has_root(one.kind) && one.root != other.root);
}

/// Whether an error says that a rank called this.
bool names(const std::string& text, const Call& call) {
  const std::string kind = fmt::format(" called {}(", name(call.kind));
  for (std::size_t begin = text.find(kind); begin != text.npos;
       begin = text.find(kind, begin + 1)) {
    const std::size_t from = begin + kind.size();
    const std::string arguments = ", " + text.substr(from, text.find(')', from) - from) + ",";
    const auto has = [&](const std::string& argument) {
      return arguments.find(fmt::format(", {},", argument)) != text.npos;
    };
    if (call.kind == CollectiveKind::barrier) return true;
    if (!has(std::string(name(call.type)))) continue;
    // Where ranks may give and get different counts, the call has none.
    const bool has_no_count = arguments.find(" element") == text.npos;
    if (!has_no_count && !has(fmt::format("{} elements", call.count))) continue;
    if (reduces(call.kind) && !has(std::string(name(call.op)))) continue;
    if (has_root(call.kind) && !has(fmt::format("root {}", call.root))) continue;
    return true;
  }
  return false;
}

struct Outcome {
  bool names_both = false;       // both calls stand in the text
  std::uint64_t reason = 0;      // a hash of it
  std::int64_t nanoseconds = 0;  // until the failure
};

/// The part of the text that all ranks have in common.
std::string_view reason_in(std::string_view text) {
  const std::size_t begin = std::min(text.find("because: "), text.size());
  return text.substr(begin, text.find('\n', begin) - begin);
}

/// Somebody stops ranks meanwhile.
bool may_stand_still = false;

/// What happens on this rank. `right`: what its call gives where all make it.
Outcome disagree(Communicator& group, const Call& ours, const Call& theirs,
                 const std::vector<std::byte>& right, Memory& memory, const std::string& what,
                 Report& report) {
  const std::string here = fmt::format("{}, rank {}", what, group.rank());
  const Stopwatch watch;
  Status failure = make(group, ours, memory);
  if (failure.ok()) report.expect(memory.out == right, here + ": success, and wrong data");
  for (int i = 0; i < calls_max && failure.ok(); ++i) {
    failure = failure_of([&] { group.barrier({.timeout = timeout}); });
  }
  const Duration elapsed = watch.elapsed();
  report.expect(!failure.ok(), here + ": the communicator goes on");
  const Status later = failure_of([&] { group.barrier({.timeout = timeout}); });
  report.expect(!later.ok(), here + ": the communicator goes on behind a failure");
  const StatusCode code = failure.code();
  report.expect(code == StatusCode::mismatch, fmt::format("{}: {}", here, failure.to_string()));
  const std::string text = failure.to_string();
  const bool names_both = names(text, ours) && names(text, theirs);
  report.expect(names_both || may_stand_still,
                fmt::format("{}: not both calls are named: {}", here, text));
  return {.names_both = names_both,
          .reason = std::hash<std::string_view>()(reason_in(text)),
          .nanoseconds = elapsed.count()};
}

struct Tally {
  int pairs = 0;
  int told = 0;                      // every rank names both calls
  std::vector<std::int64_t> delays;  // until the last rank knows, in nanoseconds

  void print() {
    std::ranges::sort(delays);
    const auto milliseconds = [&](std::size_t percent) {
      return static_cast<double>(delays[(delays.size() - 1) * percent / 100]) / 1e6;
    };
    std::printf(
        "%d pairs of calls: every rank names both in %d, after %.1f ms (p50), %.1f (p99), "
        "%.1f (max)\n",
        pairs, told, milliseconds(50), milliseconds(99), milliseconds(100));
  }
};

void check_pair(Communicator& world, int odd, const Call& first, const Call& second, Memory& memory,
                Report& report, Tally& tally) {
  const std::string what =
      fmt::format("{} and, on rank {} of {}, {}", first.words(), odd, world.size(), second.words());
  const bool is_odd = world.rank() == odd;
  const Call& ours = is_odd ? second : first;
  const Call& theirs = is_odd ? first : second;
  std::vector<std::byte> right;
  for (const Call* const each : {&first, &second}) {
    const Status status = make(world, *each, memory, std::nullopt);
    report.expect(status.ok(), what + ": " + status.to_string());
    if (each == &ours) right = memory.out;
  }
  Communicator group = world.dup();
  const Outcome outcome = disagree(group, ours, theirs, right, memory, what, report);
  std::vector<Outcome> all(static_cast<std::size_t>(world.size()));
  world.all_gather(
      std::span(reinterpret_cast<const std::uint8_t*>(&outcome), sizeof outcome),
      std::span(reinterpret_cast<std::uint8_t*>(all.data()), all.size() * sizeof outcome));
  const bool is_one_story =
      std::ranges::all_of(all, [&](const Outcome& each) { return each.reason == outcome.reason; });
  const bool names_both = std::ranges::all_of(all, &Outcome::names_both);
  // A rank that was stopped may have decided by itself; but only if it knows both calls.
  report.expect(is_one_story || (may_stand_still && names_both),
                what + ": the ranks tell different reasons");
  ++tally.pairs;
  tally.told += names_both ? 1 : 0;
  tally.delays.push_back(std::ranges::max(all, {}, &Outcome::nanoseconds).nanoseconds);
}

/// Whether the failure says that it was found out in a call behind the first `calls_before`.
bool was_found_after(const Status& failure, int calls_before) {
  const std::string text = failure.to_string();
  const std::size_t cause = text.find("because: ");
  const std::size_t sign = cause == text.npos ? cause : text.find(") #", cause);
  return sign != text.npos && std::atoi(text.c_str() + sign + 3) > calls_before;
}

/// One rank leaves instead of making the call, after `calls_before` calls that all ranks made. Who
/// is in one of these when another rank finds out may fail in it.
void check_leaving(Communicator& world, int gone, const Call& call, int calls_before,
                   Memory& memory, Report& report) {
  const std::string here =
      fmt::format("{}: rank {} of {} left after {} calls; seen by rank {}", call.words(), gone,
                  world.size(), calls_before, world.rank());
  Status status = make(world, call, memory, std::nullopt);
  report.expect(status.ok(), here + ": " + status.to_string());
  const std::vector<std::byte> right = memory.out;
  Communicator group = world.dup();
  for (int i = 0; i < calls_before; ++i) {
    status = make(group, call, memory);
    const bool is_told = world.rank() != gone && was_found_after(status, calls_before);
    report.expect(status.ok() || is_told, here + ": " + status.to_string());
  }
  if (world.rank() == gone) {
    group = {};
  } else {
    Status failure = make(group, call, memory);
    if (failure.ok()) report.expect(memory.out == right, here + ": success, and wrong data");
    for (int i = 0; i < calls_max && failure.ok(); ++i) {
      failure = failure_of([&] { group.barrier({.timeout = timeout}); });
    }
    report.expect(failure.code() == StatusCode::peer_lost && failure.peer() == gone,
                  here + ": " + failure.to_string());
    const Status later = failure_of([&] { group.barrier({.timeout = timeout}); });
    report.expect(later.peer() == gone, here + ": afterwards " + later.to_string());
  }
  world.barrier();
}

/// A send and a receive of different types.
void check_messages(Communicator& world, Report& report) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{20'000}, std::size_t{300'000}}) {
    Communicator group = world.dup();
    std::vector<double> values(count);
    const Status failure = failure_of([&] {
      if (group.rank() == 0) group.send(values, 1, 7, {.timeout = timeout});
      if (group.rank() == 1) {
        const std::span<float> room(reinterpret_cast<float*>(values.data()), 2 * count);
        group.recv(room, 0, 7, {.timeout = timeout});
      }
    });
    const auto expect_both = [&](const Status& status, const std::string& what) {
      const std::string text =
          fmt::format("{}, rank {}: {}", what, group.rank(), status.to_string());
      report.expect(status.code() == StatusCode::mismatch, text);
      report.expect(text.find(" f64 ") != text.npos && text.find(" f32 ") != text.npos,
                    "not both types: " + text);
    };
    if (group.rank() == 1) expect_both(failure, "a message of another type");
    // All ranks, also those that have nothing to do with the message.
    expect_both(failure_of([&] { group.barrier({.timeout = timeout}); }), "a barrier behind it");
    world.barrier();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  const bool tries_all = mode == "all";
  may_stand_still = mode == "stops";
  Report report;
  Communicator world = hocket::join();
  Tally tally;
  int odd = 0;
  for (const std::size_t count : {std::size_t{128}, std::size_t{300'000}}) {
    if (count > 128 && !tries_all) continue;
    Memory memory(world, count);
    const std::vector<Call> calls = calls_of(count);
    for (const Call& call : calls) {
      for (const int calls_before : {0, 3}) {
        check_leaving(world, odd, call, calls_before, memory, report);
        odd = (odd + 1) % world.size();
      }
    }
    for (std::size_t i = 0; i < calls.size(); ++i) {
      for (std::size_t k = tries_all ? 0 : i; k < calls.size(); ++k) {
        if (!differ(calls[i], calls[k])) continue;
        check_pair(world, odd, calls[i], calls[k], memory, report, tally);
        odd = (odd + 1) % world.size();
      }
    }
  }
  check_messages(world, report);
  if (world.rank() == 0) tally.print();
  return report.status();
}
