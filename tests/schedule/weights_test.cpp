// What a kernel is told of scores and weights that another one masked.
#include <gtest/gtest.h>

#include <algorithm>

#include "schedule/schedule.h"
#include "support/program_parts.h"
#include "uop/graph.h"

namespace tinygrad::schedule {
namespace {

using namespace test_programs;

const Target& avx512(Symbol) {
  static const Target target = cpu_target("x86-64-v4");
  return target;
}

/// Kernels of a program of which a node fits.
template <class Test>
size_t kernels_with(const Stores& stores, Test&& test) {
  const Schedule s = make_schedule(sink(stores), avx512, {.cache = false});
  size_t n = 0;
  for (size_t i = 0; i < s.plan->linear.src_count(); ++i) n += std::ranges::any_of(toposort(s.plan->linear.src(i).src(0)), test);
  return n;
}

Stores gradients_of_attention(const AttentionOptions& options) {
  const UOp q = tensor({2, 4, 64, 16}), k = tensor({2, 4, 64, 16}), v = tensor({2, 4, 64, 16});
  Stores out;
  for (const UOp& g : gradients(sum(square(scaled_dot_product_attention(q, k, v, options))), {q, k, v})) out.push_back(output(g));
  return out;
}

bool is_weight(const UOp& u) { return u.is(Op::WEIGHT); }
bool is_masked_again(const UOp& u) { return u.is(Op::WHERE) && u.src(1).is(Op::LOAD) && u.src(2) == constant(min_value(DType::float32)); }

TEST(Weights, KernelsAreToldWhatACausalMaskMade) {
  const Stores causal = gradients_of_attention({.is_causal = true});
  EXPECT_GE(kernels_with(causal, is_weight), 3u);  // each gradient is a product of weights
  EXPECT_GE(kernels_with(causal, is_masked_again), 1u);
}

// A mask in memory says nothing of indices.
TEST(Weights, KernelsAreNotToldWhatDependsOnData) {
  for (const Stores& stores : {gradients_of_attention({}), gradients_of_attention({.mask = tensor({64, 64}, DType::bool_)})})
    EXPECT_EQ(kernels_with(stores, is_weight) + kernels_with(stores, is_masked_again), 0u);
}

}  // namespace
}  // namespace tinygrad::schedule
