// Elements at places that tensors name.
#include "frontend/aten/indexing.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace tinygrad::aten {

AdvancedIndex advanced_index(const Call& c, const Tensor& x) {
  const std::vector<Tensor> given = c.tensors("indices");
  AdvancedIndex out;
  std::vector<Tensor> indices;  // one an axis, undefined where all of it is taken
  for (const Tensor& t : given) {
    if (!t.defined() || (!is_bool(t.dtype()) && t.dtype() != DType::uint8)) {
      if (t.defined() && is_float(t.dtype())) c.fail("an index of floats");
      indices.push_back(t.defined() ? t.cast(DType::int64) : t);
      continue;
    }
    const Tensor places = t.ne(0).nonzero();
    for (int i = 0; i < t.ndim(); ++i) indices.push_back(places[{Slice{}, i}].cast(DType::int64));
    if (t.ndim() == 0) c.fail("a mask without axes is not supported");
  }
  if (int(indices.size()) > x.ndim()) throw IndexError(fmt::format("{}: {} indices for {} axes", c.name(), indices.size(), x.ndim()));
  indices.resize(size_t(x.ndim()));
  std::vector<int> others;
  for (int i = 0; i < x.ndim(); ++i) (indices[size_t(i)].defined() ? out.axes : others).push_back(i);
  if (out.axes.empty()) c.fail("no index is given");
  const Extents broadcast = broadcast_shapes(c, indices);
  for (const Extent& e : broadcast) out.index_shape.push_back(e.value());
  Tensor flat;
  int64_t rows = 1;
  for (int a : out.axes) {
    const int64_t size = x.size(a);
    const Tensor& i = indices[size_t(a)];
    const Tensor counted = (i < 0).where(i + size, i);
    flat = flat.defined() ? flat * size + counted : counted;
    rows *= size;
  }
  out.rows = rows;
  Extents own = flat.symbolic_shape();
  own.insert(own.begin(), broadcast.size() - own.size(), Extent(1));
  out.flat = flat.reshape(own).expand(broadcast).flatten();
  out.order = out.axes;
  out.order.insert(out.order.end(), others.begin(), others.end());
  for (int o : others) out.rest.push_back(x.size(o));
  const bool adjacent = out.axes.back() - out.axes.front() + 1 == int(out.axes.size());
  out.place = adjacent ? out.axes.front() : 0;
  return out;
}

namespace {

Results index(const Call& c) {
  const Tensor x = c.tensor("self");
  std::vector<Index> all;
  bool any = false;
  for (const Tensor& t : c.tensors("indices")) {
    any = any || t.defined();
    if (!t.defined())
      all.push_back(Slice{});
    else if (is_float(t.dtype()))
      c.fail("an index of floats");
    else
      all.push_back(t.dtype() == DType::uint8 ? t.ne(0) : t);
  }
  return one(any ? x.get_item(all) : x);
}

Results index_select(const Call& c) {
  const Tensor x = c.tensor("self"), index = c.tensor("index");
  const int axis = c.axis("dim", x.ndim());
  if (index.ndim() > 1) c.fail("the index is no vector");
  if (x.ndim() == 0) return one(x.reshape({1})[{index.reshape({-1})}].reshape({}));
  std::vector<Index> all(size_t(x.ndim()), Index(Slice{}));
  all[size_t(axis)] = index.reshape({-1});
  return one(x.get_item(all));
}

Results gather(const Call& c) {
  const Tensor x = c.tensor("self"), index = c.tensor("index");
  const int axis = c.axis("dim", x.ndim());
  if (x.ndim() == 0 || index.ndim() == 0) return one(x.reshape({-1}).gather(0, index.reshape({-1})).reshape(index.symbolic_shape()));
  return one(x.gather(axis, index));
}
Results take_along(const Call& c) {
  const Tensor x = c.tensor("self"), index = c.tensor("indices");
  if (!c.has("dim")) return one(x.flatten().gather(0, index.flatten()));
  const int axis = c.axis("dim", x.ndim());
  if (index.ndim() != x.ndim()) c.fail("the indices have another number of axes");
  Sizes of_x = x.shape(), of_index = index.shape();
  for (int i = 0; i < x.ndim(); ++i) {
    if (i == axis) continue;
    const int64_t size = std::max(of_x[size_t(i)], of_index[size_t(i)]);
    of_x[size_t(i)] = of_index[size_t(i)] = size;
  }
  return one(x.expand(of_x).gather(axis, index.expand(of_index)));
}
Results take(const Call& c) {
  const Tensor x = c.tensor("self").flatten(), index = c.tensor("index");
  return one(x[{index.flatten()}].reshape(index.symbolic_shape()));
}

Results embedding(const Call& c) {
  const Tensor weight = c.tensor("weight"), indices = c.tensor("indices");
  if (weight.ndim() != 2) c.fail("the weight is no matrix");
  return one(weight[{indices}]);
}
Results embedding_backward(const Call& c) {
  const Tensor grad = c.tensor("grad_output"), indices = c.tensor("indices").flatten().cast(DType::int64);
  const int64_t rows = c.integer("num_weights"), padding = c.integer("padding_idx"), width = grad.size(-1);
  const DType dtype = wide_type(grad.dtype());
  Tensor g = grad.cast(dtype).reshape({-1, width});
  if (padding >= 0) g = indices.eq(padding).unsqueeze(1).where(g.zeros_like(), g);
  if (c.flag("scale_grad_by_freq")) {
    const Tensor counts = Tensor::zeros({rows}, {.dtype = dtype, .device = grad.device()})
                              .scatter_reduce(0, indices, indices.ones_like(dtype), ScatterMode::sum);
    g = g / counts[{indices}].unsqueeze(1);
  }
  const Tensor zeros = Tensor::zeros({rows, width}, {.dtype = dtype, .device = grad.device()});
  const Tensor places = indices.unsqueeze(1).expand({indices.symbolic_shape()[0], width});
  return one(zeros.scatter_reduce(0, places, g, ScatterMode::sum).cast(grad.dtype()));
}

/// The bag of each index: that of the last offset which is not behind it.
Results embedding_bag(const Call& c) {
  const Tensor weight = c.tensor("weight"), indices = c.tensor("indices"), offsets = c.tensor("offsets");
  constexpr int64_t sum = 0, mean = 1, greatest = 2;
  const int64_t mode = c.integer("mode"), count = indices.size(0), padding = c.integer("padding_idx");
  if (c.flag("scale_grad_by_freq") || c.flag("sparse")) c.fail("scale_grad_by_freq and sparse are not supported");
  if (indices.ndim() != 1 || offsets.ndim() != 1) c.fail("indices and offsets are no vectors");
  const int64_t bags = offsets.size(0) - int64_t(c.flag("include_last_offset"));
  const DType dtype = wide_type(weight.dtype());
  const auto options = TensorOptions{.dtype = DType::int64, .device = weight.device()};
  const Tensor first = offsets.cast(DType::int64).shrink({{0, bags}});
  const Tensor bag = (Tensor::arange(count, options).unsqueeze(1) >= first).sum(1).cast(DType::int64) - 1;
  const Tensor counts = indices.ne(padding);
  const Tensor sizes = Tensor::zeros({bags}, options).scatter_reduce(0, bag, counts.cast(DType::int64), ScatterMode::sum);
  Tensor rows = weight[{indices}].cast(dtype);
  if (const Tensor factors = c.tensor("per_sample_weights"); factors.defined()) rows = rows * factors.cast(dtype).unsqueeze(1);
  const Tensor kept = counts.unsqueeze(1).where(rows, rows.full_like(mode == greatest ? -INFINITY : 0));
  const Tensor places = bag.unsqueeze(1).expand(rows.shape());
  const Tensor zeros = Tensor::zeros({bags, weight.size(1)}, {.dtype = dtype, .device = weight.device()});
  Tensor out;
  Tensor found = Tensor::zeros({bags}, options);
  if (mode == greatest) {
    out = zeros.full_like(-INFINITY).scatter_reduce(0, places, kept, ScatterMode::amax);
    out = sizes.eq(0).unsqueeze(1).where(zeros, out);
    const Tensor own = bag.unsqueeze(0).eq(Tensor::arange(bags, options).unsqueeze(1)) & counts.unsqueeze(0);  // (bags, count)
    const Tensor hits = own.unsqueeze(2).where(kept.unsqueeze(0), kept.full_like(-INFINITY).unsqueeze(0));
    found = sizes.eq(0).unsqueeze(1).where(zeros.zeros_like(DType::int64), indices.cast(DType::int64)[{hits.argmax(1)}]);
  } else {
    out = zeros.scatter_reduce(0, places, kept, ScatterMode::sum);
    if (mode == mean) out = out / sizes.maximum(1).cast(dtype).unsqueeze(1);
    if (mode != sum && mode != mean) c.fail(fmt::format("mode {}", mode));
  }
  return {out.cast(weight.dtype()), mode == sum ? bag.shrink({{0, 0}}) : bag, sizes, mode == greatest ? found : sizes};
}

Results nonzero(const Call& c) {
  const Tensor x = c.tensor("self");
  if (x.ndim() == 0)
    return one((x.ne(0).item<bool>() ? Tensor::zeros({1, 0}, {.dtype = DType::int64, .device = x.device()})
                                     : Tensor::zeros({0, 0}, {.dtype = DType::int64, .device = x.device()})));
  return one(x.nonzero().cast(DType::int64));
}
Results masked_select(const Call& c) {
  const Tensor x = c.tensor("self"), mask = c.tensor("mask");
  const Extents shape = broadcast_shapes(c, {x, mask});
  const auto spread = [&](const Tensor& t) {
    Extents own = t.symbolic_shape();
    own.insert(own.begin(), shape.size() - own.size(), Extent(1));
    return t.reshape(own).expand(shape);
  };
  return one(spread(x).masked_select(spread(mask)));
}
Results one_hot(const Call& c) {
  const Tensor x = c.tensor("self");
  const int64_t classes = c.integer("num_classes");
  const int64_t all = classes >= 0 ? classes : x.max().item<int64_t>() + 1;
  return one(x.unsqueeze(-1).eq(Tensor::arange(all, {.dtype = x.dtype(), .device = x.device()})).cast(DType::int64));
}

/// How many of the sorted boundaries are below a value (or not above it).
Results bucketize(const Call& c, std::string_view values_name, std::string_view boundaries_name, bool right) {
  const Tensor boundaries = c.tensor(boundaries_name);
  const DType dtype = c.flag("out_int32") ? DType::int32 : DType::int64;
  const Tensor given =
      c[values_name].get_if<Tensor>() ? c.tensor(values_name) : typed(c[values_name], boundaries.dtype(), boundaries.device());
  const DType common = promote_types(boundaries.dtype(), given.dtype());
  const Tensor edges = boundaries.cast(common), values = given.cast(common);
  const Tensor wide = values.unsqueeze(-1), all = edges.ndim() == 1 ? edges : edges.unsqueeze(-2);
  Tensor below = right ? all <= wide : all < wide;
  if (is_float(common) && !right) below = below | (wide.isnan() & all.isnan().logical_not());
  if (is_float(common) && right) below = below | wide.isnan();
  return one(below.sum(-1).cast(dtype));
}

}  // namespace

std::vector<Row> indexing_operators() {
  return {
      {"aten.index.Tensor(Tensor self, Tensor?[] indices)", index},
      {"aten._unsafe_index.Tensor(Tensor self, Tensor?[] indices)", index},
      {"aten.index_select.default(Tensor self, int dim, Tensor index)", index_select},
      {"aten.gather.default(Tensor self, int dim, Tensor index, *, bool sparse_grad=False)", gather},
      {"aten.take_along_dim.default(Tensor self, Tensor indices, int? dim=None)", take_along},
      {"aten.take.default(Tensor self, Tensor index)", take},
      {"aten.embedding.default(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False)",
       embedding},
      {"aten.embedding_dense_backward.default(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool "
       "scale_grad_by_freq)",
       embedding_backward},
      {"aten._embedding_bag.default(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool "
       "sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1)",
       embedding_bag},
      {"aten._embedding_bag_forward_only.default(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, "
       "bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1)",
       embedding_bag},
      {"aten.nonzero.default(Tensor self)", nonzero},
      {"aten.argwhere.default(Tensor self)", nonzero},
      {"aten.masked_select.default(Tensor self, Tensor mask)", masked_select},
      {"aten.one_hot.default(Tensor self, int num_classes=-1)", one_hot},
      {"aten.bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False)",
       [](const Call& c) { return bucketize(c, "self", "boundaries", c.flag("right")); }},
      {"aten.searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? "
       "sorter=None)",
       [](const Call& c) {
         if (c.has("sorter")) c.fail("a sorter is not supported");
         return bucketize(c, "self", "sorted_sequence", c.flag("right") || (c.has("side") && c.text("side") == "right"));
       }},
  };
}

}  // namespace tinygrad::aten
