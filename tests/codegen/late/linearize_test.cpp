#include <gtest/gtest.h>

#include <tinygrad/errors.h>

#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "uop/graph.h"
#include "uop/node_map.h"

namespace tinygrad::codegen {
namespace {

using test::count;

Target threads_target() {
  Target t;
  t.device = "CPU";
  t.has_threads = true;
  t.set_dtypes({DType::int32, DType::int64, DType::uint64, DType::float32});
  return t;
}

Opt lane(int axis, int n) { return {OptOp::LANE, axis, n}; }
Opt upcast(int axis, int n) { return {OptOp::UPCAST, axis, n}; }
Opt unroll(int axis, int n) { return {OptOp::UNROLL, axis, n}; }
Opt outer(int axis, int around) { return {OptOp::OUTER, axis, around}; }
Opt threads(int axis, int n) { return {OptOp::THREAD, axis, n}; }

UOp compile(const UOp& kernel) { return full_rewrite(kernel, threads_target(), {.noopt = true, .spec = 3}); }

/// Accesses of a width in the program.
size_t count_width(const UOp& linear, Op op, int32_t width) {
  return size_t(std::count_if(linear.src().begin(), linear.src().end(),
                              [&](const UOp& u) { return u.is(op) && u.src(0).arg_as<IndexArg>().width == width; }));
}

/// What docs/ir.md promises of a linear program.
void expect_well_formed(const UOp& linear) {
  NodeSet before;
  std::vector<UOp> open;
  ASSERT_TRUE(linear.is(Op::LINEAR));
  for (const UOp& u : linear.src()) {
    for (const UOp& s : u.src()) EXPECT_TRUE(before.contains(s)) << print_expr(s) << " of " << print_expr(u) << " stands later";
    EXPECT_TRUE(before.insert(u)) << print_expr(u) << " stands twice";
    EXPECT_NE(u.dtype(), DType::index) << print_expr(u);
    EXPECT_FALSE(u.is(Op::AFTER) || u.is(Op::REDUCE) || u.is(Op::GROUP) || u.is(Op::SINK) || u.is(Op::GETTUPLE)) << print_expr(u);
    if (u.is(Op::RANGE)) open.push_back(u);
    if (u.is(Op::END)) {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(u.src(1), open.back());
      open.pop_back();
    }
  }
  EXPECT_TRUE(open.empty());
}

TEST(Linear, EveryKernelIsWellFormed) {
  const UOp kernels[] = {
      test::elementwise(64),
      test::elementwise(64, {lane(0, 16), upcast(0, 2)}),
      test::elementwise(70, {lane(0, 16), upcast(0, 2)}),
      test::row_sums(5, 70),
      test::row_sums(5, 70, {lane(1, 8), unroll(1, 2)}),
      test::row_sums(5, 6, {unroll(1, 0)}),
      test::row_sums(4, 64, {lane(0, 4)}),
      test::matmul(8, 32, 10, {lane(1, 16), upcast(0, 4), threads(0, 2)}),
      test::softmax(4, 8),
      test::softmax(4, 8, {lane(1, 8)}),
      test::softmax(4, 32, {lane(2, 8), unroll(2, 2)}),
      test::nested_sums(4, 6),
      test::argmax(4, 64),
      test::argmax(4, 70, {lane(1, 8), unroll(1, 2)}),
      test::padded(8, 1, 2),
      test::padded(8, 1, 2, {lane(0, 4)}),
      test::gather(16, 5, {lane(0, 8)}),
  };
  for (const UOp& k : kernels) {
    SCOPED_TRACE(print_graph(k));
    expect_well_formed(compile(k));
  }
}

TEST(Linear, WhatFollowsATileInMemoryIsALoopOverIt) {
  const auto updates = [](const UOp& linear) {
    return std::ranges::count_if(linear.src(), [](const UOp& u) { return u.is(Op::STORE) && u.src(0).src(0).is(Op::PARAM); });
  };
  const UOp inside = compile(test::gated_update(16, 16, 8, {lane(1, 4), upcast(0, 4), upcast(1, 2)}));
  const UOp around = compile(test::gated_update(16, 16, 8, {lane(1, 4), upcast(0, 4), upcast(1, 2), outer(2, 0)}));
  expect_well_formed(around);
  EXPECT_EQ(updates(inside), 8);
  EXPECT_EQ(updates(around), 1);
  EXPECT_EQ(count(around, Op::WHERE), count(inside, Op::WHERE)) << "the step is written out for the tile";
}

TEST(Linear, LanesBecomeWideAccesses) {
  const UOp p = compile(test::elementwise(64, {lane(0, 16), upcast(0, 2)}));
  EXPECT_EQ(count_width(p, Op::LOAD, 16), 4u);
  EXPECT_EQ(count_width(p, Op::STORE, 16), 2u);
  EXPECT_EQ(count(p, Op::RANGE), 1u);
}

TEST(Linear, MatmulTileSharesItsLoads) {
  const UOp p = compile(test::matmul(8, 32, 10, {lane(1, 16), upcast(0, 4)}));
  // In the loop over k: one vector of B, four elements of A; per accumulator a load and a store there, one store before, one load after.
  EXPECT_EQ(count(p, Op::RANGE), 3u);
  EXPECT_EQ(count_width(p, Op::LOAD, 16), 1u + 4u + 4u);
  EXPECT_EQ(count_width(p, Op::LOAD, 1), 4u);
}

TEST(Linear, LanesThatAreNotNeighboursGather) {
  const UOp p = compile(test::row_sums(16, 8, {lane(0, 16)}));
  EXPECT_EQ(count_width(p, Op::STORE, 16), 3u);  // the result, and the accumulator twice
  EXPECT_EQ(count_width(p, Op::LOAD, 1), 1u);    // one address per lane
}

TEST(Linear, ReductionsOverTheSameRangeShareALoopOnlyWhereIndependent) {
  EXPECT_EQ(count(compile(test::softmax(4, 8)), Op::RANGE), 4u);
  const UOp i = test::loop(4, 0), k = test::reduce_loop(8, 1), x = test::read(test::arg(1, 32), i * 8 + k);
  const UOp both = test::reduce_over(Op::ADD, x, {k}) + test::reduce_over(Op::MAX, x, {k});
  EXPECT_EQ(count(compile(test::kernel({test::ended(test::write(test::arg(0, 4), i, both), {i})})), Op::RANGE), 2u);
}

TEST(Linear, SwapReadsBothBeforeItWrites) {
  const UOp i = test::loop(4, 0), a = test::arg(0, 4), b = test::arg(1, 4);
  const UOp swap = group(std::vector<UOp>{test::write(a, i, test::read(b, i)), test::write(b, i, test::read(a, i))});
  const UOp p = compile(test::kernel({test::ended(swap, {i})}));
  std::vector<Op> order;
  for (const UOp& u : p.src())
    if (u.is(Op::LOAD) || u.is(Op::STORE)) order.push_back(u.op());
  EXPECT_EQ(order, (std::vector<Op>{Op::LOAD, Op::LOAD, Op::STORE, Op::STORE}));
}

TEST(Linear, ALoadBehindAStoreIsAnotherInstruction) {
  const UOp i = test::loop(4, 0), a = test::arg(0, 4), b = test::arg(1, 4);
  const UOp first = test::write(a, i, test::read(a, i) + 1);
  const UOp again = load(index(after(a, std::vector<UOp>{first}), i));
  const UOp p = compile(test::kernel({test::ended(test::write(b, i, again * test::read(a, i)), {i})}));
  expect_well_formed(p);
  EXPECT_EQ(count(p, Op::LOAD), 2u);
}

TEST(Linear, NestsThatWaitForEachOtherKeepTheirOrder) {
  const UOp i = test::loop(4, 0), j = test::loop(4, 1), a = test::arg(0, 4), b = test::arg(1, 4);
  const UOp first = test::ended(test::write(a, i, cast(i, DType::float32)), {i});
  const UOp second = test::ended(test::write(b, j, load(index(after(a, std::vector<UOp>{first}), j * 0))), {j});
  const UOp p = compile(test::kernel({second, first}));
  expect_well_formed(p);
  EXPECT_EQ(count(p, Op::RANGE), 2u);
  const auto at = [&](Op op) { return std::find_if(p.src().begin(), p.src().end(), [&](const UOp& u) { return u.is(op); }); };
  EXPECT_LT(at(Op::STORE), at(Op::LOAD));
}

TEST(Linear, TheSameKernelGivesTheSameProgram) {
  const auto text = [] { return print_graph(compile(test::matmul(8, 32, 10, {lane(1, 16), upcast(0, 4), threads(0, 2)}))); };
  const std::string once = text();
  std::vector<UOp> other_nodes;
  for (int i = 0; i < 1000; ++i) other_nodes.push_back(index_const(1000000 + i));
  EXPECT_EQ(text(), once);
}

TEST(Linear, IndicesAreWideOnlyWhereTheyMustBe) {
  const auto range_dtype = [](const UOp& p) {
    return std::find_if(p.src().begin(), p.src().end(), [](auto& u) { return u.is(Op::RANGE); })->dtype();
  };
  EXPECT_EQ(range_dtype(compile(test::elementwise(int64_t{1} << 30))), DType::int32);
  EXPECT_EQ(range_dtype(compile(test::elementwise(int64_t{1} << 33))), DType::int64);
}

TEST(Linear, KernelsOf64BitIntegersWithoutThem) {
  const auto lowered = [](const UOp& kernel) {
    const UOp linear = full_rewrite(kernel, threads_target(), {.noopt = true, .emulated_dtypes = "int64", .spec = 3});
    expect_well_formed(linear);
    for (const UOp& u : linear.src()) EXPECT_FALSE(u.dtype() == DType::int64 || u.dtype() == DType::uint64) << print_expr(u);
    return linear;
  };
  const UOp wide = lowered(test::elementwise(64, {lane(0, 8)}, DType::int64));
  EXPECT_EQ(count(wide, Op::LOAD), 2u);  // of each argument, both halves of all lanes
  EXPECT_EQ(count(wide, Op::STORE), 1u);
  for (const UOp& u : wide.src()) EXPECT_TRUE(!u.is(Op::PARAM) || (u.dtype() == DType::uint32 && is_const(u.src(0), 128))) << print_expr(u);
  for (DType d : {DType::int64, DType::uint64})
    for (Op op : {Op::ADD, Op::MUL, Op::MAX, Op::AND, Op::XOR})
      for (const std::vector<Opt>& opts : std::vector<std::vector<Opt>>{{}, {lane(1, 8)}, {lane(0, 4), upcast(0, 2)}, {unroll(1, 4)}})
        lowered(test::row_sums(8, 32, opts, op, d));
  // The accumulators of a vector's low words are neighbours, and so are those of the high words.
  EXPECT_GT(count_width(lowered(test::row_sums(8, 32, {lane(0, 8)}, Op::ADD, DType::int64)), Op::STORE, 8), 0u);
}

TEST(Opts, WrongOnesAreNamed) {
  const auto rejects = [](const UOp& k, const char* part) {
    try {
      compile(k);
      ADD_FAILURE() << "no error: " << part;
    } catch (const ValueError& e) {
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
  };
  rejects(test::elementwise(64, {upcast(1, 2)}), "the kernel has 1 axes");
  rejects(test::elementwise(64, {unroll(0, 2)}), "not reduced");
  rejects(test::row_sums(4, 8, {upcast(1, 2)}), "is reduced");
  rejects(test::elementwise(64, {lane(0, 3)}), "power of two");
  rejects(test::matmul(8, 8, 8, {lane(0, 4), lane(1, 4)}), "two vector axes");
  rejects(test::elementwise(64, {upcast(0, 65)}), "size 64");
  rejects(test::elementwise(64, {{OptOp::LOCAL, 0, 8}}), "no work-groups");
}

TEST(Linear, AGatedLoadOfMemoryThatIsWrittenKeepsItsGate) {
  const UOp i = test::loop(8, 0), valid = i < 5, x = test::arg(0, 8), other = test::arg(1, 8);
  auto doubled = [&](const UOp& from) {
    const UOp v = load(index_valid(from, i, valid));
    return compile(test::kernel({test::ended(test::write(x, i, v + v), {i})}));
  };
  auto gated = [](const UOp& linear) {
    return std::ranges::any_of(linear.src(), [](const UOp& u) { return u.is(Op::LOAD) && u.src_count() == 3; });
  };
  EXPECT_TRUE(gated(doubled(x)));  // another thread may be writing the element that would be read instead
  EXPECT_FALSE(gated(doubled(other)));
}

}  // namespace
}  // namespace tinygrad::codegen
