// Where loads that are not made point.
#include "codegen/late/speculate_loads.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "program/run_kernel.h"

namespace tinygrad::codegen {
namespace {

using namespace test;

UOp read_where(const UOp& memory, const UOp& at, const UOp& valid) { return load(index_valid(memory, at, valid)); }

/// out = the rows of a, each moved to the left by some elements, and then the rows of b.
UOp joined(int64_t rows, int64_t n, int64_t moved = 0) {
  const UOp row = loop(2 * rows, 0), x = loop(n, 1), at = row * n + x, is_first = row < rows;
  const UOp a = read_where(arg(1, rows * n), at + moved, moved == 0 ? is_first : is_first & (x < n - moved));
  const UOp b = read_where(arg(2, rows * n), at - rows * n, logical_not(is_first));
  return kernel({ended(write(arg(0, 2 * rows * n), at, where(is_first, a, b)), {row, x})});
}

/// out[row, x] = a[row - 1, x], with zeros in front.
UOp padded(int64_t rows, int64_t n) {
  const UOp row = loop(rows, 0), x = loop(n, 1), at = row * n + x;
  const UOp value = read_where(arg(1, (rows - 1) * n), at - n, logical_not(row < 1));
  return kernel({ended(write(arg(0, rows * n), at, value), {row, x})});
}

UOp lowered(const UOp& kernel, const char* opts = "LANE(1,8)") {
  return full_rewrite(with_opts(kernel, parse_opts(opts)), cpu_target("x86-64-v3"), {.noopt = true, .spec = 3});
}

size_t loads(const UOp& graph, auto&& is) {
  return size_t(std::ranges::count_if(toposort(graph), [&](const UOp& u) { return u.is(Op::LOAD) && is(u); }));
}
bool is_gated(const UOp& load) { return load.src_count() == 3; }
bool is_kept_near(const UOp& load) { return load.src(0).src(1).is(Op::WHERE); }

TEST(SpeculateLoads, RunsOfAnotherArrayAreReadAtItsBegin) {
  const UOp linear = lowered(joined(20, 64));
  EXPECT_EQ(loads(linear, is_kept_near), 2u);
  EXPECT_EQ(loads(linear, is_gated), 0u);
}

TEST(SpeculateLoads, WhatLanesHaveOfTheirOwnStaysAMask) {
  const UOp linear = lowered(joined(20, 64, 1));
  EXPECT_EQ(loads(linear, is_kept_near), 4u);  // the last iteration is written by itself
  EXPECT_EQ(loads(linear, is_gated), 1u);
}

TEST(SpeculateLoads, RunsNearMemoryStayMaskedLoads) {
  for (const UOp& kernel : {joined(2, 64), padded(50, 32)}) {
    const UOp linear = lowered(kernel);
    EXPECT_EQ(loads(linear, is_kept_near), 0u);
    EXPECT_GT(loads(linear, is_gated), 0u);
  }
}

/// A load of 8 elements of a where i is below 1, and a STORE to `written`.
UOp gated_run(int64_t size, int written) {
  const UOp i = loop(1000, 0), gate(Op::EXPAND, DType::bool_, {i < 1, constant(DType::int32, 8)}),
            none(Op::EXPAND, DType::float32, {constant(DType::float32, 2.0), constant(DType::int32, 8)});
  const UOp run(Op::LOAD, DType::float32, {index(arg(1, size), i * 16, 8), none, gate});
  return kernel({ended(store(index(arg(written, size), constant(DType::int32, 0), 8), run), {i})});
}

TEST(SpeculateLoads, OnlyElementsThatMayBeReadAre) {
  const auto gates = [](const UOp& kernel) { return loads(speculate_loads(kernel), is_gated); };
  EXPECT_EQ(gates(gated_run(8, 0)), 0u);
  EXPECT_EQ(gates(gated_run(7, 0)), 1u);  // shorter than the run
  EXPECT_EQ(gates(gated_run(8, 1)), 1u);  // another thread may be writing it
  for (const int64_t size : {7, 8}) EXPECT_EQ(loads(speculate_loads(gated_run(size, 0)), is_kept_near), 1u);
}

TEST(SpeculateLoads, ValuesAreTheSame) {
  for (const UOp& kernel : {joined(20, 64), joined(20, 64, 1), joined(17, 83, 3), joined(2, 64), padded(50, 32)})
    for (const char* opts : {"LANE(1,8)", "LANE(1,16) UPCAST(0,2) UPCAST(1,2)"}) {
      SCOPED_TRACE(opts);
      for (const char* arch : {"x86-64-v3", "znver4", "neoverse-n1"})
        EXPECT_EQ(difference_on_interp(kernel, parse_opts(opts), cpu_target(arch)), "") << arch;
      for (const char* device : {"CPU:LLVM", "CPU:CLANG"}) EXPECT_EQ(difference_on_cpu(kernel, parse_opts(opts), device), "") << device;
    }
}

}  // namespace
}  // namespace tinygrad::codegen
