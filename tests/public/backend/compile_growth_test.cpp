// A graph of four times the size takes about four times as long to compile.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
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

/// Both sides do the same work and take turns: the machine's speed changes while they run.
double growth() {
  const double before = seconds_to_compile(250) + seconds_to_compile(250);
  const double many = seconds_to_compile(1000);
  const double after = seconds_to_compile(250) + seconds_to_compile(250);
  return 4 * many / (before + after);
}

TEST(CompileGrowth, UnrolledRnn) {
  const Context context{{.dev = "NULL", .parallel = 0, .spec = 0}};
  std::array<double, 3> rounds = {growth(), growth(), growth()};
  std::sort(rounds.begin(), rounds.end());
  EXPECT_LE(rounds[1], 5) << "of " << rounds[0] << " to " << rounds[2];
}

}  // namespace
}  // namespace tinygrad
