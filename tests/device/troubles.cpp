// What becomes of collectives on device memory when something fails. The first argument says what:
//   hang      a kernel of the fake NCCL never ends: the deadline ends it
//   error     it raises an asynchronous error
//   death     a rank dies in a staged operation
//   behind    so does one, and NCCL's kernels are behind that in a stream
//   missing   a rank never comes to the first operation
//   move      a rank dies in one that only moves
//   copy      the device's runtime fails
//   no-slots  it has no memory for adapters, on one rank (nothing fails)
//   make      it has no memory for NCCL's beginning, on one rank
//   event     it has none for an operation, on one rank
//   init      NCCL's own beginning does not end
//   stuck     a rank does not come to an operation (also with a real NCCL)
//   patience  nor to two, of which the later has the sooner deadline
//   other-op    a rank gives another op than the others, and NCCL does not notice
//   other-size  or another number of elements
//   other-way   or a type that goes another way
//   leave     a rank has left when another begins what it has done (nothing fails)
//   second    the device is not the first of its process (nothing fails)
//   broken    the device can't say what a pointer points to (memory of the host does not care)
// Prints what is wrong, and fails then.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include "hocket/hocket.hpp"

#include "base/clock.hpp"
#include "fake_device.hpp"
#include "memory.hpp"

namespace {

using namespace std::chrono_literals;
using hocket::Collective;
using hocket::Communicator;
using hocket::Duration;
using hocket::monotonic_clock;
using hocket::StatusCode;
using hocket::fake::Call;
using hocket::testing::Device;
using hocket::testing::Vector;

int failures = 0;

void expect(bool is_right, const std::string& what) {
  if (is_right) return;
  ++failures;
  std::fputs(fmt::format("WRONG: {}\n", what).c_str(), stdout);
}

struct Failure {
  StatusCode code = StatusCode::ok;
  std::string text = {};
  Duration after = {};
};

template <class Call>
Failure failure_of(Call&& call) {
  const auto begin = monotonic_clock().now();
  Failure failure;
  try {
    call();
  } catch (const hocket::Error& error) {
    failure.code = error.code();
    failure.text = error.what();
  }
  failure.after = monotonic_clock().now() - begin;
  return failure;
}

void expect_failure(const Failure& failure, StatusCode code, std::string_view part, Duration most) {
  expect(
      failure.code == code && failure.text.find(part) != std::string::npos,
      fmt::format("not {} with \"{}\": {} {}", name(code), part, name(failure.code), failure.text));
  expect(failure.after < most,
         fmt::format("it took {} ms",
                     std::chrono::duration_cast<std::chrono::milliseconds>(failure.after).count()));
}

/// By which time limits are longer: the thread sanitizer takes its time. Deadlines stay 20 s, so
/// that what is seen by them alone is seen late there as well.
#ifdef __SANITIZE_THREAD__
constexpr int slowness = 15;
#else
constexpr int slowness = 1;
#endif
constexpr Duration absence = slowness > 1 ? 8s : 2s;  // of a rank that does not come
constexpr Duration soon = slowness * 1s;
constexpr Duration at_once = slowness * 100ms;
constexpr Duration slack = slowness * 50ms;

/// Of an operation that has one deadline everywhere: whom it ends first tells the others.
void expect_timeout(const Failure& failure, std::string_view part, Duration most) {
  const bool is_told = failure.code == StatusCode::peer_lost;
  expect_failure(failure, is_told ? StatusCode::peer_lost : StatusCode::timeout,
                 is_told ? "" : part, most);
}

/// At once, without what sanitizers do at a process's end: the thread sanitizer sleeps for a
/// second.
[[noreturn]] void die() {
  ::syscall(SYS_exit_group, 0);
  std::abort();
}

void check_all_fails_now(Communicator& world, Device& device) {
  Vector<float> data(device, 16);
  // The quickest counts: a busy machine may hold one of them up.
  Duration quickest = Duration::max();
  for (int i = 0; i < 3; ++i) {
    const Failure again = failure_of([&] { world.all_reduce(data.all()); });
    expect(again.code != StatusCode::ok, "later operations fail");
    quickest = std::min(quickest, again.after);
  }
  expect(quickest < at_once, "later operations fail at once");
  std::vector<float> host(16);
  const Failure hosts = failure_of([&] { world.all_reduce(host); });
  expect(hosts.code != StatusCode::ok, "and so do the host's");
}

void hang(Communicator& world, Device& device) {
  Vector<float> data(device, 1000);
  world.all_reduce(data.all());
  const auto it = Collective::all_reduce(data.in(), data.all(), {}, {.timeout = 300ms});
  expect_timeout(failure_of([&] { world.run(it); }), "not over in time", 300ms + soon);
  check_all_fails_now(world, device);
  device.wait();  // nothing holds up the stream
}

/// Nobody waits for it: the stream goes on, and the next operation says why.
void hang_in_stream(Communicator& world, Device& device) {
  Vector<float> data(device, 1000);
  world.all_reduce(data.all());
  world.run(Collective::all_reduce(data.in(), data.all(), {},
                                   {.timeout = 300ms, .stream = device.stream()}));
  device.wait();
  std::this_thread::sleep_for(500ms);
  check_all_fails_now(world, device);
}

void error(Communicator& world, Device& device) {
  Vector<float> data(device, 1000);
  world.all_reduce(data.all());
  world.barrier();
  const Failure failure = failure_of([&] { world.all_reduce(data.all()); });
  if (world.rank() == 0) {
    // The text is NCCL's: no time limit has found it.
    expect_failure(failure, StatusCode::peer_lost, "remote process exited", soon);
  }
  expect(failure.code != StatusCode::ok, "an error on another rank");
  check_all_fails_now(world, device);
}

void death(Communicator& world, Device& device) {
  Vector<float> data(device, 4'000'000);
  world.all_reduce(data.all());
  world.barrier();
  if (world.rank() == world.size() - 1) die();
  const Failure failure = failure_of([&] { world.all_reduce(data.all()); });
  expect(failure.code == StatusCode::peer_lost, fmt::format("a death: {}", failure.text));
  expect(failure.after < soon, "a death is seen late");
  check_all_fails_now(world, device);
  device.wait();
}

void move(Communicator& world, Device& device) {
  const auto size = static_cast<std::size_t>(world.size());
  Vector<float> data(device, 3'000'000);
  Vector<float> all(device, 3'000'000 * size);
  const auto it = Collective::all_gather(data.in(), all.all());
  world.run(it);
  world.barrier();
  if (world.rank() == world.size() - 1) {
    const hocket::Work work = world.start(it);
    std::this_thread::sleep_for(10ms);
    die();
  }
  const Failure failure = failure_of([&] { world.run(it); });
  expect(failure.code == StatusCode::peer_lost, fmt::format("a death: {}", failure.text));
  expect(failure.after < soon, "a death is seen late");
  check_all_fails_now(world, device);
  device.wait();
}

/// Rank 0 has memory for the slots of the host alone.
void no_slots(Communicator& world, Device& device) {
  const auto size = static_cast<std::size_t>(world.size());
  Vector<std::int32_t> data(device, std::vector<std::int32_t>(1000, 1));
  Vector<std::int32_t> all(device, std::vector<std::int32_t>(1000 * size, 0));
  if (world.rank() == 0) hocket::fake::fail(Call::allocate, 2);
  world.run(Collective::all_gather(data.in(), all.all()));
  expect(hocket::fake::has_failed(Call::allocate) == (world.rank() == 0), "nothing was refused");
  hocket::fake::fail(Call::allocate, 0);
  world.run(Collective::all_gather(data.in(), all.all()));
  expect(all.values() == std::vector<std::int32_t>(1000 * size, 1), "without slots for adapters");
}

/// NCCL does not know that the last rank has died, and what is staged comes before its kernels.
void behind(Communicator& world, Device& device) {
  Vector<std::int32_t> data(device, 4'000'000);
  world.all_reduce(data.all());
  world.barrier();
  if (world.rank() == world.size() - 1) die();
  const auto in_stream = [&](hocket::ReduceOp op) {
    return Collective::all_reduce(data.in(), data.all(), op, {.stream = device.stream()});
  };
  const Failure failure = failure_of([&] {
    world.run(in_stream(hocket::ReduceOp::bit_or));
    world.run(in_stream(hocket::ReduceOp::sum));
    world.start(in_stream(hocket::ReduceOp::sum)).wait();
  });
  expect(failure.code == StatusCode::peer_lost, fmt::format("behind a death: {}", failure.text));
  expect(failure.after < soon, "a death before kernels is seen late");
  check_all_fails_now(world, device);
  device.wait();
}

void missing(Communicator& world, Device& device) {
  Vector<float> data(device, 16);
  if (world.rank() == 0) {
    std::this_thread::sleep_for(absence);
    return;
  }
  const auto it = Collective::all_reduce(data.in(), data.all(), {}, {.timeout = 300ms});
  const Failure failure = failure_of([&] { world.run(it); });
  expect_timeout(failure, "all_reduce", 300ms + soon);
}

void copy(Communicator& world, Device& device) {
  Vector<float> data(device, 4'000'000);
  hocket::fake::fail(Call::copy, 2);
  const Failure failure = failure_of([&] { world.all_reduce(data.all()); });
  hocket::fake::fail(Call::copy, 0);
  // All ranks meet it, and some may hear of it from another one before.
  const bool is_told = failure.code == StatusCode::aborted;
  expect_failure(failure, is_told ? StatusCode::aborted : StatusCode::system_error,
                 "an illegal address", soon);
  check_all_fails_now(world, device);
}

/// On rank 0 a call of the device's runtime fails, and so does `run` on all.
template <class Run>
void fail_on_one_rank(Communicator& world, Device& device, Call call, Run&& run) {
  const bool is_here = world.rank() == 0;
  if (is_here) hocket::fake::fail(call, 1);
  const Failure failure = failure_of(run);
  hocket::fake::fail(call, 0);
  // The others are told that it gave up, or find that its process is gone by then.
  const bool is_gone = failure.code == StatusCode::peer_lost;
  const StatusCode code = is_gone ? StatusCode::peer_lost : StatusCode::aborted;
  expect_failure(failure, is_here ? StatusCode::system_error : code,
                 is_here ? "out of memory" : "peer 0", soon);
  check_all_fails_now(world, device);
}

void make(Communicator& world, Device& device) {
  Vector<float> data(device, 16);
  fail_on_one_rank(world, device, Call::allocate, [&] { world.all_reduce(data.all()); });
}

void event(Communicator& world, Device& device) {
  Vector<float> data(device, 16);
  world.all_reduce(data.all());
  const auto it = Collective::all_reduce(data.in(), data.all());
  hocket::Work first = world.start(it);
  fail_on_one_rank(world, device, Call::make_event, [&] { world.start(it).wait(); });
}

void init(Communicator& world, Device& device) {
  constexpr Duration timeout = slowness * 1s;  // not until the ranks have agreed on what to do
  Vector<float> data(device, 16);
  const auto it = Collective::all_reduce(data.in(), data.all(), {}, {.timeout = timeout});
  expect_timeout(failure_of([&] { world.run(it); }), "ncclCommInitRankConfig was not over in time",
                 timeout + soon);
}

/// NCCL itself takes half a second to abort.
void stuck(Communicator& world, Device& device) {
  const bool is_fake = device.runtime()->name == std::string_view("fake");
  const Duration to_abort = is_fake ? at_once : soon;
  Vector<float> data(device, 1000);
  world.all_reduce(data.all());
  world.barrier();
  if (world.rank() == 0) {
    std::this_thread::sleep_for(absence);
    return;
  }
  const auto it = Collective::all_reduce(data.in(), data.all(), {}, {.timeout = 500ms});
  const Failure failure = failure_of([&] { world.run(it); });
  expect_timeout(failure, "not over in time", 500ms + to_abort + slack);
  device.wait();
}

void patience(Communicator& world, Device& device) {
  Vector<float> data(device, 1000);
  world.all_reduce(data.all());
  world.barrier();
  if (world.rank() == 0) {
    std::this_thread::sleep_for(absence);
    return;
  }
  const auto it = [&](Duration timeout) {
    return Collective::all_reduce(data.in(), data.all(), {}, {.timeout = timeout});
  };
  hocket::Work first = world.start(it(10s));
  hocket::Work second = world.start(it(300ms));
  expect_timeout(failure_of([&] { second.wait(); }), "not over in time", 300ms + soon);
  expect(failure_of([&] { first.wait(); }).code != StatusCode::ok, "the first fails, too");
}

struct Pause final : hocket::fake::Task {
  explicit Pause(Duration length) : end(monotonic_clock().now() + length) {}
  bool is_over() override { return monotonic_clock().now() >= end; }
  hocket::Instant end;
};

/// Of another call on rank 1, which NCCL does not notice, all ranks are told, with both calls.
template <class Call>
void differ(Device& device, std::string_view others, std::string_view theirs, Call&& call) {
  const bool is_fake = device.runtime()->name == std::string_view("fake");
  const Duration most = is_fake ? slowness * 400ms : soon;
  Failure failure;
  const auto begin = monotonic_clock().now();
  while (failure.code == StatusCode::ok && monotonic_clock().now() - begin < soon) {
    failure = failure_of(call);
  }
  failure.after = monotonic_clock().now() - begin;
  expect_failure(failure, StatusCode::mismatch, others, most);
  expect_failure(failure, StatusCode::mismatch, theirs, most);
}

/// The results are wrong until they are told (also with a real NCCL).
void other_op(Communicator& world, Device& device) {
  Vector<float> data(device, 16);
  const auto op = world.rank() == 1 ? hocket::ReduceOp::max : hocket::ReduceOp::sum;
  const auto it = Collective::all_reduce(data.in(), data.all(), op);
  differ(device, "all_reduce(sum, f32, 16 elements)", "all_reduce(max, f32, 16 elements)",
         [&] { world.run(it); });
  check_all_fails_now(world, device);
}

/// The kernels hang.
void other_size(Communicator& world, Device& device) {
  Vector<float> data(device, world.rank() == 1 ? 1000 : 900);
  differ(device, "all_reduce(sum, f32, 900 elements)", "all_reduce(sum, f32, 1000 elements)",
         [&] { world.all_reduce(data.all()); });
}

/// One is NCCL's, and one is staged.
void other_way(Communicator& world, Device& device) {
  Vector<float> floats(device, 16);
  Vector<std::int16_t> integers(device, 16);
  differ(device, "all_reduce(sum, f32, 16 elements)", "all_reduce(sum, i16, 16 elements)", [&] {
    if (world.rank() == 1) return world.all_reduce(integers.all());
    world.all_reduce(floats.all());
  });
}

void leave(Communicator& world, Device& device) {
  Vector<float> data(device, 1000);
  world.all_reduce(data.all());
  auto it = Collective::broadcast(data.all());
  if (world.rank() == 0) return world.run(it);
  hocket::fake::enqueue(device.stream().handle, new Pause(3s));
  it.options.stream = device.stream();
  const Failure failure = failure_of([&] { world.start(it).wait(); });
  expect(failure.code == StatusCode::ok, fmt::format("a rank has left: {}", failure.text));
  expect(failure.after > 2s, "it is not behind what the stream has");
}

void second(Communicator& world, Device& device) {
  (void)device.runtime()->set_device(1);
  Vector<float> data(device, 1000);
  world.all_reduce(data.all());
  std::atomic<bool> is_over = false;
  auto it = Collective::all_reduce(data.in(), data.all());
  it.options.on_end = [](void* context, StatusCode) {
    *static_cast<std::atomic<bool>*>(context) = true;
  };
  it.options.on_end_context = &is_over;
  {
    const hocket::Work work = world.start(it);
    while (!is_over) std::this_thread::sleep_for(1ms);
  }
  is_over = false;
  world.run(it);
  expect(is_over, "a blocking call calls on_end before it returns");
  expect(!hocket::fake::is_begun(0), "the first device is begun, which nobody uses");
  (void)device.runtime()->set_device(0);
  Vector<float> elsewhere(device, 1000);
  expect_failure(failure_of([&] { world.all_reduce(elsewhere.all()); }),
                 StatusCode::invalid_argument, "memory of device 0", soon);
  (void)device.runtime()->set_device(1);
  world.all_reduce(data.all());
}

void broken(Communicator& world, Device& device) {
  std::vector<float> host(1000, 1);
  world.all_reduce(host);
  expect(host.front() == static_cast<float>(world.size()), "memory of the host");
  const auto it = Collective::all_reduce(host, host, {}, {.stream = device.stream()});
  expect_failure(failure_of([&] { world.run(it); }), StatusCode::invalid_argument,
                 "an uncorrectable error", soon);
}

struct Trouble {
  std::string_view name;
  void (*run)(Communicator& world, Device& device);
};

constexpr Trouble troubles[] = {{"hang", hang},
                                {"hang-in-stream", hang_in_stream},
                                {"error", error},
                                {"death", death},
                                {"behind", behind},
                                {"missing", missing},
                                {"copy", copy},
                                {"make", make},
                                {"event", event},
                                {"init", init},
                                {"stuck", stuck},
                                {"patience", patience},
                                {"leave", leave},
                                {"second", second},
                                {"broken", broken},
                                {"move", move},
                                {"no-slots", no_slots},
                                {"other-op", other_op},
                                {"other-size", other_size},
                                {"other-way", other_way}};

}  // namespace

int main(int count, char** arguments) {
  const auto trouble = std::ranges::find(troubles, count > 1 ? arguments[1] : "", &Trouble::name);
  if (trouble == std::end(troubles)) {
    std::fputs("WRONG: no such trouble\n", stdout);
    return 2;
  }
  Communicator world = hocket::join({.operation_timeout = 20s});
  Device device;
  trouble->run(world, device);
  return failures == 0 ? 0 : 1;
}
