// A user's first program in C++.
#include <cstdio>
#include <string>
#include <vector>

#include <hocket/hocket.hpp>

int main() {
  const std::vector<float> a{1, 2, 3};
  const std::vector<float> b{10, 20, 30};
  std::vector<float> sum(a.size());
  hocket::reduce_local(sum, a, b, hocket::ReduceOp::sum);
  std::printf("hocket %s: %g %g %g\n", std::string(hocket::version()).c_str(), sum[0], sum[1],
              sum[2]);
  return sum == std::vector<float>{11, 22, 33} ? 0 : 1;
}
