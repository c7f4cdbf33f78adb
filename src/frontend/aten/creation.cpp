// Tensors from numbers, and tensors in another dtype or on another device.
#include <fmt/core.h>

#include <cmath>

#include "frontend/aten/promotion.h"

namespace tinygrad::aten {

namespace {

void check_sizes(const Call& c, const Extents& sizes) {
  for (const Extent& e : sizes)
    if (e.min() < 0) c.fail(fmt::format("the size {} is negative", e.to_string()));
}
Tensor filled(const Call& c, const Extents& sizes, const Value& value, DType dtype, const std::string& device) {
  check_sizes(c, sizes);
  Extents ones = sizes;
  for (Extent& e : ones) e = 1;
  return typed_number(value, dtype, device).reshape(ones).expand(sizes);
}
DType type_of(const Value& number) {
  if (number.get_if<bool>()) return DType::bool_;
  return number.get_if<double>() ? DType::float32 : DType::int64;
}

Results full(const Call& c) {
  const Value& value = c["fill_value"];
  return one(filled(c, c.extents(c.declares("shape") ? "shape" : "size"), value, c.dtype().value_or(type_of(value)), c.device()));
}
Results constant(const Call& c, std::string_view sizes, int64_t value) {
  return one(filled(c, c.extents(sizes), value, c.dtype().value_or(DType::float32), c.device()));
}
Results constant_like(const Call& c, int64_t value) {
  const Tensor x = c.tensor("self");
  return one(filled(c, x.symbolic_shape(), value, c.dtype().value_or(x.dtype()), c.device(x)));
}
Results full_like(const Call& c) {
  const Tensor x = c.tensor("self");
  return one(filled(c, x.symbolic_shape(), c["fill_value"], c.dtype().value_or(x.dtype()), c.device(x)));
}
Results new_constant(const Call& c, const Value& value) {
  const Tensor x = c.tensor("self");
  return one(filled(c, c.extents("size"), value, c.dtype().value_or(x.dtype()), c.device(x)));
}
Results fill(const Call& c) {
  const Tensor x = c.tensor("self");
  if (const Tensor* value = c["value"].get_if<Tensor>()) {
    if (value->ndim() != 0) c.fail("the value has axes");
    return one(typed(c["value"], x.dtype(), x.device()).expand(x.symbolic_shape()));
  }
  return one(filled(c, x.symbolic_shape(), c["value"], x.dtype(), x.device()));
}
Results scalar_tensor(const Call& c) { return one(typed_number(c["s"], c.dtype().value_or(DType::float32), c.device())); }

/// A number without its fraction, as PyTorch takes bounds of integers.
Value whole_of(const Call& c, const Value& v) {
  constexpr double limit = 9223372036854775808.0;
  if (!v.get_if<double>()) return v;
  if (!(v.number() >= -limit && v.number() < limit)) c.fail("a bound that is no integer of 64 bits");
  return int64_t(v.number());
}
/// How many steps there are from `start` to before `end`.
double step_count(const Call& c, int64_t start, int64_t end, int64_t step) {
  int64_t span = 0;
  if (step == 0) c.fail("the step is 0");
  if (__builtin_sub_overflow(end, start, &span) || span == INT64_MIN) c.fail("too many elements");
  const int64_t whole = span / step;
  return double(whole + int64_t(span % step != 0 && (span < 0) == (step < 0)));
}
Results arange(const Call& c) {
  Value start = c.declares("start") ? c["start"] : Value(0), step = c.declares("step") ? c["step"] : Value(1), end = c["end"];
  const bool floats = start.get_if<double>() || end.get_if<double>() || step.get_if<double>();
  const DType dtype = c.dtype().value_or(floats ? DType::float32 : DType::int64);
  const std::string device = c.device();
  if (!floats && (start.get_if<Extent>() || end.get_if<Extent>())) {
    return one(Tensor::arange(start.extent(), end.extent(), step.integer(), {.dtype = DType::int64, .device = device}).cast(dtype));
  }
  if (step.number() == 0) c.fail("the step is 0");
  // Of int64 the bounds lose their fractions before they are counted, of other integers behind that.
  double count = floats ? std::ceil((end.number() - start.number()) / step.number()) : 0;
  if (!is_float(dtype))
    for (Value* v : {&start, &end, &step}) *v = whole_of(c, *v);
  if (!floats || dtype == DType::int64) count = step_count(c, start.integer(), end.integer(), step.integer());
  if (!(count >= 0)) c.fail("the end is on the wrong side of the start");
  constexpr double most = 9e15;
  if (count > most) c.fail("too many elements");
  const Tensor steps = Tensor::arange(int64_t(count), {.dtype = DType::int64, .device = device});
  if (!is_float(dtype)) return one((steps * step.integer() + start.integer()).cast(dtype));
  return one((steps.cast(DType::float64) * step.number() + start.number()).cast(dtype));
}
/// From both ends, so that the last one is exact.
Results linspace(const Call& c) {
  const int64_t steps = c.integer("steps");
  if (steps < 0) c.fail("a negative number of steps");
  const DType dtype = c.dtype().value_or(DType::float32);
  double start = c.number("start"), end = c.number("end");
  if (!is_float(dtype)) {
    start = std::trunc(start);
    end = std::trunc(end);
  }
  const Tensor place = Tensor::arange(steps, {.dtype = DType::int64, .device = c.device()}).cast(DType::float64);
  if (steps == 1) return one((place + start).cast(dtype));
  const double step = (end - start) / double(steps - 1);
  const int64_t half = steps / 2;
  return one((place < double(half)).where(place * step + start, end - (double(steps - 1) - place) * step).cast(dtype));
}
Results eye(const Call& c) {
  const int64_t n = c.integer("n"), m = c.declares("m") ? c.integer("m") : n;
  if (n < 0 || m < 0) c.fail("a negative size");
  const TensorOptions options{.dtype = DType::int64, .device = c.device()};
  return one(Tensor::arange(n, options).unsqueeze(1).eq(Tensor::arange(m, options)).cast(c.dtype().value_or(DType::float32)));
}
Results triangle_indices(const Call& c, bool upper) {
  const int64_t rows = c.integer("row"), columns = c.integer("col"), offset = c.integer("offset");
  std::vector<int64_t> at, of;
  constexpr int64_t most = int64_t{1} << 26;
  if (rows < 0 || columns < 0 || (columns > 0 && rows > most / columns)) c.fail("sizes that are negative or too large");
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      if (upper ? j - i >= offset : j - i <= offset) {
        at.push_back(i);
        of.push_back(j);
      }
  const int64_t count = int64_t(at.size());
  at.insert(at.end(), of.begin(), of.end());
  return one(Tensor(at, Sizes{2, count}, {.device = c.device()}).cast(c.dtype().value_or(DType::int64)));
}

// Values never change, so that a copy is the tensor itself.
Results to(const Call& c) {
  const Tensor x = c.tensor("self");
  return one(x.to(c.device(x)).cast(c.dtype().value_or(x.dtype())));
}
Results to_other(const Call& c) {
  const Tensor other = c.tensor("other");
  return one(c.tensor("self").to(other.device()).cast(other.dtype()));
}
Results type_as(const Call& c) { return one(c.tensor("self").to(c.tensor("other").device()).cast(c.tensor("other").dtype())); }
Results same(const Call& c) { return one(c.tensor("self")); }
/// The source's values in the shape, dtype and place of the tensor.
Results copy(const Call& c) {
  const Tensor x = c.tensor("self"), src = c.tensor("src");
  Extents shape = src.symbolic_shape();
  const Extents wanted = x.symbolic_shape();
  if (shape.size() > wanted.size()) c.fail("the source has more axes");
  shape.insert(shape.begin(), wanted.size() - shape.size(), Extent(1));
  return one(src.to(x.device()).cast(x.dtype()).reshape(shape).expand(wanted));
}
Results item(const Call& c) {
  const Tensor x = c.tensor("self");
  if (is_float(x.dtype())) return {x.item<double>()};
  if (is_bool(x.dtype())) return {x.item<bool>()};
  return {x.item<int64_t>()};
}

#define TG_FACTORY ", *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
#define TG_FORMAT ", MemoryFormat? memory_format=None"

}  // namespace

std::vector<Row> creation_operators() {
  const auto sized = [](std::string_view sizes, int64_t value) { return [=](const Call& c) { return constant(c, sizes, value); }; };
  const auto like = [](int64_t value) { return [value](const Call& c) { return constant_like(c, value); }; };
  const auto new_of = [](int64_t value) { return [value](const Call& c) { return new_constant(c, value); }; };
  return {
      {"aten.full.default(SymInt[] size, Scalar fill_value" TG_FACTORY ")", full},
      {"aten.full_like.default(Tensor self, Scalar fill_value" TG_FACTORY TG_FORMAT ")", full_like},
      {"aten.zeros.default(SymInt[] size" TG_FACTORY ")", sized("size", 0)},
      {"aten.ones.default(SymInt[] size" TG_FACTORY ")", sized("size", 1)},
      {"aten.empty.memory_format(SymInt[] size" TG_FACTORY TG_FORMAT ")", sized("size", 0)},
      {"aten.empty_strided.default(SymInt[] size, SymInt[] stride" TG_FACTORY ")", sized("size", 0)},
      {"aten.empty_permuted.default(SymInt[] size, int[] physical_layout" TG_FACTORY ")", sized("size", 0)},
      {"aten.zeros_like.default(Tensor self" TG_FACTORY TG_FORMAT ")", like(0)},
      {"aten.ones_like.default(Tensor self" TG_FACTORY TG_FORMAT ")", like(1)},
      {"aten.empty_like.default(Tensor self" TG_FACTORY TG_FORMAT ")", like(0)},
      {"aten.new_zeros.default(Tensor self, SymInt[] size" TG_FACTORY ")", new_of(0)},
      {"aten.new_ones.default(Tensor self, SymInt[] size" TG_FACTORY ")", new_of(1)},
      {"aten.new_empty.default(Tensor self, SymInt[] size" TG_FACTORY ")", new_of(0)},
      {"aten.new_empty_strided.default(Tensor self, SymInt[] size, SymInt[] stride" TG_FACTORY ")", new_of(0)},
      {"aten.new_full.default(Tensor self, SymInt[] size, Scalar fill_value" TG_FACTORY ")",
       [](const Call& c) { return new_constant(c, c["fill_value"]); }},
      {"aten.fill.Scalar(Tensor self, Scalar value)", fill},
      {"aten.fill.Tensor(Tensor self, Tensor value)", fill},
      {"aten.zero.default(Tensor self)", [](const Call& c) { return constant_like(c, 0); }},
      {"aten.scalar_tensor.default(Scalar s" TG_FACTORY ")", scalar_tensor},
      {"aten.arange.default(Scalar end" TG_FACTORY ")", arange},
      {"aten.arange.start(Scalar start, Scalar end" TG_FACTORY ")", arange},
      {"aten.arange.start_step(Scalar start, Scalar end, Scalar step=1" TG_FACTORY ")", arange},
      {"aten.linspace.default(Scalar start, Scalar end, int steps" TG_FACTORY ")", linspace},
      {"aten.eye.default(SymInt n" TG_FACTORY ")", eye},
      {"aten.eye.m(SymInt n, SymInt m" TG_FACTORY ")", eye},
      {"aten.tril_indices.default(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, "
       "bool? "
       "pin_memory=None)",
       [](const Call& c) { return triangle_indices(c, false); }},
      {"aten.triu_indices.default(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, "
       "bool? "
       "pin_memory=None)",
       [](const Call& c) { return triangle_indices(c, true); }},
      {"aten._to_copy.default(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
       "bool "
       "non_blocking=False, MemoryFormat? memory_format=None)",
       to},
      {"aten.to.dtype(Tensor self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None)", to},
      {"aten.to.device(Tensor self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? "
       "memory_format=None)",
       to},
      {"aten.to.dtype_layout(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool "
       "non_blocking=False, bool copy=False, MemoryFormat? memory_format=None)",
       to},
      {"aten.to.other(Tensor self, Tensor other, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None)", to_other},
      {"aten.type_as.default(Tensor self, Tensor other)", type_as},
      {"aten.clone.default(Tensor self, *, MemoryFormat? memory_format=None)", same},
      {"aten.contiguous.default(Tensor self, *, MemoryFormat memory_format=contiguous_format)", same},
      {"aten.alias_copy.default(Tensor self)", same},
      {"aten.detach_copy.default(Tensor self)", same},
      {"aten.lift_fresh_copy.default(Tensor self)", same},
      {"aten.copy.default(Tensor self, Tensor src, bool non_blocking=False)", copy},
      {"aten.item.default(Tensor self)", item},
      {"aten._local_scalar_dense.default(Tensor self)", item},
  };
}

}  // namespace tinygrad::aten
