// Terms of a sum that results are computed of again are stored with the sum and read, where that is no more than it should be.
#include "codegen/lower/keep_terms.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "codegen/choose/heuristic_opts.h"
#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "codegen/opt/parse_opts.h"
#include "kernel/accessed_memory.h"
#include "target/target.h"
#include "uop/graph.h"

namespace tinygrad::codegen {
namespace {

using test::arg, test::ended, test::kernel, test::loop, test::read, test::reduce_loop, test::reduce_over, test::write;

const Target& znver4() {
  static const Target target = [] {
    Target t = cpu_target("znver4");
    set_renderer(t, "LLVM");
    return t;
  }();
  return target;
}

UOp exponential(const UOp& x) { return alu(Op::EXP2, {x}); }

/// Vectors of rows' elements, one row after another.
constexpr const char* kRows = "LANE(1,16) LANE(2,16)";

/// out[i, j] = e[i, j] / (sum over k of e[i, k]), e = 2^x
UOp shares(int64_t m, int64_t n, int in = 1) {
  const UOp i = loop(m, 0), j = loop(n, 1), k = reduce_loop(n, 2), x = arg(in, m * n);
  const UOp sum = reduce_over(Op::ADD, exponential(read(x, i * n + k)), {k});
  const UOp value = alu(Op::FDIV, {exponential(read(x, i * n + j)), sum});
  return kernel({ended(write(arg(0, m * n), i * n + j, value), {i, j})});
}

size_t exponentials(const UOp& graph) {
  return size_t(std::ranges::count_if(toposort(graph), [](const UOp& u) { return u.is(Op::LDEXP); }));  // which each ends in
}

/// How many of the results' memory are loaded, with the meaning of each step checked.
size_t kept(const UOp& sink, const char* opts, const Target& target = znver4()) {
  const UOp lowered = full_rewrite_to_sink(test::with_opts(sink, parse_opts(opts)), target, {.noopt = true, .spec = 3});
  const auto loads = [](const UOp& u) {
    const UOp memory = u.is(Op::LOAD) ? memory_of(u.src(0)) : UOp();
    return memory && memory.is(Op::PARAM) && memory.arg_as<ParamArg>().slot == 0;
  };
  return size_t(std::ranges::count_if(toposort(lowered), loads));
}

TEST(KeepTerms, ExponentialsOfASum) {
  EXPECT_EQ(kept(shares(6, 64), kRows), 1u);
  EXPECT_EQ(kept(test::softmax(6, 64), kRows), 1u);
  EXPECT_EQ(kept(shares(6, 64), ""), 1u);
  EXPECT_EQ(kept(shares(1, 64), "LANE(0,16) LANE(1,16)"), 1u);
}

// Its last step is written by itself.
TEST(KeepTerms, MaskedEndsAlike) { EXPECT_EQ(kept(shares(6, 75), kRows), 2u); }

TEST(KeepTerms, CopiesOfRowsAndOfSteps) {
  EXPECT_EQ(kept(shares(6, 64), "LANE(1,16) LANE(2,16) UPCAST(0,3)"), 3u);
  EXPECT_EQ(kept(shares(6, 128), "LANE(1,16) LANE(2,16) UPCAST(1,2) UNROLL(2,2)"), 2u);
}

TEST(KeepTerms, NotInOtherSteps) {
  EXPECT_EQ(kept(shares(2, 32), "LANE(1,16) LANE(2,16) UPCAST(1,2)"), 0u);
  EXPECT_EQ(kept(shares(2, 32), "LANE(1,16)"), 0u);
  EXPECT_EQ(kept(shares(16, 8), "LANE(0,16)"), 0u);
  EXPECT_EQ(kept(shares(6, 16), "SWAP(0,1)"), 0u);  // rows inside of columns: each column would find the results of others
}

// The last block overlaps the one before: another thread may be reading its rows.
TEST(KeepTerms, NotWhatIsComputedTwice) { EXPECT_EQ(kept(shares(7, 64), "LANE(1,16) LANE(2,16) BLOCK(0,3) UPCAST(1,3)"), 0u); }

TEST(KeepTerms, NotWhatTheKernelReads) {
  const UOp sink = test::with_opts(shares(6, 64, 0), parse_opts(kRows));
  EXPECT_EQ(exponentials(full_rewrite_to_sink(sink, znver4(), {.noopt = true, .spec = 1})), 2u);
}

TEST(KeepTerms, NotMoreThanTheCacheHolds) {
  Target small = znver4();
  small.l2_bytes = 256;
  EXPECT_EQ(kept(shares(6, 64), kRows, small), 0u);
}

TEST(KeepTerms, NotForLittle) {
  const UOp i = loop(4, 0), j = loop(64, 1), k = reduce_loop(64, 2), x = arg(1, 256);
  const auto square = [&](const UOp& at) { return read(x, i * 64 + at) * read(x, i * 64 + at); };
  const UOp value = square(j) - reduce_over(Op::ADD, square(k), {k});
  EXPECT_EQ(kept(kernel({ended(write(arg(0, 256), i * 64 + j, value), {i, j})}), kRows), 0u);
}

// Each store has its own places, masked in another way: what one keeps is not what the other reads.
TEST(KeepTerms, TwoResultsOfTheSameTerms) {
  const UOp i = loop(4, 0), j = loop(64, 1), k = reduce_loop(64, 2), x = arg(1, 256);
  const UOp again = exponential(read(x, i * 64 + j)), sum = reduce_over(Op::ADD, exponential(read(x, i * 64 + k)), {k});
  const UOp quotient = write(arg(0, 256), i * 64 + j, alu(Op::FDIV, {again, sum}));
  const UOp some(Op::INDEX, DType::float32, {arg(2, 256), i * 64 + j, j < 30}, IndexArg{});
  const UOp both = kernel({ended(group(std::vector{quotient, store(some, again - sum)}), {i, j})});
  EXPECT_EQ(kept(both, kRows), 1u);
}

// The old loop would be inside of the new one.
TEST(KeepTerms, NotWhereThePlaceDependsOnTheSum) {
  const UOp i = loop(4, 0), j = loop(64, 1), k = reduce_loop(64, 2), x = arg(1, 256);
  const UOp sum = reduce_over(Op::ADD, exponential(read(x, i * 64 + k)), {k});
  const UOp place(Op::INDEX, DType::float32, {arg(0, 256), i * 64 + j, constant(DType::float32, 0) < sum}, IndexArg{});
  const UOp value = alu(Op::FDIV, {exponential(read(x, i * 64 + j)), sum});
  EXPECT_EQ(kept(kernel({ended(store(place, value), {i, j})}), kRows), 0u);
}

// A loop that two results share would have to read two places.
TEST(KeepTerms, NotWhatALoopInsideReads) {
  const UOp i = loop(4, 0), j = loop(32, 1), k = reduce_loop(32, 2), q = reduce_loop(3, 3), x = arg(1, 128), w = arg(2, 384);
  const UOp again = exponential(read(x, i * 32 + j)), sum = reduce_over(Op::ADD, exponential(read(x, i * 32 + k)), {k});
  const UOp above = reduce_over(Op::ADD, alu(Op::MAX, {again - read(w, (i * 32 + j) * 3 + q), constant(DType::float32, 0)}), {q});
  const UOp first = write(arg(0, 128), i * 32 + j, alu(Op::FDIV, {again, sum}) * above),
            second = write(arg(3, 128), i * 32 + j, alu(Op::FDIV, {above, sum}));
  EXPECT_EQ(kept(kernel({ended(group(std::vector{first, second}), {i, j})}), kRows), 0u);
}

TEST(KeepTerms, ThreadsHaveRowsOfTheirOwn) {
  EXPECT_EQ(kept(shares(6, 64), "LANE(1,16) LANE(2,16) THREAD(0,3)"), 1u);
  EXPECT_EQ(kept(shares(7, 64), "LANE(1,16) LANE(2,16) THREAD(0,3)"), 1u);
  EXPECT_EQ(kept(shares(6, 64), "LANE(1,16) LANE(2,16) THREAD(1,2)"), 0u);
}

TEST(KeepTerms, TheHeuristicsChooseTheSameSteps) {
  for (const auto& [rows, n] : std::vector<std::pair<int64_t, int64_t>>{
           {2048, 64}, {2048, 1035}, {2048, 1040}, {2048, 1548}, {2048, 4071}, {3, 16384}, {512, 50257}}) {
    const UOp sink = simplified_kernel(test::softmax(rows, n));
    const std::vector<Opt> opts = heuristic_opts(sink, znver4());
    const UOp lowered = full_rewrite_to_sink(test::with_opts(sink, opts), znver4(), {.noopt = true, .spec = 1});
    const auto stores = [](const UOp& u) { return u.is(Op::STORE) && memory_of(u.src(0)).is(Op::PARAM); };
    EXPECT_EQ(exponentials(lowered) * 2, size_t(std::ranges::count_if(toposort(lowered), stores))) << n << ": " << to_string(opts);
  }
}

}  // namespace
}  // namespace tinygrad::codegen
