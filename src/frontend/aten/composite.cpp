// Operators that PyTorch composes of others, as programs that were not decomposed have them.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "frontend/aten/promotion.h"

namespace tinygrad::aten {

namespace {

Tensor first(const std::vector<Value>& results) { return results.at(0).tensor(); }

// Joining and splitting.

/// With axes of 1 element until it has that many; three are (1, n, 1) and (m, n, 1).
Tensor at_least(const Tensor& x, int rank) {
  if (x.ndim() >= rank) return x;
  if (x.ndim() == 0) return x.reshape(Sizes(size_t(rank), 1));
  if (rank == 2) return x.unsqueeze(0);
  return x.ndim() == 1 ? x.unsqueeze(0).unsqueeze(2) : x.unsqueeze(2);
}
Operator with_axes(int rank) {
  return [rank](const Call& c) -> Results {
    if (c.declares("self")) return one(at_least(c.tensor("self"), rank));
    List out;
    for (const Tensor& t : c.tensors("tensors")) out.push_back(at_least(t, rank));
    return {out};
  };
}

Results joined(const std::vector<Tensor>& tensors, int axis) {
  List all(tensors.begin(), tensors.end());
  return call("aten.cat.default", {{"tensors", all}, {"dim", int64_t(axis)}});
}
Results joined_at_least(const Call& c, int rank, int axis) {
  std::vector<Tensor> tensors = c.tensors("tensors");
  if (tensors.empty()) c.fail("no tensors");
  for (Tensor& t : tensors) t = at_least(t, rank);
  return joined(tensors, axis);
}
Results hstack(const Call& c) {
  const std::vector<Tensor> tensors = c.tensors("tensors");
  return joined_at_least(c, 1, tensors.empty() || at_least(tensors[0], 1).ndim() == 1 ? 0 : 1);
}
Results column_stack(const Call& c) {
  std::vector<Tensor> tensors = c.tensors("tensors");
  if (tensors.empty()) c.fail("no tensors");
  for (Tensor& t : tensors)
    if (t.ndim() <= 1) t = t.reshape({t.numel(), 1});
  return joined(tensors, 1);
}
Results block_diag(const Call& c) {
  std::vector<Tensor> tensors = c.tensors("tensors");
  int64_t columns = 0, before = 0;
  for (Tensor& t : tensors) {
    if (t.ndim() > 2) c.fail("a tensor has more than two axes");
    t = at_least(t, 2);
    columns += t.size(1);
  }
  for (Tensor& t : tensors) {
    const int64_t own = t.size(1);
    t = t.pad({{0, 0}, {before, columns - before - own}});
    before += own;
  }
  return tensors.empty() ? one(Tensor::zeros({1, 0})) : joined(tensors, 0);
}

/// Into so many equal parts, or at these places. A vector is split along its axis.
Operator parts_along(int wanted_axis) {
  return [wanted_axis](const Call& c) -> Results {
    const Tensor x = c.tensor("self");
    const int least = wanted_axis == 1 ? 1 : wanted_axis == 0 ? 2 : 3;
    if (x.ndim() < least) c.fail(fmt::format("expects {} axes", least));
    const int axis = wanted_axis < x.ndim() ? wanted_axis : 0;
    const int64_t n = x.size(axis);
    Sizes sizes;
    if (c.declares("sections")) {
      const int64_t sections = c.count("sections");
      if (sections <= 0 || n % sections != 0) c.fail(fmt::format("{} elements in {} sections", n, sections));
      sizes.assign(size_t(sections), n / sections);
    } else {
      int64_t at = 0;
      Sizes places = c.integers("indices");
      places.push_back(n);
      for (int64_t place : places) {
        const int64_t end = std::clamp(place < 0 ? place + n : place, int64_t{0}, n);
        sizes.push_back(std::max(end - at, int64_t{0}));
        at = end;
      }
    }
    List out;
    int64_t at = 0;
    for (int64_t size : sizes) {
      const int64_t begin = std::min(at, n - size);
      ExtentPairs bounds;
      for (int i = 0; i < x.ndim(); ++i) i == axis ? bounds.emplace_back(begin, begin + size) : bounds.emplace_back(0, x.size(i));
      out.push_back(x.shrink(bounds));
      at += size;
    }
    return {out};
  };
}

Results cartesian_prod(const Call& c) {
  const std::vector<Tensor> tensors = c.tensors("tensors");
  if (tensors.empty() || std::ranges::any_of(tensors, [](const Tensor& t) { return t.ndim() != 1; })) c.fail("expects vectors");
  if (tensors.size() == 1) return one(tensors[0]);
  List flat;
  for (const Tensor& t : Tensor::meshgrid(tensors)) flat.push_back(t.reshape({-1}));
  return call("aten.stack.default", {{"tensors", flat}, {"dim", int64_t{1}}});
}

/// The middle comes to the beginning, or back.
Operator shifted(bool back) {
  return [back](const Call& c) -> Results {
    const Tensor x = c.tensor("self");
    const std::vector<int> axes = c.axes("dim", x.ndim());
    Sizes shifts;
    for (int axis : axes) shifts.push_back(back ? (x.size(axis) + 1) / 2 : x.size(axis) / 2);
    return one(x.roll(shifts, axes));
  };
}

// Products.

Results inner(const Call& c) {
  const Tensor a = c.tensor("self"), b = c.tensor("other");
  if (a.ndim() == 0 || b.ndim() == 0) return call("aten.mul.Tensor", {{"self", a}, {"other", b}});
  return call("aten.tensordot.default",
              {{"self", a}, {"other", b}, {"dims_self", List{int64_t(a.ndim() - 1)}}, {"dims_other", List{int64_t(b.ndim() - 1)}}});
}
Results vecdot(const Call& c) {
  const Promoted p = promoted(c, {"x", "y"});
  const Tensor product = (p[0].cast(wide_type(p.dtype)) * p[1].cast(wide_type(p.dtype)));
  return one(product.sum(c.axis("dim", product.ndim())).cast(p.dtype));
}
Results kron(const Call& c) {
  const Promoted p = promoted(c, {"self", "other"});
  const int rank = std::max(p[0].ndim(), p[1].ndim());
  Sizes left, right, out;
  for (int i = 0; i < rank; ++i) {
    const int of_a = i - rank + p[0].ndim(), of_b = i - rank + p[1].ndim();
    const int64_t a = of_a < 0 ? 1 : p[0].size(of_a), b = of_b < 0 ? 1 : p[1].size(of_b);
    left.insert(left.end(), {a, 1});
    right.insert(right.end(), {1, b});
    out.push_back(a * b);
  }
  return one((p[0].reshape(left) * p[1].reshape(right)).reshape(out));
}
Results cross(const Call& c) {
  const Tensor a = c.tensor("self"), b = c.tensor("other");
  int64_t axis = 0;
  if (c.has("dim")) {
    axis = c.integer("dim");
  } else {
    const Sizes shape = a.shape();
    axis = std::ranges::find(shape, 3) - shape.begin();
    if (axis == a.ndim()) c.fail("no axis has 3 elements");
    axis -= a.ndim();
  }
  return call("aten.linalg_cross.default", {{"self", a}, {"other", b}, {"dim", axis}});
}
/// beta * self + alpha * the product; what is times 0 is not looked at.
Results added(const Call& c, const Tensor& product) {
  const Tensor self = c.tensor("self");
  const DType dtype = self.dtype();
  const Tensor scaled = product * typed_number(c["alpha"], product.dtype(), product.device());
  if (is_number(c["beta"], 0)) return one(scaled.cast(dtype));
  return one((self * typed_number(c["beta"], dtype, self.device()) + scaled).cast(dtype));
}
Results addr(const Call& c) { return added(c, c.tensor("vec1").unsqueeze(1) * c.tensor("vec2").unsqueeze(0)); }
Results addbmm(const Call& c) {
  return added(c, first(call("aten.bmm.default", {{"self", c["batch1"]}, {"mat2", c["batch2"]}})).sum(0).cast(c.tensor("self").dtype()));
}
Results trace(const Call& c) {
  const Tensor x = c.tensor("self");
  if (x.ndim() != 2) c.fail("expects a matrix");
  return call("aten.sum.default", {{"self", x.diagonal()}});
}
Results diagflat(const Call& c) {
  return call("aten.diag_embed.default", {{"self", c.tensor("self").reshape({-1})}, {"offset", c["offset"]}});
}

// Sums and norms.

Results sum_to_size(const Call& c) {
  const Tensor x = c.tensor("self");
  const Sizes shape = x.shape(), wanted = c.integers("size");
  if (wanted.size() > shape.size()) c.fail("the size has more axes than the tensor");
  const size_t lead = shape.size() - wanted.size();
  std::vector<int> axes;
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t to = i < lead ? 1 : wanted[i - lead];
    if (to != shape[i] && to != 1) c.fail(fmt::format("{} elements cannot be summed to {}", shape[i], to));
    if (to != shape[i] || i < lead) axes.push_back(int(i));
  }
  if (wanted.empty()) return one(x.sum(axes, {.dtype = sum_type(x.dtype())}).reshape(wanted));
  if (axes.empty()) return one(x);
  return one(x.sum(axes, {.keepdim = true, .dtype = sum_type(x.dtype())}).reshape(wanted));
}
Results nansum(const Call& c) {
  const Tensor x = c.tensor("self");
  const Tensor numbers = is_float(x.dtype()) ? x.isnan().where(x.zeros_like(), x) : x;
  return call("aten.sum.dim_IntList", {{"self", numbers}, {"dim", c["dim"]}, {"keepdim", c["keepdim"]}, {"dtype", c["dtype"]}});
}
Results nanmean(const Call& c) {
  const Tensor sums = first(nansum(c)), is_number = c.tensor("self").isnan().logical_not();
  const Tensor counts = first(call("aten.sum.dim_IntList", {{"self", is_number}, {"dim", c["dim"]}, {"keepdim", c["keepdim"]}}));
  return one(sums / counts.cast(sums.dtype()));
}
Results dist(const Call& c) {
  const Promoted p = promoted(c, {"self", "other"});
  return call("aten.norm.Scalar", {{"self", p[0] - p[1]}, {"p", c["p"]}});
}
Results float_power(const Call& c) {
  const std::string device = c.tensor(c["exponent"].get_if<Tensor>() ? "exponent" : "self").device();
  const auto wide = [&](std::string_view name) { return typed(c[name], DType::float64, device); };
  return call("aten.pow.Tensor_Tensor", {{"self", wide("self")}, {"exponent", wide("exponent")}});
}

// Layers.

/// v / |v| * g, where norms are over all axes but one, or over all.
Results weight_norm(const Call& c) {
  const Tensor v = c.tensor("v"), g = c.tensor("g");
  const int64_t dim = c.integer("dim");
  const DType wide = wide_type(v.dtype());
  const Tensor squares = v.cast(wide) * v.cast(wide);
  std::vector<int> axes;
  for (int i = 0; i < v.ndim(); ++i)
    if (dim == -1 || i != c.axis("dim", v.ndim())) axes.push_back(i);
  const Tensor norm = squares.sum(axes, {.keepdim = dim != -1}).sqrt();
  return one((v.cast(wide) * (g.cast(wide) / norm)).cast(v.dtype()));
}
/// Places of the elements of an axis of n, from -1 to 1: of their middles, or with the first and last one at the ends.
Tensor places_of(int64_t n, bool align_corners, const Tensor& like) {
  const Tensor at = Tensor::arange(n, {.dtype = like.dtype(), .device = like.device()});
  if (n == 1) return at * 0;
  return align_corners ? at * (2.0 / double(n - 1)) - 1 : (at * 2 + 1) / double(n) - 1;
}
Results affine_grid(const Call& c) {
  const Tensor theta = c.tensor("theta").cast(wide_type(c.tensor("theta").dtype()));
  const Sizes size = c.integers("size");
  const int rank = int(size.size()) - 2;
  if ((rank != 2 && rank != 3) || theta.ndim() != 3 || theta.size(1) != rank || theta.size(2) != rank + 1)
    c.fail("expects theta of (batch, 2, 3) and 4 sizes, or (batch, 3, 4) and 5 sizes");
  const bool align_corners = c.flag("align_corners");
  const Sizes spatial(size.begin() + 2, size.end());
  std::vector<Tensor> columns;  // the last axis first, then ones
  for (int i = rank; i-- > 0;) {
    Sizes shape(size_t(rank), 1);
    shape[size_t(i)] = spatial[size_t(i)];
    columns.push_back(places_of(spatial[size_t(i)], align_corners, theta).reshape(shape).expand(spatial).reshape({-1}));
  }
  columns.push_back(columns[0].ones_like());
  const Tensor grid = Tensor::stack(columns, 1).matmul(theta.transpose(-2, -1));
  Sizes out{theta.size(0)};
  out.insert(out.end(), spatial.begin(), spatial.end());
  out.push_back(rank);
  return one(grid.reshape(out).cast(c.tensor("theta").dtype()));
}

/// The same as another operator with the same parameters.
Operator as(std::string_view target) {
  return [target](const Call& c) -> Results {
    Arguments all;
    for (const Parameter& p : parameters(c.name()))
      if (c.has(p.name)) all.push_back({p.name, c[p.name]});
    return call(target, all);
  };
}

}  // namespace

std::vector<Row> composite_operators() {
  const auto adjoint = [](const Call& c) -> Results { return one(c.tensor("self").transpose(-2, -1)); };
  const auto same = [](const Call& c) -> Results { return one(c.tensor("self")); };
  return {
      {"aten.atleast_1d.default(Tensor self)", with_axes(1)},
      {"aten.atleast_2d.default(Tensor self)", with_axes(2)},
      {"aten.atleast_3d.default(Tensor self)", with_axes(3)},
      {"aten.atleast_1d.Sequence(Tensor[] tensors)", with_axes(1)},
      {"aten.atleast_2d.Sequence(Tensor[] tensors)", with_axes(2)},
      {"aten.atleast_3d.Sequence(Tensor[] tensors)", with_axes(3)},
      {"aten.hstack.default(Tensor[] tensors)", hstack},
      {"aten.vstack.default(Tensor[] tensors)", [](const Call& c) { return joined_at_least(c, 2, 0); }},
      {"aten.dstack.default(Tensor[] tensors)", [](const Call& c) { return joined_at_least(c, 3, 2); }},
      {"aten.column_stack.default(Tensor[] tensors)", column_stack},
      {"aten.block_diag.default(Tensor[] tensors)", block_diag},
      {"aten.hsplit.int(Tensor self, int sections)", parts_along(1)},
      {"aten.hsplit.array(Tensor self, int[] indices)", parts_along(1)},
      {"aten.vsplit.int(Tensor self, int sections)", parts_along(0)},
      {"aten.vsplit.array(Tensor self, int[] indices)", parts_along(0)},
      {"aten.dsplit.int(Tensor self, int sections)", parts_along(2)},
      {"aten.dsplit.array(Tensor self, int[] indices)", parts_along(2)},
      {"aten.cartesian_prod.default(Tensor[] tensors)", cartesian_prod},
      {"aten.fft_fftshift.default(Tensor self, int[1]? dim=None)", shifted(false)},
      {"aten.fft_ifftshift.default(Tensor self, int[1]? dim=None)", shifted(true)},
      {"aten.inner.default(Tensor self, Tensor other)", inner},
      {"aten.vdot.default(Tensor self, Tensor other)",
       [](const Call& c) { return call("aten.dot.default", {{"self", c["self"]}, {"tensor", c["other"]}}); }},
      {"aten.linalg_vecdot.default(Tensor x, Tensor y, *, int dim=-1)", vecdot},
      {"aten.kron.default(Tensor self, Tensor other)", kron},
      {"aten.cross.default(Tensor self, Tensor other, int? dim=None)", cross},
      {"aten.addr.default(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1)", addr},
      {"aten.addbmm.default(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1)", addbmm},
      {"aten.trace.default(Tensor self)", trace},
      {"aten.diagflat.default(Tensor self, int offset=0)", diagflat},
      {"aten.linalg_diagonal.default(Tensor A, *, int offset=0, int dim1=-2, int dim2=-1)",
       [](const Call& c) {
         return call("aten.diagonal.default", {{"self", c["A"]}, {"offset", c["offset"]}, {"dim1", c["dim1"]}, {"dim2", c["dim2"]}});
       }},
      {"aten.sum_to_size.default(Tensor self, SymInt[] size)", sum_to_size},
      {"aten.nansum.default(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)", nansum},
      {"aten.nanmean.default(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)", nanmean},
      {"aten.dist.default(Tensor self, Tensor other, Scalar p=2)", dist},
      {"aten.float_power.Tensor_Tensor(Tensor self, Tensor exponent)", float_power},
      {"aten.float_power.Tensor_Scalar(Tensor self, Scalar exponent)", float_power},
      {"aten.float_power.Scalar(Scalar self, Tensor exponent)", float_power},
      {"aten._weight_norm.default(Tensor v, Tensor g, int dim=0)", weight_norm},
      {"aten.affine_grid_generator.default(Tensor theta, SymInt[] size, bool align_corners)", affine_grid},
      {"aten.mH.default(Tensor self)", adjoint},
      {"aten.matrix_H.default(Tensor self)", adjoint},
      {"aten.real.default(Tensor self)", same},
      {"aten.isreal.default(Tensor self)", [](const Call& c) { return one(c.tensor("self").ones_like(DType::bool_)); }},
      {"aten.t_copy.default(Tensor self)", as("aten.t.default")},
      {"aten.squeeze_copy.default(Tensor self)", as("aten.squeeze.default")},
      {"aten.squeeze_copy.dim(Tensor self, int dim)", as("aten.squeeze.dim")},
      {"aten.narrow_copy.default(Tensor self, int dim, SymInt start, SymInt length)", as("aten.narrow.default")},
      {"aten.unbind_copy.int(Tensor self, int dim=0)", as("aten.unbind.int")},
      {"aten.special_erfinv.default(Tensor self)", as("aten.erfinv.default")},
      {"aten.special_digamma.default(Tensor self)", as("aten.digamma.default")},
      {"aten.special_psi.default(Tensor self)", as("aten.digamma.default")},
  };
}

}  // namespace tinygrad::aten
