// A graph of four times the size takes about four times as long to compile.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include <tinygrad/compile_report.h>
#include <tinygrad/tinygrad.h>

namespace tinygrad {
namespace {

/// Of this process: what else the machine does must not count.
double processor_seconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

Tensor unrolled_rnn(int64_t steps) {
  const Tensor w = Tensor::empty({32, 32}), u = Tensor::empty({16, 32}), x = Tensor::empty({steps, 4, 16});
  Tensor h = Tensor::empty({4, 32});
  for (int64_t i = 0; i < steps; ++i) {
    const Tensor now = x.shrink({{i, i + 1}, {0, 4}, {0, 16}}).reshape({4, 16});
    h = (h.matmul(w) + now.matmul(u)).tanh();
  }
  return h;
}

double seconds_to_compile(int64_t steps) {
  const Tensor h = unrolled_rnn(steps);
  const double start = processor_seconds();
  EXPECT_EQ(compile_report(std::vector<Tensor>{h}).kernels, size_t(steps));
  return processor_seconds() - start;
}

TEST(CompileGrowth, UnrolledRnn) {
  const Context context{{.dev = "NULL", .parallel = 0, .spec = 0}};
  double few = 1e30, many = 1e30;  // the least of several, in turns: the machine's speed changes
  for (int i = 0; i < 4; ++i) {
    few = std::min({few, seconds_to_compile(250), seconds_to_compile(250)});
    many = std::min(many, seconds_to_compile(1000));
  }
  EXPECT_LE(many, 5 * few) << "250 steps took " << few << " s";
}

}  // namespace
}  // namespace tinygrad
