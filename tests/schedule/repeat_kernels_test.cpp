// Loops around kernels: which get one, and what is left of the memory between them.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "schedule/schedule.h"
#include "spec/verify.h"
#include "support/repeated_programs.h"
#include "uop/graph.h"

namespace tinygrad::schedule {
namespace {

using namespace test_programs;

/// A processor whose caches hold little.
const Target& small_caches(Symbol) {
  static const Target target = with_small_caches(cpu_target("x86-64-v4"));
  return target;
}

struct Found {
  size_t calls = 0, kernels = 0, repeated = 0;  ///< calls, kernels, and calls in a loop
  int64_t largest = 0;                          ///< temporary, in elements
};

Found found_in(const UOp& program, const TargetOf& target_of = small_caches) {
  const Schedule s = make_schedule(program, target_of, {.cache = false});
  Found out;
  NodeSet bodies;
  for (const UOp& call : s.plan->linear.src()) {
    ++out.calls;
    out.kernels += bodies.insert(call.src(0));
    out.repeated += std::ranges::any_of(call.src(), [](const UOp& u) { return u.is(Op::BIND); });
    spec::verify_kernel(call.src(0));
  }
  for (const Temporary& t : s.plan->temporaries) out.largest = std::max(out.largest, t.size);
  return out;
}

TEST(RepeatKernels, OneHeadAtATime) {
  const Found f = found_in(sink(attention_gradients({1, 8, 160, 16})));
  EXPECT_EQ(f.repeated % 8, 0u);
  EXPECT_GT(f.repeated, 0u);
  EXPECT_LE(f.largest, 160 * 160);  // the scores of one head
  EXPECT_LE(f.kernels, 12u);        // not one for each head
}

TEST(RepeatKernels, SomeRowsOfALongHead) {
  const Found f = found_in(sink(attention_gradients({1, 1, 512, 16})));
  EXPECT_GT(f.repeated, 0u);
  EXPECT_LT(f.largest, 512 * 512 / 2);
}

TEST(RepeatKernels, HeadsAndThenRows) {
  const Found f = found_in(sink(attention_gradients({1, 2, 512, 16})));
  EXPECT_GT(f.repeated, 0u);
  EXPECT_LT(f.largest, 512 * 512 / 2);
}

TEST(RepeatKernels, ScoresAreMadeAgainForTheGradientOfAnEarlierLayer) {
  const Found f = found_in(sink(layers_of_attention({1, 8, 160, 16})));
  EXPECT_LE(f.largest, 160 * 160);
}

TEST(RepeatKernels, WhatIsNearStaysAsItIs) {
  const auto large_caches = [](Symbol) -> const Target& {
    static const Target target = cpu_target("x86-64-v4");
    return target;
  };
  EXPECT_EQ(found_in(sink(attention_gradients({1, 8, 160, 16})), large_caches).repeated, 0u);
}

TEST(RepeatKernels, ManyGroupsRunAtOnce) {
  const auto groups = [](Symbol) -> const Target& {
    static const Target target = with_small_caches(interp_target());
    return target;
  };
  EXPECT_EQ(found_in(sink(attention_gradients({1, 8, 160, 16})), groups).repeated, 0u);
}

/// A sum over all that is passed on is needed before its users: no loop can have both.
TEST(RepeatKernels, NotAroundASumThatOthersWaitFor) {
  const UOp y = UOp(Op::CONTIGUOUS, DType::float32, {matmul(tensor({512, 64}), tensor({64, 512}))});
  const UOp mean = UOp(Op::CONTIGUOUS, DType::float32, {sum(y, Axes{0}, true)});
  EXPECT_EQ(found_in(sink(outputs({mul(sub(y, mean), y)}))).repeated, 0u);
}

TEST(RepeatKernels, VariablesOfTheProgramKeepTheirNames) {
  const UOp v = variable("repeat0", 1, 3);
  const UOp scale = cast(bind(v, 2), DType::float32);
  Stores stores;
  for (const UOp& g : attention_gradients({1, 8, 160, 16}, scale)) stores.push_back(g);
  const Schedule s = make_schedule(sink(stores), small_caches, {.cache = false});
  bool both = false;
  for (const UOp& call : s.plan->linear.src()) {
    const auto has = [&](Op op, std::string_view name) {
      return std::ranges::any_of(
          call.src(), [&](const UOp& u) { return u.is(op) && (op == Op::BIND ? u.src(0) : u).arg_as<VarArg>().name.str() == name; });
    };
    EXPECT_FALSE(has(Op::BIND, "repeat0"));
    both = both || (has(Op::VAR, "repeat0") && has(Op::BIND, "repeat1"));
  }
  EXPECT_TRUE(both);
}

}  // namespace
}  // namespace tinygrad::schedule
