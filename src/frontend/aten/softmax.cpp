// Softmax, its logarithm, and their gradients.
#include <cmath>

#include "frontend/aten/promotion.h"

namespace tinygrad::aten {

namespace {

/// In at least float32, to a dtype that is given or that of the argument.
Results softmax(const Call& c, bool logarithm, DType dtype) {
  const Tensor x = c.tensor("self");
  if (!is_float(dtype)) c.fail("only for floats");
  const int axis = c.axis("dim", x.ndim());
  const Tensor wide = (x.ndim() == 0 ? x.reshape({1}) : x).cast(wide_type(dtype));
  return one((logarithm ? wide.log_softmax(axis) : wide.softmax(axis)).cast(dtype).reshape(x.symbolic_shape()));
}
Results inner(const Call& c, bool logarithm) {
  const DType dtype = c.tensor("self").dtype();
  if (c.flag("half_to_float") && dtype != DType::float16) c.fail("half_to_float of what is not float16");
  return softmax(c, logarithm, c.flag("half_to_float") ? DType::float32 : dtype);
}
Results outer(const Call& c, bool logarithm) { return softmax(c, logarithm, c.dtype().value_or(c.tensor("self").dtype())); }
/// Rows that are masked everywhere are 0.
Results safe_softmax(const Call& c) {
  const Tensor x = c.tensor("self"), out = outer(c, false)[0].tensor();
  const int axis = c.axis("dim", x.ndim());
  return one(x.eq(-INFINITY).all(axis, {.keepdim = true}).where(out.zeros_like(), out));
}
Results backward(const Call& c, bool logarithm) {
  const Tensor grad = c.tensor("grad_output"), y = c.tensor("output");
  const DType dtype = *c.dtype("input_dtype"), wide = wide_type(y.dtype());
  const int axis = c.axis("dim", y.ndim());
  const Tensor g = (y.ndim() == 0 ? grad.reshape({1}) : grad).cast(wide), out = (y.ndim() == 0 ? y.reshape({1}) : y).cast(wide);
  const Tensor result = logarithm ? g - out.exp() * g.sum(axis, {.keepdim = true}) : out * (g - (g * out).sum(axis, {.keepdim = true}));
  return one(result.cast(dtype).reshape(y.symbolic_shape()));
}

}  // namespace

std::vector<Row> softmax_operators() {
  return {
      {"aten._softmax.default(Tensor self, int dim, bool half_to_float)", [](const Call& c) { return inner(c, false); }},
      {"aten._log_softmax.default(Tensor self, int dim, bool half_to_float)", [](const Call& c) { return inner(c, true); }},
      {"aten.softmax.int(Tensor self, int dim, ScalarType? dtype=None)", [](const Call& c) { return outer(c, false); }},
      {"aten.log_softmax.int(Tensor self, int dim, ScalarType? dtype=None)", [](const Call& c) { return outer(c, true); }},
      {"aten.special_softmax.default(Tensor self, int dim, ScalarType? dtype=None)", [](const Call& c) { return outer(c, false); }},
      {"aten.special_log_softmax.default(Tensor self, int dim, *, ScalarType? dtype=None)", [](const Call& c) { return outer(c, true); }},
      {"aten._safe_softmax.default(Tensor self, int dim, ScalarType? dtype=None)", safe_softmax},
      {"aten._softmax_backward_data.default(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype)",
       [](const Call& c) { return backward(c, false); }},
      {"aten._log_softmax_backward_data.default(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype)",
       [](const Call& c) { return backward(c, true); }},
  };
}

}  // namespace tinygrad::aten
