// Random numbers, of the library's own sequence: they have the distribution of PyTorch's, not their values.
#include <fmt/core.h>

#include "frontend/aten/promotion.h"

namespace tinygrad::aten {

namespace {

Sizes sizes_of(const Call& c) {
  for (int64_t s : c.integers("size"))
    if (s < 0) c.fail(fmt::format("the size {} is negative", s));
  return c.integers("size");
}
TensorOptions options_of(const Call& c, DType otherwise, const Tensor& like = {}) {
  return {.dtype = c.dtype().value_or(otherwise), .device = c.device(like)};
}
void check_float(const Call& c, DType dtype) {
  if (!is_float(dtype)) c.fail("only for floats");
}

Results rand(const Call& c) {
  const TensorOptions options = options_of(c, DType::float32);
  check_float(c, *options.dtype);
  return one(Tensor::rand(sizes_of(c), options));
}
Results randn(const Call& c) {
  const TensorOptions options = options_of(c, DType::float32);
  check_float(c, *options.dtype);
  return one(Tensor::randn(sizes_of(c), options));
}
Results rand_like(const Call& c) {
  const Tensor x = c.tensor("self");
  const TensorOptions options = options_of(c, x.dtype(), x);
  check_float(c, *options.dtype);
  return one(Tensor::rand(x.shape(), options));
}
Results randn_like(const Call& c) {
  const Tensor x = c.tensor("self");
  const TensorOptions options = options_of(c, x.dtype(), x);
  check_float(c, *options.dtype);
  return one(Tensor::randn(x.shape(), options));
}
Results randint(const Call& c) {
  const int64_t low = c.declares("low") ? c.integer("low") : 0, high = c.integer("high");
  if (low >= high) c.fail("no integer is in the range");
  return one(Tensor::randint(sizes_of(c), low, high, {.dtype = DType::int64, .device = c.device()}).cast(c.dtype().value_or(DType::int64)));
}
Results randint_like(const Call& c) {
  const Tensor x = c.tensor("self");
  const int64_t low = c.declares("low") ? c.integer("low") : 0, high = c.integer("high");
  if (low >= high) c.fail("no integer is in the range");
  return one(Tensor::randint(x.shape(), low, high, {.dtype = DType::int64, .device = c.device(x)}).cast(c.dtype().value_or(x.dtype())));
}
Results randperm(const Call& c) {
  return one(Tensor::randperm(c.integer("n"), {.dtype = DType::int64, .device = c.device()}).cast(c.dtype().value_or(DType::int64)));
}

Tensor uniform_like(const Tensor& x) { return Tensor::rand(x.shape(), {.dtype = wide_type(x.dtype()), .device = x.device()}); }
void check_probability(const Call& c, double p) {
  if (!(p >= 0 && p <= 1)) c.fail(fmt::format("the probability {} is not between 0 and 1", p));
}
/// What is kept, and whether it was.
Results native_dropout(const Call& c) {
  const Tensor x = c.tensor("input");
  const double p = c.number("p");
  check_probability(c, p);
  if (c.has("train") && !c.flag("train")) return {x, x.ones_like(DType::bool_)};
  if (p == 1) return {x.zeros_like(), x.zeros_like(DType::bool_)};
  const Tensor kept = (uniform_like(x) >= p).contiguous();
  return {kept.where(x * x.full_like(1 / (1 - p)), x.zeros_like()), kept};
}
Results native_dropout_backward(const Call& c) {
  const Tensor grad = c.tensor("grad_output").cast(float_type(c.tensor("grad_output").dtype()));
  return one(c.tensor("mask").where(grad * grad.full_like(c.number("scale")), grad.zeros_like()));
}
Results dropout(const Call& c) {
  const Tensor x = c.tensor("input");
  const double p = c.number("p");
  check_probability(c, p);
  if (!c.flag("train") || p == 0) return one(x);
  if (p == 1) return one(x.zeros_like());
  return one((uniform_like(x) >= p).where(x * x.full_like(1 / (1 - p)), x.zeros_like()));
}
Results bernoulli(const Call& c) {
  const Tensor x = c.tensor("self");
  if (c.declares("p")) {
    const Value& p = c["p"];
    if (p.is_number()) check_probability(c, p.number());
    return one((uniform_like(is_float(x.dtype()) ? x : x.cast(DType::float32)) < typed(p, DType::float32, x.device())).cast(x.dtype()));
  }
  check_float(c, x.dtype());
  return one((uniform_like(x) < x.cast(wide_type(x.dtype()))).cast(x.dtype()));
}
Results normal(const Call& c) {
  const Value &mean = c["mean"], &std = c["std"];
  const Tensor shape_of = mean.get_if<Tensor>() ? mean.tensor() : std.tensor();
  const Extents shape =
      mean.get_if<Tensor>() && std.get_if<Tensor>() ? broadcast_shapes(c, {mean.tensor(), std.tensor()}) : shape_of.symbolic_shape();
  Sizes sizes;
  for (const Extent& e : shape) sizes.push_back(e.value());
  const DType dtype = shape_of.dtype();
  const Tensor noise = Tensor::randn(sizes, {.dtype = dtype, .device = shape_of.device()});
  return one(noise * typed(std, dtype, shape_of.device()) + typed(mean, dtype, shape_of.device()));
}
Results normal_of(const Call& c) {
  const Tensor x = c.tensor("self");
  check_float(c, x.dtype());
  return one((Tensor::randn(x.shape(), {.dtype = wide_type(x.dtype()), .device = x.device()}) * c.number("std") + c.number("mean"))
                 .cast(x.dtype()));
}
Results uniform_of(const Call& c) {
  const Tensor x = c.tensor("self");
  check_float(c, x.dtype());
  const double from = c.number("from"), to = c.number("to");
  return one((uniform_like(x) * (to - from) + from).cast(x.dtype()));
}
Results exponential(const Call& c) {
  const Tensor x = c.tensor("self");
  check_float(c, x.dtype());
  return one(((1 - uniform_like(x)).log() * (-1 / c.number("lambd"))).cast(x.dtype()));
}
Results multinomial(const Call& c) {
  return one(c.tensor("self").multinomial(c.integer("num_samples"), c.flag("replacement")).cast(DType::int64));
}

#define TG_FACTORY "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"

}  // namespace

std::vector<Row> random_operators() {
  return {
      {"aten.rand.default(SymInt[] size, *, " TG_FACTORY ")", rand},
      {"aten.randn.default(SymInt[] size, *, " TG_FACTORY ")", randn},
      {"aten.rand_like.default(Tensor self, *, " TG_FACTORY ", MemoryFormat? memory_format=None)", rand_like},
      {"aten.randn_like.default(Tensor self, *, " TG_FACTORY ", MemoryFormat? memory_format=None)", randn_like},
      {"aten.randint.default(SymInt high, SymInt[] size, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None)",
       randint},
      {"aten.randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, "
       "bool? "
       "pin_memory=None)",
       randint},
      {"aten.randint_like.default(Tensor self, SymInt high, *, " TG_FACTORY ", MemoryFormat? memory_format=None)", randint_like},
      {"aten.randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, " TG_FACTORY ", MemoryFormat? memory_format=None)",
       randint_like},
      {"aten.randperm.default(SymInt n, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None)",
       randperm},
      {"aten.native_dropout.default(Tensor input, float p, bool? train)", native_dropout},
      {"aten.native_dropout_backward.default(Tensor grad_output, Tensor mask, float scale)", native_dropout_backward},
      {"aten.dropout.default(Tensor input, float p, bool train)", dropout},
      {"aten.bernoulli.default(Tensor self, *, Generator? generator=None)", bernoulli},
      {"aten.bernoulli.p(Tensor self, float p, *, Generator? generator=None)", bernoulli},
      {"aten.bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None)", bernoulli},
      {"aten.normal.Tensor_float(Tensor mean, float std=1, *, Generator? generator=None)", normal},
      {"aten.normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None)", normal},
      {"aten.normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None)", normal},
      {"aten.normal_functional.default(Tensor self, float mean=0, float std=1, *, Generator? generator=None)", normal_of},
      {"aten.uniform.default(Tensor self, float from=0, float to=1, *, Generator? generator=None)", uniform_of},
      {"aten.exponential.default(Tensor self, float lambd=1, *, Generator? generator=None)", exponential},
      {"aten.multinomial.default(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None)", multinomial},
  };
}

}  // namespace tinygrad::aten
