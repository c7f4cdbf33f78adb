// Tensors with elements written at places that tensors name. All of them are copies.
#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "frontend/aten/indexing.h"

namespace tinygrad::aten {

namespace {

std::vector<int> inverse_of(const std::vector<int>& order) {
  std::vector<int> out(order.size());
  for (size_t i = 0; i < order.size(); ++i) out[size_t(order[i])] = int(i);
  return out;
}

Results index_put(const Call& c) {
  const Tensor x = c.tensor("self");
  const AdvancedIndex at = advanced_index(c, x);
  // The values in the shape of the result of indexing, then with the index's axes in front.
  Sizes result = at.rest;
  result.insert(result.begin() + at.place, at.index_shape.begin(), at.index_shape.end());
  Tensor values = c.tensor("values").cast(x.dtype());
  Sizes own = values.shape();
  if (own.size() > result.size()) {
    const auto extra = ptrdiff_t(own.size() - result.size());
    if (std::any_of(own.begin(), own.begin() + extra, [](int64_t s) { return s != 1; })) c.fail("the values have too many axes");
    own.erase(own.begin(), own.begin() + extra);
  }
  own.insert(own.begin(), result.size() - own.size(), 1);
  values = values.reshape(own).expand(result);
  std::vector<int> to_front;
  for (size_t i = 0; i < at.index_shape.size(); ++i) to_front.push_back(at.place + int(i));
  for (int i = 0; i < int(result.size()); ++i)
    if (i < at.place || i >= at.place + int(at.index_shape.size())) to_front.push_back(i);
  if (!to_front.empty()) values = values.permute(to_front);
  const int64_t count = at.flat.size(0), width = std::accumulate(at.rest.begin(), at.rest.end(), int64_t{1}, std::multiplies<>());
  if (count == 0 || width == 0) return one(x);
  const Tensor rows = x.permute(at.order).reshape({at.rows, width});
  const Tensor places = at.flat.unsqueeze(1).expand({count, width}), source = values.reshape({count, width});
  const bool accumulate = c.flag("accumulate");
  const DType dtype = accumulate ? wide_type(x.dtype()) : x.dtype();
  const Tensor written = accumulate ? is_bool(dtype)
                                          ? rows.cast(DType::int32).scatter_reduce(0, places, source.cast(DType::int32), ScatterMode::amax)
                                          : rows.cast(dtype).scatter_reduce(0, places, source.cast(dtype), ScatterMode::sum)
                                    : rows.scatter(0, places, source);
  Sizes ordered;
  for (int a : at.order) ordered.push_back(x.size(a));
  return one(written.cast(x.dtype()).reshape(ordered).permute(inverse_of(at.order)));
}

/// The axis, with tensors without axes as vectors.
struct Target {
  Tensor x, index;
  int axis;
};
Target target_of(const Call& c) {
  const Tensor x = c.tensor("self"), index = c.tensor("index");
  const int axis = c.axis("dim", x.ndim());
  return {x.ndim() == 0 ? x.reshape({1}) : x, index.ndim() == 0 ? index.reshape({1}) : index, axis};
}
Tensor source_of(const Call& c, const Target& t) {
  const Value& v = c[c.declares("src") ? "src" : "value"];
  if (!v.get_if<Tensor>()) return typed_number(v, t.x.dtype(), t.x.device()).expand(t.index.symbolic_shape());
  const Tensor& src = v.tensor();
  if (src.dtype() != t.x.dtype()) c.fail("self and src have different dtypes");
  return src.ndim() == 0 ? src.reshape({1}) : src;
}
Tensor back(const Call& c, const Tensor& out) { return c.tensor("self").ndim() == 0 ? out.reshape({}) : out; }
Results reduced(const Call& c, ScatterMode mode, bool include_self) {
  const Target t = target_of(c);
  if (t.index.numel() == 0) return one(c.tensor("self"));
  const DType dtype = is_bool(t.x.dtype()) ? DType::int32 : wide_type(t.x.dtype());
  const Tensor out = t.x.cast(dtype).scatter_reduce(t.axis, t.index, source_of(c, t).cast(dtype), mode, include_self);
  return one(back(c, is_bool(t.x.dtype()) ? out.ne(0) : out.cast(t.x.dtype())));
}
Results scatter(const Call& c) {
  if (c.declares("reduce")) {
    const std::string_view reduce = c.text("reduce");
    if (reduce == "add") return reduced(c, ScatterMode::sum, true);
    if (reduce == "multiply") return reduced(c, ScatterMode::prod, true);
    c.fail(fmt::format("reduce '{}'", reduce));
  }
  const Target t = target_of(c);
  if (t.index.numel() == 0) return one(c.tensor("self"));
  return one(back(c, t.x.scatter(t.axis, t.index, source_of(c, t))));
}
Results scatter_add(const Call& c) { return reduced(c, ScatterMode::sum, true); }
Results scatter_reduce(const Call& c) {
  const std::string_view name = c.text("reduce");
  const bool include_self = c.flag("include_self");
  if (name == "sum") return reduced(c, ScatterMode::sum, include_self);
  if (name == "prod") return reduced(c, ScatterMode::prod, include_self);
  if (name == "mean") return reduced(c, ScatterMode::mean, include_self);
  if (name == "amax") return reduced(c, ScatterMode::amax, include_self);
  if (name == "amin") return reduced(c, ScatterMode::amin, include_self);
  c.fail(fmt::format("reduce '{}'", name));
}

/// A vector of places of an axis, for every element of `shape`.
Tensor spread_index(const Tensor& index, int axis, const Sizes& shape) {
  Sizes around(shape.size(), 1), wanted = shape;
  around[size_t(axis)] = wanted[size_t(axis)] = index.numel();
  return index.reshape(around).expand(wanted);
}
Results index_add(const Call& c) {
  const Tensor given = c.tensor("self"), x = given.ndim() == 0 ? given.reshape({1}) : given;
  const int axis = c.axis("dim", given.ndim());
  const DType dtype = wide_type(x.dtype());
  Tensor source = c.tensor("source").cast(dtype);
  if (source.ndim() == 0) source = source.reshape({1});
  if (!is_number(c["alpha"], 1)) source = source * typed_number(c["alpha"], dtype, source.device());
  const Tensor places = spread_index(c.tensor("index"), axis, x.shape());
  if (places.numel() == 0) return one(given);
  return one(back(c, x.cast(dtype).scatter_reduce(axis, places, source, ScatterMode::sum).cast(x.dtype())));
}
Results index_copy(const Call& c) {
  const Tensor given = c.tensor("self"), x = given.ndim() == 0 ? given.reshape({1}) : given;
  const int axis = c.axis("dim", given.ndim());
  const Tensor source = c.tensor("source"), places = spread_index(c.tensor("index"), axis, x.shape());
  if (places.numel() == 0) return one(given);
  return one(back(c, x.scatter(axis, places, source.ndim() == 0 ? source.reshape({1}) : source)));
}
Results index_fill(const Call& c) {
  const Tensor given = c.tensor("self"), x = given.ndim() == 0 ? given.reshape({1}) : given;
  const int axis = c.axis("dim", given.ndim());
  const Tensor index = c.tensor("index").cast(DType::int64), value = typed(c["value"], x.dtype(), x.device());
  const int64_t size = x.size(axis);
  const Tensor counted = (index < 0).where(index + size, index).flatten();
  const Tensor hit = counted.unsqueeze(1).eq(Tensor::arange(size, {.dtype = DType::int64, .device = x.device()})).any(0);
  Sizes around(size_t(x.ndim()), 1);
  around[size_t(axis)] = size;
  return one(back(c, hit.reshape(around).where(value, x)));
}
/// The source's elements one after another where the mask holds.
Results masked_scatter(const Call& c) {
  const Tensor x = c.tensor("self"), mask = c.tensor("mask"), source = c.tensor("source").flatten();
  if (x.dtype() != source.dtype()) c.fail("self and source have different dtypes");
  const Extents shape = broadcast_shapes(c, {x, mask});
  const auto spread = [&](const Tensor& t) {
    Extents own = t.symbolic_shape();
    own.insert(own.begin(), shape.size() - own.size(), Extent(1));
    return t.reshape(own).expand(shape);
  };
  const Tensor on = spread(mask);
  if (on.numel() == 0 || source.numel() == 0) return one(spread(x));
  const Tensor place = on.flatten().cast(DType::int64).cumsum(0) - 1;
  const Tensor inside = place.maximum(0).minimum(source.numel() - 1);
  return one(on.where(source[{inside}].reshape(shape), spread(x)));
}
Results put(const Call& c) {
  const Tensor x = c.tensor("self"), flat = x.flatten();
  const Tensor index = c.tensor("index").flatten().cast(DType::int64), counted = (index < 0).where(index + x.numel(), index);
  const Tensor source = c.tensor("source").flatten();
  return one((c.flag("accumulate") ? flat.scatter_reduce(0, counted, source, ScatterMode::sum) : flat.scatter(0, counted, source))
                 .reshape(x.shape()));
}

}  // namespace

std::vector<Row> scatter_operators() {
  return {
      {"aten.index_put.default(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False)", index_put},
      {"aten._unsafe_index_put.default(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False)", index_put},
      {"aten.scatter.src(Tensor self, int dim, Tensor index, Tensor src)", scatter},
      {"aten.scatter.value(Tensor self, int dim, Tensor index, Scalar value)", scatter},
      {"aten.scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce)", scatter},
      {"aten.scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce)", scatter},
      {"aten.scatter_add.default(Tensor self, int dim, Tensor index, Tensor src)", scatter_add},
      {"aten.scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True)", scatter_reduce},
      {"aten.index_add.default(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1)", index_add},
      {"aten.index_copy.default(Tensor self, int dim, Tensor index, Tensor source)", index_copy},
      {"aten.index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value)", index_fill},
      {"aten.index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value)", index_fill},
      {"aten.masked_scatter.default(Tensor self, Tensor mask, Tensor source)", masked_scatter},
      {"aten.put.default(Tensor self, Tensor index, Tensor source, bool accumulate=False)", put},
  };
}

}  // namespace tinygrad::aten
