#include "schedule/schedule.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <utility>

#include "ops/elementwise.h"
#include "rewrite/rewrite.h"
#include "schedule/memory_plan.h"
#include "spec/verify.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::schedule {
namespace {

const Target& avx512(Symbol) {
  static const Target target = cpu_target("x86-64-v4");
  return target;
}

UOp memory(int64_t size, DType dtype = DType::float32) { return buffer(dtype, {.id = next_buffer_id(), .size = size, .device = "CPU"}); }
UOp matrix(int64_t rows, int64_t columns) { return reshape(memory(rows * columns), {rows, columns}); }

/// `value` stored into fresh memory.
UOp output(const UOp& value, std::initializer_list<int64_t> shape) {
  int64_t size = 1;
  for (int64_t n : shape) size *= n;
  return store(reshape(memory(size, value.dtype()), shape), value);
}

Schedule scheduled(std::initializer_list<UOp> effects) {
  return make_schedule(sink(std::span<const UOp>(effects.begin(), effects.size())), avx512, {.cache = false});
}
size_t kernels(std::initializer_list<UOp> effects) { return scheduled(effects).plan->linear.src_count(); }

UOp matmul(const UOp& a, const UOp& b, int64_t m, int64_t k, int64_t n) {
  const UOp x = expand(reshape(a, {m, 1, k}), {m, n, k});
  const UOp y = expand(reshape(permute(b, {1, 0}), {1, n, k}), {m, n, k});
  return reduce(Op::ADD, x * y, {2});
}
UOp relu(const UOp& x) { return max(x, constant(DType::float32, 0.0)); }

TEST(Schedule, UsersOfAStoredValueReadIt) {
  const UOp x = matmul(matrix(16, 4), matrix(4, 16), 16, 4, 16), stored(Op::CONTIGUOUS, DType::float32, {x});
  const UOp a = output(x + x, {16, 16}), b = output(reduce(Op::MAX, stored, {1}), {16});
  const UOp c = output(stored + stored, {16, 16}), d = output(reduce(Op::MAX, stored, {1}), {16});
  const Schedule mixed = scheduled({a, b}), all = scheduled({c, d});
  EXPECT_EQ(mixed.plan->linear.src_count(), all.plan->linear.src_count());
  for (size_t i = 0; i < all.plan->linear.src_count(); ++i) EXPECT_EQ(mixed.plan->linear.src(i).src(0), all.plan->linear.src(i).src(0));
  // A view of memory is no computed value, and may be what a store writes to.
  const UOp m = matrix(4, 4), row = shrink(m, {1, 2, 0, 4}), copied(Op::CONTIGUOUS, DType::float32, {row});
  EXPECT_EQ(kernels({store(row, copied + row)}), 1u);
}

TEST(Schedule, ReductionsAndBordersOfNothingReadNothing) {
  const UOp none = shrink(memory(3), {3, 3}), rest = reshape(none, {0, 1});
  for (const UOp& effect : {output(reduce(Op::ADD, none + none, {0}), {}), output(reduce(Op::MUL, none, {0}), {}),
                            output(reduce(Op::ADD, expand(rest, {0, 4}), {0}), {4}), output(pad(none, {2, 1}), {3})}) {
    const Schedule s = scheduled({effect});
    ASSERT_EQ(s.plan->linear.src_count(), 1u);
    for (const UOp& u : toposort(s.plan->linear.src(0).src(0))) EXPECT_FALSE(u.is(Op::LOAD)) << print_expr(u);
  }
}

TEST(Schedule, ElementwiseChainIsOneKernel) {
  const UOp a = matrix(64, 64), b = matrix(64, 64), c = matrix(64, 64);
  EXPECT_EQ(kernels({output(relu(a * b + c), {64, 64})}), 1u);
}

TEST(Schedule, MatmulWithEpilogueIsOneKernel) {
  const UOp y = matmul(matrix(64, 32), matrix(32, 48), 64, 32, 48);
  EXPECT_EQ(kernels({output(relu(y + expand(matrix(1, 48), {64, 48})), {64, 48})}), 1u);
}

TEST(Schedule, ChainOfMatmulsIsStagedBetween) {
  const UOp h = relu(matmul(matrix(64, 32), matrix(32, 48), 64, 32, 48));
  EXPECT_EQ(kernels({output(matmul(h, matrix(48, 16), 64, 48, 16), {64, 16})}), 2u);
}

/// How many arguments the only kernel has, and how many memories those are.
std::pair<size_t, size_t> arguments(std::initializer_list<UOp> effects) {
  const Schedule s = scheduled(effects);
  EXPECT_EQ(s.plan->linear.src_count(), 1u);
  const auto given = s.plan->linear.src(0).src().subspan(1);
  NodeSet different;
  size_t n = 0;
  for (const UOp& a : given) n += different.insert(a);
  return {given.size(), n};
}

TEST(Schedule, FactorsThatLieInOneMemoryAreArgumentsEach) {
  const UOp both = matrix(64, 32), a = shrink(both, {0, 64, 0, 16}), b = shrink(both, {0, 64, 16, 32});
  EXPECT_EQ(arguments({output(matmul(a, permute(b, {1, 0}), 64, 16, 64), {64, 64})}), std::pair(size_t{3}, size_t{2}));
  const UOp x = matrix(48, 20);
  EXPECT_EQ(arguments({output(matmul(x, permute(x, {1, 0}), 48, 20, 48), {48, 48})}), std::pair(size_t{3}, size_t{2}));
  // Loads that move together are one, and so is what a sum inside of another one reads.
  EXPECT_EQ(arguments({output(reduce(Op::ADD, a * b, {1}), {64})}), std::pair(size_t{2}, size_t{2}));
  const UOp rows = matrix(16, 64), mean = expand(reshape(reduce(Op::ADD, rows, {1}), {16, 1}), {16, 64}), off = rows - mean;
  EXPECT_EQ(arguments({output(reduce(Op::ADD, off * off, {1}), {16})}), std::pair(size_t{2}, size_t{2}));
}

TEST(Schedule, RowSoftmaxIsOneKernel) {
  const UOp x = matrix(128, 64);
  auto rows = [](const UOp& v) { return expand(reshape(v, {128, 1}), {128, 64}); };
  const UOp e = alu(Op::EXP2, {x - rows(reduce(Op::MAX, x, {1}))});
  EXPECT_EQ(kernels({output(e * alu(Op::RECIPROCAL, {rows(reduce(Op::ADD, e, {1}))}), {128, 64})}), 1u);
}

TEST(Schedule, FullSumBroadcastBackIsTwoKernels) {
  const UOp x = matrix(256, 256);
  const UOp total = expand(reshape(reduce(Op::ADD, x, {0, 1}), {1, 1}), {256, 256});
  EXPECT_EQ(kernels({output(x - total, {256, 256})}), 2u);
}

TEST(Schedule, AnOutputUsedByAnotherIsComputedOnce) {
  const UOp y = matmul(matrix(64, 64), matrix(64, 64), 64, 64, 64);
  EXPECT_EQ(kernels({output(y, {64, 64}), output(matmul(y, matrix(64, 64), 64, 64, 64), {64, 64})}), 2u);
}

TEST(Schedule, InPlaceUpdateNeedsNoCopy) {
  const UOp b = memory(16);
  const Schedule s = scheduled({after(b, UOps{store(b, b + constant(DType::float32, 1.0))})});
  EXPECT_EQ(s.plan->linear.src_count(), 1u);
  EXPECT_EQ(s.plan->temporaries.size(), 0u);
}

TEST(Schedule, OverlappingUpdateIsStaged) {
  const UOp b = memory(16);
  EXPECT_EQ(kernels({store(b, flip(b, {0}))}), 2u);
  EXPECT_EQ(kernels({store(shrink(b, {2, 4}), shrink(b, {1, 3}))}), 2u);
  EXPECT_EQ(kernels({store(shrink(b, {0, 8}), shrink(b, {0, 8}) + shrink(b, {0, 8}))}), 1u);
}

TEST(Schedule, StoresThatReadWhatEachOtherWritesAreStaged) {
  const UOp a = memory(16), b = memory(16);
  EXPECT_EQ(kernels({store(a, b), store(b, a)}), 1u);  // merged: both are read before either is written
  // Two parts of one buffer, each updated from the state before both.
  const UOp low = shrink(a, {0, 8}), high = shrink(a, {8, 16});
  EXPECT_EQ(kernels({after(a, UOps{store(low, low + low), store(high, high + high)})}), 3u);
}

TEST(Schedule, TwoStatesOfOneBufferInOneValue) {
  const UOp b = memory(16);
  const UOp now = after(b, UOps{store(b, b * constant(DType::float32, 2.0))});
  // One iteration has both states at hand; of a flipped one it does not, so the old state is copied by the kernel that stores.
  EXPECT_EQ(kernels({output(b + now, {16})}), 1u);
  const Schedule s = scheduled({output(flip(b, {0}) + now, {16})});
  ASSERT_EQ(s.plan->linear.src_count(), 2u);
  EXPECT_EQ(s.plan->temporaries.size(), 1u);
}

TEST(Schedule, ReadersOfTheOldStateRunBeforeTheStore) {
  const UOp b = memory(16);
  const UOp old = output(flip(b, {0}), {16});
  const Schedule s = scheduled({after(b, UOps{store(b, b * constant(DType::float32, 2.0))}), old});
  ASSERT_EQ(s.plan->linear.src_count(), 2u);
  const int32_t slot_of_b = s.inputs[0] == b ? 0 : 1;
  EXPECT_NE(s.plan->linear.src(0).src(1).arg_as<ParamArg>().slot, slot_of_b);
  EXPECT_EQ(s.plan->linear.src(1).src(1).arg_as<ParamArg>().slot, slot_of_b);
}

TEST(Schedule, StoresRunInTheOrderOfTheirStates) {
  const UOp b = memory(16);
  const UOp one = after(b, UOps{store(b, b + constant(DType::float32, 1.0))});
  const UOp half = shrink(one, {0, 8});
  EXPECT_EQ(kernels({after(half, UOps{store(half, half * constant(DType::float32, 3.0))})}), 2u);
  // The last of two stores to the same elements is the only one.
  const UOp two = after(one, UOps{store(one, one * constant(DType::float32, 3.0))});
  EXPECT_EQ(kernels({two}), 1u);
}

TEST(Schedule, StoresOverOneSpaceAreOneKernel) {
  const UOp g = matmul(matrix(64, 32), matrix(32, 64), 64, 32, 64), m = matrix(64, 64), p = matrix(64, 64);
  const UOp m_now = after(m, UOps{store(m, m + g)});
  const Schedule s = scheduled({m_now, after(p, UOps{store(p, p - m_now * g)})});
  EXPECT_EQ(s.plan->linear.src_count(), 1u);
  EXPECT_EQ(s.plan->temporaries.size(), 0u);
}

TEST(Schedule, AKernelThatOthersWaitForIsNotMovedBehindThem) {
  // The second store over x's space needs a sum over all of the first.
  const UOp x = matrix(64, 64), e = alu(Op::EXP2, {x}), total = reduce(Op::ADD, e, {0, 1});
  EXPECT_EQ(kernels({output(e, {64, 64}), output(e + expand(reshape(total, {1, 1}), {64, 64}), {64, 64})}), 3u);
}

TEST(Schedule, PaddingDoesNotReachWhatIsBroadcast) {
  // The sum is the same inside and outside of the padding, so its loads are not gated and it stands outside of all loops.
  const UOp total = reduce(Op::ADD, memory(16), {0});
  const UOp padded = pad(expand(reshape(total, {1}), {8}), {1, 1});
  const Schedule s = scheduled({output(padded, {10})});
  ASSERT_EQ(s.plan->linear.src_count(), 1u);
  for (const UOp& u : toposort(s.plan->linear.src(0).src(0))) EXPECT_FALSE(u.is(Op::INDEX) && u.src_count() > 2);
}

TEST(Schedule, SumsOfPaddedSumsAreOneLoopNest) {
  const UOp rows = reduce(Op::ADD, reshape(memory(64), {8, 8}), {1});
  const Schedule s = scheduled({output(reduce(Op::ADD, pad(rows, {1, 1}), {0}), {})});
  ASSERT_EQ(s.plan->linear.src_count(), 1u);
  int reduces = 0;
  for (const UOp& u : toposort(s.plan->linear.src(0).src(0))) reduces += u.is(Op::REDUCE);
  EXPECT_EQ(reduces, 1);
}

TEST(Schedule, AProductInASumIsStored) {
  // In the loop of the sum its elements would be computed one by one; what is no more than loads is better off there.
  const UOp y = relu(matmul(matrix(96, 64), matrix(64, 128), 96, 64, 128));
  EXPECT_EQ(kernels({output(reduce(Op::ADD, y, {0}), {128})}), 2u);
  EXPECT_EQ(kernels({output(reduce(Op::ADD, relu(reduce(Op::ADD, reshape(memory(96 * 64 * 128), {96, 64, 128}), {1})), {0}), {128})}), 1u);
}

TEST(Schedule, WhatIsPaddedIsStoredWithoutThePadding) {
  const UOp y = relu(matmul(matrix(48, 64), matrix(64, 48), 48, 64, 48)), yes = constant(DType::bool_, true);
  const UOp inside = pad(expand(reshape(yes, {1, 1}), {48, 48}), {1, 1, 1, 1});
  const UOp padded = where(inside, pad(y, {1, 1, 1, 1}), expand(reshape(constant(DType::float32, -1.0), {1, 1}), {50, 50}));
  const Schedule s = scheduled({output(max(shrink(padded, {0, 48, 0, 48}), shrink(padded, {2, 50, 2, 50})), {48, 48})});
  ASSERT_EQ(s.plan->temporaries.size(), 1u);
  EXPECT_EQ(s.plan->temporaries[0].size, 48 * 48);
}

TEST(Schedule, WhichOfSeveralPlacesItIsIsNotStored) {
  const UOp a = matrix(2, 1 << 20), b = matrix(2, 1 << 20), places(Op::IOTA, DType::int32, {index_const(4)}, DeviceArg{});
  const UOp joined = where(expand(reshape(places < 2, {4, 1}), {4, 1 << 20}), pad(a, {0, 2, 0, 0}), pad(b, {2, 0, 0, 0}));
  EXPECT_EQ(kernels({output(joined, {4, 1 << 20})}), 1u);
}

TEST(Schedule, ASumThatSelectsIsALoad) {
  const UOp at = memory(4, DType::int32), table = matrix(100, 8);
  const UOp positions(Op::IOTA, DType::int32, {index_const(100)}, DeviceArg{});
  const UOp match = alu(Op::CMPEQ, {expand(reshape(at, {4, 1, 1}), {4, 100, 8}), expand(reshape(positions, {1, 100, 1}), {4, 100, 8})});
  const UOp rows = where(match, expand(reshape(table, {1, 100, 8}), {4, 100, 8}), constant(DType::float32, 0));
  const Schedule s = scheduled({output(reduce(Op::ADD, rows, {1}), {4, 8})});
  ASSERT_EQ(s.plan->linear.src_count(), 1u);
  for (const UOp& u : toposort(s.plan->linear.src(0).src(0))) EXPECT_FALSE(u.is(Op::REDUCE));
}

TEST(Schedule, EqualGraphsOnOtherMemoryShareAPlan) {
  auto build = [] {
    const UOp a = matrix(8, 8);
    return sink(UOps{output(a * a, {8, 8})});
  };
  const Schedule first = make_schedule(build(), avx512), second = make_schedule(build(), avx512);
  EXPECT_EQ(first.plan, second.plan);
  EXPECT_NE(first.inputs[0], second.inputs[0]);
}

TEST(Schedule, GivenNumbersAreNotPartOfThePlan) {
  const UOp a = matrix(8, 8);
  const auto schedule_of = [&](const std::vector<double>& numbers, bool open) {
    UOp x = a;
    for (double n : numbers) x = ops::mul(x, ops::Operand(n).as_given()) + x;
    return make_schedule(sink(UOps{output(x, {8, 8})}), avx512, {.open_numbers = open});
  };
  const auto is_shared = [&](const std::vector<double>& some, const std::vector<double>& others, bool open) {
    return schedule_of(some, open).plan == schedule_of(others, open).plan;
  };
  EXPECT_TRUE(is_shared({2.5, 3}, {7, -1e30}, true));
  EXPECT_FALSE(is_shared({2.5, 3}, {7, 4}, false));
  EXPECT_FALSE(is_shared({2.5, 3}, {4, 4}, true));  // equal numbers are one
  EXPECT_FALSE(is_shared({2.5}, {1}, true));        // that the product may go for
  EXPECT_FALSE(is_shared({2.5}, {std::numeric_limits<double>::infinity()}, true));
  EXPECT_FALSE(is_shared(std::vector<double>(17, 2.5), std::vector<double>(17, 3.5), false));
  EXPECT_EQ(schedule_of({2.5}, true).variables.size(), 1u);
  EXPECT_EQ(schedule_of({2.5}, true).variables[0].second, 0x40200000);  // the bits of 2.5f
  EXPECT_TRUE(schedule_of({2.5}, false).variables.empty());
  std::vector<double> many;
  for (int i = 0; i < 17; ++i) many.push_back(2.5 + i);
  EXPECT_TRUE(schedule_of(many, true).variables.empty());
}

TEST(Schedule, KernelsThatDifferInNumbersAreOne) {
  const UOp x = matrix(8, 65536);
  const auto calls_of = [&](int64_t parts) {
    UOps stores;
    for (int64_t i = 0; i < parts; ++i) {
      const UOp part = shrink(x, {i, i + 1, 0, 65536});
      stores.push_back(output(ops::mul(ops::exp(part), 0.5 + double(i)), {1, 65536}));
    }
    const Schedule s = make_schedule(sink(stores), avx512);
    return std::vector<UOp>(s.plan->linear.src().begin(), s.plan->linear.src().end());
  };
  const std::vector<UOp> three = calls_of(3), eight = calls_of(8);
  EXPECT_NE(three[0].src(0), three[1].src(0));  // so few are compiled as they are
  std::set<std::pair<int64_t, int64_t>> numbers;
  for (const UOp& c : eight) {
    EXPECT_EQ(c.src(0), eight[0].src(0));
    ASSERT_EQ(c.src_count(), 5u);  // the kernel, its memory, the offset and the factor
    ASSERT_TRUE(c.src(3).is(Op::BIND) && c.src(4).is(Op::BIND));
    numbers.emplace(const_value(c.src(3))->as_int(), const_value(c.src(4))->as_int());
  }
  EXPECT_EQ(numbers.size(), 8u);
}

TEST(Schedule, BoundValuesAreNotPartOfThePlan) {
  const UOp b = memory(32), n = variable("n", 1, 32);
  auto build = [&](int64_t value) {
    const UOp size = bind(n, value);
    const UOp view = shrink(b, UOps{index_const(0), size});
    return sink(UOps{store(memory(1), reshape(reduce(Op::ADD, view, {0}), {1}))});
  };
  const Schedule first = make_schedule(build(3), avx512), second = make_schedule(build(7), avx512);
  EXPECT_EQ(first.plan, second.plan);
  ASSERT_EQ(second.variables.size(), 1u);
  EXPECT_EQ(second.variables[0].second, 7);
}

TEST(Schedule, TemporariesWithDisjointLivesShareMemory) {
  UOp x = matrix(64, 64);
  for (int i = 0; i < 4; ++i) x = matmul(relu(x), matrix(64, 64), 64, 64, 64);
  const Schedule s = scheduled({output(x, {64, 64})});
  ASSERT_EQ(s.plan->arenas.size(), 1u);
  EXPECT_LE(s.plan->arenas[0].bytes, 2 * 64 * 64 * 4);
}

TEST(Schedule, WhatIsLargestIsPlacedFirst) {
  const auto temporary = [](int slot, int64_t size) { return param(DType::float32, size, {.slot = slot, .device = "CPU"}); };
  const UOp first = temporary(0, 160), second = temporary(1, 160), large = temporary(2, 320);
  const auto call = [](UOps arguments) {
    arguments.insert(arguments.begin(), sink({}));
    return UOp(Op::CALL, DType::void_, arguments);
  };
  const std::vector<UOp> calls{call({first}), call({first, second}), call({second, large}), call({large})};
  Plan plan;
  plan_memory(calls, std::vector<UOp>{first, second, large}, 0, true, plan);
  ASSERT_EQ(plan.arenas.size(), 1u);
  EXPECT_EQ(plan.arenas[0].bytes, (160 + 320) * 4);
  EXPECT_EQ(plan.temporaries[0].offset, plan.temporaries[2].offset);
  Plan apart;
  plan_memory(calls, std::vector<UOp>{first, second, large}, 0, false, apart);
  EXPECT_EQ(apart.arenas[0].bytes, (160 + 160 + 320) * 4);
}

TEST(Schedule, KernelsOfTwoSchedulesAreTheSameNodes) {
  auto build = [] { return output(relu(matrix(16, 16)), {16, 16}); };
  EXPECT_EQ(scheduled({build()}).plan->linear.src(0).src(0), scheduled({build()}).plan->linear.src(0).src(0));
}

struct StageRecorder : rewrite::RewriteObserver {
  void stage(const char* pipeline, const char* step, const UOp& before, const UOp& after) override {
    EXPECT_STREQ(pipeline, "schedule");
    steps.emplace_back(step);
    if (after.is(Op::LINEAR)) spec::verify_schedule(after, step);
    graphs.push_back(after);
    EXPECT_EQ(graphs.size() < 2 || before == graphs[graphs.size() - 2], true);
  }
  std::vector<std::string> steps;
  std::vector<UOp> graphs;
};

TEST(Schedule, StepsGoFromListToList) {
  StageRecorder recorder;
  rewrite::RewriteObserver* previous = rewrite::set_rewrite_observer(&recorder);
  const UOp h = relu(matmul(matrix(64, 32), matrix(32, 48), 64, 32, 48));
  const Schedule s = scheduled({output(matmul(h, matrix(48, 16), 64, 48, 16), {64, 16})});
  rewrite::set_rewrite_observer(previous);
  EXPECT_EQ(recorder.steps, (std::vector<std::string>{"shard", "prepare", "split sums", "split reduces", "rangeify", "merge kernels",
                                                      "repeat kernels", "join nests", "finish kernels", "unroll loops", "share kernels",
                                                      "gather again", "select shards", "number temporaries", "memory plan"}));
  EXPECT_EQ(recorder.graphs.back(), s.plan->linear);
}

}  // namespace
}  // namespace tinygrad::schedule
