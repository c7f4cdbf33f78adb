#include "ops/elementwise.h"

#include <tinygrad/errors.h>

#include "ops/activation.h"
#include "support.h"

namespace tinygrad::ops {
namespace {

using ElementwiseTest = OpsTest;

TEST_F(ElementwiseTest, NumbersTakeTheDtypeOfTheOtherOperand) {
  const OpsContext half{.default_float = DType::float16, .default_int = DType::int64};
  const UOp i = tensor({2}, {1, 2}, DType::int8), f = tensor({2}, {1, 2}, DType::bfloat16), b = tensor({2}, {0, 1}, DType::bool_);
  EXPECT_EQ(add(i, 1, half).dtype(), DType::int8);
  EXPECT_EQ(add(i, 1.5, half).dtype(), DType::float16);
  EXPECT_EQ(add(f, 1, half).dtype(), DType::bfloat16);
  EXPECT_EQ(add(f, 1.5, half).dtype(), DType::bfloat16);
  EXPECT_EQ(add(b, 1, half).dtype(), DType::int64);
  EXPECT_EQ(add(b, true, half).dtype(), DType::bool_);
  EXPECT_EQ(add(1, i).dtype(), DType::int8);
  EXPECT_EQ(add(i, f).dtype(), DType::bfloat16);
}

TEST_F(ElementwiseTest, ScalarsAreNotExpanded) {
  const UOp x = counting({2, 3});
  EXPECT_TRUE(add(x, 1).src(1).is(Op::CONST));
  expect_shape(add(x, 1), "(2, 3)");
  expect_shape(ops::where(bool_const(true), 1.0, x), "(2, 3)");
}

TEST_F(ElementwiseTest, Broadcasting) {
  const UOp row = counting({3}), column = tinygrad::reshape(counting({2}), {2, 1});
  expect_values(add(row, mul(column, 10)), {0, 1, 2, 10, 11, 12});
  EXPECT_EQ(message_of<ShapeError>([&] { add(counting({2, 3}), counting({2})); }),
            "add: cannot broadcast (2, 3) with (2,): the sizes 3 and 2 differ and neither is 1");
  const UOp a = counting({3}), b = counting({2});
  const auto named = [&](auto&& op) {
    const std::string message = message_of<ShapeError>([&] { op(a, b); });
    return message.substr(0, message.find(": cannot broadcast"));
  };
  EXPECT_EQ(named([](const UOp& x, const UOp& y) { return gt(x, y); }), "gt");
  EXPECT_EQ(named([](const UOp& x, const UOp& y) { return le(x, y); }), "le");
  EXPECT_EQ(named([](const UOp& x, const UOp& y) { return div(x, y); }), "div");
  EXPECT_EQ(named([](const UOp& x, const UOp& y) { return maximum(x, y); }), "maximum");
  EXPECT_EQ(named([](const UOp& x, const UOp& y) { return bitwise_and(lt(x, 0), lt(y, 0)); }), "bitwise_and");
}

TEST_F(ElementwiseTest, Arithmetic) {
  const UOp a = tensor({4}, {7, -7, 7, -7}, DType::int32), b = tensor({4}, {2, 2, -2, -2}, DType::int32);
  expect_values(sub(a, b), {5, -9, 9, -5});
  expect_values(div(a, b), {3.5, -3.5, -3.5, 3.5});
  EXPECT_EQ(div(a, b).dtype(), DType::float32);
  expect_values(div(a, b, Rounding::trunc), {3, -3, -3, 3});
  expect_values(div(a, b, Rounding::floor), {3, -4, -4, 3});
  expect_values(mod(a, b), {1, 1, -1, -1});
  expect_values(fmod(a, b), {1, -1, 1, -1});
  const UOp x = tensor({4}, {7.5, -7.5, 7.5, -7.5}), y = tensor({4}, {2, 2, -2, -2});
  expect_values(mod(x, y), {1.5, 0.5, -0.5, -1.5});
  expect_values(fmod(x, y), {1.5, -1.5, 1.5, -1.5});
  expect_values(mod(tensor({2}, {5, -5}), inf), {5, inf});
  expect_values(fmod(tensor({2}, {5, -5}), inf), {5, -5});
  expect_values(div(x, y, Rounding::floor), {3, -4, -4, 3});
}

TEST_F(ElementwiseTest, Powers) {
  const UOp x = tensor({4}, {-2, 0, 3, nan});
  expect_values(pow(x, 0), {1, 1, 1, 1});
  expect_values(pow(x, 2), {4, 0, 9, nan});
  expect_values(pow(x, 3), {-8, 0, 27, nan});
  expect_values(pow(x, -1), {-0.5, inf, 1.0 / 3, nan});
  expect_values(pow(x, x), {0.25, 1, 27, nan});
  expect_values(pow(2, x), {0.25, 1, 8, nan});
  const UOp i = tensor({4}, {-1, 2, 1, 0}, DType::int32);
  expect_values(pow(i, 5), {-1, 32, 1, 0});
  EXPECT_THROW(pow(i, -3), ValueError);
  EXPECT_EQ(pow(i, 5).dtype(), DType::int32);
  EXPECT_EQ(pow(i, 0.5).dtype(), DType::float32);
}

TEST_F(ElementwiseTest, MinimumAndMaximum) {
  const UOp x = tensor({4}, {1, nan, -3, 5}), y = tensor({4}, {2, 0, -4, 5});
  expect_values(maximum(x, y), {2, nan, -3, 5});
  expect_values(minimum(x, y), {1, nan, -4, 5});
  const UOp u = tensor({3}, {0, 200, 255}, DType::uint8);
  expect_values(minimum(u, 100), {0, 100, 100});
  const UOp low = tensor({2}, {-128, 127}, DType::int8);
  expect_values(minimum(low, 0), {-128, 0});
  expect_values(clamp(x, 0, 2), {1, nan, 0, 2});
  expect_values(clamp(x, {}, 2), {1, nan, -3, 2});
  EXPECT_THROW(clamp(x, {}, {}), ValueError);
}

TEST_F(ElementwiseTest, SignsAndZeros) {
  const UOp x = tensor({5}, {-2, -0.0, 0.0, 3, nan});
  expect_values(abs(x), {2, 0, 0, 3, nan});
  EXPECT_FALSE(std::signbit(values(abs(x))[1]));
  expect_values(sign(x), {-1, 0, 0, 1, 0});
  const Values copied = values(copysign(tensor({3}, {1, -2, 3}), tensor({3}, {-0.0, 0.0, -5})));
  EXPECT_EQ(copied, (Values{-1, 2, -3}));
  expect_values(neg(tensor({2}, {0, 1}, DType::bool_)), {1, 0});
  expect_values(abs(tensor({2}, {-128, 5}, DType::int8)), {-128, 5});
}

TEST_F(ElementwiseTest, Rounding) {
  const UOp x = tensor({10}, {-2.5, -1.5, -0.5, -0.3, 0.5, 1.5, 2.5, 0.49999999999999994, 4503599627370497.0, inf});
  expect_values(round(x), {-2, -2, -0.0, -0.0, 0, 2, 2, 0, 4503599627370497.0, inf});
  expect_values(floor(x), {-3, -2, -1, -1, 0, 1, 2, 0, 4503599627370497.0, inf});
  expect_values(ceil(x), {-2, -1, -0.0, -0.0, 1, 2, 3, 1, 4503599627370497.0, inf});
  EXPECT_TRUE(std::signbit(values(round(x))[3]));
  expect_values(trunc(x), {-2, -1, 0, 0, 0, 1, 2, 0, 4503599627370497.0, inf});
  const UOp i = tensor({1}, {3}, DType::int32);
  EXPECT_EQ(floor(i), i);
}

TEST_F(ElementwiseTest, Comparisons) {
  const UOp x = tensor({4}, {1, 2, 3, nan}), y = tensor({4}, {2, 2, 2, nan});
  expect_values(lt(x, y), {1, 0, 0, 0});
  expect_values(le(x, y), {1, 1, 0, 0});
  expect_values(gt(x, y), {0, 0, 1, 0});
  expect_values(ge(x, y), {0, 1, 1, 0});
  expect_values(ops::eq(x, y), {0, 1, 0, 0});
  expect_values(ops::ne(x, y), {1, 0, 1, 1});
  EXPECT_EQ(lt(x, y).dtype(), DType::bool_);
  expect_values(isnan(x), {0, 0, 0, 1});
  const UOp z = tensor({4}, {inf, -inf, 0, nan});
  expect_values(isinf(z), {1, 1, 0, 0});
  expect_values(isinf(z, true, false), {1, 0, 0, 0});
  expect_values(isfinite(z), {0, 0, 1, 0});
  expect_values(isclose(z, z), {1, 1, 1, 0});
  expect_values(isclose(z, z, {.equal_nan = true}), {1, 1, 1, 1});
  expect_values(isclose(tensor({2}, {1, inf}), tensor({2}, {1 + 1e-6, 1e300})), {1, 0});
}

TEST_F(ElementwiseTest, Choice) {
  const UOp c = tensor({2}, {1, 0}, DType::bool_), x = counting({3, 2});
  expect_values(ops::where(c, x, -1), {0, -1, 2, -1, 4, -1});
  expect_values(masked_fill(x, c, 9), {9, 1, 9, 3, 9, 5});
  EXPECT_EQ(ops::where(c, 1, 2.5).dtype(), DType::float32);
  expect_values(lerp(x, mul(x, 3), 0.5), {0, 2, 4, 6, 8, 10});
}

TEST_F(ElementwiseTest, Bits) {
  const UOp x = tensor({3}, {0b1100, 5, 255}, DType::uint8);
  expect_values(bitwise_and(x, 0b1010), {0b1000, 0, 0b1010});
  expect_values(bitwise_or(x, 1), {13, 5, 255});
  expect_values(bitwise_xor(x, x), {0, 0, 0});
  expect_values(bitwise_not(x), {0xf3, 0xfa, 0});
  expect_values(lshift(x, 1), {24, 10, 254});
  expect_values(rshift(x, 2), {3, 1, 63});
  expect_values(ops::logical_not(x), {0, 0, 0});
  EXPECT_EQ(message_of<DTypeError>([&] { bitwise_and(counting({2}), 1); }), "bitwise_and: got dtypes.float64, expects integers or bool");
  EXPECT_EQ(message_of<DTypeError>([&] { lshift(counting({2}), 1); }), "lshift: got dtypes.float64, expects integers");
}

TEST_F(ElementwiseTest, BitcastRescalesTheLastAxis) {
  const UOp x = tensor({2}, {1.0, -2.0}, DType::float32);
  expect_values(ops::bitcast(x, DType::uint32), {0x3f800000, 0xc0000000});
  const UOp bytes = ops::bitcast(x, DType::uint8);
  expect_shape(bytes, "(8,)");
  expect_values(bytes, {0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0});
  const UOp back = ops::bitcast(bytes, DType::float32);
  expect_shape(back, "(2,)");
  expect_values(back, {1, -2});
  const UOp wide = ops::bitcast(tensor({2, 2}, {1, 2, 3, 4}, DType::uint32), DType::int64);
  expect_shape(wide, "(2, 1)");
  expect_values(wide, {double(1 + (int64_t{2} << 32)), double(3 + (int64_t{4} << 32))});
  EXPECT_THROW(ops::bitcast(counting({3}, DType::int8), DType::int16), ShapeError);
}

struct Function {
  const char* name;
  UOp (*build)(const UOp&, const OpsContext&);
  double (*reference)(double);
  double low, high, tolerance;
};

class MathTest : public OpsTest, public ::testing::WithParamInterface<Function> {};

TEST_P(MathTest, AgreesWithTheLibrary) {
  const Function& f = GetParam();
  const Values in = numbers(200, f.low, f.high);
  Values want;
  for (double v : in) want.push_back(f.reference(v));
  expect_values(f.build(tensor({200}, in), {}), want, f.tolerance);
  EXPECT_EQ(f.build(tensor({1}, {1}, DType::int32), {}).dtype(), DType::float32);
  EXPECT_EQ(f.build(tensor({1}, {1}, DType::float16), {}).dtype(), DType::float16);
}

#define TG_FUNCTION(f, low, high, tolerance)                        \
  Function {                                                        \
    #f, f, [](double v) { return std::f(v); }, low, high, tolerance \
  }
INSTANTIATE_TEST_SUITE_P(
    All, MathTest,
    ::testing::Values(TG_FUNCTION(exp, -20, 20, 1e-12), TG_FUNCTION(exp2, -20, 20, 1e-12), TG_FUNCTION(log, 1e-6, 50, 1e-12),
                      TG_FUNCTION(log2, 1e-6, 50, 1e-12), TG_FUNCTION(log10, 1e-6, 50, 1e-12), TG_FUNCTION(sqrt, 0, 50, 1e-12),
                      TG_FUNCTION(sin, -50, 50, 1e-12), TG_FUNCTION(cos, -50, 50, 1e-12), TG_FUNCTION(tan, -1.5, 1.5, 1e-10),
                      TG_FUNCTION(asin, -1, 1, 2e-7), TG_FUNCTION(acos, -1, 1, 2e-7), TG_FUNCTION(atan, -20, 20, 2e-7),
                      TG_FUNCTION(sinh, -5, 5, 1e-12), TG_FUNCTION(cosh, -5, 5, 1e-12), TG_FUNCTION(tanh, -5, 5, 1e-12),
                      TG_FUNCTION(asinh, -5, 5, 1e-12), TG_FUNCTION(acosh, 1, 9, 1e-10), TG_FUNCTION(atanh, -0.9, 0.9, 1e-12),
                      TG_FUNCTION(erf, -3, 3, 2e-7)),
    [](const auto& suite) { return suite.param.name; });

TEST_F(ElementwiseTest, CosineOfLargeFloats) {
  const UOp x = tensor({3}, {1e4, 12345.675, 0}, DType::float32);
  expect_values(cos(x), {std::cos(1e4), std::cos(double(12345.675f)), 1}, 1e-6);
}

double logistic(double v) { return 1 / (1 + std::exp(-v)); }

TEST_F(ElementwiseTest, Activations) {
  const Values in = {-5, -1.5, -0.5, 0, 0.25, 2, 7};
  const UOp x = tensor({7}, in);
  auto expect = [&](const UOp& got, double (*f)(double), double tolerance = 1e-12) {
    Values want;
    for (double v : in) want.push_back(f(v));
    expect_values(got, want, tolerance);
  };
  expect(relu(x), [](double v) { return std::max(v, 0.0); });
  expect(relu6(x), [](double v) { return std::clamp(v, 0.0, 6.0); });
  expect(sigmoid(x), logistic);
  expect(logsigmoid(x), [](double v) { return std::log(logistic(v)); });
  expect(hardsigmoid(x), [](double v) { return std::clamp(v / 6 + 0.5, 0.0, 1.0); });
  expect(hardswish(x), [](double v) { return v * std::clamp(v + 3, 0.0, 6.0) / 6; });
  expect(hardtanh(x), [](double v) { return std::clamp(v, -1.0, 1.0); });
  expect(leaky_relu(x), [](double v) { return v < 0 ? 0.01 * v : v; });
  expect(gelu(x), [](double v) { return v / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v))); });
  expect(gelu(x, GeluForm::erf), [](double v) { return v / 2 * (1 + std::erf(v / std::sqrt(2.0))); }, 1e-6);
  expect(quick_gelu(x), [](double v) { return v * logistic(1.702 * v); });
  expect(silu(x), [](double v) { return v * logistic(v); });
  expect(elu(x), [](double v) { return v > 0 ? v : std::expm1(v); });
  expect(celu(x, 2), [](double v) { return v > 0 ? v : 2 * std::expm1(v / 2); });
  expect(selu(x), [](double v) { return 1.0507 * (v > 0 ? v : 1.67326 * std::expm1(v)); });
  expect(softplus(x), [](double v) { return std::log1p(std::exp(v)); });
  expect(softsign(x), [](double v) { return v / (1 + std::abs(v)); });
  expect(mish(x), [](double v) { return v * std::tanh(std::log1p(std::exp(v))); });
  expect_values(logaddexp(x, 1000), Values(7, 1000.0));
  expect_values(sigmoid(tensor({2}, {-1e4, 1e4})), {0, 1});
  EXPECT_THROW(celu(x, 0), ValueError);
}

TEST_F(ElementwiseTest, SmallLogarithmsOfSums) {
  for (const double v : {0.0, 1e-30, 1e-12, 1e-8, 3e-7, 1e-4, 0.3, 1.0}) {
    const double got = values(log1p(tensor({1}, {v}, DType::float32)))[0];
    EXPECT_NEAR(got, std::log1p(v), 4e-7 * std::log1p(v)) << v;
  }
  EXPECT_NEAR(values(softplus(tensor({1}, {-40})))[0] / std::exp(-40), 1, 1e-14);
  EXPECT_NEAR(values(logaddexp(tensor({1}, {0}), tensor({1}, {-20})))[0] / std::exp(-20), 1, 1e-8);
  expect_values(logaddexp(tensor({2}, {0, -3}), tensor({2}, {-40, -3})), {0, -3 + std::log(2)});
}

TEST_F(ElementwiseTest, NothingToDoIsTheSameNode) {
  const UOp x = counting({2});
  EXPECT_EQ(contiguous(contiguous(x)), contiguous(x));
  EXPECT_EQ(copy_to(x, Symbol()), x);
  EXPECT_EQ(ops::bitcast(x, DType::float64), x);
}

}  // namespace
}  // namespace tinygrad::ops
