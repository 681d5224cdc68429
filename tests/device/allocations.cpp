// Operations on device memory allocate none, but a communicator's first by each way. Prints what is
// wrong, and fails then. For the fake device, which counts.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "hocket/hocket.hpp"

#include "fake_device.hpp"
#include "memory.hpp"

namespace {

using hocket::Collective;
using hocket::Communicator;
using hocket::ReduceOp;
using hocket::testing::Device;
using hocket::testing::Vector;

/// One that NCCL can and one that it can't, of any size, in each way to begin it.
void operate(Communicator& world, Device& device, std::vector<Vector<std::int32_t>>& vectors) {
  for (const auto& each : vectors) {
    for (const ReduceOp op : {ReduceOp::max, ReduceOp::bit_or}) {
      Collective it = Collective::all_reduce(each.in(), each.all(), op);
      world.run(it);
      world.start(it).wait();
      it.options.stream = device.stream();
      world.run(it);
      world.start(it).wait(device.stream());
    }
  }
  world.run(Collective::barrier({.stream = device.stream()}));
  device.wait();
}

}  // namespace

int main() {
  Communicator world = hocket::join();
  Device device;
  std::vector<Vector<std::int32_t>> vectors;
  for (const std::size_t count : {std::size_t{1}, std::size_t{3'000'000}}) {
    vectors.emplace_back(device, std::vector<std::int32_t>(count, world.rank()));
  }
  operate(world, device, vectors);
  const unsigned before = hocket::fake::allocations();
  for (int i = 0; i < 5; ++i) operate(world, device, vectors);
  const unsigned more = hocket::fake::allocations() - before;
  if (more > 0) std::printf("WRONG: %u allocations, behind the first operations\n", more);
  world.barrier();
  return more == 0 && before > 0 ? 0 : 1;
}
