// The staged way where the other ranks can't be reached: every operation ends, and nothing stays
// behind. And the fake device's events as operations use them. Prints what is wrong, and fails
// then.
#include "device/staged.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/clock.hpp"
#include "device/table.hpp"
#include "fake_device.hpp"

extern "C" FAKE_DEVICE_API const hocket::device::Table* hocket_device_v0();

namespace {

using hocket::Collective;
using hocket::CollectiveKind;
using hocket::monotonic_clock;
using hocket::Status;
using hocket::StatusCode;
using hocket::device::Operation;
using hocket::device::Staged;

[[noreturn]] void give_up(const char* what) {
  std::printf("WRONG: %s\n", what);
  std::exit(1);
}

class NoOthers final : public hocket::device::HostSide {
 public:
  hocket::engine::Engine& engine() override { give_up("nothing is under way among the hosts"); }
  Status start(const Collective& /*collective*/, std::size_t /*place*/,
               hocket::engine::Work& /*work*/, hocket::Deadline /*deadline*/) override {
    return {StatusCode::system_error, "a channel can't be opened"};
  }
  Status register_device_memory(const hocket::RegisteredMemory& /*memory*/,
                                int /*dma_buf*/) override {
    return {StatusCode::unsupported, "there is no adapter"};
  }
  void note_call(Operation& /*operation*/) override {}
  void compare_call(std::uint64_t /*number*/, hocket::Instant /*now*/) noexcept override {}
  std::uint64_t begin_record(const Operation& /*operation*/,
                             hocket::Instant /*now*/) noexcept override {
    return 0;
  }
  void end_record(std::uint64_t /*record*/, bool /*is_done*/) noexcept override {}
  Status watch() override { return {}; }
  Status loss(hocket::Instant /*now*/) override { return {}; }
  void fail(const Status& /*why*/) override {}
};

/// How many windows it has is agreed on first.
void exchange_uneven_parts(Staged& staged, Operation& operation) {
  static constexpr std::array<std::size_t, 2> counts = {1, 2};
  operation.collective = {
      .kind = CollectiveKind::all_to_all, .counts = counts, .counts_from = counts};
  operation.work.begin();
  staged.push(operation);
  for (int i = 0; i < 10 && !operation.work.is_over(); ++i) {
    (void)staged.progress(monotonic_clock().now());
  }
  if (!operation.work.is_over()) give_up("an operation does not end");
  if (operation.work.status().code() != StatusCode::system_error) give_up("it does not fail");
}

bool ends_soon(const hocket::device::Runtime& runtime, const hocket::device::Event& event) {
  const auto until = hocket::Deadline::after(monotonic_clock(), std::chrono::seconds(5));
  while (!hocket::device::is_over(runtime, event).value()) {
    if (until.passed(monotonic_clock().now())) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return true;
}

struct Hold final : hocket::fake::Task {
  explicit Hold(const std::atomic<bool>& until) : goes_on(until) {}
  bool is_over() override { return goes_on; }
  const std::atomic<bool>& goes_on;
};

/// Two operations in a row that have one event, as those of no elements: they are over before it
/// is, and the user's stream is ahead of the communicator's.
void reuse_an_event(const hocket::device::Runtime& runtime) {
  const auto users = hocket::device::make_stream(runtime).value();
  const auto own = hocket::device::make_stream(runtime).value();
  const auto ready = hocket::device::make_event(runtime).value();
  const auto is_ahead = hocket::device::make_event(runtime).value();
  std::atomic<bool> goes_on = false;
  hocket::fake::enqueue(own.get(), new Hold(goes_on));
  for (int i = 0; i < 2; ++i) {
    (void)hocket::device::record(runtime, ready, users.get());
    (void)hocket::device::hold_up(runtime, own.get(), ready);
    (void)hocket::device::record(runtime, ready, own.get());
  }
  (void)hocket::device::record(runtime, is_ahead, users.get());
  if (!ends_soon(runtime, is_ahead)) give_up("the user's stream does not end");
  goes_on = true;
  if (!ends_soon(runtime, ready)) give_up("a late record takes back a later one");
}

}  // namespace

int main() {
  const hocket::device::Runtime runtime(*hocket_device_v0());
  reuse_an_event(runtime);
  NoOthers host;
  const auto staged = Staged::make(runtime, host, {.rank = 0, .size = 2}, 1 << 20).value();
  std::array<Operation, 2> operations;
  for (Operation& each : operations) exchange_uneven_parts(*staged, each);
}
