// Communicators that come and go leave nothing behind: memory and descriptors are as many after
// thousands as after some. All ranks of a world run it, with the number of cycles as its argument.
// Prints what is wrong, and fails then.
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <vector>

#include <malloc.h>

#include <fmt/format.h>

#include "hocket/hocket.hpp"

namespace {

using hocket::Communicator;
using hocket::Message;

/// Of the heap, in so many cycles: what is kept until other ranks have seen it varies by about 20
/// KB. 4 bytes a cycle would be noticed.
std::size_t growth_max(int cycles) {
  return std::max<std::size_t>(20'000, 2 * static_cast<std::size_t>(cycles));
}

struct Use {
  std::size_t bytes = 0;
  std::size_t descriptors = 0;
};

Use use() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return {.bytes = ::mallinfo2().uordblks,
          .descriptors = static_cast<std::size_t>(std::distance(begin(files), end(files)))};
}

/// Not all ranks are in all communicators, and not all use theirs.
bool run_cycle(Communicator& world, int number) {
  const int color = (number + world.rank()) % world.size() == 0 && number % 3 == 0 ? -1 : 0;
  Communicator part = world.split(color);
  if (!part || number % 5 == 4) return true;
  std::vector<float> values(16, 1.0F);
  part.all_reduce(values);
  if (values[7] != static_cast<float>(part.size())) return false;
  if (number % 4 == 0 && part.size() > 1) {
    const int next = (part.rank() + 1) % part.size();
    const int previous = (part.rank() + part.size() - 1) % part.size();
    part.sendrecv(Message::send(values, next), Message::recv(values, previous));
  }
  return true;
}

}  // namespace

int main(int count, char** words) {
  Communicator world = hocket::join();
  const int cycles = count > 1 ? std::atoi(words[1]) : 2000;
  Use before;
  for (int i = 0; i < cycles; ++i) {
    if (i == cycles / 4) {
      world.barrier();
      before = use();
    }
    if (!run_cycle(world, i)) {
      fmt::print("WRONG: values of cycle {}\n", i);
      return 1;
    }
  }
  world.barrier();
  const Use after = use();
  fmt::print("rank {}: {} bytes and {} descriptors after {} cycles, {} and {} after {}\n",
             world.rank(), before.bytes, before.descriptors, cycles / 4, after.bytes,
             after.descriptors, cycles);
  const bool is_flat = after.bytes < before.bytes + growth_max(cycles) &&
                       after.descriptors < before.descriptors + 20;
  if (!is_flat) fmt::print("WRONG: that grows\n");
  return is_flat ? 0 : 1;
}
