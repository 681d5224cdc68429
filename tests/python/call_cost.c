/* What a call of all_reduce takes in C, with nobody to talk to: the best of many batches, in
 * microseconds. For call_cost_test.py, which does the same in Python. */
#define _POSIX_C_SOURCE 199309L /* clock_gettime */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "hocket/hocket.h"

enum { batches = 200, calls = 500 };

static double now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

int main(void) {
  hocket_comm* comm = NULL;
  if (hocket_join(NULL, &comm) != HOCKET_OK) {
    fprintf(stderr, "%s\n", hocket_last_error());
    return 1;
  }
  float values[1] = {1};
  double best = 1e9;
  for (int batch = 0; batch < batches; ++batch) {
    const double begin = now_us();
    for (int call = 0; call < calls; ++call) {
      if (hocket_all_reduce(comm, values, values, 1, HOCKET_F32, HOCKET_OP_SUM) != HOCKET_OK) {
        return 1;
      }
    }
    const double each = (now_us() - begin) / calls;
    if (each < best) best = each;
  }
  hocket_comm_free(comm);
  printf("%.3f\n", best);
  return 0;
}
