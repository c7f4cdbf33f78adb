// Into how many chunks a kernel of the CPU is cut, each of which another thread may run: what takes a few microseconds is one.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <tinygrad/context.h>

#include "codegen/kernels.h"
#include "device/device.h"
#include "program/program.h"

namespace tinygrad {
namespace {

using codegen::test::elementwise;
using codegen::test::joined_attention;
using codegen::test::matmul;
using codegen::test::row_sums;
using codegen::test::softmax;
using codegen::test::transpose;

/// By architecture.
class Chunks : public testing::TestWithParam<const char*> {
 protected:
  int64_t of(const UOp& kernel) const {
    return lower_program(kernel, Device::get("NULL").target(), current_options()).info.launch_dims({}).chunks;
  }
  double cycles(const UOp& kernel) const {
    return codegen::heuristic_cost(codegen::simplified_kernel(kernel), Device::get("NULL").target()).value();
  }

 private:
  const std::string dev_ = fmt::format("NULL:LLVM:{}", GetParam());
  const Context context_{{.beam = 0, .dev = dev_.c_str(), .noopt = false}};
};
INSTANTIATE_TEST_SUITE_P(Archs, Chunks, testing::Values("x86-64-v2", "x86-64-v3", "x86-64-v4", "znver4"), [](const auto& tested) {
  std::string name = tested.param;
  std::erase(name, '-');
  return name;
});

TEST_P(Chunks, SmallKernelsAreOne) {
  EXPECT_EQ(of(elementwise(16384)), 1);
  EXPECT_EQ(of(matmul(32, 32, 32)), 1);
  EXPECT_EQ(of(row_sums(128, 256)), 1);
  EXPECT_EQ(of(softmax(64, 64)), 1);
  EXPECT_EQ(of(transpose(64, 64)), 1);
}

TEST_P(Chunks, LargeKernelsAreMore) {
  EXPECT_GT(of(elementwise(1 << 20)), 1);
  EXPECT_GT(of(matmul(128, 128, 128)), 1);
  EXPECT_GT(of(row_sums(1024, 1024)), 1);
  EXPECT_GT(of(softmax(256, 256)), 1);
  EXPECT_GT(of(transpose(512, 512)), 1);
}

// 937,679 vectors of 8, the last one masked, have no good divisor.
TEST_P(Chunks, OfOddSizesHaveLoops) { EXPECT_LE(of(elementwise(7501428)), 256); }

// Each chunk of columns would compute the scores of all its rows again. Vectors have four lanes at least, so that 17 rows are 5 steps.
TEST_P(Chunks, AttentionIsCutByRows) {
  for (const int64_t keys : {65, 1000}) EXPECT_LE(of(joined_attention(17, keys, 128)), 5) << keys;
}

// To start and to wait for a thread takes about a microsecond, 3,000 to 5,000 cycles.
TEST_P(Chunks, WhatIsCutTakesLongerThanThreadsDo) {
  for (int64_t n = 8; n <= 160; n += 8)
    for (const UOp& kernel : {matmul(n, n, n), row_sums(4 * n, 4 * n), softmax(n, n), matmul(n, 16, n)}) {
      if (of(kernel) == 1) continue;
      EXPECT_GE(cycles(kernel), 16384) << n;
    }
}

}  // namespace
}  // namespace tinygrad
