#include "ops/operand.h"

#include <cmath>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "uop/build.h"

namespace tinygrad::ops {

namespace {

/// The dtype of a number's kind beside nothing: an integer that the default int does not hold has 64 bits.
DType kind_dtype(const Scalar& number, const OpsContext& ctx) {
  if (is_bool(number.dtype())) return DType::bool_;
  if (is_float(number.dtype())) return ctx.default_float;
  return holds(ctx.default_int, number) ? ctx.default_int : holds(DType::int64, number) ? DType::int64 : DType::uint64;
}

/// The dtype a number takes beside `other`.
DType weak_dtype(const Scalar& number, DType other, const OpsContext& ctx) {
  if (is_float(number.dtype())) return is_float(other) ? other : ctx.default_float;
  if (is_bool(number.dtype())) return other;
  if (is_bool(other)) return kind_dtype(number, ctx);
  if (holds(other, number)) return other;
  return wider_int(other, number);
}

/// Floats of up to 32 bits, but for those with which expressions simplify.
bool may_stay_open(const Scalar& number) {
  if (!is_float(number.dtype()) || itemsize(number.dtype()) > 4) return false;
  const double value = number.as_double();
  return std::isfinite(value) && value != 0 && std::abs(value) != 1;
}

}  // namespace

DType wider_int(DType other, const Scalar& number) {
  const DType wide = holds(DType::int64, number) ? DType::int64 : DType::uint64;
  if (wide == DType::int64 ? other == DType::uint64 : !is_unsigned(other))
    throw ValueError(fmt::format("{} beside {}: no integer dtype holds both", number.to_string(), repr(other)));
  return wide;
}

void LiteralInt::add(const Scalar& number) {
  has_negative_ = has_negative_ || (is_signed(number.dtype()) && number.as_int() < 0);
  if (!holds(dtype_, number)) dtype_ = holds(DType::int64, number) && dtype_ != DType::uint64 ? DType::int64 : DType::uint64;
  if (has_negative_ && dtype_ == DType::uint64)
    throw ValueError(fmt::format("no integer dtype holds both {} and the other numbers", number.to_string()));
}

namespace {

/// What operands are computed in, and whether that gives way itself.
struct Promotion {
  DType dtype;
  bool weak = false;
};

bool is_weak(const Operand& x) { return x.is_weak() || x.node().is_weak(); }
DType own_dtype(const Operand& x, const OpsContext& ctx) { return x.is_weak() ? kind_dtype(x.number(), ctx) : x.node().dtype(); }

/// A weak operand's number: it is known of a constant, and one that makes its dtype necessary stands for all that a computed value may be.
Scalar number_of(const Operand& x, const OpsContext& ctx) {
  if (x.is_weak()) return x.number();
  const UOp& node = x.node();
  if (const Scalar* known = node.is(Op::WEAK) ? const_value(node.src(0)) : nullptr) return *known;
  return is_int(node.dtype()) && node.dtype() != ctx.default_int ? max_value(node.dtype()) : Scalar::of(0).cast(node.dtype());
}

Promotion promote(const Operand& a, const Operand& b, const OpsContext& ctx) {
  const DType s = own_dtype(a, ctx), t = own_dtype(b, ctx);
  if (is_weak(a) == is_weak(b)) {
    const DType both = least_upper_dtype({s, t}, ctx.default_float);
    return {both, is_weak(a) ? !is_bool(both) : is_float(both) && !is_float(s) && !is_float(t)};
  }
  const DType other = is_weak(a) ? t : s;
  const DType both = weak_dtype(number_of(is_weak(a) ? a : b, ctx), other, ctx);
  return {both, both != other && (is_bool(other) || is_float(both))};
}

UOp promoted(const Operand& x, const Promotion& to) {
  const UOp node = as_node(x, to.dtype);
  return to.weak ? weak(node) : node;
}

}  // namespace

DType common_dtype(const Operand& a, const Operand& b, const OpsContext& ctx) { return promote(a, b, ctx).dtype; }

DType common_dtype(std::span<const UOp> values, const OpsContext& ctx) {
  std::optional<DType> strong;
  for (const UOp& v : values)
    if (!v.is_weak()) strong = strong ? least_upper_dtype({*strong, v.dtype()}, ctx.default_float) : v.dtype();
  DType out = strong.value_or(values[0].dtype());
  for (const UOp& v : values)
    if (v.is_weak()) out = strong ? weak_dtype(number_of(v, ctx), out, ctx) : least_upper_dtype({out, v.dtype()}, ctx.default_float);
  return out;
}

UOp weak(const UOp& x) { return x.is_weak() || is_bool(x.dtype()) ? x : UOp(Op::WEAK, x.dtype(), {x}); }
UOp strong(const UOp& x) { return x.is_weak() ? UOp(Op::CAST, x.dtype(), {x}) : x; }

UOp as_node(const Operand& x, DType dtype) {
  if (!x.is_number()) return tinygrad::cast(x.node(), dtype);
  const Scalar number = x.number().cast(dtype);
  return x.is_given() && may_stay_open(number) ? UOp(Op::CONST, dtype, {}, ConstArg{number, {}, true}) : constant(number);
}

UOp as_node(const Operand& x, const OpsContext& ctx) { return x.is_weak() ? as_node(x, kind_dtype(x.number(), ctx)) : x.node(); }

std::pair<UOp, UOp> broadcast_operands(const Operand& a, const Operand& b, const OpsContext& ctx, const char* op) {
  const Promotion to = promote(a, b, ctx);
  UOp x = promoted(a, to), y = promoted(b, to);
  const Shape &xs = shape_of(x), &ys = shape_of(y);
  if (xs.empty() || ys.empty() || xs == ys) return {x, y};
  const Shape shape = broadcast_shape(xs, ys, op);
  return {broadcast_to(x, shape), broadcast_to(y, shape)};
}

UOp to_float(const UOp& x, const OpsContext& ctx) {
  const UOp y = tinygrad::cast(x, least_upper_float(x.dtype(), ctx.default_float));
  return x.is_weak() ? weak(y) : y;
}

Shape broadcast_shape(const Shape& a, const Shape& b, std::string_view op) {
  const Shape &longer = a.size() >= b.size() ? a : b, &shorter = a.size() >= b.size() ? b : a;
  const size_t offset = longer.size() - shorter.size();
  Shape out = longer;
  for (size_t i = 0; i < shorter.size(); ++i) {
    SInt& size = out[offset + i];
    if (size == shorter[i] || shorter[i] == 1) continue;
    if (!(size == 1))
      throw ShapeError(fmt::format("{}: cannot broadcast {} with {}: the sizes {} and {} differ and neither is 1", op, to_string(a),
                                   to_string(b), to_string(&longer == &a ? size : shorter[i]),
                                   to_string(&longer == &a ? shorter[i] : size)));
    size = shorter[i];
  }
  return out;
}

UOp broadcast_to(const UOp& x, const Shape& shape) {
  const Shape& in = shape_of(x);
  if (in == shape) return x;
  const auto checked = [](UOp u) {
    shape_of(u);  // throws for more elements than can be counted
    return u;
  };
  if (in.empty()) return checked(tinygrad::expand(x, shape));
  if (in.size() > shape.size() || broadcast_shape(in, shape, "expand") != shape)
    throw ShapeError(fmt::format("expand: cannot expand {} to {}: only axes of size 1 grow", to_string(in), to_string(shape)));
  Shape aligned(shape.size() - in.size(), SInt(1));
  aligned.append(in.begin(), in.end());
  const UOp y = aligned == in ? x : tinygrad::reshape(x, aligned);
  return aligned == shape ? y : checked(tinygrad::expand(y, shape));
}

}  // namespace tinygrad::ops
