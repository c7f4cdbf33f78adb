#include "ops/gradient.h"

#include <tinygrad/errors.h>

#include <array>

#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/expr.h"
#include "ops/index.h"
#include "ops/linalg.h"
#include "ops/movement.h"
#include "ops/nn.h"
#include "ops/reduce.h"
#include "ops/resize.h"
#include "support.h"
#include "uop/graph.h"

namespace tinygrad::ops {
namespace {

using Build = std::function<UOp(const std::vector<UOp>&)>;

class GradientTest : public OpsTest {
 protected:
  UOp gradient_of(const UOp& y, const UOp& x) { return gradient(y, constant(y.dtype(), 1), std::span(&x, 1))[0]; }

  /// Compares the gradient of sum(f(inputs) * weights) with central differences, element by element.
  void check(const std::string& name, const std::vector<Shape>& shapes, const Build& f, double low = 0.2, double high = 1.5) {
    SCOPED_TRACE(name);
    std::vector<UOp> inputs;
    std::vector<Values> data;
    for (const Shape& s : shapes) {
      data.push_back(numbers(size_t(numel(s).value()), low, high));
      const UOp flat = tensor({numel(s).value()}, data.back());
      inputs.push_back(tinygrad::reshape(flat.src(0), s));
    }
    const UOp y = f(inputs);
    const UOp weights = tensor({numel(shape_of(y)).value()}, numbers(size_t(numel(shape_of(y)).value())));
    const UOp loss = sum(mul(y, tinygrad::reshape(weights.src(0), shape_of(y))));
    const std::vector<UOp> grads = gradient(loss, constant(DType::float64, 1), inputs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      ASSERT_TRUE(grads[i]) << "input " << i;
      EXPECT_EQ(to_string(shape_of(grads[i])), to_string(shapes[i]));
      const Values got = values(grads[i]);
      for (size_t k = 0; k < data[i].size(); ++k) {
        constexpr double step = 1e-6;
        auto loss_at = [&](double offset) {
          Values moved = data[i];
          moved[k] += offset;
          set(inputs[i], moved);
          return values(loss)[0];
        };
        const double numeric = (loss_at(step) - loss_at(-step)) / (2 * step);
        set(inputs[i], data[i]);
        EXPECT_NEAR(got[k], numeric, 2e-6 * std::max(1.0, std::abs(numeric))) << "input " << i << ", element " << k;
      }
    }
  }
};

Build unary(UOp (*f)(const UOp&, const OpsContext&)) {
  return [f](const std::vector<UOp>& x) { return f(x[0], {}); };
}

TEST_F(GradientTest, AluOps) {
  const std::vector<Shape> one = {{2, 3}}, two = {{2, 3}, {2, 3}}, three = {{4}, {4}, {4}};
  auto node = [](Op op) { return [op](const std::vector<UOp>& x) { return alu(op, std::span(x)); }; };
  for (Op op : {Op::EXP2, Op::LOG2, Op::SIN, Op::SQRT, Op::RECIPROCAL, Op::NEG}) check(std::string(name(op)), one, node(op));
  for (Op op : {Op::ADD, Op::SUB, Op::MUL, Op::FDIV, Op::MAX, Op::POW}) check(std::string(name(op)), two, node(op));
  check("MULACC", three, node(Op::MULACC));
  check("WHERE", two, [](const std::vector<UOp>& x) { return ops::where(lt(x[0], 0.8), x[0], mul(x[1], x[1])); });
  check("x used twice", one, [](const std::vector<UOp>& x) { return mul(x[0], add(x[0], x[0])); });
}

TEST_F(GradientTest, BroadcastScalars) {
  check("scalar operand", {{}, {2, 3}}, [](const std::vector<UOp>& x) { return mul(x[0], x[1]); });
  check("row and column", {{1, 3}, {2, 1}}, [](const std::vector<UOp>& x) { return mul(x[0], x[1]); });
  check("condition", {{}, {3}}, [](const std::vector<UOp>& x) { return ops::where(lt(x[1], 0.8), x[0], x[1]); });
}

TEST_F(GradientTest, MovementOps) {
  const std::vector<Shape> x = {{2, 3}};
  check("RESHAPE", x, [](const std::vector<UOp>& v) { return ops::reshape(v[0], {3, 2}); });
  check("PERMUTE", {{2, 3, 4}}, [](const std::vector<UOp>& v) { return ops::permute(v[0], {2, 0, 1}); });
  check("EXPAND", {{2, 1}}, [](const std::vector<UOp>& v) { return ops::expand(v[0], {4, 2, 3}); });
  check("EXPAND of a scalar", {{}}, [](const std::vector<UOp>& v) { return ops::expand(v[0], {4, 2}); });
  check("PAD", x, [](const std::vector<UOp>& v) { return ops::pad(v[0], {{1, 0}, {0, 2}}, 3); });
  check("SHRINK", x, [](const std::vector<UOp>& v) { return ops::shrink(v[0], {{1, 2}, {0, 2}}); });
  check("FLIP", x, [](const std::vector<UOp>& v) { return ops::flip(v[0], {1}); });
  check("STACK", {{2}, {2}}, [](const std::vector<UOp>& v) { return tinygrad::stack(v); });
  check("rearrange", {{2, 6}}, [](const std::vector<UOp>& v) {
    const NamedSize b[] = {{"b", 2}};
    return rearrange(v[0], "a (b c) -> (c a) b", b);
  });
  check("cat", {{2, 1}, {2, 2}}, [](const std::vector<UOp>& v) { return cat(v, 1); });
  check("pool", {{7}}, [](const std::vector<UOp>& v) { return unfold(v[0], 0, 3, 2); });
  check("roll", x, [](const std::vector<UOp>& v) {
    const int64_t by[] = {1};
    return roll(v[0], by, {1});
  });
}

TEST_F(GradientTest, ReduceOps) {
  const std::vector<Shape> x = {{2, 3, 2}};
  check("sum", x, [](const std::vector<UOp>& v) { return sum(v[0], {0, 2}); });
  check("prod", x, [](const std::vector<UOp>& v) { return prod(v[0], 1); });
  check("max", x, [](const std::vector<UOp>& v) { return ops::max(v[0], {1, 2}); });
  check("min", x, [](const std::vector<UOp>& v) { return ops::min(v[0]); });
  check("mean", x, [](const std::vector<UOp>& v) { return mean(v[0], 1); });
  check("std", x, [](const std::vector<UOp>& v) { return std_dev(v[0], 1); });
  check("softmax", x, [](const std::vector<UOp>& v) { return softmax(v[0], 1); });
  check("log_softmax", x, [](const std::vector<UOp>& v) { return log_softmax(v[0]); });
  check("logsumexp", x, [](const std::vector<UOp>& v) { return logsumexp(v[0], {0, 1}); });
  check("cumsum", x, [](const std::vector<UOp>& v) { return cumsum(v[0], 1); });
  check("cumprod", x, [](const std::vector<UOp>& v) { return cumprod(v[0], 1); });
  check("sort", {{5}}, [](const std::vector<UOp>& v) { return sort(v[0]).values; });
}

TEST_F(GradientTest, TiesShareEqually) {
  const UOp x = tensor({4}, {3, 1, 3, 3});
  expect_values(gradient_of(ops::max(x), x), {1.0 / 3, 0, 1.0 / 3, 1.0 / 3});
  const UOp a = tensor({2}, {1, 2}), b = tensor({2}, {1, 5});
  expect_values(gradient_of(sum(maximum(a, b)), a), {0.5, 0});
  const UOp zero = tensor({3}, {-1, 0, 2});
  expect_values(gradient_of(sum(relu(zero)), zero), {0, 0, 1});
  expect_values(gradient_of(sum(abs(zero)), zero), {-1, 0, 1});
}

TEST_F(GradientTest, TheGreatestIsFoundAmongStoredValues) {
  // Computed twice, a sum of products may be rounded differently, and no element equal the greatest.
  const UOp a = random({3, 4}), y = matmul(a, random({4, 2}));
  auto reads_stored = [](const UOp& u, const UOp& value) {
    for (const UOp& n : toposort(u))
      if (n.is(Op::CONTIGUOUS) && n.src(0) == value) return true;
    return false;
  };
  EXPECT_TRUE(reads_stored(gradient_of(sum(ops::max(y, 1)), a), y));
  EXPECT_TRUE(reads_stored(gradient_of(sum(ops::max(ops::transpose(y, 0, 1), 0)), a), y)) << "below movement ops";
  EXPECT_TRUE(reads_stored(argmax(y, 1), y));
  EXPECT_TRUE(reads_stored(sort(y, 1).values, y));
}

TEST_F(GradientTest, ProductsWithZeros) {
  const UOp one = tensor({3}, {2, 0, 5}), two = tensor({3}, {2, 0, 0}), none = tensor({3}, {2, 3, 5});
  expect_values(gradient_of(prod(one), one), {0, 10, 0});
  expect_values(gradient_of(prod(two), two), {0, 0, 0});
  expect_values(gradient_of(prod(none), none), {15, 10, 6});
}

TEST_F(GradientTest, PowerAtZero) {
  const UOp b = tensor({3}, {0, 0, 2}), e = tensor({3}, {2, 0, 3});
  expect_values(gradient_of(sum(pow(b, e)), b), {0, 0, 12});
  expect_values(gradient_of(sum(pow(b, e)), e), {0, 0, 8 * std::log(2.0)});
}

TEST_F(GradientTest, Functions) {
  const std::vector<Shape> x = {{6}};
  using F = UOp (*)(const UOp&, const OpsContext&);
  const std::pair<const char*, F> functions[] = {{"exp", exp},
                                                 {"log", log},
                                                 {"cos", cos},
                                                 {"tan", tan},
                                                 {"tanh", tanh},
                                                 {"sigmoid", sigmoid},
                                                 {"rsqrt", rsqrt},
                                                 {"erf", erf},
                                                 {"sinh", sinh},
                                                 {"cosh", cosh},
                                                 {"asinh", asinh},
                                                 {"silu", silu},
                                                 {"mish", mish},
                                                 {"softsign", softsign},
                                                 {"logsigmoid", logsigmoid},
                                                 {"atan", atan},
                                                 {"quick_gelu", quick_gelu}};
  for (const auto& [n, f] : functions) check(n, x, unary(f));
  check("asin", x, unary(asin), -0.8, 0.8);
  check("gelu", x, [](const std::vector<UOp>& v) { return gelu(v[0]); }, -2, 2);
  check("gelu erf", x, [](const std::vector<UOp>& v) { return gelu(v[0], GeluForm::erf); }, -2, 2);
  check("elu", x, [](const std::vector<UOp>& v) { return elu(v[0]); }, -2, 2);
  check("selu", x, [](const std::vector<UOp>& v) { return selu(v[0]); }, -2, 2);
  check("softplus", x, [](const std::vector<UOp>& v) { return softplus(v[0], 2); }, -2, 2);
  check("hardswish", x, [](const std::vector<UOp>& v) { return hardswish(v[0]); }, -2, 2);
  check("leaky_relu", x, [](const std::vector<UOp>& v) { return leaky_relu(v[0]); }, -2, 2);
  check("clamp", x, [](const std::vector<UOp>& v) { return clamp(v[0], -0.5, 0.5); }, -2, 2);
  check("pow", x, [](const std::vector<UOp>& v) { return pow(v[0], 2.5); });
  check("mod", x, [](const std::vector<UOp>& v) { return mod(v[0], 0.4); }, 0.41, 0.79);
  check("lerp", {{3}, {3}, {3}}, [](const std::vector<UOp>& v) { return lerp(v[0], v[1], v[2]); });
}

TEST_F(GradientTest, Layers) {
  check("matmul", {{2, 3}, {3, 4}}, [](const std::vector<UOp>& v) { return matmul(v[0], v[1]); });
  check("batched matmul", {{2, 2, 3}, {3, 2}}, [](const std::vector<UOp>& v) { return matmul(v[0], v[1]); });
  check("conv2d", {{1, 2, 4, 5}, {2, 2, 3, 2}, {2}},
        [](const std::vector<UOp>& v) { return conv2d(v[0], v[1], v[2], {.stride = {2, 1}, .padding = 1}); });
  check("conv2d groups", {{1, 4, 5, 5}, {2, 2, 2, 2}},
        [](const std::vector<UOp>& v) { return conv2d(v[0], v[1], {}, {.groups = 2, .dilation = 2}); });
  check("conv_transpose2d", {{1, 2, 3, 3}, {2, 1, 2, 2}},
        [](const std::vector<UOp>& v) { return conv_transpose2d(v[0], v[1], {}, {.stride = 2}); });
  check("max_pool2d", {{1, 1, 4, 4}}, [](const std::vector<UOp>& v) { return max_pool2d(v[0]); });
  check("overlapping max_pool2d", {{1, 1, 5, 5}},
        [](const std::vector<UOp>& v) { return max_pool2d(v[0], {.kernel_size = {3, 3}, .stride = 2, .padding = 1}); });
  check("avg_pool2d", {{1, 1, 5, 5}}, [](const std::vector<UOp>& v) { return avg_pool2d(v[0], {.kernel_size = {3, 3}, .stride = 1}); });
  check("layernorm", {{2, 4}}, [](const std::vector<UOp>& v) { return layernorm(v[0]); });
  check("batchnorm", {{2, 3, 2}, {3}, {3}, {3}, {3}}, [](const std::vector<UOp>& v) { return batchnorm(v[0], v[1], v[2], v[3], v[4]); });
  check("attention", {{1, 3, 2}, {1, 3, 2}, {1, 3, 2}},
        [](const std::vector<UOp>& v) { return scaled_dot_product_attention(v[0], v[1], v[2], {.is_causal = true}); });
  const UOp labels = tensor({3}, {0, 3, 1}, DType::int32);
  check("sparse_categorical_crossentropy", {{3, 4}},
        [&](const std::vector<UOp>& v) { return sparse_categorical_crossentropy(v[0], labels, -1, 0.1); });
  check("cross_entropy", {{3, 4}, {3, 4}}, [](const std::vector<UOp>& v) { return cross_entropy(v[0], v[1]); });
  check("binary_crossentropy_logits", {{4}, {4}}, [](const std::vector<UOp>& v) { return binary_crossentropy_logits(v[0], v[1]); });
  check("embedding", {{4, 2}}, [&](const std::vector<UOp>& v) { return embedding(v[0], labels); });
  const int64_t size[] = {5, 2};
  for (const InterpolateOptions& o : {InterpolateOptions{}, {.align_corners = true}, {.mode = Interpolation::nearest}})
    check("interpolate", {{2, 3, 4}}, [&](const std::vector<UOp>& v) { return interpolate(v[0], size, o); });
  const UOp at = tensor({1, 3}, {1, 0, 1}, DType::int32);
  check("gather", {{2, 3}}, [&](const std::vector<UOp>& v) { return gather(v[0], 0, at); });
  check("scatter", {{2, 3}, {1, 3}}, [&](const std::vector<UOp>& v) { return scatter(v[0], 0, at, v[1]); });
  check("set_item", {{2, 4}, {2, 2}}, [](const std::vector<UOp>& v) {
    const Index all[] = {Slice{}, Slice{.step = -2}};
    return set_item(v[0], all, v[1]);
  });
}

TEST_F(GradientTest, Decompositions) {
  check("qr, q", {{3, 2}}, [](const std::vector<UOp>& v) { return qr(v[0]).q; });
  check("qr, r", {{2, 3, 3}}, [](const std::vector<UOp>& v) { return qr(v[0]).r; });
  check("qr of a wide matrix", {{2, 3}}, [](const std::vector<UOp>& v) { return matmul(qr(v[0]).q, qr(v[0]).r); });
  check("svd, s", {{3, 2}}, [](const std::vector<UOp>& v) { return svd(v[0]).s; });
  check("svd, s of a wide matrix", {{2, 3}}, [](const std::vector<UOp>& v) { return svd(v[0]).s; });
  check("svd, u", {{3, 3}}, [](const std::vector<UOp>& v) { return svd(v[0]).u; });
  check("svd, vt", {{2, 3, 2}}, [](const std::vector<UOp>& v) { return svd(v[0], false).vt; });
  check("newton_schulz", {{2, 3}}, [](const std::vector<UOp>& v) { return newton_schulz(v[0], 2, std::array{2.0, -1.5, 0.5}); });
  // The derivative of the sum of the singular values at a matrix of rank 1, where s[1] = 0 has none: u[0] vt[0].
  const UOp x = tensor({2, 2}, {3, 0, 0, 0});
  expect_values(gradient_of(sum(svd(x).s), x), {1, 0, 0, 0});
  const UOp zero = tensor({2, 2}, {0, 0, 0, 0});
  for (double g : values(gradient_of(sum(qr(zero).r), zero))) EXPECT_TRUE(std::isfinite(g));
}

TEST_F(GradientTest, MarkersAndCasts) {
  check("CONTIGUOUS", {{3}}, [](const std::vector<UOp>& v) { return square(contiguous(v[0])); });
  check("CONTIGUOUS_BACKWARD", {{3}}, [](const std::vector<UOp>& v) { return square(contiguous_backward(v[0])); });
  check("COPY", {{3}}, [](const std::vector<UOp>& v) { return square(copy_to(v[0], "CPU")); });
  const UOp x = tensor({2}, {1.5, 2.5});
  expect_values(gradient_of(sum(mul(detach(x), x)), x), {1.5, 2.5});
  EXPECT_TRUE(gradient_of(sum(contiguous_backward(x)), x).is(Op::CONTIGUOUS));
  const UOp narrow = gradient_of(tinygrad::cast(sum(square(tinygrad::cast(x, DType::float16))), DType::float64), x);
  EXPECT_EQ(narrow.dtype(), DType::float64);
  expect_values(narrow, {3, 5});
}

TEST_F(GradientTest, AfterAStore) {
  const UOp x = tensor({2}, {1.5, 2.5}), memory = tensor({2}, {0, 0});
  const UOp stored = tinygrad::store(memory, mul(x, x));
  expect_values(gradient_of(sum(mul(tinygrad::after(memory, std::span(&stored, 1)), 3)), x), {9, 15});
}

TEST_F(GradientTest, WithoutAPathIsNull) {
  const UOp x = counting({2}), y = random({2}), i = counting({2}, DType::int32);
  EXPECT_FALSE(gradient_of(sum(y), x));
  EXPECT_FALSE(gradient_of(sum(detach(x)), x));
  EXPECT_FALSE(gradient_of(sum(tinygrad::cast(lt(x, 1), DType::float64)), x));
  EXPECT_FALSE(gradient_of(sum(trunc(x)), x));
  EXPECT_FALSE(gradient_of(sum(tinygrad::cast(i, DType::float64)), mul(i, 1)));
  EXPECT_EQ(gradient_of(x, x), broadcast_to(constant(DType::float64, 1), shape_of(x)));
}

TEST_F(GradientTest, TargetsInTheMiddle) {
  const UOp x = random({3}), y = square(x), z = sum(mul(y, y));
  const UOp targets[] = {y, x};
  const std::vector<UOp> g = gradient(z, constant(DType::float64, 1), targets);
  const Values v = values(x);
  expect_values(g[0], {2 * v[0] * v[0], 2 * v[1] * v[1], 2 * v[2] * v[2]});
  expect_values(g[1], {4 * std::pow(v[0], 3), 4 * std::pow(v[1], 3), 4 * std::pow(v[2], 3)});
}

TEST_F(GradientTest, OfAFunctionIsAFunction) {
  const UOp two = index_const(2);
  const UOp a(Op::PARAM, DType::float64, {two}, ParamArg{.slot = 0}), b(Op::PARAM, DType::float64, {two}, ParamArg{.slot = 1});
  const UOp body = mul(a, sin(b));
  const UOp function(Op::FUNCTION, DType::float64, {body}, FunctionArg{"f"});
  check("CALL", {{2}, {2}}, [&](const std::vector<UOp>& v) { return mul(UOp(Op::CALL, DType::float64, {function, v[0], v[1]}), v[0]); });
  const UOp pair(Op::FUNCTION, DType::void_, {UOp(Op::TUPLE, DType::void_, {body, mul(b, b)})}, FunctionArg{"g"});
  check("GETTUPLE", {{2}, {2}}, [&](const std::vector<UOp>& v) {
    const UOp call(Op::CALL, DType::void_, {pair, v[0], v[1]});
    return add(UOp(Op::GETTUPLE, DType::float64, {call}, TupleArg{0}), mul(UOp(Op::GETTUPLE, DType::float64, {call}, TupleArg{1}), 3));
  });
  const UOp x = random({2}), call(Op::CALL, DType::float64, {function, x, x});
  bool has_backward = false;
  for (const UOp& u : toposort(gradient_of(sum(call), x), Scopes::enter))
    has_backward = has_backward || (u.is(Op::FUNCTION) && u.arg_as<FunctionArg>().name == Symbol("f_backward"));
  EXPECT_TRUE(has_backward);
}

TEST_F(GradientTest, LongChains) {
  const UOp x = tensor({1}, {1.0});
  UOp y = x;
  for (int i = 0; i < 200000; ++i) y = add(y, x);
  EXPECT_TRUE(gradient_of(y, x));
}

TEST_F(GradientTest, Errors) {
  const UOp x = counting({2});
  const UOp tile(Op::WMMA, DType::float64, {x, x, x}, WmmaArg{});
  EXPECT_EQ(message_of<ValueError>([&] { gradient_of(tile, x); }), "gradient: WMMA has no gradient rule; use detach() before it");
}

TEST_F(GradientTest, SecondOfProductsWithZeros) {
  const UOp x = tensor({4}, {0, 0, 3, 4}), weights = tensor({4}, {1, 2, 3, 4});
  expect_values(gradient_of(prod(x), x), {0, 0, 0, 0});
  expect_values(gradient_of(sum(gradient_of(prod(x), x)), x), {12, 12, 0, 0});
  expect_values(gradient_of(sum(gradient_of(sum(mul(cumprod(x, 0), weights)), x)), x), {2 + 9 + 48, 2 + 9 + 48, 0, 0});
  const UOp one = tensor({3}, {2, 0, 3});
  expect_values(gradient_of(sum(gradient_of(prod(one), one)), one), {3, 5, 2});
  // Three zeros have a third derivative.
  const UOp three = tensor({4}, {0, 0, 0, 5}), second = gradient_of(sum(gradient_of(prod(three), three)), three);
  expect_values(second, {0, 0, 0, 0});
  expect_values(gradient_of(sum(second), three), {10, 10, 10, 0});
  // Over some axes, in any order, and over none that has elements.
  const UOp m = tensor({2, 2, 2}, {0, 2, 3, 0, 0, 5, 0, 7});
  expect_values(gradient_of(sum(gradient_of(sum(prod(m, {0, 2})), m)), m), {10, 0, 0, 21, 10, 0, 21, 0});
  const UOp none = tensor({0}, {});
  EXPECT_EQ(to_string(shape_of(gradient_of(prod(none), none))), "(0,)");
}

TEST_F(GradientTest, SecondOfLogaddexpWhereBothAreEqual) {
  const UOp a = tensor({3}, {0.5, -2, 1}), b = tensor({3}, {0.5, -2, 3});
  const double s = 1 / (1 + std::exp(2)), slope = s * (1 - s);
  expect_values(gradient_of(sum(logaddexp(a, b)), a), {0.5, 0.5, s});
  expect_values(gradient_of(sum(gradient_of(sum(logaddexp(a, b)), a)), a), {0.25, 0.25, slope});
  expect_values(gradient_of(sum(gradient_of(sum(logaddexp(a, b)), b)), a), {-0.25, -0.25, -slope});
}

}  // namespace
}  // namespace tinygrad::ops
