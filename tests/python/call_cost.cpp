// What a call of all_reduce takes by the C ABI, with nobody to talk to: the best of many batches,
// in microseconds. For call_cost_test.py, which does the same in Python.
#include <algorithm>
#include <cstdio>

#include "hocket/hocket.h"

#include "base/clock.hpp"

namespace {

constexpr int batches = 200;
constexpr int calls = 500;

}  // namespace

int main() {
  hocket_comm* comm = nullptr;
  if (hocket_join(nullptr, &comm) != HOCKET_OK) {
    (void)std::fprintf(stderr, "%s\n", hocket_last_error());
    return 1;
  }
  float value = 1;
  hocket::Duration best = hocket::Duration::max();
  for (int batch = 0; batch < batches; ++batch) {
    const hocket::Instant begin = hocket::monotonic_clock().now();
    for (int call = 0; call < calls; ++call) {
      if (hocket_all_reduce(comm, &value, &value, 1, HOCKET_F32, HOCKET_OP_SUM) != HOCKET_OK) {
        return 1;
      }
    }
    best = std::min(best, hocket::monotonic_clock().now() - begin);
  }
  hocket_comm_free(comm);
  std::printf("%.3f\n", static_cast<double>(best.count()) / calls / 1000);
  return 0;
}
