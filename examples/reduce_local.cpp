// Adds two vectors of bfloat16 with the arithmetic that Hocket's collectives use.
#include <cstdio>
#include <vector>

#include "hocket/hocket.hpp"

int main() {
  using hocket::bfloat16;
  const std::vector<bfloat16> a(4, bfloat16(1.5f));
  const std::vector<bfloat16> b(4, bfloat16(0.25f));
  std::vector<bfloat16> sum(4);
  hocket::reduce_local(sum, a, b, hocket::ReduceOp::sum);
  std::printf("hocket %s: 1.5 + 0.25 = %g\n", hocket::version().data(), float(sum[0]));
}
