// Operators that give the same elements in another shape or order.
#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "frontend/aten/promotion.h"

namespace tinygrad::aten {

namespace {

/// A view in these sizes; one may be -1.
Results view(const Call& c, std::string_view sizes) { return one(c.tensor("self").reshape(c.extents(sizes))); }
Results view_as(const Call& c) { return one(c.tensor("self").reshape(c.tensor("other").symbolic_shape())); }
Results view_dtype(const Call& c) {
  const Tensor x = c.tensor("self");
  if (itemsize(x.dtype()) == itemsize(*c.dtype())) return one(x.bitcast(*c.dtype()));
  if (x.ndim() == 0) c.fail("a tensor without axes has no other size of elements");
  return one(x.bitcast(*c.dtype()));
}
/// New axes stand in front; -1 keeps a size.
Results expand(const Call& c) {
  const Tensor x = c.tensor("self");
  const Extents sizes = c.extents("size");
  const size_t rank = size_t(x.ndim());
  if (sizes.size() < rank) c.fail(fmt::format("{} sizes for {} axes", sizes.size(), rank));
  Extents shape = x.symbolic_shape();
  shape.insert(shape.begin(), sizes.size() - rank, Extent(1));
  Extents wanted = sizes;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i] == Extent(-1)) wanted[i] = shape[i];
  return one(x.reshape(shape).expand(wanted));
}
Results expand_as(const Call& c) {
  const Tensor x = c.tensor("self");
  const Extents wanted = c.tensor("other").symbolic_shape();
  Extents shape = x.symbolic_shape();
  if (wanted.size() < shape.size()) c.fail("the other tensor has fewer axes");
  shape.insert(shape.begin(), wanted.size() - shape.size(), Extent(1));
  return one(x.reshape(shape).expand(wanted));
}
Results permute(const Call& c) {
  const Tensor x = c.tensor("self");
  const std::vector<int> order = c.axes("dims", x.ndim(), false);
  if (int(order.size()) != x.ndim()) c.fail(fmt::format("{} axes are named of {}", order.size(), x.ndim()));
  return one(x.ndim() == 0 ? x : x.permute(order));
}
Tensor swapped(const Call& c, std::string_view first, std::string_view second) {
  const Tensor x = c.tensor("self");
  const int a = c.axis(first, x.ndim()), b = c.axis(second, x.ndim());
  return x.ndim() == 0 ? x : x.transpose(a, b);
}
Results matrix_transpose(const Call& c) {
  const Tensor x = c.tensor("self");
  if (x.ndim() > 2) c.fail("a matrix is expected");
  return one(x.ndim() < 2 ? x : x.transpose(0, 1));
}
Results reversed_axes(const Call& c) {
  const Tensor x = c.tensor("self");
  std::vector<int> order(size_t(x.ndim()));
  std::iota(order.rbegin(), order.rend(), 0);
  return one(x.ndim() == 0 ? x : x.permute(order));
}
Results last_two_swapped(const Call& c) {
  const Tensor x = c.tensor("self");
  return one(x.transpose(-2, -1));
}
Results move_axes(const Call& c) {
  const Tensor x = c.tensor("self");
  const std::vector<int> from = c.axes("source", x.ndim(), false), to = c.axes("destination", x.ndim(), false);
  if (from.size() != to.size()) c.fail("source and destination have different lengths");
  std::vector<int> order(size_t(x.ndim()), -1), left;
  for (size_t i = 0; i < from.size(); ++i) order[size_t(to[i])] = from[i];
  for (int i = 0; i < x.ndim(); ++i)
    if (std::ranges::find(from, i) == from.end()) left.push_back(i);
  auto next = left.begin();
  for (int& o : order)
    if (o < 0) o = *next++;
  return one(x.ndim() == 0 ? x : x.permute(order));
}

Tensor without_ones(const Tensor& x, const std::vector<int>& axes) {
  const Extents shape = x.symbolic_shape();
  Extents out;
  for (int i = 0; i < x.ndim(); ++i)
    if (std::ranges::find(axes, i) == axes.end() || !(shape[size_t(i)] == Extent(1))) out.push_back(shape[size_t(i)]);
  return x.reshape(out);
}
Results squeeze_all(const Call& c) {
  const Tensor x = c.tensor("self");
  std::vector<int> all(size_t(x.ndim()));
  std::iota(all.begin(), all.end(), 0);
  return one(without_ones(x, all));
}
Results squeeze_axes(const Call& c) {
  const Tensor x = c.tensor("self");
  return one(without_ones(x, c.axes("dim", x.ndim(), false)));
}
Results unsqueeze(const Call& c) {
  const Tensor x = c.tensor("self");
  return one(x.unsqueeze(c.axis_of(c.integer("dim"), x.ndim() + 1)));
}
Results flatten(const Call& c) {
  const Tensor x = c.tensor("self");
  if (x.ndim() == 0) return one(x.reshape({1}));
  return one(x.flatten(c.axis("start_dim", x.ndim()), c.axis("end_dim", x.ndim())));
}
Results unflatten(const Call& c) {
  const Tensor x = c.tensor("self");
  return one(x.unflatten(c.axis("dim", x.ndim()), c.extents("sizes")));
}
Results flip(const Call& c) {
  const Tensor x = c.tensor("self");
  const std::vector<int> axes = c.axes("dims", x.ndim(), false);
  return one(axes.empty() ? x : x.flip(axes));
}
Results flip_axis(const Tensor& x, int axis) { return one(x.flip(axis)); }
Results repeat(const Call& c) {
  const Tensor x = c.tensor("self");
  const Extents repeats = c.extents(c.declares("dims") ? "dims" : "repeats");
  Extents shape = x.symbolic_shape(), counts = repeats;
  if (counts.size() < shape.size()) {
    if (!c.declares("dims")) c.fail("fewer repeats than axes");
    counts.insert(counts.begin(), shape.size() - counts.size(), Extent(1));
  }
  shape.insert(shape.begin(), counts.size() - shape.size(), Extent(1));
  return one(counts.empty() ? x : x.reshape(shape).repeat(counts));
}
Results repeat_interleave(const Call& c) {
  const Tensor x = c.tensor("self");
  if (!c.has("dim")) return one(x.flatten().repeat_interleave(c.integer("repeats"), 0));
  return one(x.repeat_interleave(c.integer("repeats"), c.axis("dim", x.ndim())));
}
Results roll(const Call& c) {
  const Tensor x = c.tensor("self");
  const Sizes shifts = c.integers("shifts");
  std::vector<int> axes;
  for (int64_t a : c.integers("dims")) axes.push_back(c.axis_of(a, x.ndim()));
  if (x.numel() == 0 || x.ndim() == 0) return one(x);
  if (axes.empty()) return one(x.flatten().roll(shifts, {0}).reshape(x.symbolic_shape()));
  if (axes.size() != shifts.size()) c.fail("shifts and dims have different lengths");
  Tensor out = x;
  for (size_t i = 0; i < axes.size(); ++i) out = out.roll({shifts[i]}, {axes[i]});
  return one(out);
}
Results rot90(const Call& c) {
  const Tensor x = c.tensor("self");
  const std::vector<int> axes = c.axes("dims", x.ndim(), false);
  if (axes.size() != 2) c.fail("two axes are expected");
  switch (((c.integer("k") % 4) + 4) % 4) {
    case 1: return one(x.flip(axes[1]).transpose(axes[0], axes[1]));
    case 2: return one(x.flip(axes));
    case 3: return one(x.flip(axes[0]).transpose(axes[0], axes[1]));
    default: return one(x);
  }
}
Results unfold(const Call& c) {
  const Tensor x = c.tensor("self");
  const int axis = c.axis("dimension", x.ndim());
  if (x.ndim() == 0) return one(x.reshape({1}).unfold(0, c.integer("size"), c.integer("step")).squeeze(0));
  return one(x.unfold(axis, c.integer("size"), c.integer("step")));
}
Results diagonal(const Call& c) {
  const Tensor x = c.tensor("self");
  return one(x.diagonal(c.offset("offset"), c.axis("dim1", x.ndim()), c.axis("dim2", x.ndim())));
}
/// Vectors of the last axis on the diagonal of matrices.
Results diagonal_matrices(const Call& c) {
  const Tensor x = c.tensor("self");
  const int64_t offset = c.offset("offset"), n = x.size(-1), size = n + std::abs(offset);
  const int a = c.axis("dim1", x.ndim() + 1), b = c.axis("dim2", x.ndim() + 1);
  const Tensor rows = Tensor::arange(size, {.device = x.device()}).unsqueeze(1), columns = Tensor::arange(size, {.device = x.device()});
  const Tensor on = (rows + offset).eq(columns);
  const int64_t before = std::max<int64_t>(offset, 0), after = size - n - before;
  ExtentPairs around(size_t(x.ndim()), {0, 0});
  around.back() = {before, after};
  const Tensor wide = x.pad(around).unsqueeze(-2);
  const Tensor matrices = on.where(wide, wide.zeros_like());
  // Rows and columns go to the axes that were asked for.
  std::vector<int> order(size_t(x.ndim()) + 1, -1);
  order[size_t(a)] = x.ndim() - 1;
  order[size_t(b)] = x.ndim();
  int next = 0;
  for (int& o : order)
    if (o < 0) o = next++;
  return one(matrices.permute(order));
}

/// The diagonal of a matrix, or a matrix with this diagonal.
Results diagonal_of(const Call& c) {
  const Tensor x = c.tensor("self");
  if (x.ndim() == 1) return call("aten.diag_embed.default", {{"self", x}, {"offset", c["diagonal"]}});
  if (x.ndim() != 2) c.fail("neither a vector nor a matrix");
  return one(x.diagonal(c.offset("diagonal"), 0, 1));
}

Results cat(const Call& c) {
  std::vector<Tensor> tensors = c.tensors("tensors");
  std::vector<const Value*> values;
  for (const Value& v : c["tensors"].list()) values.push_back(&v);
  const DType dtype = result_type(values);
  // Vectors of no elements fit anywhere.
  std::vector<Tensor> parts;
  for (const Tensor& t : tensors)
    if (!(t.ndim() == 1 && t.max_numel() == 0)) parts.push_back(t.cast(dtype));
  if (parts.empty()) return one(tensors[0].cast(dtype));
  const int axis = c.axis("dim", parts[0].ndim());
  return one(parts.size() == 1 ? parts[0] : Tensor::cat(parts, axis));
}
Results stack(const Call& c) {
  std::vector<Tensor> tensors = c.tensors("tensors");
  std::vector<const Value*> values;
  for (const Value& v : c["tensors"].list()) values.push_back(&v);
  const DType dtype = result_type(values);
  for (Tensor& t : tensors) t = t.cast(dtype);
  return one(Tensor::stack(tensors, c.axis_of(c.integer("dim"), tensors[0].ndim() + 1)));
}
Results broadcast_tensors(const Call& c) {
  std::vector<Tensor> tensors = c.tensors("tensors");
  const Extents shape = broadcast_shapes(c, tensors);
  for (Tensor& t : tensors)
    t = t.reshape([&] {
           Extents own = t.symbolic_shape();
           own.insert(own.begin(), shape.size() - own.size(), Extent(1));
           return own;
         }())
            .expand(shape);
  return {tensors};
}
Results meshgrid(const Call& c) {
  std::vector<Tensor> tensors = c.tensors("tensors");
  for (Tensor& t : tensors) t = t.flatten();
  const bool xy = c.declares("indexing") && c.text("indexing") == "xy";
  return {Tensor::meshgrid(tensors, xy)};
}
Results triangle(const Call& c, bool upper) {
  const Tensor x = c.tensor("self");
  return one(upper ? x.triu(c.extent("diagonal")) : x.tril(c.extent("diagonal")));
}
/// How many pictures there are.
int64_t leading_of(const Sizes& shape) { return std::accumulate(shape.begin(), shape.end() - 3, int64_t{1}, std::multiplies<>()); }
Results pixel_shuffle(const Call& c) {
  const Tensor x = c.tensor("self");
  const int64_t r = c.integer("upscale_factor");
  int64_t square = 0;
  if (x.ndim() < 3 || r <= 0 || __builtin_mul_overflow(r, r, &square) || x.size(-3) % square != 0)
    c.fail("the channels are no multiple of the factor's square");
  Sizes shape = x.shape(), out = shape;
  const int64_t h = shape[shape.size() - 2], w = shape.back(), channels = shape[shape.size() - 3] / square;
  const Tensor parts = x.reshape(Sizes{leading_of(shape), channels, r, r, h, w}).permute({0, 1, 4, 2, 5, 3});
  out[out.size() - 3] = channels;
  out[out.size() - 2] = h * r;
  out.back() = w * r;
  return one(parts.reshape(out));
}
Results pixel_unshuffle(const Call& c) {
  const Tensor x = c.tensor("self");
  const int64_t r = c.integer("downscale_factor");
  Sizes out = x.shape();
  if (x.ndim() < 3 || r <= 0 || out.back() % r != 0 || out[out.size() - 2] % r != 0) c.fail("the sizes are no multiples of the factor");
  const int64_t channels = out[out.size() - 3], h = out[out.size() - 2] / r, w = out.back() / r;
  out[out.size() - 3] = channels * r * r;
  out[out.size() - 2] = h;
  out.back() = w;
  return one(x.reshape(Sizes{leading_of(x.shape()), channels, h, r, w, r}).permute({0, 1, 3, 5, 2, 4}).reshape(out));
}
Results channel_shuffle(const Call& c) {
  const Tensor x = c.tensor("self");
  const Sizes shape = x.shape();
  const int64_t groups = c.integer("groups");
  if (x.ndim() < 3 || groups <= 0 || shape[1] % groups != 0) c.fail("the channels are no multiple of the groups");
  return one(x.reshape(Sizes{shape[0], groups, shape[1] / groups, -1}).transpose(1, 2).reshape(shape));
}

Results same(const Call& c) { return one(c.tensor("self")); }

}  // namespace

std::vector<Row> movement_operators() {
  const auto by = [](std::string_view sizes) { return [sizes](const Call& c) { return view(c, sizes); }; };
  const auto transpose = [](const Call& c) { return one(swapped(c, "dim0", "dim1")); };
  return {
      {"aten.view.default(Tensor self, SymInt[] size)", by("size")},
      {"aten._unsafe_view.default(Tensor self, SymInt[] size)", by("size")},
      {"aten.reshape.default(Tensor self, SymInt[] shape)", by("shape")},
      {"aten._reshape_copy.default(Tensor self, SymInt[] size)", by("size")},
      {"aten.view_as.default(Tensor self, Tensor other)", view_as},
      {"aten.reshape_as.default(Tensor self, Tensor other)", view_as},
      {"aten.view.dtype(Tensor self, ScalarType dtype)", view_dtype},
      {"aten.expand.default(Tensor self, SymInt[] size, *, bool implicit=False)", expand},
      {"aten.broadcast_to.default(Tensor self, SymInt[] size)", expand},
      {"aten.expand_as.default(Tensor self, Tensor other)", expand_as},
      {"aten.permute.default(Tensor self, int[] dims)", permute},
      {"aten.transpose.int(Tensor self, int dim0, int dim1)", transpose},
      {"aten.swapaxes.default(Tensor self, int axis0, int axis1)", [](const Call& c) { return one(swapped(c, "axis0", "axis1")); }},
      {"aten.swapdims.default(Tensor self, int dim0, int dim1)", transpose},
      {"aten.t.default(Tensor self)", matrix_transpose},
      {"aten.numpy_T.default(Tensor self)", reversed_axes},
      {"aten.mT.default(Tensor self)", last_two_swapped},
      {"aten.movedim.intlist(Tensor self, int[] source, int[] destination)", move_axes},
      {"aten.movedim.int(Tensor self, int source, int destination)", move_axes},
      {"aten.squeeze.default(Tensor self)", squeeze_all},
      {"aten.squeeze.dim(Tensor self, int dim)", squeeze_axes},
      {"aten.squeeze.dims(Tensor self, int[] dim)", squeeze_axes},
      {"aten.unsqueeze.default(Tensor self, int dim)", unsqueeze},
      {"aten.flatten.using_ints(Tensor self, int start_dim=0, int end_dim=-1)", flatten},
      {"aten.ravel.default(Tensor self)", [](const Call& c) { return one(c.tensor("self").reshape({-1})); }},
      {"aten.unflatten.int(Tensor self, int dim, SymInt[] sizes)", unflatten},
      {"aten.flip.default(Tensor self, int[] dims)", flip},
      {"aten.fliplr.default(Tensor self)", [](const Call& c) { return flip_axis(c.tensor("self"), 1); }},
      {"aten.flipud.default(Tensor self)", [](const Call& c) { return flip_axis(c.tensor("self"), 0); }},
      {"aten.repeat.default(Tensor self, SymInt[] repeats)", repeat},
      {"aten.tile.default(Tensor self, SymInt[] dims)", repeat},
      {"aten.repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None)", repeat_interleave},
      {"aten.roll.default(Tensor self, SymInt[1] shifts, int[1] dims=[])", roll},
      {"aten.rot90.default(Tensor self, int k=1, int[] dims=[0,1])", rot90},
      {"aten.unfold.default(Tensor self, int dimension, int size, int step)", unfold},
      {"aten.diagonal.default(Tensor self, int offset=0, int dim1=0, int dim2=1)", diagonal},
      {"aten.diag_embed.default(Tensor self, int offset=0, int dim1=-2, int dim2=-1)", diagonal_matrices},
      {"aten.cat.default(Tensor[] tensors, int dim=0)", cat},
      {"aten.concat.default(Tensor[] tensors, int dim=0)", cat},
      {"aten.concatenate.default(Tensor[] tensors, int dim=0)", cat},
      {"aten.stack.default(Tensor[] tensors, int dim=0)", stack},
      {"aten.broadcast_tensors.default(Tensor[] tensors)", broadcast_tensors},
      {"aten.meshgrid.default(Tensor[] tensors)", meshgrid},
      {"aten.meshgrid.indexing(Tensor[] tensors, *, str indexing)", meshgrid},
      {"aten.triu.default(Tensor self, SymInt diagonal=0)", [](const Call& c) { return triangle(c, true); }},
      {"aten.tril.default(Tensor self, SymInt diagonal=0)", [](const Call& c) { return triangle(c, false); }},
      {"aten.pixel_shuffle.default(Tensor self, int upscale_factor)", pixel_shuffle},
      {"aten.pixel_unshuffle.default(Tensor self, int downscale_factor)", pixel_unshuffle},
      {"aten.channel_shuffle.default(Tensor self, SymInt groups)", channel_shuffle},
      {"aten.alias.default(Tensor self)", same},
      {"aten.detach.default(Tensor self)", same},
      {"aten.resolve_conj.default(Tensor self)", same},
      {"aten.resolve_neg.default(Tensor self)", same},
      {"aten.conj_physical.default(Tensor self)", same},
      {"aten.expand_copy.default(Tensor self, SymInt[] size, *, bool implicit=False)", expand},
      {"aten.view_copy.default(Tensor self, SymInt[] size)", by("size")},
      {"aten.permute_copy.default(Tensor self, int[] dims)", permute},
      {"aten.transpose_copy.int(Tensor self, int dim0, int dim1)", transpose},
      {"aten.squeeze_copy.dims(Tensor self, int[] dim)", squeeze_axes},
      {"aten.unsqueeze_copy.default(Tensor self, int dim)", unsqueeze},
      {"aten.diagonal_copy.default(Tensor self, int offset=0, int dim1=0, int dim2=1)", diagonal},
      {"aten.unfold_copy.default(Tensor self, int dimension, int size, int step)", unfold},
      {"aten.diag.default(Tensor self, int diagonal=0)", diagonal_of},
      {"aten.lift_fresh.default(Tensor self)", same},
  };
}

}  // namespace tinygrad::aten
