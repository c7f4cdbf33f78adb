// The first and the last iterations of a loop are written by themselves where they alone need masks.
#include <gtest/gtest.h>

#include "codegen/split_range.h"
#include "program/run_kernel.h"
#include "shape/ranges.h"

namespace tinygrad::codegen {
namespace {

using namespace test;

/// out[i] = sum over k of a[i, k]
UOp row_sums(int64_t rows, int64_t columns) {
  const UOp i = loop(rows, 0), k = reduce_loop(columns, 1);
  return kernel({ended(write(arg(0, rows), i, reduce_over(Op::ADD, read(arg(1, rows * columns), i * columns + k), {k})), {i})});
}

/// a[i, j] = a[i, j] * sum over k of a[i, k], in place where `updates`
UOp scaled_by_sums(int64_t rows, int64_t columns, bool updates) {
  const UOp i = loop(rows, 0), j = loop(columns, 1), k = reduce_loop(columns, 2), from = arg(updates ? 0 : 1, rows * columns);
  const UOp other = arg(updates ? 1 : 2, rows * columns), sum = reduce_over(Op::ADD, read(other, i * columns + k), {k});
  return kernel({ended(write(arg(0, rows * columns), i * columns + j, read(from, i * columns + j) * sum), {i, j})});
}

/// The same of rows with zeros before and behind them.
UOp padded_row_sums(int64_t rows, int64_t columns, int64_t before, int64_t behind) {
  const UOp i = loop(rows, 0), k = reduce_loop(before + columns + behind, 1), at = k - before;
  const UOp valid = (index_const(-1) < at) & (at < index_const(columns));
  const UOp x = load(mask_index(index(arg(1, rows * columns), i * columns + at), valid));
  return kernel({ended(write(arg(0, rows), i, reduce_over(Op::ADD, x, {k})), {i})});
}

/// A convolution in groups of every second element of rows, with zeros around them.
UOp padded_windows(int64_t batch, int64_t groups, int64_t outputs, int64_t results, int64_t inputs, int64_t window, int64_t before) {
  const int64_t columns = results + window - 1 - 2 * before;
  const UOp n = loop(batch, 0), g = loop(groups, 1), o = loop(outputs, 2), i = loop(results, 3);
  const UOp c = reduce_loop(inputs, 4), k = reduce_loop(window, 5), at = i + k - before;
  const UOp valid = logical_not(at < index_const(0)) & (at < index_const(columns)), row = (n * groups + g) * inputs + c;
  const UOp x = load(mask_index(index(arg(1, batch * groups * inputs * columns * 2), row * (columns * 2) + at * 2), valid));
  const UOp factor = read(arg(2, groups * outputs * inputs * window), ((g * outputs + o) * inputs + c) * window + k);
  const UOp place = ((n * groups + g) * outputs + o) * results + i;
  const UOp result = write(arg(0, batch * groups * outputs * results), place, reduce_over(Op::ADD, x * factor, {c, k}));
  return kernel({ended(result, {n, g, o, i})});
}

/// Masked accesses in loops that have no loops inside.
size_t masked_in_loops(const UOp& linear) {
  size_t masked = 0, since = 0;
  bool innermost = false;
  for (const UOp& u : linear.src()) {
    if (u.is(Op::RANGE)) innermost = true, since = 0;
    if (u.is(Op::LOAD) || u.is(Op::STORE)) since += u.src_count() == 3;
    if (u.is(Op::END)) masked += innermost ? since : 0, innermost = false;
  }
  return masked;
}

UOp lowered(const UOp& kernel, const char* opts, const char* arch = "x86-64-v3") {
  return full_rewrite(with_opts(kernel, parse_opts(opts)), cpu_target(arch), {.noopt = true, .spec = 3});
}

TEST(PeelEnds, LoopsHaveNoMasks) {
  EXPECT_EQ(masked_in_loops(lowered(row_sums(6, 75), "LANE(1,8) UPCAST(0,2)")), 0u);
  EXPECT_EQ(masked_in_loops(lowered(row_sums(6, 75), "LANE(1,8) UNROLL(1,4)")), 0u);
  EXPECT_EQ(masked_in_loops(lowered(scaled_by_sums(6, 75, false), "LANE(1,8) LANE(2,8)")), 0u);
  EXPECT_EQ(masked_in_loops(lowered(elementwise(1001), "LANE(0,8) UPCAST(0,4)")), 0u);
}

// Of a chunk's fill, the first elements may be masked: in the first chunk, and in no other.
TEST(PeelEnds, FillsOfChunks) {
  for (const int64_t before : {1, 2})
    for (const char* opts : {"LANE(3,8) UPCAST(0,3) BLOCK(2,3) UPCAST(3,3) SWAP(0,1) SWAP(1,2) THREAD(4,6) STAGE(0,1,thread,1)",
                             "LANE(3,8) UPCAST(0,3) SWAP(0,1) SWAP(1,2) THREAD(3,6) STAGE(0,1,thread,1)",
                             "LANE(3,8) THREAD(3,4) STAGE(0,1,thread,1)", "UPCAST(0,3) SWAP(0,1) THREAD(3,19) STAGE(0,1,thread,1)"}) {
      SCOPED_TRACE(std::string(opts) + ", " + std::to_string(before) + " before");
      const UOp kernel = padded_windows(3, 2, 4, 94, 2, 1 + before, before);
      EXPECT_EQ(difference_on_interp(kernel, parse_opts(opts), cpu_target("x86-64-v3")), "");
      EXPECT_EQ(difference_on_cpu(kernel, parse_opts(opts)), "");
    }
}

TEST(PeelEnds, AtBothEnds) {
  EXPECT_EQ(masked_in_loops(lowered(padded_row_sums(6, 64, 3, 0), "LANE(1,8) UPCAST(0,2)")), 0u);
  EXPECT_EQ(masked_in_loops(lowered(padded_row_sums(6, 64, 3, 3), "LANE(1,8) UPCAST(0,2)")), 0u);
  EXPECT_EQ(masked_in_loops(lowered(padded_row_sums(6, 64, 2, 14), "LANE(1,8)")), 0u);
  EXPECT_GT(masked_in_loops(lowered(padded_row_sums(6, 64, 11, 11), "LANE(1,8)")), 0u);
  EXPECT_EQ(count(lowered(padded_row_sums(6, 12, 2, 2), "LANE(1,8)"), Op::RANGE), 1u);  // nothing is left of two iterations
  for (const auto& [before, behind] : {std::pair(3, 0), {0, 3}, {3, 3}, {2, 14}, {5, 11}, {11, 11}})
    for (const int64_t columns : {10, 16, 40, 64, 77})
      for (const char* opts : {"LANE(1,8)", "LANE(1,8) UPCAST(0,3)", "LANE(1,4) UNROLL(1,2)", "LANE(0,4) UPCAST(0,2)"}) {
        SCOPED_TRACE(std::string(opts) + ", " + std::to_string(columns) + " columns behind " + std::to_string(before));
        const UOp kernel = padded_row_sums(8, columns, before, behind);
        EXPECT_EQ(difference_on_interp(kernel, parse_opts(opts), cpu_target("x86-64-v3")), "");
        EXPECT_EQ(difference_on_cpu(kernel, parse_opts(opts)), "");
      }
}

/// Innermost loops, and those of them with masked accesses.
std::pair<size_t, size_t> loops_and_masked(const UOp& linear) {
  std::pair<size_t, size_t> out;
  bool innermost = false, masked = false;
  for (const UOp& u : linear.src()) {
    if (u.is(Op::RANGE)) innermost = true, masked = false;
    if (u.is(Op::LOAD) || u.is(Op::STORE)) masked = masked || u.src_count() == 3;
    if (u.is(Op::END) && innermost) ++out.first, out.second += masked, innermost = false;
  }
  return out;
}

TEST(PeelEnds, InFrontOfTheEndOfAChunk) {
  EXPECT_EQ(loops_and_masked(lowered(elementwise(100003), "LANE(0,8) THREAD(0,90)")), std::pair(size_t{2}, size_t{1}));
  EXPECT_EQ(loops_and_masked(lowered(elementwise(100003), "LANE(0,8) UPCAST(0,4) THREAD(0,90)")), std::pair(size_t{2}, size_t{1}));
  EXPECT_EQ(loops_and_masked(lowered(elementwise(100000), "LANE(0,8) THREAD(0,90)")), std::pair(size_t{2}, size_t{1}));
  EXPECT_EQ(loops_and_masked(lowered(elementwise(8 * 90 * 7), "LANE(0,8) THREAD(0,90)")), std::pair(size_t{1}, size_t{0}));
  for (const int64_t n : {57, 63, 64, 65, 999, 1000, 1001, 1007, 1023})
    for (const char* opts : {"LANE(0,8) THREAD(0,2)", "LANE(0,8) THREAD(0,7)", n < 999 ? "THREAD(0,7)" : "LANE(0,8) THREAD(0,90)",
                             "LANE(0,4) UPCAST(0,3) THREAD(0,5)", "LANE(0,8) UPCAST(0,2) THREAD(0,3)", "THREAD(0,4)"}) {
      SCOPED_TRACE(std::string(opts) + ", " + std::to_string(n) + " elements");
      const UOp kernel = elementwise(n);
      EXPECT_EQ(difference_on_interp(kernel, parse_opts(opts), cpu_target("x86-64-v3")), "");
      for (const char* device : {"CPU:LLVM", "CPU:CLANG"}) EXPECT_EQ(difference_on_cpu(kernel, parse_opts(opts), device), "");
    }
  for (const bool updates : {false, true})
    for (const char* opts : {"LANE(1,8) THREAD(0,4)", "LANE(1,8) LANE(2,8) THREAD(1,3)", "LANE(0,4) THREAD(0,2)"}) {
      SCOPED_TRACE(std::string(opts) + ", " + (updates ? "in place" : "apart"));
      const UOp kernel = scaled_by_sums(6, 75, updates);
      EXPECT_EQ(difference_on_interp(kernel, parse_opts(opts), cpu_target("x86-64-v3")), "");
      EXPECT_EQ(difference_on_cpu(kernel, parse_opts(opts)), "");
    }
}

TEST(PeelEnds, OnlyWhereThatSavesMasks) {
  const auto loops = [](const UOp& kernel, const char* opts) { return count(lowered(kernel, opts), Op::RANGE); };
  const auto stores = [](const UOp& kernel, const char* opts) { return count(lowered(kernel, opts), Op::STORE); };
  EXPECT_EQ(stores(elementwise(1000), "LANE(0,8)"), 1u);
  EXPECT_EQ(stores(elementwise(1001), "LANE(0,8)"), 2u);
  EXPECT_EQ(stores(elementwise(1001), ""), 1u);
  EXPECT_EQ(loops(row_sums(6, 75), "LANE(1,8)"), 2u);
}

TEST(PeelEnds, ValuesAreTheSame) {
  for (const char* opts : {"LANE(1,8)", "LANE(1,8) UPCAST(0,2)", "LANE(1,4) UNROLL(1,3)", "LANE(1,8) UNROLL(1,8) THREAD(0,6)"})
    for (const int64_t columns : {65, 72, 75, 129}) {
      SCOPED_TRACE(std::string(opts) + ", " + std::to_string(columns) + " columns");
      EXPECT_EQ(difference_on_interp(row_sums(6, columns), parse_opts(opts), cpu_target("x86-64-v3")), "");
      for (const char* device : {"CPU:LLVM", "CPU:CLANG"}) EXPECT_EQ(difference_on_cpu(row_sums(6, columns), parse_opts(opts), device), "");
    }
  for (const bool updates : {false, true})
    for (const char* opts : {"LANE(1,8) LANE(2,8)", "LANE(1,8) LANE(2,4) UPCAST(0,3)", "LANE(1,4) LANE(2,4) UPCAST(1,2) UNROLL(2,2)"})
      for (const int64_t columns : {17, 64, 75}) {
        SCOPED_TRACE(std::string(opts) + ", " + std::to_string(columns) + " columns, " + (updates ? "in place" : "apart"));
        const UOp kernel = scaled_by_sums(6, columns, updates);
        EXPECT_EQ(difference_on_interp(kernel, parse_opts(opts), cpu_target("x86-64-v3")), "");
        EXPECT_EQ(difference_on_cpu(kernel, parse_opts(opts)), "");
      }
}

}  // namespace
}  // namespace tinygrad::codegen
