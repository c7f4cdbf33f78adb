#include "ops/operand.h"

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "uop/build.h"

namespace tinygrad::ops {

namespace {

/// The dtype of a number's kind beside nothing.
DType kind_dtype(const Scalar& number, const OpsContext& ctx) {
  if (is_bool(number.dtype())) return DType::bool_;
  return is_float(number.dtype()) ? ctx.default_float : ctx.default_int;
}

/// The dtype a number takes beside `other`.
DType weak_dtype(const Scalar& number, DType other, const OpsContext& ctx) {
  if (is_float(number.dtype())) return is_float(other) ? other : ctx.default_float;
  if (is_bool(number.dtype())) return other;
  return is_bool(other) ? ctx.default_int : other;
}

}  // namespace

DType common_dtype(const Operand& a, const Operand& b, const OpsContext& ctx) {
  if (a.is_number() && b.is_number())
    return least_upper_dtype({kind_dtype(a.number(), ctx), kind_dtype(b.number(), ctx)}, ctx.default_float);
  if (a.is_number()) return weak_dtype(a.number(), b.node().dtype(), ctx);
  if (b.is_number()) return weak_dtype(b.number(), a.node().dtype(), ctx);
  return least_upper_dtype({a.node().dtype(), b.node().dtype()}, ctx.default_float);
}

UOp as_node(const Operand& x, DType dtype) { return x.is_number() ? constant(x.number().cast(dtype)) : tinygrad::cast(x.node(), dtype); }

UOp as_node(const Operand& x, const OpsContext& ctx) { return x.is_number() ? as_node(x, kind_dtype(x.number(), ctx)) : x.node(); }

std::pair<UOp, UOp> broadcast_operands(const Operand& a, const Operand& b, const OpsContext& ctx) {
  const DType dtype = common_dtype(a, b, ctx);
  UOp x = as_node(a, dtype), y = as_node(b, dtype);
  const Shape &xs = shape_of(x), &ys = shape_of(y);
  if (xs.empty() || ys.empty() || xs == ys) return {x, y};
  const Shape shape = broadcast_shape(xs, ys);
  return {broadcast_to(x, shape), broadcast_to(y, shape)};
}

UOp to_float(const UOp& x, const OpsContext& ctx) { return tinygrad::cast(x, least_upper_float(x.dtype(), ctx.default_float)); }

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
