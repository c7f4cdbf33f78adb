// Sums, means, extremes and norms over axes.
#include <fmt/core.h>

#include <cmath>

#include "frontend/aten/promotion.h"

namespace tinygrad::aten {

namespace {

/// The tensor with at least one axis, and the shape of the result.
struct Axes {
  std::vector<int> axes;
  bool keepdim;
};

Axes axes_of(const Call& c, const Tensor& x, bool empty_is_all = true) {
  const bool keepdim = c.declares("keepdim") && c.flag("keepdim");
  if (!c.declares("dim")) {
    std::vector<int> all(size_t(x.ndim()));
    for (int i = 0; i < x.ndim(); ++i) all[size_t(i)] = i;
    return {all, keepdim};
  }
  return {c.axes("dim", x.ndim(), empty_is_all || !c.has("dim")), keepdim};
}
/// What `f` gives for the axes; a tensor without axes goes through as a vector.
template <class F>
Tensor over(const Tensor& x, const Axes& axes, F f) {
  if (x.ndim() == 0) return f(x.reshape({1}), AxisList(0)).reshape({});
  if (axes.axes.empty()) return f(x.unsqueeze(-1), AxisList(-1)).reshape(x.symbolic_shape());
  return f(x, AxisList(axes.axes));
}

Results sum(const Call& c) {
  const Tensor x = c.tensor("self");
  const Axes axes = axes_of(c, x);
  const DType dtype = c.dtype().value_or(sum_type(x.dtype()));
  return one(over(x.cast(dtype), axes,
                  [&](const Tensor& t, const AxisList& a) { return t.sum(a, {.keepdim = axes.keepdim, .dtype = dtype}).cast(dtype); }));
}
Results prod(const Call& c) {
  const Tensor x = c.tensor("self");
  const Axes axes = axes_of(c, x);
  const DType dtype = c.dtype().value_or(sum_type(x.dtype()));
  return one(over(x.cast(dtype), axes,
                  [&](const Tensor& t, const AxisList& a) { return t.prod(a, {.keepdim = axes.keepdim, .dtype = dtype}).cast(dtype); }));
}
Results mean(const Call& c) {
  const Tensor x = c.tensor("self");
  const Axes axes = axes_of(c, x);
  const DType dtype = c.dtype().value_or(x.dtype());
  if (!is_float(dtype)) c.fail("a mean of integers; name a float dtype");
  return one(over(x.cast(wide_type(dtype)), axes, [&](const Tensor& t, const AxisList& a) {
               return t.mean(a, {.keepdim = axes.keepdim});
             }).cast(dtype));
}
Tensor extreme(const Tensor& x, const Axes& axes, bool greatest) {
  return over(x, axes, [&](const Tensor& t, const AxisList& a) {
    return greatest ? t.max(a, {.keepdim = axes.keepdim}) : t.min(a, {.keepdim = axes.keepdim});
  });
}
template <bool greatest>
Results extreme_over(const Call& c) {
  const Tensor x = c.tensor("self");
  return one(extreme(x, axes_of(c, x), greatest).cast(x.dtype()));
}
template <bool greatest>
Tensor place_of_extreme(const Tensor& x, const Axes& axes) {
  const Tensor numbers = is_bool(x.dtype()) ? x.cast(DType::uint8) : x;
  return over(numbers, axes,
              [&](const Tensor& t, const AxisList& a) {
                const int axis = a.get()->front();
                return greatest ? t.argmax(axis, {.keepdim = axes.keepdim}) : t.argmin(axis, {.keepdim = axes.keepdim});
              })
      .cast(DType::int64);
}
template <bool greatest>
Results extreme_and_place(const Call& c) {
  const Tensor x = c.tensor("self");
  const Axes axes{x.ndim() == 0 ? std::vector<int>{} : std::vector{c.axis("dim", x.ndim())}, c.flag("keepdim")};
  if (x.ndim() == 0) c.axis("dim", 0);
  const Tensor places = place_of_extreme<greatest>(x, axes);
  return {extreme(x, axes, greatest).cast(x.dtype()), places};
}
template <bool greatest>
Results place_over(const Call& c) {
  const Tensor x = c.tensor("self");
  if (c.has("dim")) {
    const int axis = c.axis("dim", x.ndim());
    return one(place_of_extreme<greatest>(x, {x.ndim() == 0 ? std::vector<int>{} : std::vector{axis}, c.flag("keepdim")}));
  }
  const Tensor place = place_of_extreme<greatest>(x.flatten(), {{0}, false});
  return one(c.flag("keepdim") ? place.reshape(Sizes(size_t(x.ndim()), 1)) : place);
}
Results extremes(const Call& c) {
  const Tensor x = c.tensor("self");
  Axes axes{{}, c.flag("keepdim")};
  if (c.has("dim"))
    axes.axes = x.ndim() == 0 ? std::vector<int>{} : std::vector{c.axis("dim", x.ndim())};
  else
    for (int i = 0; i < x.ndim(); ++i) axes.axes.push_back(i);
  return {extreme(x, axes, false).cast(x.dtype()), extreme(x, axes, true).cast(x.dtype())};
}

template <bool all>
Results truth_over(const Call& c) {
  const Tensor x = c.tensor("self");
  const Axes axes = axes_of(c, x, false);
  const DType dtype = x.dtype() == DType::uint8 ? DType::uint8 : DType::bool_;
  if (x.ndim() > 0 && axes.axes.empty()) return one(x.cast(DType::bool_).cast(dtype));
  return one(over(is_bool(x.dtype()) ? x : x.ne(0), axes, [&](const Tensor& t, const AxisList& a) {
               return all ? t.all(a, {.keepdim = axes.keepdim}) : t.any(a, {.keepdim = axes.keepdim});
             }).cast(dtype));
}

/// The divisor of a variance is the number of elements less this.
double correction_of(const Call& c) {
  if (c.declares("unbiased")) return c.flag("unbiased") ? 1 : 0;
  return c.has("correction") ? c.number("correction") : 1;
}
struct Moments {
  Tensor variance, mean;
};
Moments moments(const Call& c) {
  const Tensor x = c.tensor("self");
  if (!is_float(x.dtype())) c.fail("only for floats");
  const Axes axes = axes_of(c, x);
  const Tensor wide = x.cast(wide_type(x.dtype()));
  double count = 1;
  for (int a : axes.axes) count *= double(x.size(a));
  const Tensor mean = over(wide, axes, [&](const Tensor& t, const AxisList& a) { return t.mean(a, {.keepdim = axes.keepdim}); });
  const Tensor kept = over(wide, axes, [&](const Tensor& t, const AxisList& a) { return t.mean(a, {.keepdim = true}); });
  const Tensor away = x.ndim() == 0 ? wide - wide : wide - kept;
  const Tensor squares = over(away * away, axes, [&](const Tensor& t, const AxisList& a) { return t.sum(a, {.keepdim = axes.keepdim}); });
  // What rounding of the mean left.
  const Tensor rest = over(away, axes, [&](const Tensor& t, const AxisList& a) { return t.sum(a, {.keepdim = axes.keepdim}); });
  const double divisor = std::max(0.0, count - correction_of(c));
  return {(squares - rest * rest / count) / squares.full_like(divisor), mean};
}
template <bool root, bool with_mean>
Results variance(const Call& c) {
  const DType dtype = c.tensor("self").dtype();
  const Moments m = moments(c);
  const Tensor first = (root ? m.variance.sqrt() : m.variance).cast(dtype);
  return with_mean ? Results{first, m.mean.cast(dtype)} : one(first);
}

Results log_sum_exp(const Call& c) {
  const Tensor x = c.tensor("self");
  const DType dtype = float_type(x.dtype());
  const Axes axes = axes_of(c, x);
  return one(over(x.cast(wide_type(dtype)), axes, [&](const Tensor& t, const AxisList& a) {
               return t.logsumexp(a, {.keepdim = axes.keepdim});
             }).cast(dtype));
}

Results vector_norm(const Call& c, std::string_view order_name) {
  const Tensor given = c.tensor("self");
  const DType dtype = c.dtype().value_or(given.dtype());
  if (!is_float(dtype)) c.fail("only for floats");
  const Axes axes = axes_of(c, given);
  const double order = c.has(order_name) ? c.number(order_name) : 2;
  const Tensor x = given.cast(wide_type(dtype)).abs();
  const auto sum = [&](const Tensor& terms) {
    return over(terms, axes, [&](const Tensor& t, const AxisList& a) { return t.sum(a, {.keepdim = axes.keepdim}); });
  };
  if (std::isinf(order)) return one(extreme(x, axes, order > 0).cast(dtype));
  if (order == 0) return one(sum(x.ne(0).cast(x.dtype())).cast(dtype));
  if (order == 1) return one(sum(x).cast(dtype));
  if (order == 2) return one(sum(x * x).sqrt().cast(dtype));
  return one(sum(x.pow(order)).pow(1 / order).cast(dtype));
}

Results count_nonzero(const Call& c) {
  const Tensor x = c.tensor("self");
  const Axes axes = axes_of(c, x);
  return one(over(x.ne(0).cast(DType::int64), axes, [&](const Tensor& t, const AxisList& a) { return t.sum(a); }));
}

}  // namespace

std::vector<Row> reduce_operators() {
  const auto norm = [](const Call& c) { return vector_norm(c, "p"); };
  return {
      {"aten.sum.default(Tensor self, *, ScalarType? dtype=None)", sum},
      {"aten.sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None)", sum},
      {"aten.prod.default(Tensor self, *, ScalarType? dtype=None)", prod},
      {"aten.prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None)", prod},
      {"aten.mean.default(Tensor self, *, ScalarType? dtype=None)", mean},
      {"aten.mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None)", mean},
      {"aten.amax.default(Tensor self, int[1] dim=[], bool keepdim=False)", extreme_over<true>},
      {"aten.amin.default(Tensor self, int[1] dim=[], bool keepdim=False)", extreme_over<false>},
      {"aten.max.default(Tensor self)", extreme_over<true>},
      {"aten.min.default(Tensor self)", extreme_over<false>},
      {"aten.max.dim(Tensor self, int dim, bool keepdim=False)", extreme_and_place<true>},
      {"aten.min.dim(Tensor self, int dim, bool keepdim=False)", extreme_and_place<false>},
      {"aten.aminmax.default(Tensor self, *, int? dim=None, bool keepdim=False)", extremes},
      {"aten.argmax.default(Tensor self, int? dim=None, bool keepdim=False)", place_over<true>},
      {"aten.argmin.default(Tensor self, int? dim=None, bool keepdim=False)", place_over<false>},
      {"aten.any.default(Tensor self)", truth_over<false>},
      {"aten.any.dim(Tensor self, int dim, bool keepdim=False)", truth_over<false>},
      {"aten.any.dims(Tensor self, int[]? dim=None, bool keepdim=False)", truth_over<false>},
      {"aten.all.default(Tensor self)", truth_over<true>},
      {"aten.all.dim(Tensor self, int dim, bool keepdim=False)", truth_over<true>},
      {"aten.all.dims(Tensor self, int[]? dim=None, bool keepdim=False)", truth_over<true>},
      {"aten.var.default(Tensor self, bool unbiased=True)", variance<false, false>},
      {"aten.var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False)", variance<false, false>},
      {"aten.var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False)", variance<false, false>},
      {"aten.std.default(Tensor self, bool unbiased=True)", variance<true, false>},
      {"aten.std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False)", variance<true, false>},
      {"aten.std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False)", variance<true, false>},
      {"aten.var_mean.default(Tensor self, bool unbiased=True)", variance<false, true>},
      {"aten.var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False)", variance<false, true>},
      {"aten.var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False)", variance<false, true>},
      {"aten.std_mean.default(Tensor self, bool unbiased=True)", variance<true, true>},
      {"aten.std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False)", variance<true, true>},
      {"aten.std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False)", variance<true, true>},
      {"aten.logsumexp.default(Tensor self, int[1] dim, bool keepdim=False)", log_sum_exp},
      {"aten.linalg_vector_norm.default(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)",
       [](const Call& c) { return vector_norm(c, "ord"); }},
      {"aten.norm.Scalar(Tensor self, Scalar p=2)", norm},
      {"aten.norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False)", norm},
      {"aten.norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype)", norm},
      {"aten.norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype)", norm},
      {"aten.count_nonzero.default(Tensor self, int? dim=None)", count_nonzero},
      {"aten.count_nonzero.dim_IntList(Tensor self, int[] dim)", count_nonzero},
  };
}

}  // namespace tinygrad::aten
