// Operators that make tensors from numbers.
#include <fmt/core.h>

#include <cmath>
#include <numbers>

#include <tinygrad/errors.h>

#include "frontend/onnx/operators.h"

namespace tinygrad::onnx {

namespace {

Results constant(Call& c) {
  if (c.has_attribute("value")) return {c.tensor_attribute("value")};
  if (const proto::Attribute* a = c.node().attribute("sparse_value")) {
    Program& program = c.program();
    return {read_value(program.files, a->sparse_tensors.at(0))};
  }
  if (c.has_attribute("value_int")) return {host_integer(c.attribute("value_int", 0))};
  if (c.has_attribute("value_ints")) return {host_integers(c.attribute("value_ints", std::vector<int64_t>()))};
  if (c.has_attribute("value_float"))
    return {host_value(HostArray::of(ElementType::float32, {}, std::vector<double>{c.attribute("value_float", 0.0)}))};
  if (c.has_attribute("value_floats")) {
    const std::vector<double> values = c.attribute("value_floats", std::vector<double>());
    return {host_value(HostArray::of(ElementType::float32, {int64_t(values.size())}, values))};
  }
  if (c.has_attribute("value_string")) return {Strings{{}, {c.attribute("value_string", "")}}};
  if (c.has_attribute("value_strings")) {
    const std::vector<std::string> values = c.texts("value_strings");
    return {Strings{{int64_t(values.size())}, values}};
  }
  c.fail("lacks its value");
}

Results constant_of_shape(Call& c) {
  constexpr int64_t most_on_host = 4096;
  const Sizes shape = c.integers(0);
  for (int64_t s : shape)
    if (s < 0) c.fail(fmt::format("the size {}", s));
  const Value value = c.has_attribute("value") ? c.tensor_attribute("value")
                                               : host_value(HostArray::of(ElementType::float32, {1}, std::vector<double>{0.0}));
  const HostArray* h = host_of(value);
  if (h && !is_float_type(h->type) && element_count(shape) <= most_on_host) {
    const std::vector<int64_t> all(size_t(element_count(shape)), h->integers().at(0));
    return {host_value(HostArray::of(h->type, shape, all))};
  }
  return results_like(value, value.tensor().reshape(Sizes(shape.size(), 1)).expand(shape));
}

Results range(Call& c) {
  const ElementType type = c.type(0);
  if (c.type(1) != type || c.type(2) != type) throw DTypeError("the start, the limit and the step differ in type");
  if (!is_float_type(type)) {
    const int64_t from = c.integer(0), to = c.integer(1), by = c.integer(2);
    if (by == 0) c.fail("a step of 0");
    return results(Tensor::arange(from, to, by, {.dtype = dtype_of(type)}));
  }
  const double from = c.number(0), to = c.number(1), by = c.number(2), steps_there = std::ceil((to - from) / by);
  if (by == 0 || !(std::fabs(steps_there) < 0x1p53)) c.fail(fmt::format("a range from {} to {} by {}", from, to, by));
  const int64_t count = int64_t(std::max(0.0, steps_there));
  const Tensor steps = Tensor::arange(count, {.dtype = DType::float32});
  const DType wide = dtype_of(type) == DType::float64 ? DType::float64 : DType::float32;
  return results((steps.cast(wide) * by + from).cast(dtype_of(type)));
}

Results eye_like(Call& c) {
  const Sizes shape = c.shape(0);
  if (shape.size() != 2) c.fail("expects a matrix");
  const ElementType type = c.type_attribute("dtype", c.type(0));
  const int64_t k = c.attribute("k", 0);
  const Tensor row = Tensor::arange(shape[0], {.dtype = DType::int64}).reshape({shape[0], 1});
  const Tensor column = Tensor::arange(shape[1], {.dtype = DType::int64}).reshape({1, shape[1]});
  return results((column - row == k).cast(dtype_of(type)));
}

/// a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N), computed in double.
template <int kind>
Results window(Call& c) {
  const int64_t size = c.integer(0);
  host_count(c, {size});
  const ElementType type = c.type_attribute("output_datatype", ElementType::float32);
  constexpr double terms[3][3] = {{0.5, 0.5, 0}, {25.0 / 46, 21.0 / 46, 0}, {0.42, 0.5, 0.08}};
  const double period = double(c.flag("periodic", true) ? size : size - 1);
  std::vector<double> values;
  for (int64_t n = 0; n < size; ++n) {
    const double angle = size == 1 ? 0 : 2 * std::numbers::pi * double(n) / period;
    const double value = terms[kind][0] - terms[kind][1] * std::cos(angle) + terms[kind][2] * std::cos(2 * angle);
    values.push_back(type == ElementType::float64 ? value : double(float(value)));
  }
  return {host_value(HostArray::of(type, {size}, values))};
}

constexpr OperatorRow rows[] = {
    {onnx_domain, "BlackmanWindow", 17, window<2>},
    {onnx_domain, "Constant", 1, constant},
    {onnx_domain, "ConstantOfShape", 9, constant_of_shape},
    {onnx_domain, "EyeLike", 9, eye_like},
    {onnx_domain, "HammingWindow", 17, window<1>},
    {onnx_domain, "HannWindow", 17, window<0>},
    {onnx_domain, "Range", 11, range},
};

}  // namespace

std::span<const OperatorRow> creation_operators() { return rows; }

}  // namespace tinygrad::onnx
