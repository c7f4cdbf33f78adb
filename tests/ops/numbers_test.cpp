// What C++ and Python numbers, and values made only of them, become beside others; that no integer is wrapped or rounded silently.
#include <tinygrad/errors.h>

#include <algorithm>
#include <map>
#include <set>

#include "ops/creation.h"
#include "ops/elementwise.h"
#include "ops/index.h"
#include "ops/movement.h"
#include "ops/nn.h"
#include "ops/reduce.h"
#include "support.h"

namespace tinygrad::ops {
namespace {

using NumbersTest = OpsTest;

/// tinygrad's lattice of dtypes, in which the dtypes of numbers have places of their own; the least of a set is the first in this order.
const std::vector<std::pair<std::string, std::vector<std::string>>> lattice = {
    {"bool", {"weakint"}},
    {"weakint", {"int8", "uint8"}},
    {"int8", {"int16"}},
    {"uint8", {"int16", "uint16"}},
    {"int16", {"int32"}},
    {"uint16", {"int32", "uint32"}},
    {"int32", {"int64"}},
    {"uint32", {"int64", "uint64"}},
    {"int64", {"weakfloat"}},
    {"uint64", {"weakfloat"}},
    {"weakfloat", {"fp8e4m3", "fp8e5m2", "fp8e4m3fnuz", "fp8e5m2fnuz"}},
    {"fp8e4m3", {"float16", "bfloat16"}},
    {"fp8e5m2", {"float16", "bfloat16"}},
    {"fp8e4m3fnuz", {"float16", "bfloat16"}},
    {"fp8e5m2fnuz", {"float16", "bfloat16"}},
    {"float16", {"float32"}},
    {"bfloat16", {"float32"}},
    {"float32", {"float64"}},
    {"float64", {}},
};

std::set<std::string> upper_set(const std::string& name) {
  std::set<std::string> out{name};
  for (const auto& [node, parents] : lattice)
    if (node == name)
      for (const std::string& p : parents) out.merge(upper_set(p));
  return out;
}

std::string least_upper(const std::string& a, const std::string& b) {
  const std::set<std::string> s = upper_set(a), t = upper_set(b);
  for (const auto& [node, parents] : lattice)
    if (s.contains(node) && t.contains(node)) return node;
  return "none";
}

struct Named {
  std::string lattice_name;
  Operand value;
  std::string what;
};

TEST_F(NumbersTest, PromotionIsTinygradsForAllPairsAndOps) {
  std::vector<Named> operands;
  const UOp truth = tensor({2}, {0, 1}, DType::bool_);
  for (DType d : dtypes::all) operands.push_back({std::string(repr(d)).substr(7), tensor({2}, {0, 1}, d), std::string(repr(d))});
  operands.push_back({"weakint", 1, "1"});
  operands.push_back({"weakfloat", 1.5, "1.5"});
  operands.push_back({"bool", true, "true"});
  operands.push_back({"weakint", weak(full({}, 1)), "Tensor(1)"});
  operands.push_back({"weakfloat", weak(full({}, 1.5)), "Tensor(1.5)"});
  operands.push_back({"weakint", ops::where(truth, 1, 2), "where(1, 2)"});
  operands.push_back({"weakint", add(truth, 1), "bool + 1"});
  operands.push_back({"weakfloat", ops::where(truth, 1.0, 2.0), "where(1., 2.)"});
  operands.push_back({"weakfloat", mul(tensor({2}, {1, 2}, DType::int64), 2.5), "int64 * 2.5"});
  operands.push_back({"weakfloat", exp(ops::reshape(add(tensor({2}, {1, 2}, DType::int8), 2.5), {2, 1})), "view of int8 + 2.5"});
  const std::map<std::string, std::function<UOp(const Operand&, const Operand&)>> builders = {
      {"add", [](auto& a, auto& b) { return add(a, b); }},         {"sub", [](auto& a, auto& b) { return sub(a, b); }},
      {"mul", [](auto& a, auto& b) { return mul(a, b); }},         {"maximum", [](auto& a, auto& b) { return maximum(a, b); }},
      {"minimum", [](auto& a, auto& b) { return minimum(a, b); }}, {"where", [&](auto& a, auto& b) { return ops::where(truth, a, b); }},
  };
  size_t checked = 0;
  for (const Named& a : operands)
    for (const Named& b : operands)
      for (const auto& [name, build] : builders) {
        if (a.value.is_number() && b.value.is_number() && name != "where") continue;
        const std::string want = least_upper(a.lattice_name, b.lattice_name);
        const UOp got = build(a.value, b.value);
        const DType dtype = want == "weakint" ? DType::int32 : want == "weakfloat" ? DType::float32 : parse_dtype(want);
        EXPECT_EQ(got.dtype(), dtype) << name << " of " << a.what << " and " << b.what << ", expected " << want;
        EXPECT_EQ(got.is_weak(), want.starts_with("weak")) << name << " of " << a.what << " and " << b.what << ", expected " << want;
        ++checked;
      }
  EXPECT_GT(checked, 3500u);
}

TEST_F(NumbersTest, WhatIsMadeOfWeakValues) {
  const UOp i = tensor({2}, {1, 2}, DType::int32), w = add(i, 2.5), half = tensor({2}, {1, 2}, DType::float16);
  for (const UOp& u : {exp(w), neg(w), div(w, 2), ops::flip(w, Axes{0}), ops::pad_axis(w, 0, 1, 1), contiguous(w), detach(w), floor(w)})
    EXPECT_TRUE(u.is_weak());
  for (const UOp& u : {div(i, 2), sum(w), mean(w), max(w), lt(w, 1), strong(w), i, full({}, 1.5), exp(i)}) EXPECT_FALSE(u.is_weak());
  EXPECT_EQ(cat(UOps{w, half}).dtype(), DType::float16);
  EXPECT_EQ(cat(UOps{w, w}).dtype(), DType::float32);
  EXPECT_EQ(ops::stack(UOps{half, w}).dtype(), DType::float16);
  EXPECT_EQ(matmul(w, half).dtype(), DType::float16);
  EXPECT_EQ(lerp(half, half, 0.5).dtype(), DType::float16);
  EXPECT_EQ(pow(half, w).dtype(), DType::float16);
  EXPECT_EQ(add(strong(w), half).dtype(), DType::float32);
  expect_values(add(div(i, 2.0), half), {1.5, 3});
}

/// Numbers at and around the limits of all integer dtypes.
std::vector<Scalar> limits() {
  std::vector<Scalar> out{Scalar::of(true), Scalar::of(0.5), Scalar::of(-0.5), Scalar::of(inf), Scalar::of(-inf), Scalar::of(-0.0)};
  for (int bits : {7, 8, 15, 16, 24, 31, 32, 53, 63}) {
    for (int64_t off : {-1, 0, 1}) {
      if (bits == 63 && off >= 0) {
        out.push_back(Scalar::of((uint64_t{1} << 63) + uint64_t(off)));
      } else {
        const int64_t n = int64_t((uint64_t{1} << bits) - 1) + off + 1 - (off == 1);
        out.push_back(Scalar::of(n));
        out.push_back(Scalar::of(-n));
      }
    }
    out.push_back(Scalar::of(std::ldexp(1.0, bits)));
    out.push_back(Scalar::of(-std::ldexp(1.0, bits)));
    out.push_back(Scalar::of(std::ldexp(1.0, bits) + 0.5));
  }
  out.push_back(Scalar::of(std::numeric_limits<uint64_t>::max()));
  out.push_back(Scalar::of(std::numeric_limits<int64_t>::min()));
  out.push_back(Scalar::of(0x1p64));
  return out;
}

long double exact(const Scalar& s) {
  if (is_float(s.dtype())) return s.as_double();
  return is_unsigned(s.dtype()) ? static_cast<long double>(s.as_uint()) : static_cast<long double>(s.as_int());
}

TEST_F(NumbersTest, ComparisonsOfIntegersAreExact) {
  for (DType d : {DType::int8, DType::uint8, DType::int16, DType::uint16, DType::int32, DType::uint32, DType::int64, DType::uint64})
    for (const Scalar& element : {min_value(d), Scalar::of(0, d), Scalar::of(1, d), max_value(d)}) {
      const UOp x = constant(element);
      for (const Scalar& n : limits()) {
        const long double a = exact(element), b = exact(n);
        const std::string what = std::string(repr(d)) + " " + element.to_string() + " and " + n.to_string();
        const auto holds = [&](const UOp& u) { return evaluated(u)[0].as_bool(); };
        EXPECT_EQ(holds(ops::eq(x, n)), a == b) << what;
        EXPECT_EQ(holds(ops::ne(x, n)), a != b) << what;
        EXPECT_EQ(holds(lt(x, n)), a < b) << what;
        EXPECT_EQ(holds(le(x, n)), a <= b) << what;
        EXPECT_EQ(holds(gt(x, n)), a > b) << what;
        EXPECT_EQ(holds(ge(x, n)), a >= b) << what;
        EXPECT_EQ(holds(ops::eq(n, x)), a == b) << what;
        EXPECT_EQ(holds(lt(n, x)), b < a) << what;
        EXPECT_EQ(holds(le(n, x)), b <= a) << what;
      }
      EXPECT_FALSE(evaluated(ops::eq(x, nan))[0].as_bool());
      EXPECT_TRUE(evaluated(ops::ne(x, nan))[0].as_bool());
      EXPECT_FALSE(evaluated(le(x, nan))[0].as_bool() || evaluated(ge(x, nan))[0].as_bool() || evaluated(lt(nan, x))[0].as_bool());
    }
}

TEST_F(NumbersTest, SignedAndUint64CompareExactly) {
  for (int64_t s : {std::numeric_limits<int64_t>::min(), int64_t{-1}, int64_t{0}, int64_t{5}, std::numeric_limits<int64_t>::max()})
    for (uint64_t u : {uint64_t{0}, uint64_t{5}, uint64_t{1} << 63, ~uint64_t{0}}) {
      const UOp a = constant(Scalar::of(s)), b = constant(Scalar::of(u));
      const auto holds = [&](const UOp& x) { return evaluated(x)[0].as_bool(); };
      const bool less = s < 0 || uint64_t(s) < u, equal = s >= 0 && uint64_t(s) == u;
      EXPECT_EQ(holds(lt(a, b)), less) << s << " " << u;
      EXPECT_EQ(holds(gt(a, b)), !less && !equal) << s << " " << u;
      EXPECT_EQ(holds(le(a, b)), less || equal) << s << " " << u;
      EXPECT_EQ(holds(ge(a, b)), !less) << s << " " << u;
      EXPECT_EQ(holds(ops::eq(b, a)), equal) << s << " " << u;
      EXPECT_EQ(holds(ops::ne(a, b)), !equal) << s << " " << u;
    }
}

TEST_F(NumbersTest, IntegersThatDoNotFit) {
  constexpr int64_t large = int64_t{1} << 40;
  const UOp i = tensor({1}, {3}, DType::int32), u = tensor({2}, {0, 200}, DType::uint8), u64 = tensor({1}, {3}, DType::uint64);
  for (const UOp& x : {add(i, large), add(large, i), maximum(i, large), ops::where(true, large, i), full({1}, large), full({1}, 3000000000),
                       clamp(u, 300, {}), add(u, 256), ops::where(true, u, -1)})
    EXPECT_EQ(x.dtype(), DType::int64);
  expect_values(add(i, large), {1099511627779.0});
  expect_values(add(arange(1), large), {1099511627776.0});
  expect_values(clamp(u, 5, 300), {5, 200});
  EXPECT_EQ(clamp(u, -5, 300).dtype(), DType::uint8) << "both bounds change nothing";
  expect_values(maximum(u, -1), {0, 200});
  expect_values(div(u, 256, Rounding::floor), {0, 0});
  EXPECT_EQ(full({1}, uint64_t{1} << 63).dtype(), DType::uint64);
  // As in C, PyTorch and tinygrad.
  EXPECT_EQ(add(u, -1).dtype(), DType::uint8);
  expect_values(add(u, -1), {255, 199});
  expect_values(bitwise_and(u, -8), {0, 200});
  expect_values(mul(u64, -1), {18446744073709551613.0});
  EXPECT_THROW(maximum(u64, -1), ValueError);
  EXPECT_THROW(add(i, uint64_t{1} << 63), ValueError);
  EXPECT_EQ(message_of<ValueError>([&] { full({1}, 256, DType::uint8); }), "full: 256 does not fit dtypes.uint8, which holds 0 to 255");
  EXPECT_THROW(full({1}, large, DType::int32), ValueError);
  EXPECT_THROW(full({1}, 1e10, DType::int32), ValueError);
  EXPECT_THROW(full({1}, nan, DType::int8), ValueError);
  EXPECT_THROW(full_like(u, 256), ValueError);
  EXPECT_THROW(nonzero(u, 3, large), ValueError);
  EXPECT_THROW(masked_select(u, ops::ne(u, 0), 3, 256), ValueError);
  expect_values(full({1}, -1, DType::uint8), {255});
  expect_values(full({1}, 2.9, DType::int8), {2});
}

TEST_F(NumbersTest, PowersOfIntegers) {
  const UOp i = tensor({3}, {1, -1, 2}, DType::int32);
  EXPECT_THROW(pow(i, -1), ValueError);
  EXPECT_THROW(pow(i, constant(DType::int32, -2)), ValueError);
  expect_values(pow(i, tensor({3}, {-1, -3, -1}, DType::int32)), {1, -1, 0});  // known only when it runs
  expect_values(pow(tensor({1}, {2}, DType::int8), 6), {64});
  EXPECT_EQ(pow(tensor({1}, {1}, DType::int8), 300).dtype(), DType::int8);  // a count, no value
}

TEST_F(NumbersTest, SumsAndProductsOfIntegersDoNotWrap) {
  for (DType d : {DType::bool_, DType::int8, DType::uint8, DType::int16, DType::uint16, DType::int32, DType::uint32, DType::int64}) {
    const UOp x = broadcast_to(constant(max_value(d)), make_shape({5}));
    const double most = is_bool(d) ? 1 : max_value(d).as_double();
    for (const UOp& u : {sum(x), prod(x), cumsum(x), cumprod(x)}) EXPECT_EQ(u.dtype(), DType::int64) << repr(d);
    if (bitsize(d) == 64) continue;
    expect_values(sum(x), {5 * most});
    expect_values(cumsum(x), {most, 2 * most, 3 * most, 4 * most, 5 * most});
    expect_values(mean(x), {double(float(most))});
    expect_values(sum(x, {}, false, DType::int64), {5 * most});
  }
  EXPECT_EQ(sum(tensor({2}, {1, 2}, DType::uint64)).dtype(), DType::uint64);
  expect_values(sum(broadcast_to(constant(min_value(DType::int8)), make_shape({300}))), {-38400});
  expect_values(sum(broadcast_to(constant(max_value(DType::int32)), make_shape({3})), {}, false, DType::int32),
                {2147483645.0});  // as asked
}

TEST_F(NumbersTest, IndicesBeyondInt32) {
  constexpr int64_t long_axis = (int64_t{1} << 31) + 5;
  const auto expanded = [](std::initializer_list<int64_t> shape) { return broadcast_to(constant(DType::uint8, 1), make_shape(shape)); };
  const UOp x = expanded({long_axis}), matrix = expanded({2, long_axis}), flat = expanded({1 << 16, 1 << 16});
  for (const UOp& u : {argmax(x), argmin(x), argmax(flat), argmax(matrix, 1), cummax(x).indices, argsort(x), argsort(matrix, 1),
                       topk(x, 3).indices, nonzero(x, 7), nonzero(matrix, 7), iota(long_axis)})
    EXPECT_EQ(u.dtype(), DType::int64);
  for (const UOp& u : {argmax(flat, 0), argmax(matrix, 0), sort(matrix, 0).indices, nonzero(flat, 7), argsort(expanded({5000}))})
    EXPECT_EQ(u.dtype(), DType::int32);
  EXPECT_EQ(sum(x).dtype(), DType::int64);
}

}  // namespace
}  // namespace tinygrad::ops
