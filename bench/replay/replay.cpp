// A jitted chain of small kernels: microseconds of a replay per kernel, and of a call with one kernel, as one JSON object.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <tinygrad/tinygrad.h>

using namespace tinygrad;

namespace {

/// Median microseconds of a call.
double microseconds(uint64_t kernels) {
  const auto chain = jit([&](const Tensor& x) {
    Tensor y = x;
    for (uint64_t i = 0; i < kernels; ++i) y = (y * 0.5 + 1).realize();
    return y;
  });
  const Tensor x = Tensor::rand({16}).realize();
  for (int i = 0; i < 2; ++i) chain(x);  // runs, is captured
  GlobalCounters::reset();
  chain(x);
  if (GlobalCounters::kernel_count != kernels) std::abort();
  std::vector<double> times;
  for (int i = 0; i < 2000; ++i) {
    const auto start = std::chrono::steady_clock::now();
    chain(x);
    times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + 1000, times.end());
  return times[1000];
}

}  // namespace

int main() {
  const double hundred = microseconds(100), one = microseconds(1);
  std::printf(R"({"kernel": %.4f, "call": %.4f})"
              "\n",
              hundred / 100, one);
}
