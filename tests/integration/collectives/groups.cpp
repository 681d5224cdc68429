#include "integration/collectives/groups.hpp"

#include <chrono>
#include <numeric>
#include <span>
#include <thread>
#include <vector>

#include <fmt/format.h>

namespace hocket::testing {
namespace {

using namespace std::chrono_literals;

/// The ranks of the world that a communicator has, in its order.
std::vector<int> members_of(Communicator& communicator, int rank_in_world) {
  std::vector<int> members(static_cast<std::size_t>(communicator.size()));
  const int ours[] = {rank_in_world};
  communicator.all_gather(ours, members);
  return members;
}

void expect_members(Communicator& group, const Communicator& world, const std::vector<int>& wanted,
                    const char* what, Report& report) {
  if (!group) return report.add(fmt::format("{}: rank {} is in no group", what, world.rank()));
  const std::vector<int> members = members_of(group, world.rank());
  report.expect(members == wanted,
                fmt::format("{}: rank {} is in another group", what, world.rank()));
  report.expect(wanted[static_cast<std::size_t>(group.rank())] == world.rank(),
                fmt::format("{}: rank {} has another place", what, world.rank()));
}

std::vector<int> every_second(int from, int size) {
  std::vector<int> members;
  for (int i = from; i < size; i += 2) members.push_back(i);
  return members;
}

void split_by_keys(Communicator& world, Report& report) {
  const int size = world.size();
  std::vector<int> reversed(static_cast<std::size_t>(size));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  Communicator back = world.split(7, -world.rank());
  expect_members(back, world, reversed, "keys that reverse", report);
  std::vector<int> in_order(static_cast<std::size_t>(size));
  std::iota(in_order.begin(), in_order.end(), 0);
  Communicator alike = world.split(0, 5);
  expect_members(alike, world, in_order, "equal keys", report);
  Communicator twice = back.split(0, -back.rank());
  expect_members(twice, world, in_order, "keys that reverse twice", report);
}

void split_by_colors(Communicator& world, Report& report) {
  const int size = world.size();
  const int rank = world.rank();
  Communicator half = world.split(rank % 2, rank);
  expect_members(half, world, every_second(rank % 2, size), "two colors", report);
  Communicator alone = half.split(rank, 0);
  expect_members(alone, world, {rank}, "a color for each", report);
  Communicator odd = world.split(rank % 2 == 1 ? 1'000'000 : -1 - rank);
  if (rank % 2 == 1) expect_members(odd, world, every_second(1, size), "negative colors", report);
  report.expect(rank % 2 == 1 || !odd, "a negative color gives a communicator");
  const Communicator none = world.split(-1);
  report.expect(!none, "no rank with a color, and there is a communicator");
}

void name_members(Communicator& world, Report& report) {
  const int last = world.size() - 1;
  const int both[] = {last, 0};
  const std::span<const int> ends(both, last == 0 ? 1 : 2);
  Communicator pair = world.group(ends);
  const bool is_end = world.rank() == 0 || world.rank() == last;
  report.expect(is_end == static_cast<bool>(pair), "a group has other ranks than were named");
  if (is_end) expect_members(pair, world, {ends.begin(), ends.end()}, "a group", report);
  if (pair) {
    const int first[] = {0};
    Communicator one = pair.group(first);
    report.expect(static_cast<bool>(one) == (pair.rank() == 0), "a group of a group");
  }
  const Communicator nobody = world.group({});
  report.expect(!nobody, "no ranks give a communicator");
}

/// A communicator and what it works on may go while its operation is under way.
void drop_while_busy(Communicator& world, Report& report) {
  for (int i = 0; i < 20; ++i) {
    std::vector<int> values(5000, world.rank());
    {
      Communicator group = world.dup();
      const Work first = group.start(Collective::all_reduce(values, values));
      const Work second = group.start(Collective::all_reduce(values, values));
      group = {};
    }
    const int sum = world.size() * (world.size() - 1) / 2 * world.size();
    report.expect(values.front() == sum && values.back() == sum, "a work that goes has not waited");
  }
}

/// Rank r has r + 1 of something: where its part begins and ends.
void find_places(Communicator& world, Report& report) {
  const int rank = world.rank();
  const int part[] = {rank + 1};
  int begin[] = {-7};
  int end[] = {0};
  world.run(Collective::exscan(part, begin));
  world.run(Collective::scan(part, end));
  report.expect(begin[0] == (rank == 0 ? -7 : rank * (rank + 1) / 2), "a part begins elsewhere");
  report.expect(end[0] == (rank + 1) * (rank + 2) / 2, "a part ends elsewhere");
  const std::span<int> nothing;
  world.run(Collective::exscan(part, rank == 0 ? nothing : begin, ReduceOp::max));
  report.expect(rank == 0 || begin[0] == rank, "the largest part below is another");
}

}  // namespace

void try_splits(Communicator& world, Report& report) {
  split_by_keys(world, report);
  split_by_colors(world, report);
  name_members(world, report);
  for (int i = 0; i < 30; ++i) {
    const Communicator copy = world.dup();
    report.expect(copy.rank() == world.rank() && copy.size() == world.size(), "a dup is another");
  }
  drop_while_busy(world, report);
  find_places(world, report);
}

namespace {

/// Nobody is held up by a wait that ends too soon.
void wait_in_vain(Communicator& world, Report& report) {
  std::vector<double> values(3, 1);
  const bool is_late = world.rank() == world.size() - 1;
  if (is_late) std::this_thread::sleep_for(700ms);
  Work work = world.start(Collective::all_reduce(values, values));
  bool is_over = work.wait_for(20ms);
  if (world.size() > 1 && !is_late) {
    report.expect(!is_over && !work.test(), "an operation was over without its last rank");
  }
  for (int i = 0; i < 5 && !is_over; ++i) is_over = work.wait_for(1ms);
  while (!work.test()) std::this_thread::yield();
  report.expect(work.wait_for(0ms) && work.status().ok(), "what is over is not");
  work.wait();
  work.wait();
  report.expect(values[2] == world.size(), "a wait that was cut short changed the result");
}

void wait_for_any(Communicator& world, Report& report) {
  constexpr std::size_t count = 12;
  std::vector<Communicator> groups;
  std::vector<std::vector<int>> values(count);
  std::vector<Work> works(count);
  for (std::size_t i = 0; i < count; ++i) groups.push_back(world.dup());
  for (std::size_t i = 0; i < count; ++i) {
    // Each rank begins in another order.
    const std::size_t k = (i * 5 + static_cast<std::size_t>(world.rank())) % count;
    values[k].assign(1 + k * 3000, 1);
    works[k] = groups[k].start(Collective::all_reduce(values[k], values[k]));
  }
  std::vector<bool> is_over(count);
  for (std::size_t left = count; left > 0; --left) {
    std::vector<Work> waiting;
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < count; ++i) {
      if (is_over[i]) continue;
      waiting.push_back(std::move(works[i]));
      numbers.push_back(i);
    }
    const std::size_t first = wait_any(waiting);
    report.expect(waiting[first].test(), "wait_any names one that is not over");
    is_over[numbers[first]] = true;
    report.expect(values[numbers[first]].back() == world.size(), "wait_any came too early");
    for (std::size_t i = 0; i < numbers.size(); ++i) works[numbers[i]] = std::move(waiting[i]);
  }
  wait_all(works);
}

void wait_for_all(Communicator& world, Report& report) {
  std::vector<std::vector<int>> values(40, std::vector<int>(100, 1));
  std::vector<Work> works;
  works.emplace_back();
  for (auto& each : values) works.push_back(world.start(Collective::all_reduce(each, each)));
  wait_all(works);
  for (const auto& each : values) {
    report.expect(each[99] == world.size(), "wait_all came too early");
  }
  report.expect(wait_any(works) < works.size(), "wait_any finds none");
  Work nothing;
  nothing.wait();
  report.expect(nothing.test() && nothing.status().ok(), "a work of nothing is not over");
}

}  // namespace

void try_works(Communicator& world, Report& report) {
  wait_in_vain(world, report);
  wait_for_any(world, report);
  wait_for_all(world, report);
}

void try_prepared(Communicator& world, Report& report) {
  std::vector<std::int64_t> values(300);
  std::vector<float> chosen(20'000);
  Prepared sum = world.prepare(Collective::all_reduce(values, values));
  Prepared choice = world.prepare(Collective::broadcast(chosen, world.size() - 1));
  const std::int64_t ranks = world.size();
  const std::int64_t ours = world.rank();
  for (std::int64_t i = 0; i < 500; ++i) {
    for (std::size_t k = 0; k < values.size(); ++k) values[k] = ours * i + static_cast<int>(k);
    const bool is_last = ours == ranks - 1;
    chosen.assign(chosen.size(), is_last ? static_cast<float>(i) : -1.0F);
    Work work = choice.start();
    if (i % 3 == 0) sum.run();
    if (i % 3 != 0) sum.start().wait();
    work.wait();
    const std::int64_t all = i * ranks * (ranks - 1) / 2;
    if (values[0] != all || values[299] != all + 299 * ranks ||
        chosen[19'999] != static_cast<float>(i)) {
      return report.add(
          fmt::format("rank {}: a prepared operation is wrong when run {} times", ours, i));
    }
  }
}

}  // namespace hocket::testing
