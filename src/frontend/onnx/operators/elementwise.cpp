// Operators that compute each element of the elements at its place.
#include <fmt/core.h>

#include <cmath>

#include <tinygrad/errors.h>

#include "frontend/onnx/operators.h"

namespace tinygrad::onnx {

namespace {

using Unary = Tensor (Tensor::*)() const;

template <Unary method>
Results unary(Call& c) {
  return results((c.tensor(0).*method)());
}

/// The second operand as versions before 7 broadcast it: its axes stand from `axis` on, the last ones if there is none.
Tensor second_operand(const Call& c) {
  const Tensor& b = c.tensor(1);
  if (c.version() >= 7 || !c.flag("broadcast") || !c.has_attribute("axis")) return b;
  Sizes shape = b.shape();
  const int64_t axis = normal_axis(c, c.attribute("axis", 0), c.rank(0));
  while (int64_t(shape.size()) + axis < int64_t(c.rank(0))) shape.push_back(1);
  return b.reshape(shape);
}

Results add(Call& c) { return results(c.tensor(0) + second_operand(c)); }
Results sub(Call& c) { return results(c.tensor(0) - second_operand(c)); }
Results mul(Call& c) { return results(c.tensor(0) * second_operand(c)); }
Results div(Call& c) {
  const Tensor& a = c.tensor(0);
  return results(a.is_floating_point() ? a / second_operand(c) : a.div(second_operand(c), Rounding::trunc));
}
Results mod(Call& c) {
  const Tensor &a = c.tensor(0), &b = c.tensor(1);
  return results(c.flag("fmod") ? a.fmod(b) : a.mod(b));
}
Results power(Call& c) {
  const Tensor &a = c.tensor(0), b = second_operand(c);
  if (a.dtype() == b.dtype()) return results(a.pow(b));
  const DType wide = a.is_floating_point() ? a.dtype() : b.is_floating_point() ? DType::float64 : least_upper_dtype(a.dtype(), b.dtype());
  return results(a.cast(wide).pow(b.cast(wide)).cast(a.dtype()));
}

Results logical_and(Call& c) { return results(c.tensor(0) & second_operand(c)); }
Results logical_or(Call& c) { return results(c.tensor(0) | second_operand(c)); }
Results logical_xor(Call& c) { return results(c.tensor(0) ^ second_operand(c)); }
Results bit_and(Call& c) { return results(c.tensor(0) & c.tensor(1)); }
Results bit_or(Call& c) { return results(c.tensor(0) | c.tensor(1)); }
Results bit_xor(Call& c) { return results(c.tensor(0) ^ c.tensor(1)); }
/// Numbers of bits beyond the width shift everything out.
Results bit_shift(Call& c) {
  const Tensor &a = c.tensor(0), &by = c.tensor(1);
  const std::string direction = c.attribute("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") c.fail(fmt::format("the direction '{}'", direction));
  return results(direction == "LEFT" ? a << by : a >> by);
}

Value equal_texts(const Call& c) {
  const Strings &a = c.value(0).strings(), &b = c.value(1).strings();
  const Sizes shapes[] = {a.shape, b.shape};
  const Sizes shape = broadcast_shape(shapes);
  host_count(c, shape);
  const auto places = [&](const Strings& s) {
    std::vector<int64_t> all(s.values.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = int64_t(i);
    return Tensor(all, s.shape).expand(shape).tolist<int64_t>();
  };
  const std::vector<int64_t> in_a = places(a), in_b = places(b);
  std::vector<int64_t> out;
  for (size_t i = 0; i < in_a.size(); ++i) out.push_back(a.values[size_t(in_a[i])] == b.values[size_t(in_b[i])]);
  return host_value(HostArray::of(ElementType::bool_, shape, out));
}
Results equal(Call& c) {
  if (c.value(0).kind() == Value::Kind::strings) return {equal_texts(c)};
  return results(c.tensor(0) == second_operand(c));
}
Results less(Call& c) { return results(c.tensor(0) < second_operand(c)); }
Results less_or_equal(Call& c) { return results(c.tensor(0) <= c.tensor(1)); }
Results greater(Call& c) { return results(c.tensor(0) > second_operand(c)); }
Results greater_or_equal(Call& c) { return results(c.tensor(0) >= c.tensor(1)); }

/// A choice between tensors of texts is made on the host.
Results where_texts(const Call& c) {
  const Strings &x = c.value(1).strings(), &y = c.value(2).strings();
  const Sizes shapes[] = {c.shape(0), x.shape, y.shape};
  const Sizes shape = broadcast_shape(shapes);
  host_count(c, shape);
  const auto places = [&](const Strings& s, int64_t first) {
    std::vector<int64_t> all(s.values.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = first + int64_t(i);
    return Tensor(all, s.shape);
  };
  const HostArray condition = c.host(0);
  const Tensor mask = host_value(condition).tensor();
  const Tensor chosen = mask.where(places(x, 0), places(y, int64_t(x.values.size()))).expand(shape);
  Strings out{.shape = shape};
  for (int64_t p : chosen.tolist<int64_t>())
    out.values.push_back(size_t(p) < x.values.size() ? x.values[size_t(p)] : y.values[size_t(p) - x.values.size()]);
  return {out};
}
Results where(Call& c) {
  if (c.value(1).kind() == Value::Kind::strings) return where_texts(c);
  return results_like(c.value(1), c.tensor(0).where(c.tensor(1), c.tensor(2)));
}

Results greatest(Call& c) {
  Tensor out = c.tensor(0);
  for (size_t i = 1; i < c.input_count(); ++i) out = out.maximum(c.tensor(i));
  return results(out);
}
Results least(Call& c) {
  Tensor out = c.tensor(0);
  for (size_t i = 1; i < c.input_count(); ++i) out = out.minimum(c.tensor(i));
  return results(out);
}
Results sum(Call& c) {
  Tensor out = c.tensor(0);
  for (size_t i = 1; i < c.input_count(); ++i) out = out + c.tensor(i);
  return results(out);
}
Results mean(Call& c) { return results(sum(c)[0].tensor() / double(c.input_count())); }

Results clip(Call& c) {
  Tensor x = c.tensor(0);
  if (c.version() < 11) {
    if (c.has_attribute("min")) x = x.maximum(typed_scalar(c.attribute("min", 0.0), x.dtype()));
    if (c.has_attribute("max")) x = x.minimum(typed_scalar(c.attribute("max", 0.0), x.dtype()));
    return results(x);
  }
  if (c.has(1)) x = x.maximum(c.tensor(1).reshape({}));
  if (c.has(2)) x = x.minimum(c.tensor(2).reshape({}));
  return results(x);
}

Results logical_not(Call& c) { return results(c.tensor(0).logical_not()); }
Results relu(Call& c) { return results(c.tensor(0).relu()); }
Results is_infinite(Call& c) {
  return results(
      c.tensor(0).isinf({.detect_positive = c.flag("detect_positive", true), .detect_negative = c.flag("detect_negative", true)}));
}
Results hard_sigmoid(Call& c) { return results(c.tensor(0).hardsigmoid(c.attribute("alpha", 0.2), c.attribute("beta", 0.5))); }
Results leaky_relu(Call& c) { return results(c.tensor(0).leaky_relu(c.attribute("alpha", 0.01))); }
Results elu(Call& c) { return results(c.tensor(0).elu(c.attribute("alpha", 1.0))); }
Results celu(Call& c) { return results(c.tensor(0).celu(c.attribute("alpha", 1.0))); }
Results selu(Call& c) {
  const bool first = c.version() < 6;
  return results(c.tensor(0).selu(c.attribute("alpha", first ? 1.6732 : 1.67326319217681884765625),
                                  c.attribute("gamma", first ? 1.0507 : 1.05070102214813232421875)));
}
Results thresholded_relu(Call& c) {
  const Tensor& x = c.tensor(0);
  return results((x > typed_scalar(c.attribute("alpha", 1.0), x.dtype())).where(x, 0));
}
Results prelu(Call& c) {
  const Tensor& x = c.tensor(0);
  Tensor slope = c.tensor(1);
  // One slope a channel, in versions and files that do not say the other axes.
  if (slope.ndim() == 1 && x.ndim() > 2 && slope.numel() != 1 && slope.size(0) != x.size(-1) && slope.size(0) == x.size(1)) {
    Sizes shape(size_t(x.ndim()) - 1, 1);
    shape[0] = slope.size(0);
    slope = slope.reshape(shape);
  } else if (c.version() < 7 && slope.ndim() == 1 && x.ndim() > 2 && slope.size(0) == x.size(1)) {
    Sizes shape(size_t(x.ndim()) - 1, 1);
    shape[0] = slope.size(0);
    slope = slope.reshape(shape);
  }
  return results((x < 0).where(x * slope, x));
}
Results swish(Call& c) {
  const Tensor& x = c.tensor(0);
  return results(x * (x * c.attribute("alpha", 1.0)).sigmoid());
}
Results swiglu(Call& c) {
  const Tensor &a = c.tensor(0), &b = c.tensor(1);
  if (a.shape() != b.shape()) c.fail("its inputs have different shapes");
  return results(a * (a * c.attribute("alpha", 1.0)).sigmoid() * b);
}
Results gelu(Call& c) {
  return results(c.tensor(0).gelu(c.choice("approximate", {"none", "tanh"}) == "tanh" ? GeluForm::tanh : GeluForm::erf));
}
Results shrink(Call& c) {
  const Tensor& x = c.tensor(0);
  const double lambda = c.attribute("lambd", 0.5), bias = c.attribute("bias", 0.0);
  const Tensor wide = x.is_floating_point() ? x : x.cast(DType::float32);
  return results((wide < -lambda).where(wide + bias, (wide > lambda).where(wide - bias, 0)).cast(x.dtype()));
}

// Types

std::vector<std::string> as_texts(const Call& c) {
  const HostArray a = c.host(0);
  std::vector<std::string> out;
  if (a.type == ElementType::bool_)
    for (int64_t x : a.integers()) out.emplace_back(x ? "True" : "False");
  else if (is_float_type(a.type))
    for (double x : a.numbers()) {
      if (std::isnan(x))
        out.emplace_back("NaN");
      else if (std::isinf(x))
        out.emplace_back(x > 0 ? "INF" : "-INF");
      else
        out.push_back(a.type == ElementType::float64 ? fmt::format("{}", x) : fmt::format("{}", float(x)));
    }
  else
    for (int64_t x : a.integers()) out.push_back(fmt::format("{}", x));
  return out;
}

Value from_texts(const Call& c, ElementType to) {
  if (to == ElementType::string) return c.value(0);
  const Strings& texts = c.value(0).strings();
  std::vector<double> numbers;
  std::vector<int64_t> integers;
  for (const std::string& t : texts.values) {
    try {
      if (is_float_type(to))
        numbers.push_back(std::stod(t));
      else
        integers.push_back(std::stoll(t));
    } catch (const std::exception&) {
      c.fail(fmt::format("the text '{}' is no number of {}", t, name(to)));
    }
  }
  return host_value(is_float_type(to) ? HostArray::of(to, texts.shape, numbers) : HostArray::of(to, texts.shape, integers));
}

/// float8e8m0 holds powers of two: which one, `round_mode` says.
Value to_power_of_two(const Call& c, const Tensor& x) {
  const std::string mode = c.choice("round_mode", {"up", "down", "nearest"});
  const Tensor bits = x.cast(DType::float32).bitcast(DType::int32);
  const Tensor exponent = (bits >> 23) & 255, mantissa = bits & ((1 << 23) - 1);
  Tensor rounds_up = mode == "up" ? mantissa > 0 : mode == "nearest" ? mantissa >= (1 << 22) : mantissa < 0;
  const bool saturates = c.flag("saturate", true);
  const Tensor up = exponent + rounds_up.cast(DType::int32);
  const Tensor bounded = saturates ? up.minimum(254) : up;
  const Tensor special = saturates ? (exponent == 255) & (mantissa > 0) : exponent == 255;
  return {special.where(255, bounded).cast(DType::uint8), ElementType::float8e8m0};
}

Value cast_to(const Call& c, ElementType to) {
  if (to == ElementType::undefined) c.fail("does not say the type");
  const Value& v = c.value(0);
  if (v.kind() == Value::Kind::strings) return from_texts(c, to);
  if (to == ElementType::string) return Strings{v.shape(), as_texts(c)};
  if (to == ElementType::float8e8m0 && v.element_type() != to) return to_power_of_two(c, decode(v));
  return cast_value(v, to, c.flag("saturate", true));
}
Results cast(Call& c) {
  if (c.version() < 6) {  // the type is a text
    const std::string text = c.attribute("to", "");
    for (int i = 1; i <= int(ElementType::bfloat16); ++i) {
      std::string upper(name(ElementType(i)));
      std::transform(upper.begin(), upper.end(), upper.begin(), [](char x) { return char(std::toupper(x)); });
      if (upper == text || (upper == "FLOAT32" && text == "FLOAT") || (upper == "FLOAT64" && text == "DOUBLE"))
        return {cast_to(c, ElementType(i))};
    }
    c.fail(fmt::format("the type '{}' is unknown", text));
  }
  return {cast_to(c, c.type_attribute("to", ElementType::undefined))};
}
Results cast_like(Call& c) { return {cast_to(c, c.type(1))}; }
Results bit_cast(Call& c) {
  const ElementType to = c.type_attribute("to", ElementType::undefined), from = c.type(0);
  if (to == ElementType::undefined || to == ElementType::string || c.value(0).kind() != Value::Kind::tensor) c.fail("expects numbers");
  if (bits_of(to) != bits_of(from)) c.fail(fmt::format("{} and {} differ in width", name(from), name(to)));
  Tensor x = c.tensor(0);
  if (to == ElementType::bool_) return results(x.bitcast(DType::uint8) != 0);
  if (from == ElementType::bool_) x = x.cast(DType::uint8);
  if (bits_of(to) < 8) {  // what is signed lies with its sign in the bits above
    const int bits = bits_of(to);
    const Tensor low = x.cast(DType::int32) & ((1 << bits) - 1);
    const bool is_signed_type = is_signed(dtype_of(to));
    return {Value((is_signed_type ? (low ^ (1 << (bits - 1))) - (1 << (bits - 1)) : low).cast(dtype_of(to)), to)};
  }
  return {Value(x.bitcast(dtype_of(to)), to)};
}

constexpr OperatorRow rows[] = {
    {onnx_domain, "Abs", 1, unary<&Tensor::abs>},
    {onnx_domain, "Acos", 7, unary<&Tensor::acos>},
    {onnx_domain, "Acosh", 9, unary<&Tensor::acosh>},
    {onnx_domain, "Add", 1, add},
    {onnx_domain, "And", 1, logical_and},
    {onnx_domain, "Asin", 7, unary<&Tensor::asin>},
    {onnx_domain, "Asinh", 9, unary<&Tensor::asinh>},
    {onnx_domain, "Atan", 7, unary<&Tensor::atan>},
    {onnx_domain, "Atanh", 9, unary<&Tensor::atanh>},
    {onnx_domain, "BitCast", 26, bit_cast},
    {onnx_domain, "BitShift", 11, bit_shift},
    {onnx_domain, "BitwiseAnd", 18, bit_and},
    {onnx_domain, "BitwiseNot", 18, unary<&Tensor::bitwise_not>},
    {onnx_domain, "BitwiseOr", 18, bit_or},
    {onnx_domain, "BitwiseXor", 18, bit_xor},
    {onnx_domain, "Cast", 1, cast},
    {onnx_domain, "CastLike", 15, cast_like},
    {onnx_domain, "Ceil", 1, unary<&Tensor::ceil>},
    {onnx_domain, "Celu", 12, celu},
    {onnx_domain, "Clip", 1, clip},
    {onnx_domain, "Cos", 7, unary<&Tensor::cos>},
    {onnx_domain, "Cosh", 9, unary<&Tensor::cosh>},
    {onnx_domain, "Div", 1, div},
    {onnx_domain, "Elu", 1, elu},
    {onnx_domain, "Equal", 1, equal},
    {onnx_domain, "Erf", 9, unary<&Tensor::erf>},
    {onnx_domain, "Exp", 1, unary<&Tensor::exp>},
    {onnx_domain, "Floor", 1, unary<&Tensor::floor>},
    {onnx_domain, "Gelu", 20, gelu},
    {onnx_domain, "Greater", 1, greater},
    {onnx_domain, "GreaterOrEqual", 12, greater_or_equal},
    {onnx_domain, "HardSigmoid", 1, hard_sigmoid},
    {onnx_domain, "HardSwish", 14, unary<&Tensor::hardswish>},
    {onnx_domain, "IsInf", 10, is_infinite},
    {onnx_domain, "IsNaN", 9, unary<&Tensor::isnan>},
    {onnx_domain, "LeakyRelu", 1, leaky_relu},
    {onnx_domain, "Less", 1, less},
    {onnx_domain, "LessOrEqual", 12, less_or_equal},
    {onnx_domain, "Log", 1, unary<&Tensor::log>},
    {onnx_domain, "Max", 1, greatest},
    {onnx_domain, "Mean", 1, mean},
    {onnx_domain, "Min", 1, least},
    {onnx_domain, "Mish", 18, unary<&Tensor::mish>},
    {onnx_domain, "Mod", 10, mod},
    {onnx_domain, "Mul", 1, mul},
    {onnx_domain, "Neg", 1, unary<&Tensor::neg>},
    {onnx_domain, "Not", 1, logical_not},
    {onnx_domain, "Or", 1, logical_or},
    {onnx_domain, "PRelu", 1, prelu},
    {onnx_domain, "Pow", 1, power},
    {onnx_domain, "Reciprocal", 1, unary<&Tensor::reciprocal>},
    {onnx_domain, "Relu", 1, relu},
    {onnx_domain, "Round", 11, unary<&Tensor::round>},
    {onnx_domain, "Selu", 1, selu},
    {onnx_domain, "Shrink", 9, shrink},
    {onnx_domain, "Sigmoid", 1, unary<&Tensor::sigmoid>},
    {onnx_domain, "Sign", 9, unary<&Tensor::sign>},
    {onnx_domain, "Sin", 7, unary<&Tensor::sin>},
    {onnx_domain, "Sinh", 9, unary<&Tensor::sinh>},
    {onnx_domain, "Softplus", 1, [](Call& c) { return results(c.tensor(0).softplus()); }},
    {onnx_domain, "Softsign", 1, unary<&Tensor::softsign>},
    {onnx_domain, "Sqrt", 1, unary<&Tensor::sqrt>},
    {onnx_domain, "Sub", 1, sub},
    {onnx_domain, "Sum", 1, sum},
    {onnx_domain, "SwiGLU", 28, swiglu},
    {onnx_domain, "Swish", 24, swish},
    {onnx_domain, "Tan", 7, unary<&Tensor::tan>},
    {onnx_domain, "Tanh", 1, unary<&Tensor::tanh>},
    {onnx_domain, "ThresholdedRelu", 10, thresholded_relu},
    {onnx_domain, "Where", 9, where},
    {onnx_domain, "Xor", 1, logical_xor},
};

}  // namespace

std::span<const OperatorRow> elementwise_operators() { return rows; }

}  // namespace tinygrad::onnx
