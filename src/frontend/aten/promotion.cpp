#include "frontend/aten/promotion.h"

#include <fmt/core.h>

#include <algorithm>

#include <tinygrad/device.h>

namespace tinygrad::aten {

namespace {

bool is_wide_unsigned(DType d) { return is_unsigned(d) && d != DType::uint8; }

[[noreturn]] void refuse(DType a, DType b) {
  throw DTypeError(fmt::format("PyTorch does not promote {} and {}; convert one", repr(a), repr(b)));
}

/// What a number says of the dtype of a result.
DType type_of_number(const Value& v) {
  if (v.get_if<bool>()) return DType::bool_;
  return v.get_if<double>() ? DType::float32 : DType::int64;
}

using MaybeType = std::optional<DType>;
MaybeType joined(MaybeType a, MaybeType b) { return a && b ? promote_types(*a, *b) : a ? a : b; }
/// Of operands of a higher and of a lower category.
MaybeType combined(MaybeType higher, MaybeType lower) {
  if (higher && is_float(*higher)) return higher;
  if (!higher || is_bool(*higher) || (lower && is_float(*lower))) return joined(higher, lower);
  return higher;
}

std::string device_of(const Call& c, std::initializer_list<std::string_view> names) {
  std::string out;
  for (std::string_view name : names)
    if (const Tensor* t = c[name].get_if<Tensor>(); t && (out.empty() || t->ndim() > 0)) {
      out = t->device();
      if (t->ndim() > 0) break;
    }
  return out.empty() ? c.device() : out;
}

}  // namespace

DType promote_types(DType a, DType b) {
  if (a == b) return a;
  if (is_fp8(a) || is_fp8(b)) refuse(a, b);
  if (is_float(a) != is_float(b)) return is_float(a) ? a : b;
  if (is_bool(a) || is_bool(b)) return is_bool(a) ? b : a;
  if (is_wide_unsigned(a) || is_wide_unsigned(b)) refuse(a, b);
  return least_upper_dtype(a, b);
}

DType result_type(const std::vector<const Value*>& operands) {
  MaybeType with_axes, without_axes, numbers;
  for (const Value* v : operands) {
    if (const Tensor* t = v->get_if<Tensor>()) {
      MaybeType& type = t->ndim() > 0 ? with_axes : without_axes;
      type = joined(type, t->dtype());
    } else if (v->is_number()) {
      numbers = joined(numbers, type_of_number(*v));
    }
  }
  const MaybeType out = combined(with_axes, combined(without_axes, numbers));
  if (!out) throw ValueError("a result of no operands has no dtype");
  return *out;
}

Tensor typed_number(const Value& number, DType dtype, const std::string& device) {
  const auto full = [&](const Operand& value, DType type) { return Tensor::full({}, value, {.dtype = type, .device = device}); };
  if (const bool* b = number.get_if<bool>()) return full(int64_t(*b), DType::int64).cast(dtype);
  if (const Extent* e = number.get_if<Extent>()) return full(*e, DType::int64).cast(dtype);
  if (const double* d = number.get_if<double>()) return is_float(dtype) ? full(*d, dtype) : full(*d, DType::float64).cast(dtype);
  const int64_t i = number.integer();
  if (is_float(dtype)) return full(double(i), dtype);
  return full(i, DType::int64).cast(dtype);
}

Tensor typed(const Value& operand, DType dtype, const std::string& device) {
  const Tensor* t = operand.get_if<Tensor>();
  if (!t) return typed_number(operand, dtype, device);
  const Tensor here = t->ndim() == 0 && t->device() != device ? t->to(device) : *t;
  return here.cast(dtype);
}

std::vector<Tensor> typed_operands(const Call& c, std::initializer_list<std::string_view> names, DType dtype) {
  const std::string device = device_of(c, names);
  std::vector<Tensor> out;
  for (std::string_view name : names) out.push_back(c.has(name) ? typed(c[name], dtype, device) : Tensor());
  return out;
}

Promoted promoted(const Call& c, std::initializer_list<std::string_view> names) {
  std::vector<const Value*> values;
  for (std::string_view name : names) values.push_back(&c[name]);
  const DType dtype = result_type(values);
  return {typed_operands(c, names, dtype), dtype};
}

Promoted promoted_floats(const Call& c, std::initializer_list<std::string_view> names) {
  std::vector<const Value*> values;
  for (std::string_view name : names) values.push_back(&c[name]);
  const DType dtype = float_type(result_type(values));
  return {typed_operands(c, names, dtype), dtype};
}

// log(1 + x) by what 1 + x lost when it was rounded.
Tensor log1p(const Tensor& x) {
  const Tensor u = x + 1, rounded_away = x - (u - 1);
  const Tensor out = u.log() + rounded_away / u;
  return (u.isinf() | u.eq(0)).where(u.log(), out);
}
Extents broadcast_shapes(const Call& c, const std::vector<Tensor>& tensors) {
  Extents out;
  for (const Tensor& t : tensors) {
    if (!t.defined()) continue;
    const Extents shape = t.symbolic_shape();
    while (out.size() < shape.size()) out.insert(out.begin(), 1);
    for (size_t i = 0; i < shape.size(); ++i) {
      Extent& size = out[out.size() - shape.size() + i];
      if (size == Extent(1))
        size = shape[i];
      else if (!(shape[i] == Extent(1)) && !(shape[i] == size))
        throw ShapeError(fmt::format("{}: cannot broadcast sizes {} and {}", c.name(), size.to_string(), shape[i].to_string()));
    }
  }
  return out;
}

}  // namespace tinygrad::aten
