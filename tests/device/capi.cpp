// The C ABI on device memory: kinds of memory, streams, and works that streams wait for. Prints
// what is wrong, and fails then.
#include <cstddef>
#include <cstdio>
#include <utility>
#include <vector>

#include "hocket/hocket.h"

#include "memory.hpp"

namespace {

using hocket::testing::Device;
using hocket::testing::Vector;

constexpr std::size_t count = 300'000;
int failures = 0;

void expect(bool is_right, const char* what) {
  if (is_right) return;
  ++failures;
  std::printf("WRONG: %s (last error: %s)\n", what, hocket_last_error());
}

struct World {
  hocket_comm* ranks;
  Device& device;
  Vector<float>& data;

  [[nodiscard]] hocket_collective sum() const {
    hocket_collective it = {};
    it.struct_size = sizeof it;
    it.kind = HOCKET_KIND_ALL_REDUCE;
    it.dtype = HOCKET_F32;
    it.in = it.out = data.data();
    it.count = count;
    it.op = HOCKET_OP_SUM;
    return it;
  }
  void expect_values(float wanted, const char* what) const {
    expect(data.values() == std::vector<float>(count, wanted), what);
  }
};

void kinds(World& world) {
  hocket_memory kind = HOCKET_MEMORY_DETECT;
  expect(
      hocket_memory_kind(world.data.data() + 7, &kind) == HOCKET_OK && kind == HOCKET_MEMORY_DEVICE,
      "device memory is known");
  expect(hocket_memory_kind(&world, &kind) == HOCKET_OK && kind == HOCKET_MEMORY_HOST,
         "memory of the host is known");
  for (const auto& [made, wanted] :
       {std::pair{hocket::MemoryKind::pinned, HOCKET_MEMORY_PINNED},
        std::pair{hocket::MemoryKind::managed, HOCKET_MEMORY_MANAGED}}) {
    const auto memory = hocket::device::Memory::make(world.device.runtime(), made, 64).value();
    expect(hocket_memory_kind(memory.data(), &kind) == HOCKET_OK && kind == wanted,
           "other kinds are known");
  }
}

/// Of any kind that is said or found out, and of a program that knows neither kinds nor streams.
void without_a_stream(World& world) {
  const auto size = static_cast<float>(hocket_comm_size(world.ranks));
  for (const hocket_memory kind : {HOCKET_MEMORY_DETECT, HOCKET_MEMORY_DEVICE}) {
    world.data = std::vector<float>(count, 1);
    hocket_collective it = world.sum();
    it.memory = kind;
    expect(hocket_run(world.ranks, &it) == HOCKET_OK, "run");
    world.expect_values(size, "its values");
  }
  world.data = std::vector<float>(count, 1);
  hocket_collective older = world.sum();
  older.struct_size = offsetof(hocket_collective, memory);
  older.has_stream = 1;
  expect(hocket_run(world.ranks, &older) == HOCKET_OK, "an older struct");
  world.expect_values(size, "what it gives");
}

/// Nothing waits but for the stream.
void in_a_stream(World& world) {
  const auto size = static_cast<float>(hocket_comm_size(world.ranks));
  const std::vector<float> ones(count, 1);
  std::vector<float> got;
  hocket_collective it = world.sum();
  it.memory = HOCKET_MEMORY_DEVICE;
  it.has_stream = 1;
  it.stream = world.device.stream().handle;
  world.data.write(ones);
  expect(hocket_run(world.ranks, &it) == HOCKET_OK, "run in a stream");
  hocket_work* work = nullptr;
  expect(hocket_start(world.ranks, &it, &work) == HOCKET_OK, "start behind a stream");
  expect(hocket_work_wait_stream(work, it.stream) == HOCKET_OK, "a stream that waits");
  world.data.read(got);
  hocket_work_free(work);
  world.device.wait();
  expect(got == std::vector<float>(count, size * size), "what is in a stream comes in its order");
}

}  // namespace

int main() {
  hocket_comm* ranks = nullptr;
  if (hocket_join(nullptr, &ranks) != HOCKET_OK) {
    std::printf("no world: %s\n", hocket_last_error());
    return 1;
  }
  {
    Device device;
    Vector<float> data(device, count);
    World world = {ranks, device, data};
    for (const auto check : {kinds, without_a_stream, in_a_stream}) check(world);
  }
  hocket_comm_free(ranks);
  return failures == 0 ? 0 : 1;
}
