// What becomes of collectives on device memory when something fails. The first argument says what:
//   hang      a kernel of the fake NCCL never ends: the deadline ends it
//   error     it raises an asynchronous error
//   death     a rank dies in a staged operation
//   missing   a rank never comes to the first operation
//   copy      the device's runtime fails
//   init      NCCL's own beginning does not end
//   stuck     a rank does not come to an operation (also with a real NCCL)
// Prints what is wrong, and fails then.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

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

/// Sanitizers take their time, and so do machines that are shared.
constexpr Duration soon = 2s;
constexpr Duration slack = 50ms;

void check_all_fails_now(Communicator& world, Device& device) {
  Vector<float> data(device, 16);
  const Failure again = failure_of([&] { world.all_reduce(data.all()); });
  expect(again.code != StatusCode::ok && again.after < 100ms, "later operations fail at once");
  std::vector<float> host(16);
  const Failure hosts = failure_of([&] { world.all_reduce<float>(host); });
  expect(hosts.code != StatusCode::ok, "and so do the host's");
}

void hang(Communicator& world, Device& device) {
  Vector<float> data(device, 1000);
  world.all_reduce(data.all());
  const auto it = Collective::all_reduce<float>(data.in(), data.all(), {}, {.timeout = 300ms});
  expect_failure(failure_of([&] { world.run(it); }), StatusCode::timeout, "not over in time",
                 300ms + soon);
  check_all_fails_now(world, device);
  device.wait();  // nothing holds up the stream
}

/// Nobody waits for it: the stream goes on, and the next operation says why.
void hang_in_stream(Communicator& world, Device& device) {
  Vector<float> data(device, 1000);
  world.all_reduce(data.all());
  world.run(Collective::all_reduce<float>(data.in(), data.all(), {},
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
    expect_failure(failure, StatusCode::peer_lost, "remote process exited", soon);
    expect(failure.after < 100ms, "an asynchronous error takes more than 100 ms");
  }
  expect(failure.code != StatusCode::ok, "an error on another rank");
  check_all_fails_now(world, device);
}

void death(Communicator& world, Device& device) {
  Vector<float> data(device, 4'000'000);
  world.all_reduce(data.all());
  world.barrier();
  if (world.rank() == world.size() - 1) ::_exit(0);
  const Failure failure = failure_of([&] { world.all_reduce(data.all()); });
  expect(failure.code == StatusCode::peer_lost, fmt::format("a death: {}", failure.text));
  expect(failure.after < soon, "a death is seen late");
  check_all_fails_now(world, device);
  device.wait();
}

void missing(Communicator& world, Device& device) {
  Vector<float> data(device, 16);
  if (world.rank() == 0) {
    std::this_thread::sleep_for(1s);
    return;
  }
  const auto it = Collective::all_reduce<float>(data.in(), data.all(), {}, {.timeout = 300ms});
  const Failure failure = failure_of([&] { world.run(it); });
  expect_failure(failure, StatusCode::timeout, "all_reduce", 300ms + soon);
}

void copy(Communicator& world, Device& device) {
  Vector<float> data(device, 4'000'000);
  hocket::fake::fail_copy(2);
  const Failure failure = failure_of([&] { world.all_reduce(data.all()); });
  hocket::fake::fail_copy(0);
  expect_failure(failure, StatusCode::system_error, "an illegal address", soon);
  check_all_fails_now(world, device);
}

void init(Communicator& world, Device& device) {
  Vector<float> data(device, 16);
  const auto it = Collective::all_reduce<float>(data.in(), data.all(), {}, {.timeout = 300ms});
  expect_failure(failure_of([&] { world.run(it); }), StatusCode::timeout,
                 "ncclCommInitRankConfig was not over in time", 300ms + soon);
}

void stuck(Communicator& world, Device& device) {
  Vector<float> data(device, 1000);
  world.all_reduce(data.all());
  world.barrier();
  if (world.rank() == 0) {
    std::this_thread::sleep_for(2s);
    return;
  }
  const auto it = Collective::all_reduce<float>(data.in(), data.all(), {}, {.timeout = 500ms});
  const Failure failure = failure_of([&] { world.run(it); });
  expect_failure(failure, StatusCode::timeout, "not over in time", 600ms + slack);
  device.wait();
}

struct Trouble {
  std::string_view name;
  void (*run)(Communicator& world, Device& device);
};

constexpr Trouble troubles[] = {{"hang", hang},   {"hang-in-stream", hang_in_stream},
                                {"error", error}, {"death", death},
                                {"copy", copy},   {"missing", missing},
                                {"init", init},   {"stuck", stuck}};

}  // namespace

int main(int count, char** arguments) {
  Communicator world = hocket::join({.operation_timeout = 20s});
  Device device;
  for (const Trouble& each : troubles) {
    if (count > 1 && each.name == arguments[1]) each.run(world, device);
  }
  return failures == 0 ? 0 : 1;
}
