// Several collectives of one communicator under way at once (HOCKET_OVERLAP). Every rank runs it;
// `hocket run` starts them. Prints what is wrong, and fails then. With "time": how long it takes to
// start sixteen sums of 64 KiB and wait for all, against one after the other.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "hocket/hocket.hpp"

#include "support/stopwatch.hpp"

namespace {

using namespace std::chrono_literals;
using hocket::Collective;
using hocket::Communicator;
using hocket::Message;
using hocket::ReduceOp;
using hocket::Status;
using hocket::StatusCode;
using hocket::Work;
using hocket::testing::Stopwatch;
using Values = std::vector<float>;

int failures = 0;

void expect(bool is_right, const std::string& what) {
  if (is_right) return;
  ++failures;
  std::printf("WRONG: %s\n", what.c_str());
}

/// Whose sums depend on the order in which they are added.
Values uneven(std::size_t count, int rank) {
  Values values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = 1.0F / static_cast<float>(1 + i % 97 + 31 * static_cast<std::size_t>(rank));
  }
  return values;
}

void results_are_the_same(Communicator& world) {
  constexpr std::array<std::size_t, 9> counts = {1, 2, 7, 100, 1000, 4096, 16384, 100'000, 400'000};
  std::vector<Values> inputs;
  std::vector<Values> alone;
  std::vector<Values> together;
  for (int round = 0; round < 3; ++round) {
    for (const std::size_t count : counts) {
      inputs.push_back(uneven(count + static_cast<std::size_t>(round), world.rank()));
      alone.emplace_back(inputs.back().size());
      together.emplace_back(inputs.back().size());
    }
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) world.all_reduce(inputs[i], alone[i]);
  std::vector<Work> works;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    works.push_back(world.start(Collective::all_reduce(inputs[i], together[i])));
  }
  hocket::wait_all(works);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    expect(alone[i] == together[i], "sum " + std::to_string(i) + " is the same bit for bit");
  }
}

void all_kinds(Communicator& world) {
  const auto size = static_cast<std::size_t>(world.size());
  const auto rank = static_cast<std::uint32_t>(world.rank());
  for (std::uint32_t round = 0; round < 200; ++round) {
    std::vector<std::uint32_t> sum(1 + round, rank);
    std::vector<std::uint32_t> one = {rank + round};
    std::vector<std::uint32_t> gathered(size);
    std::vector<std::uint32_t> sent(size, rank);
    std::vector<std::uint32_t> exchanged(size);
    std::vector<std::uint32_t> told = {rank == round % size ? round : 0};
    std::vector<std::uint32_t> part(1);
    std::array<Work, 6> works = {
        world.start(Collective::all_reduce(sum)),
        world.start(Collective::all_gather(one, gathered)),
        world.start(Collective::barrier()),
        world.start(Collective::all_to_all(sent, exchanged, 1)),
        world.start(Collective::broadcast(told, static_cast<int>(round % size))),
        world.start(Collective::reduce_scatter(sent, part)),
    };
    if (round % 3 == 0) std::ranges::reverse(works);
    hocket::wait_all(works);
    const auto ranks = static_cast<std::uint32_t>(size * (size - 1) / 2);
    expect(sum.back() == ranks && part[0] == ranks, "sums");
    for (std::uint32_t i = 0; i < size; ++i) {
      expect(gathered[i] == i + round && exchanged[i] == i, "blocks");
    }
    expect(told[0] == round, "a broadcast");
  }
}

void prepared_and_not(Communicator& world) {
  Values values(500, 1);
  Values sums(500);
  auto prepared = world.prepare(Collective::all_reduce(values, sums));
  for (int round = 0; round < 50; ++round) {
    Values others(3, 1);
    prepared.run();
    sums.assign(500, 0);
    Work other = world.start(Collective::all_reduce(others));
    Work work = prepared.start();
    work.wait();
    other.wait();
    expect(sums[499] == static_cast<float>(world.size()), "a prepared one");
    expect(others[2] == sums[499], "and one beside it");
  }
}

/// As long as it is large, others begin and end beside it.
void small_ones_pass(Communicator& world) {
  Values large(16 << 20, 1);
  Values small(1, 1);
  int passed = 0;
  Work slow = world.start(Collective::all_reduce(large));
  for (int round = 0; round < 3; ++round) {
    world.start(Collective::all_reduce(small)).wait();
    if (!slow.test()) ++passed;
  }
  slow.wait();
  expect(large.back() == static_cast<float>(world.size()), "a large sum");
  expect(passed > 0, "a small sum is over before a large one that began earlier");
}

/// Works of every kind beside each other.
void messages_beside(Communicator& world) {
  const int next = (world.rank() + 1) % world.size();
  for (int round = 0; round < 50; ++round) {
    Values sum(100, 1);
    Values sent(20'000, static_cast<float>(round));
    Values came(20'000);
    Values first(10, 1);
    Values second(10, 1);
    Work summing = world.start(Collective::all_reduce(sum));
    Work receiving = world.start(Message::recv(came, hocket::any_rank, 1));
    Work sending = world.start(Message::send(sent, next, 1));
    const std::vector<hocket::AnyOperation> many = {
        Collective::all_reduce(first), Collective::barrier(), Collective::all_reduce(second)};
    Work all = world.start_many(many);
    all.wait();
    sending.wait();
    receiving.wait();
    summing.wait();
    const auto size = static_cast<float>(world.size());
    expect(sum[99] == size && first[9] == size && second[9] == size, "sums beside messages");
    expect(came == sent, "a message beside sums");
  }
}

Status failure_of(Work& work) {
  try {
    work.wait();
    return {};
  } catch (const hocket::Error& error) {
    return error.status();
  }
}

/// The last rank does not come to the second operation: it is the one that is named.
void late(Communicator& world) {
  Communicator group = world.dup();
  Values first(10, 1);
  Values second(20, 1);
  Work early = group.start(Collective::all_reduce(first, ReduceOp::sum, {.timeout = 60s}));
  expect(failure_of(early).ok(), "the first one is in time");
  if (group.rank() + 1 < group.size()) {
    Work other = group.start(Collective::all_reduce(first, ReduceOp::sum, {.timeout = 60s}));
    Work work = group.start(Collective::all_reduce(second, ReduceOp::max, {.timeout = 100ms}));
    const Status why = failure_of(work);
    expect(why.code() == StatusCode::timeout, "the later one is too late: " + why.to_string());
    expect(why.to_string().find("#3") != std::string::npos, "it is named: " + why.to_string());
    expect(!failure_of(other).ok(), "and the one before it fails as well");
  }
  world.barrier();
}

void aborted(Communicator& world) {
  Communicator group = world.dup();
  std::vector<Values> values(4, Values(100'000, 1));
  std::vector<Work> works;
  if (group.rank() > 0) group.barrier();
  for (Values& each : values) {
    if (group.rank() > 0) works.push_back(group.start(Collective::all_reduce(each)));
  }
  if (group.rank() == 0) group.barrier();
  world.barrier();  // until all have left that one, which the abort would else overtake
  if (group.rank() == 0) group.abort("enough");
  for (Work& each : works) expect(!failure_of(each).ok(), "an operation of what was aborted");
  world.barrier();
}

void disagree(Communicator& world) {
  Communicator group = world.dup();
  Values values(100, 1);
  Values others(100, 1);
  Work first = group.start(Collective::all_reduce(values));
  Work second = group.start(group.rank() == 0 ? Collective::all_reduce(others, ReduceOp::max)
                                              : Collective::all_reduce(others));
  const Status why = failure_of(second);
  expect(why.code() == StatusCode::mismatch, "ranks call different operations");
  expect(why.to_string().find("max") != std::string::npos,
         "which calls differ: " + why.to_string());
  (void)failure_of(first);  // as far as it had come
}

/// What join() says to this rank. Empty: it went well.
std::string refusal_of(const std::string& name, const std::string& overlap) {
  try {
    hocket::join({.name = name, .settings = {{.name = "HOCKET_OVERLAP", .value = overlap}}})
        .barrier();
    return {};
  } catch (const hocket::Error& error) {
    return error.status().to_string();
  }
}

void refused(int rank) {
  const std::string different = refusal_of("different", rank == 0 ? "2" : "3");
  expect(different.find("different values of HOCKET_OVERLAP") != std::string::npos,
         "ranks differ: " + different);
  for (const std::string wrong : {"0", "9"}) {
    const std::string told = refusal_of("wrong" + wrong, wrong);
    expect(told.find("HOCKET_OVERLAP=" + wrong + " is not from 1 to 8") != std::string::npos, told);
  }
}

double us_of(const Stopwatch& watch) {
  return std::chrono::duration<double, std::micro>(watch.elapsed()).count();
}

double median_us(std::vector<double> times) {
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}

void measure(Communicator& world) {
  constexpr int count = 16;
  std::vector<Values> values(count, Values(16384, 0));
  std::vector<double> alone;
  std::vector<double> together;
  for (int round = 0; round < 400; ++round) {
    world.barrier();
    Stopwatch watch;
    for (Values& each : values) world.start(Collective::all_reduce(each)).wait();
    alone.push_back(us_of(watch));
    world.barrier();
    watch = Stopwatch();
    std::vector<Work> works;
    for (Values& each : values) works.push_back(world.start(Collective::all_reduce(each)));
    hocket::wait_all(works);
    together.push_back(us_of(watch));
  }
  if (world.rank() > 0) return;
  std::printf("16 sums of 64 KiB: one by one %.0f us, together %.0f us: %.2f times as fast\n",
              median_us(alone), median_us(together), median_us(alone) / median_us(together));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc > 1 && std::string_view(argv[1]) == "time") {
      Communicator world = hocket::join();
      measure(world);
      return 0;
    }
    Communicator world = hocket::join(
        {.operation_timeout = 60s, .settings = {{.name = "HOCKET_OVERLAP", .value = "4"}}});
    results_are_the_same(world);
    all_kinds(world);
    prepared_and_not(world);
    small_ones_pass(world);
    messages_beside(world);
    if (world.size() > 1) {
      late(world);
      aborted(world);
      disagree(world);
      refused(world.rank());
    }
    world.barrier();
  } catch (const std::exception& failure) {
    std::printf("%s\n", failure.what());
    return 1;
  }
  return failures == 0 ? 0 : 1;
}
