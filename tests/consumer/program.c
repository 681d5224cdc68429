/* A user's first program in C. */
#include <stdio.h>

#include <hocket/hocket.h>

int main(void) {
  const float a[] = {1, 2, 3};
  const float b[] = {10, 20, 30};
  float sum[3];
  if (hocket_reduce_local(sum, a, b, 3, HOCKET_F32, HOCKET_OP_SUM) != HOCKET_OK) {
    fprintf(stderr, "%s\n", hocket_last_error());
    return 1;
  }
  printf("hocket %s: %g %g %g\n", hocket_version(), sum[0], sum[1], sum[2]);
  return sum[0] == 11 && sum[1] == 22 && sum[2] == 33 ? 0 : 1;
}
