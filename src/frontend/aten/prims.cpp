// The primitives that decompositions of PyTorch end in, and what only checks or marks.
#include <fmt/core.h>

#include "frontend/aten/promotion.h"

namespace tinygrad::aten {

namespace {

/// The operator of the same meaning, with its parameters by name.
Row same_as(std::string_view schema, std::string_view op) {
  return {schema, [op](const Call& c) {
            Arguments all;
            for (const Parameter& p : parameters(c.name())) all.push_back({p.name, c[p.name]});
            return call(op, all);
          }};
}

std::vector<int> axes_of(const Call& c, const Tensor& x) { return c.axes("dims", x.ndim()); }
DType output_type(const Call& c, DType otherwise) { return c.dtype("output_dtype").value_or(otherwise); }
template <class F>
Results over(const Call& c, F f) {
  const Tensor x = c.tensor("inp");
  return one(x.ndim() == 0 ? f(x.reshape({1}), AxisList(0)).reshape({}) : f(x, AxisList(axes_of(c, x))));
}
Results sum(const Call& c) {
  const DType dtype = output_type(c, sum_type(c.tensor("inp").dtype()));
  return over(c, [&](const Tensor& x, const AxisList& a) { return x.cast(dtype).sum(a, {.dtype = dtype}); });
}
Results prod(const Call& c) {
  const DType dtype = output_type(c, sum_type(c.tensor("inp").dtype()));
  return over(c, [&](const Tensor& x, const AxisList& a) { return x.cast(dtype).prod(a, {.dtype = dtype}); });
}
Results amax(const Call& c) {
  return over(c, [&](const Tensor& x, const AxisList& a) { return x.max(a).cast(output_type(c, x.dtype())); });
}
Results amin(const Call& c) {
  return over(c, [&](const Tensor& x, const AxisList& a) { return x.min(a).cast(output_type(c, x.dtype())); });
}
Results var(const Call& c) {
  const double correction = c.has("correction") ? c.number("correction") : 1;
  if (correction != double(int64_t(correction))) c.fail("a correction that is not whole");
  return over(c, [&](const Tensor& x, const AxisList& a) {
    return x.cast(wide_type(x.dtype())).var(a, {.correction = int64_t(correction)}).cast(output_type(c, x.dtype()));
  });
}
Results broadcast_in_dim(const Call& c) {
  const Tensor a = c.tensor("a");
  const Extents shape = c.extents("shape"), own = a.symbolic_shape();
  const Sizes places = c.integers("broadcast_dimensions");
  if (places.size() != own.size()) c.fail("broadcast_dimensions does not have a number for each axis");
  Extents between(shape.size(), Extent(1));
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] < 0 || places[i] >= int64_t(shape.size()) || (i > 0 && places[i] <= places[i - 1]))
      c.fail("broadcast_dimensions does not ascend within the shape");
    between[size_t(places[i])] = own[i];
  }
  return one(a.reshape(between).expand(shape));
}
Results iota(const Call& c) {
  const Tensor steps = Tensor::arange(c.extent("length"), {.dtype = DType::int64, .device = c.device()});
  return one((steps * c.integer("step") + c.integer("start")).cast(*c.dtype()));
}
Results collapse(const Call& c) {
  const Tensor a = c.tensor("a");
  if (a.ndim() == 0) return one(a.reshape({1}));
  return one(a.flatten(c.axis("start", a.ndim()), c.axis("end", a.ndim())));
}
Results split_dim(const Call& c) {
  const Tensor a = c.tensor("a");
  const int axis = c.axis("dim", a.ndim());
  const Extent outer = c.extent("outer_length");
  return one(a.unflatten(axis, {outer, a.symbolic_shape()[size_t(axis)] / outer}));
}
Results transpose(const Call& c) {
  const Tensor a = c.tensor("a");
  return one(a.ndim() == 0 ? a : a.permute(c.axes("permutation", a.ndim(), false)));
}
Results squeeze(const Call& c) {
  const Tensor a = c.tensor("a");
  return call("aten.squeeze.dims", {{"self", a}, {"dim", c["dimensions"]}});
}
Results rev(const Call& c) {
  const Tensor a = c.tensor("a");
  const std::vector<int> axes = c.axes("dims", a.ndim(), false);
  return one(axes.empty() ? a : a.flip(axes));
}
Results normal(const Call& c) {
  return one(
      (Tensor::randn(c.integers("shape"), {.dtype = wide_type(*c.dtype()), .device = c.device()}) * c.number("std") + c.number("mean"))
          .cast(*c.dtype()));
}
Results uniform(const Call& c) {
  const double low = c.number("low"), high = c.number("high");
  return one(
      (Tensor::rand(c.integers("shape"), {.dtype = wide_type(*c.dtype()), .device = c.device()}) * (high - low) + low).cast(*c.dtype()));
}

// What guards of a program say.
Results check_scalar(const Call& c) {
  if (!c["self"].boolean()) c.fail(c.text("assert_msg"));
  return {};
}
Results check_tensor(const Call& c) {
  const Tensor x = c.tensor("self");
  if (x.numel() != 1) c.fail("the condition is not one element");
  if (!x.ne(0).item<bool>()) c.fail(c.declares("assert_msg") ? c.text("assert_msg") : "the condition does not hold");
  return {};
}
Results check_range(const Call& c) {
  const double size = c.number("size");
  if ((c.has("min") && size < c.number("min")) || (c.has("max") && size > c.number("max")))
    c.fail(fmt::format("{} is out of its range", size));
  return {};
}
Results check_metadata(const Call& c) {
  const Tensor a = c.tensor("a");
  if (c.declares("dtype") && c.dtype() && *c.dtype() != a.dtype()) c.fail(fmt::format("the tensor is {}", repr(a.dtype())));
  if (c.has("size") && c.integers("size") != a.shape()) c.fail("the tensor has another shape");
  return {};
}

}  // namespace

std::vector<Row> prims_operators() {
  std::vector<Row> rows = {
      {"prims.convert_element_type.default(Tensor a, ScalarType dtype)", [](const Call& c) { return one(c.tensor("a").cast(*c.dtype())); }},
      {"prims.broadcast_in_dim.default(Tensor a, SymInt[] shape, int[] broadcast_dimensions)", broadcast_in_dim},
      {"prims.iota.default(SymInt length, *, SymInt start, SymInt step, ScalarType dtype, Device device, bool requires_grad)", iota},
      {"prims.sum.default(Tensor inp, int[]? dims, *, ScalarType? output_dtype=None)", sum},
      {"prims.prod.default(Tensor inp, int[]? dims, *, ScalarType? output_dtype=None)", prod},
      {"prims.amax.default(Tensor inp, int[]? dims, *, ScalarType? output_dtype=None)", amax},
      {"prims.amin.default(Tensor inp, int[]? dims, *, ScalarType? output_dtype=None)", amin},
      {"prims.var.default(Tensor inp, int[]? dims, float? correction=1, *, ScalarType? output_dtype=None)", var},
      {"prims.collapse.default(Tensor a, int start, int end)", collapse},
      {"prims.collapse_view.default(Tensor a, int start, int end)", collapse},
      {"prims.split_dim.default(Tensor a, int dim, SymInt outer_length)", split_dim},
      {"prims.transpose.default(Tensor a, int[] permutation)", transpose},
      {"prims.squeeze.default(Tensor a, int[] dimensions)", squeeze},
      {"prims.reshape.default(Tensor a, SymInt[] shape)", [](const Call& c) { return one(c.tensor("a").reshape(c.extents("shape"))); }},
      {"prims.rev.default(Tensor a, int[] dims)", rev},
      {"prims.view_of.default(Tensor a)", [](const Call& c) { return one(c.tensor("a")); }},
      {"prims.view_of_dtype.default(Tensor a, ScalarType dtype)", [](const Call& c) { return one(c.tensor("a").bitcast(*c.dtype())); }},
      {"prims.device_put.default(Tensor a, Device device, bool non_blocking=False)",
       [](const Call& c) { return one(c.tensor("a").to(c.device())); }},
      {"prims.where.default(Tensor pred, Tensor a, Tensor b)",
       [](const Call& c) { return call("aten.where.self", {{"condition", c["pred"]}, {"self", c["a"]}, {"other", c["b"]}}); }},
      {"prims.full.default(SymInt[] shape, Scalar fill_value, *, ScalarType dtype, Device device, bool requires_grad)",
       [](const Call& c) {
         return call("aten.full.default",
                     {{"size", c["shape"]}, {"fill_value", c["fill_value"]}, {"dtype", c["dtype"]}, {"device", c["device"]}});
       }},
      {"prims.full_like.default(Tensor a, Scalar fill_value, *, ScalarType dtype, Device device, bool requires_grad)",
       [](const Call& c) {
         return call("aten.full_like.default",
                     {{"self", c["a"]}, {"fill_value", c["fill_value"]}, {"dtype", c["dtype"]}, {"device", c["device"]}});
       }},
      {"prims.empty_strided.default(SymInt[] shape, SymInt[] strides, *, ScalarType dtype, Device device, bool requires_grad)",
       [](const Call& c) { return call("aten.zeros.default", {{"size", c["shape"]}, {"dtype", c["dtype"]}, {"device", c["device"]}}); }},
      {"prims.normal.default(SymInt[] shape, *, Scalar mean, Scalar std, ScalarType dtype, Device device, bool requires_grad, Generator? "
       "generator=None)",
       normal},
      {"prims.uniform.default(SymInt[] shape, *, Scalar low, Scalar high, ScalarType dtype, Device device, SymInt[] stride, Generator? "
       "generator=None)",
       uniform},
      {"aten._assert_scalar.default(Scalar self, str assert_msg)", check_scalar},
      {"aten._assert_async.default(Tensor self)", check_tensor},
      {"aten._assert_async.msg(Tensor self, str assert_msg)", check_tensor},
      {"aten.sym_constrain_range.default(Scalar size, *, int? min=None, int? max=None)", check_range},
      {"aten.sym_constrain_range_for_size.default(Scalar size, *, int? min=None, int? max=None)", check_range},
      {"aten._assert_tensor_metadata.default(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? dtype=None, *, Device? "
       "device=None, Layout? layout=None)",
       check_metadata},
  };
  constexpr std::string_view unary[][2] = {
      {"prims.abs.default(Tensor self)", "aten.abs.default"},
      {"prims.acos.default(Tensor self)", "aten.acos.default"},
      {"prims.acosh.default(Tensor self)", "aten.acosh.default"},
      {"prims.asin.default(Tensor self)", "aten.asin.default"},
      {"prims.asinh.default(Tensor self)", "aten.asinh.default"},
      {"prims.atan.default(Tensor self)", "aten.atan.default"},
      {"prims.atanh.default(Tensor self)", "aten.atanh.default"},
      {"prims.bitwise_not.default(Tensor self)", "aten.bitwise_not.default"},
      {"prims.ceil.default(Tensor self)", "aten.ceil.default"},
      {"prims.clone.default(Tensor self, *, MemoryFormat? memory_format=None)", "aten.clone.default"},
      {"prims.cos.default(Tensor self)", "aten.cos.default"},
      {"prims.cosh.default(Tensor self)", "aten.cosh.default"},
      {"prims.digamma.default(Tensor self)", "aten.digamma.default"},
      {"prims.erf.default(Tensor self)", "aten.erf.default"},
      {"prims.erf_inv.default(Tensor self)", "aten.erfinv.default"},
      {"prims.erfc.default(Tensor self)", "aten.erfc.default"},
      {"prims.exp.default(Tensor self)", "aten.exp.default"},
      {"prims.exp2.default(Tensor self)", "aten.exp2.default"},
      {"prims.expm1.default(Tensor self)", "aten.expm1.default"},
      {"prims.fill.default(Tensor self, Scalar value)", "aten.fill.Scalar"},
      {"prims.floor.default(Tensor self)", "aten.floor.default"},
      {"prims.isfinite.default(Tensor self)", "aten.isfinite.default"},
      {"prims.lgamma.default(Tensor self)", "aten.lgamma.default"},
      {"prims.log.default(Tensor self)", "aten.log.default"},
      {"prims.log10.default(Tensor self)", "aten.log10.default"},
      {"prims.log1p.default(Tensor self)", "aten.log1p.default"},
      {"prims.log2.default(Tensor self)", "aten.log2.default"},
      {"prims.neg.default(Tensor self)", "aten.neg.default"},
      {"prims.reciprocal.default(Tensor self)", "aten.reciprocal.default"},
      {"prims.round.default(Tensor self)", "aten.round.default"},
      {"prims.rsqrt.default(Tensor self)", "aten.rsqrt.default"},
      {"prims.sign.default(Tensor self)", "aten.sign.default"},
      {"prims.signbit.default(Tensor self)", "aten.signbit.default"},
      {"prims.sin.default(Tensor self)", "aten.sin.default"},
      {"prims.sinh.default(Tensor self)", "aten.sinh.default"},
      {"prims.sqrt.default(Tensor self)", "aten.sqrt.default"},
      {"prims.tan.default(Tensor self)", "aten.tan.default"},
      {"prims.tanh.default(Tensor self)", "aten.tanh.default"},
      {"prims.trunc.default(Tensor self)", "aten.trunc.default"},
  };
  for (const auto& [schema, op] : unary) rows.push_back(same_as(schema, op));
  constexpr std::string_view binary[][2] = {
      {"prims.add.default(Tensor self, Tensor other)", "aten.add.Tensor"},
      {"prims.atan2.default(Tensor self, Tensor other)", "aten.atan2.default"},
      {"prims.bitwise_and.default(Tensor self, Tensor other)", "aten.bitwise_and.Tensor"},
      {"prims.bitwise_or.default(Tensor self, Tensor other)", "aten.bitwise_or.Tensor"},
      {"prims.bitwise_xor.default(Tensor self, Tensor other)", "aten.bitwise_xor.Tensor"},
      {"prims.eq.default(Tensor self, Tensor other)", "aten.eq.Tensor"},
      {"prims.fmax.default(Tensor self, Tensor other)", "aten.fmax.default"},
      {"prims.fmin.default(Tensor self, Tensor other)", "aten.fmin.default"},
      {"prims.fmod.default(Tensor self, Tensor other)", "aten.fmod.Tensor"},
      {"prims.ge.default(Tensor self, Tensor other)", "aten.ge.Tensor"},
      {"prims.gt.default(Tensor self, Tensor other)", "aten.gt.Tensor"},
      {"prims.hypot.default(Tensor self, Tensor other)", "aten.hypot.default"},
      {"prims.le.default(Tensor self, Tensor other)", "aten.le.Tensor"},
      {"prims.lt.default(Tensor self, Tensor other)", "aten.lt.Tensor"},
      {"prims.maximum.default(Tensor self, Tensor other)", "aten.maximum.default"},
      {"prims.minimum.default(Tensor self, Tensor other)", "aten.minimum.default"},
      {"prims.mul.default(Tensor self, Tensor other)", "aten.mul.Tensor"},
      {"prims.ne.default(Tensor self, Tensor other)", "aten.ne.Tensor"},
      {"prims.remainder.default(Tensor self, Tensor other)", "aten.remainder.Tensor"},
      {"prims.shift_left.default(Tensor self, Tensor other)", "aten.bitwise_left_shift.Tensor"},
      {"prims.shift_right_arithmetic.default(Tensor self, Tensor other)", "aten.bitwise_right_shift.Tensor"},
      {"prims.sub.default(Tensor self, Tensor other)", "aten.sub.Tensor"},
  };
  for (const auto& [schema, op] : binary) rows.push_back(same_as(schema, op));
  rows.push_back({"prims.pow.default(Tensor self, Tensor other)",
                  [](const Call& c) { return call("aten.pow.Tensor_Tensor", {{"self", c["self"]}, {"exponent", c["other"]}}); }});
  // Of integers it is the quotient without its fraction.
  rows.push_back({"prims.div.default(Tensor self, Tensor other)", [](const Call& c) {
                    const Promoted p = promoted(c, {"self", "other"});
                    const Value mode = is_float(p.dtype) ? Value() : Value("trunc");
                    return call("aten.div.Tensor_mode", {{"self", c["self"]}, {"other", c["other"]}, {"rounding_mode", mode}});
                  }});
  rows.push_back({"prims.cat.default(Tensor[] tensors, int dim)",
                  [](const Call& c) { return call("aten.cat.default", {{"tensors", c["tensors"]}, {"dim", c["dim"]}}); }});
  rows.push_back({"prims.scalar_tensor.default(Scalar s, *, ScalarType? dtype=None, Device? device=None)", [](const Call& c) {
                    return call("aten.scalar_tensor.default", {{"s", c["s"]}, {"dtype", c["dtype"]}, {"device", c["device"]}});
                  }});
  rows.push_back({"prims.item.default(Tensor a)", [](const Call& c) { return call("aten.item.default", {{"self", c["a"]}}); }});
  return rows;
}

}  // namespace tinygrad::aten
