// Every rank contributes its number; all ranks get the sum.
#include <cstdio>
#include <vector>

#include "hocket/hocket.hpp"

int main() {
  hocket::Communicator world = hocket::join();
  std::vector<float> values(4, static_cast<float>(world.rank() + 1));
  world.all_reduce(values);
  std::printf("rank %d of %d: the sum is %g\n", world.rank(), world.size(), values[0]);
}
