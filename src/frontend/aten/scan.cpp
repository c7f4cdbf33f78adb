// Running sums, sorting and what follows from it.
#include <cmath>

#include "frontend/aten/promotion.h"

namespace tinygrad::aten {

namespace {

/// What `f` gives for the axis; a tensor without axes goes through as a vector.
template <class F>
Tensor along(const Call& c, const Tensor& x, F f) {
  const int axis = c.axis("dim", x.ndim());
  return x.ndim() == 0 ? f(x.reshape({1}), 0).reshape({}) : f(x, axis);
}

Results cumsum(const Call& c) {
  const Tensor x = c.tensor("self");
  const DType dtype = c.dtype().value_or(sum_type(x.dtype()));
  return one(along(c, x.cast(wide_type(dtype)), [](const Tensor& t, int axis) { return t.cumsum(axis); }).cast(dtype));
}
Results cumprod(const Call& c) {
  const Tensor x = c.tensor("self");
  const DType dtype = c.dtype().value_or(sum_type(x.dtype()));
  return one(along(c, x.cast(wide_type(dtype)), [](const Tensor& t, int axis) { return t.cumprod(axis); }).cast(dtype));
}
Results logcumsumexp(const Call& c) {
  const Tensor x = c.tensor("self");
  return one(along(c, x.cast(wide_type(x.dtype())), [](const Tensor& t, int axis) { return t.logcumsumexp(axis); }).cast(x.dtype()));
}

Results values_and_indices(const Tensor& x, const ValuesAndIndices& found) {
  return {found.values.cast(x.dtype()), found.indices.cast(DType::int64)};
}
template <class F>
Results both_along(const Call& c, const Tensor& x, F f) {
  const int axis = c.axis("dim", x.ndim());
  // Bools are ordered as numbers.
  const Tensor numbers = is_bool(x.dtype()) ? x.cast(DType::uint8) : x;
  if (x.ndim() > 0) return values_and_indices(x, f(numbers, axis));
  const ValuesAndIndices found = f(numbers.reshape({1}), 0);
  return values_and_indices(x, {found.values.reshape({}), found.indices.reshape({})});
}
Results cummax(const Call& c) {
  return both_along(c, c.tensor("self"), [](const Tensor& t, int axis) { return t.cummax(axis); });
}
Results cummin(const Call& c) {
  return both_along(c, c.tensor("self"), [](const Tensor& t, int axis) { return t.cummin(axis); });
}

Results sort(const Call& c) {
  return both_along(c, c.tensor("self"), [&](const Tensor& t, int axis) { return t.sort(axis, c.flag("descending")); });
}
Results argsort(const Call& c) { return {sort(c)[1]}; }
Results msort(const Call& c) {
  const Tensor x = c.tensor("self");
  return one(x.ndim() == 0 ? x : x.sort(0).values);
}
Results topk(const Call& c) {
  const int64_t k = c.integer("k");
  return both_along(c, c.tensor("self"), [&](const Tensor& t, int axis) { return t.topk(k, axis, c.flag("largest")); });
}

Tensor at(const Tensor& x, int axis, int64_t place) {
  std::vector<Index> index(size_t(x.ndim()), Index(Slice{}));
  index[size_t(axis)] = place;
  return x.get_item(index);
}
/// The element at a place of the sorted axis.
Results kth(const Call& c, const Tensor& x, int axis, int64_t place) {
  const bool keepdim = c.flag("keepdim");
  const Tensor row = x.ndim() == 0 ? x.reshape({1}) : x;
  if (place < 0 || place >= row.size(axis)) c.fail("the axis has no such place");
  const ValuesAndIndices sorted = row.sort(axis);
  Tensor values = at(sorted.values, axis, place), indices = at(sorted.indices, axis, place).cast(DType::int64);
  if (keepdim && x.ndim() > 0) {
    values = values.unsqueeze(axis);
    indices = indices.unsqueeze(axis);
  }
  return {values, indices};
}
Results kthvalue(const Call& c) {
  const Tensor x = c.tensor("self");
  return kth(c, x, c.axis("dim", x.ndim()), c.integer("k") - 1);
}
/// The lower of the two middle ones; NaN where there is any.
Results median_along(const Call& c) {
  const Tensor x = c.tensor("self");
  const int axis = c.axis("dim", x.ndim());
  if (is_float(x.dtype())) {
    // Sorted, NaNs are last: the first of them is taken where there are any.
    const Tensor row = x.ndim() == 0 ? x.reshape({1}) : x;
    const int64_t size = row.size(axis);
    const ValuesAndIndices sorted = row.sort(axis);
    const Tensor numbers = row.isnan().logical_not().sum(axis, {.keepdim = true});
    const Tensor place = numbers.eq(size).where(numbers.full_like((size - 1) / 2), numbers.minimum(numbers.full_like(size - 1)));
    Tensor values = sorted.values.gather(axis, place), indices = sorted.indices.gather(axis, place).cast(DType::int64);
    if (x.ndim() == 0) return {values.reshape({}), indices.reshape({})};
    if (!c.flag("keepdim")) return {values.squeeze(axis), indices.squeeze(axis)};
    return {values, indices};
  }
  return kth(c, x, axis, ((x.ndim() == 0 ? 1 : x.size(axis)) - 1) / 2);
}
Results median(const Call& c) {
  const Tensor x = c.tensor("self").flatten();
  const Tensor middle = at(x.sort(0).values, 0, (x.size(0) - 1) / 2);
  return one(is_float(x.dtype()) ? x.isnan().any().where(x.full_like(NAN).max(), middle) : middle);
}

}  // namespace

std::vector<Row> scan_operators() {
  return {
      {"aten.cumsum.default(Tensor self, int dim, *, ScalarType? dtype=None)", cumsum},
      {"aten.cumprod.default(Tensor self, int dim, *, ScalarType? dtype=None)", cumprod},
      {"aten.logcumsumexp.default(Tensor self, int dim)", logcumsumexp},
      {"aten.cummax.default(Tensor self, int dim)", cummax},
      {"aten.cummin.default(Tensor self, int dim)", cummin},
      {"aten.sort.default(Tensor self, int dim=-1, bool descending=False)", sort},
      {"aten.sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False)", sort},
      {"aten.argsort.default(Tensor self, int dim=-1, bool descending=False)", argsort},
      {"aten.argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False)", argsort},
      {"aten.msort.default(Tensor self)", msort},
      {"aten.topk.default(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True)", topk},
      {"aten.kthvalue.default(Tensor self, SymInt k, int dim=-1, bool keepdim=False)", kthvalue},
      {"aten.median.default(Tensor self)", median},
      {"aten.median.dim(Tensor self, int dim, bool keepdim=False)", median_along},
  };
}

}  // namespace tinygrad::aten
