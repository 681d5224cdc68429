// Collectives on device memory: each check is a function that all ranks of a world call. Prints
// what is wrong, and fails then. With the argument `few` it does no more than a world needs to find
// its way. The device and NCCL may be fakes, or not.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "hocket/hocket.hpp"

#include "base/clock.hpp"
#include "memory.hpp"

namespace {

using namespace std::chrono_literals;
using hocket::Collective;
using hocket::Communicator;
using hocket::monotonic_clock;
using hocket::OperationOptions;
using hocket::ReduceOp;
using hocket::Stream;
using hocket::Work;
using hocket::testing::Device;
using hocket::testing::Vector;

using Numbers = std::vector<std::int32_t>;

int failures = 0;

void expect(bool is_right, const std::string& what) {
  if (is_right) return;
  ++failures;
  std::fputs(fmt::format("WRONG: {}\n", what).c_str(), stdout);
}

/// What rank `rank` gives at each place.
Numbers given(int rank, std::size_t count, std::int32_t salt = 0) {
  Numbers values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<std::int32_t>(i % 1013) + 1000 * rank + salt;
  }
  return values;
}

Numbers sum_of(int size, std::size_t count, std::int32_t salt = 0) {
  Numbers sum(count, 0);
  for (int rank = 0; rank < size; ++rank) {
    const Numbers theirs = given(rank, count, salt);
    for (std::size_t i = 0; i < count; ++i) sum[i] += theirs[i];
  }
  return sum;
}

OperationOptions in(Stream stream) { return {.stream = stream}; }

struct World {
  Communicator& ranks;
  Device& device;

  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(ranks.size()); }
  [[nodiscard]] std::size_t rank() const { return static_cast<std::size_t>(ranks.rank()); }
};

// In elements: nothing, one, some, and more than the slots of a communicator have room for.
constexpr std::size_t counts[] = {0, 1, 1000, 1'300'001, 6'000'000};

void sum(World& world, std::size_t count) {
  Vector<std::int32_t> data(world.device, given(world.ranks.rank(), count));
  world.ranks.all_reduce(data.all());
  expect(data.values() == sum_of(world.ranks.size(), count),
         fmt::format("all_reduce of {} elements", count));
}

void sums(World& world) {
  for (const std::size_t count : counts) sum(world, count);
}

/// What all ranks give, in their order.
Numbers given_by_all(const World& world, std::size_t count) {
  Numbers all;
  for (int rank = 0; rank < world.ranks.size(); ++rank) {
    const Numbers theirs = given(rank, count);
    all.insert(all.end(), theirs.begin(), theirs.end());
  }
  return all;
}

void moves_for_a_root(World& world, std::size_t count, int root) {
  const bool is_root = world.ranks.rank() == root;
  const Numbers all = given_by_all(world, count);
  const Numbers ours = given(world.ranks.rank(), count);
  const auto title = [&](const char* what) {
    return fmt::format("{} of {} elements, root {}", what, count, root);
  };
  Vector<std::int32_t> data(world.device, ours);
  world.ranks.run(Collective::broadcast(data.all(), root));
  expect(data.values() == given(root, count), title("broadcast"));

  data = ours;
  Vector<std::int32_t> whole(world.device, Numbers(all.size(), -1));
  const std::span<std::int32_t> at_root = is_root ? whole.all() : std::span<std::int32_t>();
  world.ranks.run(Collective::gather(data.in(), at_root, root));
  expect(!is_root || whole.values() == all, title("gather"));
  data = Numbers(count, -1);
  world.ranks.run(Collective::scatter(at_root, data.all(), root));
  expect(data.values() == ours, title("scatter"));

  // At the root, its own part is where it is.
  const std::span<std::int32_t> own = whole.all().subspan(count * world.rank(), count);
  const std::span<std::int32_t> part = is_root ? own : data.all();
  if (is_root) {
    Numbers only_ours(all.size(), -1);
    std::copy(ours.begin(), ours.end(),
              only_ours.begin() + static_cast<std::ptrdiff_t>(count * world.rank()));
    whole = only_ours;
  }
  world.ranks.run(Collective::gather(part, at_root, root));
  expect(!is_root || whole.values() == all, title("gather in place"));
  if (!is_root) data = Numbers(count, -1);
  world.ranks.run(Collective::scatter(at_root, part, root));
  expect(is_root ? whole.values() == all : data.values() == ours, title("scatter in place"));
}

void moves_to_all(World& world, std::size_t count) {
  const Numbers all = given_by_all(world, count);
  const Numbers ours = given(world.ranks.rank(), count);
  const auto title = [&](const char* what) { return fmt::format("{} of {}", what, count); };
  const Vector<std::int32_t> data(world.device, ours);
  Vector<std::int32_t> whole(world.device, Numbers(all.size(), -1));
  world.ranks.run(Collective::all_gather(data.in(), whole.all()));
  expect(whole.values() == all, title("all_gather"));
  whole = Numbers(all.size(), -1);
  const std::span<std::int32_t> own = whole.all().subspan(count * world.rank(), count);
  world.device.copy(own.data(), ours.data(), own.size_bytes());
  world.device.wait();
  world.ranks.run(Collective::all_gather(own, whole.all()));
  expect(whole.values() == all, title("all_gather in place"));

  Numbers sent;
  Numbers wanted;
  for (int peer = 0; peer < world.ranks.size(); ++peer) {
    const Numbers to = given(world.ranks.rank(), count, 7 * peer);
    const Numbers from = given(peer, count, 7 * world.ranks.rank());
    sent.insert(sent.end(), to.begin(), to.end());
    wanted.insert(wanted.end(), from.begin(), from.end());
  }
  const Vector<std::int32_t> exchanged(world.device, sent);
  world.ranks.run(Collective::all_to_all(exchanged.in(), whole.all(), count));
  expect(whole.values() == wanted, title("all_to_all"));
}

/// Also of many windows.
void moves(World& world) {
  constexpr std::size_t counts_of_parts[] = {0, 1, 999, 20'000, 1'100'001};
  for (const std::size_t count : counts_of_parts) {
    for (const int root : {0, world.ranks.size() - 1}) moves_for_a_root(world, count, root);
    moves_to_all(world, count);
  }
}

void few(World& world) {
  sum(world, 1000);
  moves_to_all(world, 999);
}

/// Of ranks: 3, 0, 7, 3, 0, …, thousandfold or not.
std::vector<std::size_t> uneven(std::size_t size, std::size_t factor) {
  constexpr std::size_t pattern[] = {3, 0, 7};
  std::vector<std::size_t> result(size);
  for (std::size_t i = 0; i < size; ++i) result[i] = pattern[i % 3] * factor;
  return result;
}

std::size_t before(const std::vector<std::size_t>& parts, std::size_t rank) {
  return std::accumulate(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(rank),
                         std::size_t{0});
}

void gathers_of_uneven_parts(World& world, std::size_t factor) {
  const auto parts = uneven(world.size(), factor);
  const std::size_t all = before(parts, world.size());
  Numbers wanted;
  for (std::size_t rank = 0; rank < world.size(); ++rank) {
    const Numbers theirs = given(static_cast<int>(rank), parts[rank]);
    wanted.insert(wanted.end(), theirs.begin(), theirs.end());
  }
  const Vector<std::int32_t> part(world.device, given(world.ranks.rank(), parts[world.rank()]));
  Vector<std::int32_t> out(world.device, Numbers(all, -1));
  world.ranks.run(Collective::all_gather_v(part.in(), out.all(), parts));
  expect(out.values() == wanted, fmt::format("all_gather_v by {}", factor));

  const int root = world.ranks.size() - 1;
  const bool is_root = world.ranks.rank() == root;
  out = Numbers(all, -1);
  const std::span<std::int32_t> at_root = is_root ? out.all() : std::span<std::int32_t>();
  world.ranks.run(Collective::gather_v(part.in(), at_root, parts, root));
  expect(!is_root || out.values() == wanted, fmt::format("gather_v by {}", factor));

  Vector<std::int32_t> back(world.device, Numbers(parts[world.rank()], -1));
  world.ranks.run(Collective::scatter_v(is_root ? out.in() : std::span<const std::int32_t>(),
                                        back.all(), parts, root));
  expect(back.values() == part.values(), fmt::format("scatter_v by {}", factor));
}

void reductions_of_uneven_parts(World& world, std::size_t factor) {
  const auto parts = uneven(world.size(), factor);
  const std::size_t all = before(parts, world.size());
  const Vector<std::int32_t> data(world.device, given(world.ranks.rank(), all));
  Vector<std::int32_t> part(world.device, Numbers(parts[world.rank()], -1));
  world.ranks.run(Collective::reduce_scatter_v(data.in(), part.all(), parts));
  const Numbers sum = sum_of(world.ranks.size(), all);
  const auto first = sum.begin() + static_cast<std::ptrdiff_t>(before(parts, world.rank()));
  const Numbers wanted(first, first + static_cast<std::ptrdiff_t>(parts[world.rank()]));
  expect(part.values() == wanted, fmt::format("reduce_scatter_v by {}", factor));
}

/// So many from one rank to another: one pair has far more than the others know of.
std::size_t between(std::size_t from, std::size_t to, std::size_t factor) {
  return (from == 0 && to == 0 ? 5 : (from + 2 * to) % 3) * factor;
}

void exchanges_of_uneven_parts(World& world, std::size_t factor) {
  std::vector<std::size_t> to(world.size());
  std::vector<std::size_t> from(world.size());
  Numbers sent;
  Numbers wanted;
  for (std::size_t peer = 0; peer < world.size(); ++peer) {
    to[peer] = between(world.rank(), peer, factor);
    from[peer] = between(peer, world.rank(), factor);
    const Numbers ours = given(world.ranks.rank(), to[peer], static_cast<std::int32_t>(peer));
    const Numbers theirs =
        given(static_cast<int>(peer), from[peer], static_cast<std::int32_t>(world.rank()));
    sent.insert(sent.end(), ours.begin(), ours.end());
    wanted.insert(wanted.end(), theirs.begin(), theirs.end());
  }
  const Vector<std::int32_t> data(world.device, sent);
  const Vector<std::int32_t> out(world.device, Numbers(wanted.size(), -1));
  Collective it = Collective::all_to_all_v(data.in(), out.all(), to, from);
  it.options.memory = hocket::MemoryKind::device;  // also where a rank has nothing
  world.ranks.run(it);
  expect(out.values() == wanted, fmt::format("all_to_all_v by {}", factor));
}

void uneven_parts(World& world) {
  for (const std::size_t factor : {std::size_t{1}, std::size_t{200'000}}) {
    gathers_of_uneven_parts(world, factor);
    reductions_of_uneven_parts(world, factor);
    exchanges_of_uneven_parts(world, factor);
  }
}

void batches(World& world) {
  const std::size_t counts_of_pieces[] = {5, 0, 70'000, 1'200'000, 1};
  std::vector<Vector<std::int32_t>> vectors;
  std::vector<hocket::Piece> pieces;
  for (const std::size_t count : counts_of_pieces) {
    vectors.emplace_back(world.device, given(world.ranks.rank(), count));
    pieces.push_back({vectors.back().data(), count});
  }
  world.ranks.run(Collective::all_reduce<std::int32_t>(pieces));
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    expect(vectors[i].values() == sum_of(world.ranks.size(), counts_of_pieces[i]),
           fmt::format("piece {} of a batch", i));
  }
  if (world.ranks.rank() == 0) vectors[2] = given(7, counts_of_pieces[2]);
  world.ranks.run(Collective::broadcast<std::int32_t>(pieces));
  expect(vectors[2].values() == given(7, counts_of_pieces[2]), "a broadcast batch");
}

void ops_that_nccl_lacks(World& world) {
  const std::size_t count = 100'000;
  Vector<std::int32_t> data(world.device, given(world.ranks.rank(), count));
  world.ranks.run(Collective::all_reduce(data.in(), data.all(), ReduceOp::bit_xor));
  Numbers wanted(count, 0);
  Numbers prefix(count, 0);
  for (int rank = 0; rank < world.ranks.size(); ++rank) {
    const Numbers theirs = given(rank, count);
    for (std::size_t i = 0; i < count; ++i) {
      wanted[i] ^= theirs[i];
      if (rank <= world.ranks.rank()) prefix[i] += theirs[i];
    }
  }
  expect(data.values() == wanted, "bit_xor");
  data = given(world.ranks.rank(), count);
  world.ranks.run(Collective::scan(data.in(), data.all()));
  expect(data.values() == prefix, "scan");
}

/// Nothing waits in between, and every operation needs what the one before brought.
void chains(World& world) {
  const std::size_t count = 300'000;
  Vector<std::int32_t> data(world.device, Numbers(count, 1));
  const auto all_reduce = [&](ReduceOp op) {
    return Collective::all_reduce(data.in(), data.all(), op);
  };
  std::vector<Work> works;
  // The second can't be offloaded: both ways, one behind the other.
  works.push_back(world.ranks.start(all_reduce(ReduceOp::sum)));
  works.push_back(world.ranks.start(all_reduce(ReduceOp::bit_or)));
  works.push_back(world.ranks.start(all_reduce(ReduceOp::sum)));
  hocket::wait_all(works);
  const std::int32_t wanted = world.ranks.size() * world.ranks.size();
  expect(data.values() == Numbers(count, wanted), "a chain of operations");
}

void streams(World& world) {
  const std::size_t count = 2'000'000;
  const Numbers ours = given(world.ranks.rank(), count);
  Vector<std::int32_t> data(world.device, Numbers(count, -1));
  Numbers got;
  for (const bool is_nccls : {true, false}) {
    const ReduceOp op = is_nccls ? ReduceOp::sum : ReduceOp::bit_or;
    const auto begin = monotonic_clock().now();
    data.write(ours);
    Collective it = Collective::all_reduce(data.in(), data.all(), op, in(world.device.stream()));
    world.ranks.run(it);
    {
      Work work = world.ranks.start(it);
      work.wait(world.device.stream());
    }
    data.read(got);
    expect(monotonic_clock().now() - begin < 10s, "putting operations into a stream");
    world.device.wait();
    Numbers wanted = sum_of(world.ranks.size(), count);
    if (is_nccls) {
      for (auto& each : wanted) each *= world.ranks.size();
    } else {
      wanted.assign(count, 0);
      for (int rank = 0; rank < world.ranks.size(); ++rank) {
        const Numbers theirs = given(rank, count);
        for (std::size_t i = 0; i < count; ++i) wanted[i] |= theirs[i];
      }
    }
    expect(got == wanted, "what is in a stream comes in its order");
  }
}

/// The last rank comes late: to start an operation does not wait for it.
void nobody_is_blocked(World& world) {
  Vector<std::int32_t> data(world.device, Numbers(1000, 1));
  world.ranks.all_reduce(data.all());  // now the communicator is complete
  world.ranks.barrier();
  if (world.ranks.rank() == world.ranks.size() - 1) std::this_thread::sleep_for(500ms);
  const auto begin = monotonic_clock().now();
  std::vector<Work> works;
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::bit_and}) {
    works.push_back(world.ranks.start(
        Collective::all_reduce(data.in(), data.all(), op, in(world.device.stream()))));
  }
  expect(monotonic_clock().now() - begin < 200ms, "starting behind a stream takes no time");
  const bool is_first = world.ranks.rank() == 0 && world.ranks.size() > 1;
  expect(!is_first || !works.back().test(), "an operation waits for the last");
  for (Work& each : works) each.wait(world.device.stream());
  world.ranks.run(Collective::barrier(in(world.device.stream())));
  world.device.wait();
  expect(data.values().front() == world.ranks.size() * world.ranks.size(), "what came of it");
}

void hosts_and_devices_together(World& world) {
  const std::size_t count = 500'000;
  Vector<std::int32_t> data(world.device, given(world.ranks.rank(), count));
  Numbers host = given(world.ranks.rank(), count, 5);
  Numbers more = given(world.ranks.rank(), count, 9);
  Work first = world.ranks.start(Collective::all_reduce(data.in(), data.all(), ReduceOp::max));
  Work second = world.ranks.start(Collective::all_reduce(host, host));
  Communicator part = world.ranks.split(world.ranks.rank() % 2);
  Vector<std::int32_t> theirs(world.device, Numbers(count, 1));
  Work third = part.start(Collective::all_reduce(theirs.in(), theirs.all()));
  world.ranks.all_reduce(more);
  std::vector<Work> works;
  works.push_back(std::move(first));
  works.push_back(std::move(second));
  works.push_back(std::move(third));
  (void)hocket::wait_any(works);
  hocket::wait_all(works);
  expect(data.values() == given(world.ranks.size() - 1, count), "beside the host's");
  expect(host == sum_of(world.ranks.size(), count, 5), "the host's, started");
  expect(more == sum_of(world.ranks.size(), count, 9), "the host's, run");
  expect(theirs.values() == Numbers(count, part.size()), "a part's");
}

void prepared(World& world) {
  Vector<std::int32_t> data(world.device, Numbers(10'000, 1));
  hocket::Prepared it = world.ranks.prepare(Collective::all_reduce(data.in(), data.all()));
  it.run();
  it.start().wait();
  expect(data.values() == Numbers(10'000, world.ranks.size() * world.ranks.size()), "prepared");
}

/// What is prepared goes when its operations are in a stream, and not over.
void prepared_in_a_stream(World& world) {
  const std::size_t count = 100'000;
  const Numbers ours = given(world.ranks.rank(), count);
  Vector<std::int32_t> data(world.device, ours);
  Vector<std::int32_t> all(world.device, Numbers(count * world.size(), -1));
  const std::span<std::int32_t> part = all.all().subspan(count * world.rank(), count);
  world.device.copy(part.data(), ours.data(), part.size_bytes());
  for (const Collective& each :
       {Collective::broadcast(data.all(), 0, in(world.device.stream())),
        Collective::all_gather(part, all.all(), in(world.device.stream()))}) {
    hocket::Prepared it = world.ranks.prepare(each);
    for (int i = 0; i < 3; ++i) it.run();
  }
  world.device.wait();
  expect(data.values() == given(0, count), "a prepared broadcast in a stream");
  const Numbers got = all.values();
  const int last = world.ranks.size() - 1;
  const auto theirs = got.end() - static_cast<std::ptrdiff_t>(count);
  expect(Numbers(theirs, got.end()) == given(last, count), "a prepared all_gather in a stream");
}

/// Of these, NCCL can on some devices only.
void small_floats(World& world) {
  const std::vector<hocket::float8_e4m3> ones(1000, hocket::float8_e4m3(1.0F));
  Vector<hocket::float8_e4m3> data(world.device, ones);
  world.ranks.all_reduce(data.all());
  const auto sum = static_cast<float>(data.values().back());
  expect(sum == static_cast<float>(world.ranks.size()), "all_reduce of small floats");
}

template <class Call>
void expect_refusal(Call&& call, std::string_view part, const char* what) {
  try {
    call();
    expect(false, fmt::format("{} is not refused", what));
  } catch (const hocket::Error& error) {
    expect(std::string_view(error.what()).find(part) != std::string_view::npos,
           fmt::format("{}: {}", what, error.what()));
  }
}

void mistakes(World& world) {
  Vector<std::int32_t> data(world.device, Numbers(8, 1));
  Numbers host(8, 1);
  const std::span<const std::int32_t> from = host;
  expect_refusal([&] { world.ranks.run(Collective::all_reduce(from, data.all())); },
                 "in memory of the host and of a device", "mixed memory");
  expect_refusal(
      [&] {
        world.ranks.run(
            Collective::all_reduce(host, host, ReduceOp::sum, in(world.device.stream())));
      },
      "not pinned", "a stream for memory of the host");
  expect_refusal([&] { world.ranks.start(Collective::barrier()).wait(world.device.stream()); },
                 "a stream can't wait", "a stream that waits for the host");
  expect(hocket::memory_kind(data.data()) == hocket::MemoryKind::device &&
             hocket::memory_kind(host.data()) == hocket::MemoryKind::host,
         "kinds of memory");
}

using Check = void (*)(World& world);

constexpr Check checks[] = {sums,
                            moves,
                            uneven_parts,
                            batches,
                            ops_that_nccl_lacks,
                            chains,
                            streams,
                            nobody_is_blocked,
                            hosts_and_devices_together,
                            prepared,
                            prepared_in_a_stream,
                            small_floats,
                            mistakes};

}  // namespace

int main(int count, char** arguments) {
  Communicator ranks = hocket::join({.operation_timeout = 60s});
  const auto& runtime = hocket::device::process_runtime();
  if (!runtime.ok()) {
    fmt::print("skipped: {}\n", runtime.status().what());
    return 77;
  }
  Device device;
  World world = {ranks, device};
  if (count == 2 && arguments[1] == std::string_view("few")) {
    few(world);
  } else {
    for (const Check check : checks) check(world);
  }
  return failures == 0 ? 0 : 1;
}
