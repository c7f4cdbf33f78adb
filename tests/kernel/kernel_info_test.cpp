#include "kernel/describe_kernel.h"

#include <gtest/gtest.h>

#include <tinygrad/errors.h>

#include "uop/build.h"

namespace tinygrad {
namespace {

const Symbol kNames[] = {"m", "n"};

UOp m() { return variable("m", 0, 100); }
UOp n() { return variable("n", 0, 100); }

int64_t evaluate(const UOp& u, std::vector<int64_t> values) { return IndexExpr(u, kNames).evaluate(values); }

TEST(IndexExpr, EvaluatesWhatIndexExpressionsHave) {
  EXPECT_TRUE(IndexExpr(index_const(5), kNames).is_constant());
  EXPECT_EQ(evaluate(m() * n() + 3, {4, 5}), 23);
  EXPECT_EQ(evaluate(floor_div(m() - n(), 4), {2, 5}), -1);
  EXPECT_EQ(evaluate(floor_mod(m() - n(), 4), {2, 5}), 1);
  EXPECT_EQ(evaluate(alu(Op::CDIV, {m() - n(), index_const(2)}), {2, 5}), -1);
  EXPECT_EQ(evaluate(alu(Op::CMOD, {m() - n(), index_const(2)}), {2, 5}), -1);
  EXPECT_EQ(evaluate(floor_div(m(), n()), {2, 0}), 0);
  EXPECT_EQ(evaluate(max(m(), n()), {2, 7}), 7);
  EXPECT_EQ(evaluate(min(m(), n()), {2, 7}), 2);
  EXPECT_EQ(evaluate(where(m() < n(), m() + 10, n()), {2, 7}), 12);
  EXPECT_EQ(evaluate(cast(m() << index_const(3), DType::int64), {3, 0}), 24);
}

TEST(IndexExpr, RefusesOthers) {
  EXPECT_THROW(IndexExpr(variable("k", 0, 1) + 1, kNames), InternalError);
  EXPECT_THROW(IndexExpr(constant(DType::float32, 1.0) + m(), kNames), InternalError);
  EXPECT_THROW(IndexExpr(range(4, 0) + m(), kNames), InternalError);
}

TEST(IndexExpr, SharesWhatTheGraphShares) {
  UOp u = n();
  for (int i = 0; i < 60; ++i) u = u + u;  // 2^60 as a tree
  EXPECT_EQ(IndexExpr(u, kNames).steps().size(), 61u);
  EXPECT_EQ(evaluate(u, {0, 1}), int64_t{1} << 60);
}

TEST(DescribeKernel, CountsWorkOfLoopsAndGroups) {
  const UOp out = param(DType::float32, 64, {.slot = 0}), in = param(DType::float32, 64, {.slot = 2});
  const UOp four = constant(DType::int32, 4), size = UOp(Op::VAR, DType::int32, {}, VarArg{"n", 1, 16});
  const UOp group = UOp(Op::SPECIAL, DType::int32, {size}, SpecialArg{AxisKind::global, 1});
  const UOp item = UOp(Op::SPECIAL, DType::int32, {four}, SpecialArg{AxisKind::local, 0});
  const UOp loop = UOp(Op::RANGE, DType::int32, {four}, RangeArg{});
  const UOp at = index(in, loop, 4), loaded = load(at), sum = loaded + loaded, to = index(out, item, 4), stored = store(to, sum);
  const UOp program(Op::LINEAR, DType::void_, {out, in, four, size, group, item, loop, at, loaded, sum, to, stored, end(stored, {{loop}})},
                    LinearArg{1});
  const KernelInfo info = describe_kernel(program, "k");
  ASSERT_EQ(info.params.size(), 2u);
  EXPECT_EQ(info.buffer_count(), 3u);
  EXPECT_TRUE(info.params[0].written && !info.params[0].read);
  EXPECT_TRUE(info.params[1].read && !info.params[1].written);
  EXPECT_EQ(info.params[1].size, IndexExpr(64));
  ASSERT_EQ(info.variables, std::vector<Symbol>{"n"});
  const std::vector<int64_t> values{3};
  const LaunchDims dims = info.launch_dims(values);
  EXPECT_EQ(dims.global[1], 3);
  EXPECT_EQ(dims.local[0], 4);
  EXPECT_EQ(dims.chunks, 1);
  EXPECT_EQ(info.flops.evaluate(values), 3 * 4 * 4 * 4);
  EXPECT_EQ(info.bytes.evaluate(values), 2 * 64 * 4);  // no more than the buffers
}

}  // namespace
}  // namespace tinygrad
