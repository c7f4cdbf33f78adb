// Gradients of random differentiable programs against finite differences, in float64 by the evaluator.
#include <gtest/gtest.h>

#include <cmath>

#include <tinygrad/errors.h>

#include "engine/fuzz/dice.h"
#include "engine/fuzz/random_values.h"
#include "ops/activation.h"
#include "ops/creation.h"
#include "ops/elementwise.h"
#include "ops/gradient.h"
#include "ops/index.h"
#include "ops/movement.h"
#include "ops/nn.h"
#include "ops/reduce.h"
#include "spec/evaluate.h"
#include "support/test_scale.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::test {
namespace {

constexpr int shards = 2, programs_per_shard = 250;

/// A random number computed from memory by differentiable ops.
class Differentiable {
 public:
  explicit Differentiable(uint64_t seed) : dice_(seed), values_(dice_) {
    for (int64_t n = dice_.number(1, 3); n > 0; --n) add_input();
    for (int64_t n = dice_.number(1, 7); n > 0; --n) grow();
    // Weights make every element matter in its own way.
    const UOp last = pool_.back();
    const int64_t n = numel(shape_of(last)).value();
    const UOp weights = tinygrad::reshape(memory(n), shape_of(last));
    loss = ops::sum(ops::mul(last, weights));
  }

  std::vector<UOp> memories;
  spec::EvalInputs inputs;
  UOp loss;

 private:
  UOp memory(int64_t n) {
    const UOp b = buffer(DType::float64, {.id = next_buffer_id(), .size = n});
    std::vector<double> data;
    for (int64_t i = 0; i < n; ++i) data.push_back((dice_.chance(50) ? 1 : -1) * (0.2 + 1.3 * dice_.fraction()));
    inputs.set(b, spec::Array::of(DType::float64, data));
    memories.push_back(b);
    return b;
  }
  void add_input() {
    const Shape shape = random_shape(dice_, 16);
    pool_.push_back(tinygrad::reshape(memory(numel(shape).value()), shape));
  }
  const UOp& pick() {
    const int64_t last = int64_t(pool_.size()) - 1;
    return pool_[size_t(std::max(dice_.number(0, last), dice_.number(0, last)))];
  }
  UOp fit(const UOp& u, const Shape& shape) { return values_.fit({.u = u}, shape).u; }

  void grow() {
    const UOp x = pick();
    const UOp y = dice_.chance(30)   ? function(x)
                  : dice_.chance(45) ? binary(x, fit(pick(), shape_of(x)))
                  : dice_.chance(50) ? moved(x)
                                     : reduced(x);
    if (numel(shape_of(y)).value() <= 200) pool_.push_back(y);
  }

  UOp function(const UOp& x) {
    UOp small = ops::tanh(x);  // keeps steep functions in their gentle part
    switch (dice_.number(0, 12)) {
      case 0: return ops::sin(x);
      case 1: return ops::exp2(small);
      case 2: return ops::log(ops::add(ops::square(x), 0.5));
      case 3: return ops::sqrt(ops::add(ops::square(x), 0.5));
      case 4: return ops::reciprocal(ops::add(ops::square(x), 1));
      case 5: return small;
      case 6: return ops::sigmoid(x);
      case 7: return ops::relu(x);
      case 8: return ops::gelu(small);
      case 9: return ops::pow(ops::add(ops::square(small), 0.5), ops::cos(x));
      case 10: return ops::abs(x);
      case 11: return ops::silu(x);
      default: return ops::neg(x);
    }
  }

  UOp binary(const UOp& a, const UOp& b) {
    switch (dice_.number(0, 6)) {
      case 0: return ops::add(a, b);
      case 1: return ops::sub(a, b);
      case 2: return ops::mul(ops::tanh(a), b);
      case 3: return ops::div(a, ops::add(ops::square(b), 1));
      case 4: return ops::maximum(a, b);
      case 5: return ops::minimum(a, b);
      default: return ops::where(ops::lt(a, b), ops::square(ops::sub(a, b)), 0.0);
    }
  }

  UOp moved(const UOp& x) {
    const Shape shape = shape_of(x);
    if (shape.empty()) return tinygrad::expand(x, random_shape(dice_, 8));
    const int axis = int(dice_.number(0, int64_t(shape.size()) - 1));
    const int64_t n = shape[size_t(axis)].value();
    switch (dice_.number(0, 8)) {
      case 0: return ops::flip(x, {axis});
      case 1: return ops::transpose(x, axis, 0);
      case 2: return ops::pad_axis(x, axis, dice_.number(0, 2), dice_.number(0, 2), 0.5);
      case 3: {
        const int64_t begin = dice_.number(0, n - 1);
        return ops::shrink_axis(x, axis, begin, dice_.number(begin + 1, n));
      }
      case 4: return ops::flatten(x);
      case 5: return ops::cat(UOps{x, fit(pick(), shape)}, axis);
      case 6: return n < 3 ? x : ops::unfold(x, axis, dice_.number(1, 3), dice_.number(1, 2));
      case 7: {
        const UOp index = ops::mod(ops::mul(ops::iota(dice_.number(1, 5)), 3), n);
        return ops::get_item(ops::transpose(x, axis, 0), std::vector<ops::Index>{index});
      }
      default:
        return ops::expand(ops::unsqueeze(x, axis), [&] {
          Shape to = shape_of(ops::unsqueeze(x, axis));
          to[size_t(axis)] = dice_.number(1, 3);
          return to;
        }());
    }
  }

  UOp reduced(const UOp& x) {
    const Shape shape = shape_of(x);
    if (shape.empty()) return function(x);
    const int axis = int(dice_.number(0, int64_t(shape.size()) - 1));
    const bool keepdim = dice_.chance(50);
    switch (dice_.number(0, 9)) {
      case 0: return ops::sum(x, axis, keepdim);
      case 1: return ops::mean(x, axis, keepdim);
      case 2: return ops::max(x, axis, keepdim);
      case 3: return ops::prod(ops::tanh(x), axis, keepdim);
      case 4: return ops::softmax(x, axis);
      case 5: return ops::log_softmax(x, axis);
      case 6: return ops::layernorm(x, {axis}, 0.1);
      case 7: return ops::cumsum(x, axis);
      case 8: return ops::logsumexp(x, axis, keepdim);
      default: {
        const int64_t m = dice_.number(1, 3), k = dice_.number(1, 4), n = dice_.number(1, 3);
        return ops::matmul(fit(x, make_shape({m, k})), fit(pick(), make_shape({k, n})));
      }
    }
  }

  Dice dice_;
  RandomValues values_;
  std::vector<UOp> pool_;
};

/// The loss with one element of the memory moved.
double loss_at(const Differentiable& p, const UOp& memory, size_t element, double offset) {
  spec::EvalInputs inputs = p.inputs;
  std::vector<double> data;
  for (double v : inputs.at(memory).as<double>()) data.push_back(v);
  data[element] += offset;
  inputs.set(memory, spec::Array::of(DType::float64, data));
  return spec::evaluate(p.loss, inputs)[0].as_double();
}

/// The derivative by differences of fourth order; NaN where the function has a kink nearby, which two step sizes tell apart.
double numeric(const Differentiable& p, const UOp& memory, size_t element) {
  auto difference = [&](double h) { return (loss_at(p, memory, element, h) - loss_at(p, memory, element, -h)) / (2 * h); };
  auto one_sided = [&](double h) { return (loss_at(p, memory, element, h) - loss_at(p, memory, element, 0)) / h; };
  constexpr double h = 1e-4;
  const double d = (4 * difference(h) - difference(2 * h)) / 3;
  // At a kink the slopes of the two sides differ by more than the curvature explains.
  const double left = (4 * one_sided(-h) - one_sided(-2 * h)) / 3, right = (4 * one_sided(h) - one_sided(2 * h)) / 3;
  return std::abs(left - right) > 1e-4 * std::max(1.0, std::abs(d)) ? std::nan("") : d;
}

/// How many elements were compared.
int check_gradients(uint64_t program) {
  Dice dice(program);
  Differentiable p(program);
  const std::vector<UOp> gradients = ops::gradient(p.loss, constant(DType::float64, 1.0), p.memories);
  int compared = 0;
  for (size_t m = 0; m < p.memories.size(); ++m) {
    const size_t size = p.inputs.at(p.memories[m]).size();
    spec::Array got;
    if (gradients[m]) {
      spec::EvalInputs inputs = p.inputs;
      got = spec::evaluate(gradients[m], inputs);
      EXPECT_EQ(got.size(), size);
    }
    for (int tries = 0; tries < 4; ++tries) {
      const size_t i = size_t(dice.number(0, int64_t(size) - 1));
      const double want = numeric(p, p.memories[m], i);
      if (!std::isfinite(want)) continue;
      ++compared;
      const double value = gradients[m] ? got[i].as_double() : 0;
      EXPECT_NEAR(value, want, 1e-6 * std::max(1.0, std::abs(want)))
          << "TG_FUZZ_PROGRAM=" << program << ", " << print_expr(p.memories[m]) << ", element " << i << "\n"
          << print_graph(p.loss);
    }
  }
  return compared;
}

class GradientFuzz : public testing::TestWithParam<int> {};

TEST_P(GradientFuzz, AgreesWithFiniteDifferences) {
  if (const uint64_t only = env_number("TG_FUZZ_PROGRAM", 0)) {
    check_gradients(only);
    return;
  }
  int compared = 0;
  const int programs = programs_per_shard * test_scale();
  for (int i = 0; i < programs; ++i) {
    const uint64_t program = seed() + (uint64_t(GetParam()) << 40) + uint64_t(i);
    try {
      compared += check_gradients(program);
    } catch (const Error& e) {
      ADD_FAILURE() << "TG_FUZZ_PROGRAM=" << program << ": " << e.what();
    }
  }
  EXPECT_GT(compared, 5 * programs);
}

INSTANTIATE_TEST_SUITE_P(Shards, GradientFuzz, testing::Range(0, shards));

}  // namespace
}  // namespace tinygrad::test
