// Parts of tensors, and tensors with a part replaced.
#include <fmt/core.h>

#include <algorithm>

#include "frontend/aten/promotion.h"
#include "frontend/torch/strided.h"

namespace tinygrad::aten {

namespace {

/// A bound of a slice as Python takes it: counted from the end if it is negative, and cut off.
Extent bound_of(const Call& c, std::string_view name, const Extent& size, const Extent& otherwise) {
  if (!c.has(name)) return otherwise;
  Extent at = c.extent(name);
  if (at.max() < 0) at = at + size;
  if (at.known() && size.known()) return std::clamp<int64_t>(at.value(), 0, size.value());
  if (at.known() && at.value() >= size.max()) return size;
  if (at.known() && at.value() <= 0) return 0;
  if (at == size) return size;
  // Of other symbolic bounds, torch.export has guards that they are inside.
  return at;
}
struct Part {
  int axis;
  Slice slice;
};
Part part_of(const Call& c, const Tensor& x) {
  if (x.ndim() == 0) c.fail("a tensor without axes has no slices");
  const int axis = c.axis("dim", x.ndim());
  const Extent size = x.symbolic_shape()[size_t(axis)];
  const int64_t step = c.integer("step");
  if (step <= 0) c.fail(fmt::format("the step {} is not positive", step));
  const Extent start = bound_of(c, "start", size, 0), stop = bound_of(c, "end", size, size);
  if (start.known() && stop.known() && stop.value() < start.value()) return {axis, {.start = start, .stop = start, .step = step}};
  return {axis, {.start = start, .stop = stop, .step = step}};
}
std::vector<Index> index_of(const Tensor& x, int axis, const Index& at) {
  std::vector<Index> out(size_t(x.ndim()), Index(Slice{}));
  out[size_t(axis)] = at;
  return out;
}
Results slice(const Call& c) {
  const Tensor x = c.tensor("self");
  const auto [axis, part] = part_of(c, x);
  const Extent size = x.symbolic_shape()[size_t(axis)];
  if (*part.start == Extent(0) && *part.stop == size && part.step == 1) return one(x);
  return one(x.get_item(index_of(x, axis, part)));
}

Extent place_of(const Call& c, const Extent& size) {
  Extent at = c.extent("index");
  if (at.max() < 0) at = at + size;
  if (at.known() && (at.value() < 0 || at.value() >= size.max()))
    throw IndexError(fmt::format("{}: index {} of an axis of {}", c.name(), c.extent("index").to_string(), size.to_string()));
  return at;
}
Results select(const Call& c) {
  const Tensor x = c.tensor("self");
  if (x.ndim() == 0) c.fail("a tensor without axes has no parts");
  const int axis = c.axis("dim", x.ndim());
  return one(x.get_item(index_of(x, axis, place_of(c, x.symbolic_shape()[size_t(axis)]))));
}
Results narrow(const Call& c) {
  const Tensor x = c.tensor("self");
  const int axis = c.axis("dim", x.ndim());
  const Extent size = x.symbolic_shape()[size_t(axis)];
  Extent start = c.extent("start");
  if (start.max() < 0) start = start + size;
  return one(x.get_item(index_of(x, axis, Slice{.start = start, .stop = start + c.extent("length")})));
}

/// The elements `step` apart from `start` on, in an axis of `size` that is 0 elsewhere.
Tensor spread_out(const Tensor& x, int axis, const Extent& start, int64_t step, const Extent& size) {
  Tensor out = x;
  if (step > 1) {
    Sizes shape = x.shape(), between = shape;
    const int64_t count = shape[size_t(axis)];
    between.insert(between.begin() + axis + 1, 1);
    ExtentPairs gaps(between.size(), {0, 0});
    gaps[size_t(axis) + 1] = {0, step - 1};
    shape[size_t(axis)] = count * step;
    out = x.reshape(between).pad(gaps).reshape(shape);
    ExtentPairs kept;
    for (int64_t s : shape) kept.emplace_back(0, s);
    kept[size_t(axis)] = {0, (count - 1) * step + 1};
    out = out.shrink(kept);
  }
  ExtentPairs around(size_t(out.ndim()), {0, 0});
  around[size_t(axis)] = {start, size - start - out.symbolic_shape()[size_t(axis)]};
  return out.pad(around);
}
/// With a part of the axis replaced.
Tensor with_part(const Tensor& x, const Tensor& src, int axis, const Extent& start, int64_t step) {
  const Extents shape = x.symbolic_shape();
  const Extent& size = shape[size_t(axis)];
  Extents part = shape;
  if (src.ndim() == x.ndim()) part[size_t(axis)] = src.symbolic_shape()[size_t(axis)];
  const Tensor values = src.cast(x.dtype()).expand(part);
  const Extent count = part[size_t(axis)];
  if (count == Extent(0)) return x;
  const Tensor at = Tensor::arange(size, {.dtype = DType::int64, .device = x.device()}) - typed_number(start, DType::int64, x.device());
  Tensor inside = (at >= 0) & (at < typed_number(count * step, DType::int64, x.device()));
  if (step > 1) inside = inside & (at % step).eq(0);
  Extents around(shape.size(), Extent(1));
  around[size_t(axis)] = size;
  return inside.reshape(around).where(spread_out(values, axis, start, step, size), x);
}
Results slice_scatter(const Call& c) {
  const Tensor x = c.tensor("self"), src = c.tensor("src");
  const auto [axis, part] = part_of(c, x);
  if (part.start->known() && part.stop->known()) {
    const int64_t count = (part.stop->value() - part.start->value() + part.step - 1) / part.step;
    if (src.ndim() != x.ndim() || !(src.symbolic_shape()[size_t(axis)] == Extent(count)))
      c.fail(fmt::format("the source does not have the part's {} along the axis", count));
  }
  return one(with_part(x, src, axis, *part.start, part.step));
}
Results select_scatter(const Call& c) {
  const Tensor x = c.tensor("self");
  const int axis = c.axis("dim", x.ndim());
  return one(with_part(x, c.tensor("src").unsqueeze(axis), axis, place_of(c, x.symbolic_shape()[size_t(axis)]), 1));
}
Results diagonal_scatter(const Call& c) {
  const Tensor x = c.tensor("self");
  Tensor out = x.clone();
  out.diagonal(c.offset("offset"), c.axis("dim1", x.ndim()), c.axis("dim2", x.ndim())).assign(c.tensor("src").cast(x.dtype()));
  return one(out);
}
Tensor zeros_of(const Tensor& grad, const Sizes& shape) { return Tensor::zeros(shape, {.dtype = grad.dtype(), .device = grad.device()}); }
Results slice_backward(const Call& c) {
  const Tensor grad = c.tensor("grad_output"), x = zeros_of(grad, c.integers("input_sizes"));
  const auto [axis, part] = part_of(c, x);
  return one(grad.size(axis) == 0 ? x : spread_out(grad, axis, *part.start, part.step, x.size(axis)));
}
Results select_backward(const Call& c) {
  const Tensor grad = c.tensor("grad_output");
  const Sizes shape = c.integers("input_sizes");
  const int axis = c.axis("dim", int(shape.size()));
  const int64_t at = place_of(c, shape[size_t(axis)]).value();
  ExtentPairs around(shape.size(), {0, 0});
  around[size_t(axis)] = {at, shape[size_t(axis)] - at - 1};
  return one(grad.unsqueeze(axis).pad(around));
}
Results diagonal_backward(const Call& c) {
  const Tensor grad = c.tensor("grad_output");
  const Sizes shape = c.integers("input_sizes");
  Tensor out = zeros_of(grad, shape).contiguous();
  const int rank = int(shape.size());
  out.diagonal(c.offset("offset"), c.axis("dim1", rank), c.axis("dim2", rank)).assign(grad);
  return one(out);
}

Results split(const Call& c, const Sizes& sizes) {
  const Tensor x = c.tensor("self");
  const int axis = c.axis("dim", x.ndim());
  return {x.split(sizes, axis)};
}
Results split_with_sizes(const Call& c) {
  const Tensor x = c.tensor("self");
  const int axis = c.axis("dim", x.ndim());
  const Extents sizes = c.extents("split_sizes");
  List out;
  Extent start = 0;
  for (const Extent& size : sizes) {
    out.push_back(x.get_item(index_of(x, axis, Slice{.start = start, .stop = start + size})));
    start = start + size;
  }
  if (!(start == x.symbolic_shape()[size_t(axis)]))
    c.fail(fmt::format("the sizes add up to {}, the axis has {}", start.to_string(), x.symbolic_shape()[size_t(axis)].to_string()));
  return {out};
}
Results split_by(const Call& c) {
  const Tensor x = c.tensor("self");
  const int axis = c.axis("dim", x.ndim());
  const int64_t size = c.integer("split_size"), total = x.size(axis);
  if (size < 0 || (size == 0 && total != 0)) c.fail(fmt::format("parts of {}", size));
  Sizes sizes;
  for (int64_t at = 0; at < total; at += size) sizes.push_back(std::min(size, total - at));
  if (sizes.empty()) sizes.push_back(0);
  return split(c, sizes);
}
Results chunk(const Call& c) {
  const Tensor x = c.tensor("self");
  const int axis = c.axis("dim", x.ndim());
  const int64_t chunks = c.count("chunks"), total = x.size(axis);
  if (chunks <= 0) c.fail(fmt::format("{} chunks", chunks));
  const int64_t size = total / chunks + int64_t(total % chunks != 0);
  Sizes sizes;
  if (total == 0) sizes.assign(size_t(chunks), 0);
  for (int64_t at = 0; at < total; at += size) sizes.push_back(std::min(size, total - at));
  return split(c, sizes);
}
Results tensor_split(const Call& c) {
  const Tensor x = c.tensor("self");
  const int axis = c.axis("dim", x.ndim());
  const int64_t sections = c.count("sections"), total = x.size(axis);
  if (sections <= 0) c.fail(fmt::format("{} sections", sections));
  Sizes sizes;
  for (int64_t i = 0; i < sections; ++i) sizes.push_back(total / sections + int64_t(i < total % sections));
  return split(c, sizes);
}
Results unbind(const Call& c) {
  const Tensor x = c.tensor("self");
  const int axis = c.axis("dim", x.ndim());
  List out;
  for (int64_t i = 0; i < x.size(axis); ++i) out.push_back(x.get_item(index_of(x, axis, i)));
  return {out};
}

/// Each element less the one before it, n times.
Results difference(const Call& c) {
  Tensor x = c.tensor("self");
  const int axis = c.axis("dim", x.ndim());
  if (x.ndim() == 0) c.fail("a tensor without axes has no differences");
  if (c.integer("n") < 0) c.fail("a negative number of times");
  if (c.integer("n") == 0) return one(x);
  std::vector<Tensor> parts;
  for (const Tensor& t : {c.tensor("prepend"), x, c.tensor("append")})
    if (t.defined()) parts.push_back(t.ndim() == 0 ? t.reshape(Sizes(size_t(x.ndim()), 1)) : t);
  if (parts.size() > 1) x = Tensor::cat(parts, axis);
  for (int64_t i = 0; i < c.integer("n") && x.size(axis) > 0; ++i) {
    const int64_t size = x.size(axis);
    const Tensor later = x.get_item(index_of(x, axis, Slice{.start = 1, .stop = size}));
    const Tensor before = x.get_item(index_of(x, axis, Slice{.start = 0, .stop = size - 1}));
    x = is_bool(x.dtype()) ? later ^ before : later - before;
  }
  return one(x);
}

/// Elements at strides of the tensor's own, which are taken to lie row-major.
Results as_strided(const Call& c) {
  const Tensor x = c.tensor("self");
  const Sizes sizes = c.integers("size"), strides = c.integers("stride");
  const int64_t offset = c.has("storage_offset") ? c.integer("storage_offset") : 0;
  if (sizes.size() != strides.size() || std::ranges::any_of(sizes, [](int64_t s) { return s < 0; }) || offset < 0 ||
      std::ranges::any_of(strides, [](int64_t s) { return s < 0; }))
    c.fail("sizes and strides do not fit");
  const std::optional<int64_t> end = frontend::torch::strided_end(offset, sizes, strides);
  if (!end || *end > x.numel()) c.fail(fmt::format("elements beyond the {} of the tensor", x.numel()));
  return one(frontend::torch::strided(x.flatten(), offset, sizes, strides));
}

}  // namespace

std::vector<Row> slicing_operators() {
  return {
      {"aten.slice.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1)", slice},
      {"aten.select.int(Tensor self, int dim, SymInt index)", select},
      {"aten.narrow.default(Tensor self, int dim, SymInt start, SymInt length)", narrow},
      {"aten.slice_scatter.default(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1)",
       slice_scatter},
      {"aten.select_scatter.default(Tensor self, Tensor src, int dim, SymInt index)", select_scatter},
      {"aten.diagonal_scatter.default(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1)", diagonal_scatter},
      {"aten.slice_backward.default(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, SymInt step)",
       slice_backward},
      {"aten.select_backward.default(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index)", select_backward},
      {"aten.diagonal_backward.default(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2)", diagonal_backward},
      {"aten.split_with_sizes.default(Tensor self, SymInt[] split_sizes, int dim=0)", split_with_sizes},
      {"aten.split_with_sizes_copy.default(Tensor self, SymInt[] split_sizes, int dim=0)", split_with_sizes},
      {"aten.split.Tensor(Tensor self, SymInt split_size, int dim=0)", split_by},
      {"aten.split.sizes(Tensor self, SymInt[] split_size, int dim=0)", [](const Call& c) { return split(c, c.integers("split_size")); }},
      {"aten.slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1)", slice},
      {"aten.select_copy.int(Tensor self, int dim, SymInt index)", select},
      {"aten.as_strided_copy.default(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None)", as_strided},
      {"aten.unsafe_chunk.default(Tensor self, int chunks, int dim=0)", chunk},
      {"aten.unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0)", split_by},
      {"aten.diff.default(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None)", difference},
      {"aten.chunk.default(Tensor self, int chunks, int dim=0)", chunk},
      {"aten.tensor_split.sections(Tensor self, SymInt sections, int dim=0)", tensor_split},
      {"aten.unbind.int(Tensor self, int dim=0)", unbind},
      {"aten.as_strided.default(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None)", as_strided},
      {"aten.sym_size.int(Tensor self, int dim)",
       [](const Call& c) -> Results {
         const Tensor x = c.tensor("self");
         if (x.ndim() == 0) c.fail("a tensor without axes has no sizes");
         return {x.symbolic_shape()[size_t(c.axis("dim", x.ndim()))]};
       }},
      {"aten.sym_numel.default(Tensor self)",
       [](const Call& c) -> Results {
         Extent count = 1;
         for (const Extent& e : c.tensor("self").symbolic_shape()) count = count * e;
         return {count};
       }},
      {"aten.sym_stride.int(Tensor self, int dim)",
       [](const Call& c) -> Results {
         const Extents shape = c.tensor("self").symbolic_shape();
         Extent stride = 1;
         for (size_t i = size_t(c.axis("dim", int(shape.size()))) + 1; i < shape.size(); ++i) stride = stride * shape[i];
         return {stride};
       }},
      {"aten.sym_storage_offset.default(Tensor self)", [](const Call&) -> Results { return {0}; }},
  };
}

}  // namespace tinygrad::aten
