// A library that communicates, inside a program that uses Hocket itself. The library has a
// communicator of its own, so its operations never meet the program's, whichever threads call them.
//
//   g++ -std=c++20 library.cpp $(pkg-config --cflags --libs hocket) -pthread -o library
//   hocket run -n 2 -- ./library
#include <cstdio>
#include <thread>
#include <utility>
#include <vector>

#include "hocket/hocket.hpp"

/// The library: it keeps statistics over all ranks.
namespace statistics {

class Mean {
 public:
  /// Joins by the variables that the launcher set, as the program does. The name keeps this world
  /// apart from the program's.
  Mean() : ranks_(hocket::join({.name = "statistics"})) {}
  /// For a program that hands over its communicator. dup() shares the program's threads and
  /// adapters, but its operations never meet the program's. All ranks call it, at the same place
  /// among the program's operations.
  explicit Mean(hocket::Communicator& program) : ranks_(program.dup()) {}

  /// Returns the mean of the values of all ranks.
  double of(double value) {
    double sum[] = {value};
    ranks_.all_reduce(sum);
    return sum[0] / ranks_.size();
  }

 private:
  hocket::Communicator ranks_;
};

}  // namespace statistics

int main() {
  try {
    hocket::Communicator world = hocket::join();
    statistics::Mean own_world;
    statistics::Mean handed_over(world);

    // The library works in a thread, beside the program.
    double means[2] = {};
    std::thread library([&] {
      for (int i = 0; i < 100; ++i) means[0] = own_world.of(world.rank());
      for (int i = 0; i < 100; ++i) means[1] = handed_over.of(world.rank());
    });
    std::vector<int> values(1000, 1);
    for (int i = 0; i < 100; ++i) {
      values.assign(1000, 1);
      world.all_reduce(values);
    }
    library.join();
    std::printf("rank %d: %d ranks, whose mean is %g and %g\n", world.rank(), values[0], means[0],
                means[1]);
  } catch (const hocket::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
