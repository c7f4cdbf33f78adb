// Operators that give bools, and those that choose between elements.
#include <array>
#include <cmath>

#include "frontend/aten/promotion.h"

namespace tinygrad::aten {

namespace {

using Method = Tensor (Tensor::*)(const Operand&) const;
template <Method method>
Results compare(const Call& c) {
  const Promoted x = promoted(c, {"self", "other"});
  return one((x[0].*method)(x[1]));
}

Tensor truth(const Tensor& x) { return is_bool(x.dtype()) ? x : x.ne(0); }
template <Method method>
Results logical(const Call& c) {
  return one((truth(c.tensor("self")).*method)(truth(c.tensor("other"))));
}
Results logical_not(const Call& c) { return one(truth(c.tensor("self")).logical_not()); }
Results bitwise_not(const Call& c) {
  const Tensor x = c.tensor("self");
  if (is_float(x.dtype())) c.fail("not for floats");
  return one(x.bitwise_not());
}

Results is_close(const Call& c) {
  const Promoted x = promoted(c, {"self", "other"});
  const Tensor &a = x[0], &b = x[1];
  if (!is_float(x.dtype)) {
    const Tensor wide_a = a.cast(DType::float64), wide_b = b.cast(DType::float64);
    return one(a.eq(b) | ((wide_a - wide_b).abs() <= wide_b.abs() * c.number("rtol") + c.number("atol")));
  }
  return one(a.isclose(b, {.rtol = c.number("rtol"), .atol = c.number("atol"), .equal_nan = c.flag("equal_nan")}));
}

Results where(const Call& c) {
  const Tensor condition = c.tensor("condition");
  if (!is_bool(condition.dtype()) && condition.dtype() != DType::uint8) c.fail("the condition is not of bools");
  const Promoted x = promoted(c, {"self", "other"});
  const std::string device = condition.ndim() > 0 ? condition.device() : x[0].device();
  return one(truth(condition).to(device).where(x[0].to(device), x[1].to(device)));
}

Results masked_fill(const Call& c) {
  const Tensor x = c.tensor("self"), mask = c.tensor("mask");
  if (!is_bool(mask.dtype())) c.fail("the mask is not of bools");
  return one(mask.where(typed(c["value"], x.dtype(), x.device()), x));
}

/// Bounds of the common dtype; NaN stays NaN, and where the least is above the most, it is the most.
Results clamp(const Call& c, std::string_view min, std::string_view max) {
  std::vector<const Value*> values = {&c["self"]};
  for (std::string_view name : {min, max})
    if (!name.empty() && c.has(name)) values.push_back(&c[name]);
  if (values.size() == 1) c.fail("neither min nor max is given");
  const DType dtype = result_type(values);
  const std::string device = c.tensor("self").device();
  Tensor x = c.tensor("self").cast(dtype);
  if (!min.empty() && c.has(min)) x = x.maximum(typed(c[min], dtype, device));
  if (!max.empty() && c.has(max)) x = x.minimum(typed(c[max], dtype, device));
  return one(x);
}

Results is_nan(const Call& c) {
  const Tensor x = c.tensor("self");
  return one(is_float(x.dtype()) ? x.isnan() : x.zeros_like(DType::bool_));
}
Results is_inf(const Call& c, bool positive, bool negative) {
  const Tensor x = c.tensor("self");
  return one(is_float(x.dtype()) ? x.isinf({.detect_positive = positive, .detect_negative = negative}) : x.zeros_like(DType::bool_));
}
Results is_finite(const Call& c) {
  const Tensor x = c.tensor("self");
  return one(is_float(x.dtype()) ? x.isfinite() : x.ones_like(DType::bool_));
}
Results sign_bit(const Call& c) {
  const Tensor x = c.tensor("self");
  if (!is_float(x.dtype())) return one(is_signed(x.dtype()) ? x < 0 : x.zeros_like(DType::bool_));
  return one(x.full_like(1).copysign(x) < 0);
}
Results nan_to_num(const Call& c) {
  const Tensor x = c.tensor("self");
  if (!is_float(x.dtype())) return one(x);
  const FloatInfo fields = finfo(x.dtype());
  const int bias = (1 << (fields.exponent_bits - 1)) - 1;
  const double greatest = (2 - std::ldexp(1.0, -fields.mantissa_bits)) * std::ldexp(1.0, bias);
  const auto or_else = [&](std::string_view name, double otherwise) {
    return typed_number(c.has(name) ? c[name] : Value(otherwise), x.dtype(), x.device());
  };
  const Tensor numbers = x.isnan().where(or_else("nan", 0), x);
  return one(x.isinf({.detect_positive = true, .detect_negative = false})
                 .where(or_else("posinf", greatest),
                        x.isinf({.detect_positive = false, .detect_negative = true}).where(or_else("neginf", -greatest), numbers)));
}
Results is_in(const Call& c) {
  const Tensor all = c.tensor("elements"), tests = c.tensor("test_elements").flatten();
  const DType dtype = promote_types(all.dtype(), tests.dtype());
  const Tensor found = all.unsqueeze(-1).cast(dtype).eq(tests.cast(dtype)).any(-1);
  return one(c.flag("invert") ? found.logical_not() : found);
}
Results equal(const Call& c) {
  const Tensor a = c.tensor("self"), b = c.tensor("other");
  if (a.shape() != b.shape()) return {false};
  return {a.numel() == 0 || a.eq(b).all().item<bool>()};
}

}  // namespace

std::vector<Row> comparison_operators() {
  std::vector<Row> rows = {
      {"aten.logical_and.default(Tensor self, Tensor other)", logical<&Tensor::bitwise_and>},
      {"aten.logical_or.default(Tensor self, Tensor other)", logical<&Tensor::bitwise_or>},
      {"aten.logical_xor.default(Tensor self, Tensor other)", logical<&Tensor::bitwise_xor>},
      {"aten.logical_not.default(Tensor self)", logical_not},
      {"aten.bitwise_not.default(Tensor self)", bitwise_not},
      {"aten.isclose.default(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False)", is_close},
      {"aten.equal.default(Tensor self, Tensor other)", equal},
      {"aten.where.self(Tensor condition, Tensor self, Tensor other)", where},
      {"aten.where.ScalarSelf(Tensor condition, Scalar self, Tensor other)", where},
      {"aten.where.ScalarOther(Tensor condition, Tensor self, Scalar other)", where},
      {"aten.where.Scalar(Tensor condition, Scalar self, Scalar other)", where},
      {"aten.masked_fill.Scalar(Tensor self, Tensor mask, Scalar value)", masked_fill},
      {"aten.masked_fill.Tensor(Tensor self, Tensor mask, Tensor value)", masked_fill},
      {"aten.isnan.default(Tensor self)", is_nan},
      {"aten.isinf.default(Tensor self)", [](const Call& c) { return is_inf(c, true, true); }},
      {"aten.isposinf.default(Tensor self)", [](const Call& c) { return is_inf(c, true, false); }},
      {"aten.isneginf.default(Tensor self)", [](const Call& c) { return is_inf(c, false, true); }},
      {"aten.isfinite.default(Tensor self)", is_finite},
      {"aten.signbit.default(Tensor self)", sign_bit},
      {"aten.nan_to_num.default(Tensor self, float? nan=None, float? posinf=None, float? neginf=None)", nan_to_num},
      {"aten.isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False)", is_in},
  };
  const auto bounded = [&](std::string_view schema, std::string_view min, std::string_view max) {
    rows.push_back({schema, [min, max](const Call& c) { return clamp(c, min, max); }});
  };
  bounded("aten.clamp.default(Tensor self, Scalar? min=None, Scalar? max=None)", "min", "max");
  bounded("aten.clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None)", "min", "max");
  bounded("aten.clip.default(Tensor self, Scalar? min=None, Scalar? max=None)", "min", "max");
  bounded("aten.clip.Tensor(Tensor self, Tensor? min=None, Tensor? max=None)", "min", "max");
  bounded("aten.clamp_min.default(Tensor self, Scalar min)", "min", "");
  bounded("aten.clamp_min.Tensor(Tensor self, Tensor min)", "min", "");
  bounded("aten.clamp_max.default(Tensor self, Scalar max)", "", "max");
  bounded("aten.clamp_max.Tensor(Tensor self, Tensor max)", "", "max");
  const auto both = [&](std::string_view of_tensors, std::string_view of_scalars, Results (*run)(const Call&)) {
    rows.push_back({of_tensors, run});
    rows.push_back({of_scalars, run});
  };
  both("aten.eq.Tensor(Tensor self, Tensor other)", "aten.eq.Scalar(Tensor self, Scalar other)", compare<&Tensor::eq>);
  both("aten.ne.Tensor(Tensor self, Tensor other)", "aten.ne.Scalar(Tensor self, Scalar other)", compare<&Tensor::ne>);
  both("aten.lt.Tensor(Tensor self, Tensor other)", "aten.lt.Scalar(Tensor self, Scalar other)", compare<&Tensor::lt>);
  both("aten.le.Tensor(Tensor self, Tensor other)", "aten.le.Scalar(Tensor self, Scalar other)", compare<&Tensor::le>);
  both("aten.gt.Tensor(Tensor self, Tensor other)", "aten.gt.Scalar(Tensor self, Scalar other)", compare<&Tensor::gt>);
  both("aten.ge.Tensor(Tensor self, Tensor other)", "aten.ge.Scalar(Tensor self, Scalar other)", compare<&Tensor::ge>);
  return rows;
}

}  // namespace tinygrad::aten
