// Operators whose inputs have sizes that are known only when kernels run, and operators on such sizes.
#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include <tinygrad/errors.h>

#include "frontend/onnx/operators.h"
#include "shape/sint.h"
#include "tensor/handle.h"

namespace tinygrad::onnx {

namespace {

using Numbers = std::vector<Extent>;

bool is_integer_type(ElementType t) { return t == ElementType::int64 || t == ElementType::int32; }

/// What was decided of a size has to hold for all of its values.
[[noreturn]] void undecided(const Extent& size) {
  throw ValueError(fmt::format("the size {} is not known before the kernels run", size.to_string()));
}

/// What holds for the sizes at hand has to hold for others that replay the walk (SizeAssumptions).
void assume_at_least(const Extent& size, int64_t least) {
  if (less_now(tensor::to_size(size), least)) undecided(size);
}

/// The elements of integers on the host; nothing for other values.
std::optional<Numbers> numbers_of(const Value& v) {
  if (const Numbers* sizes = detail::ValueAccess::sizes(v)) return *sizes;
  const HostArray* h = host_of(v);
  if (!h || !is_integer_type(h->type) || h->numel() > 4096) return {};
  const std::vector<int64_t> values = h->integers();
  return Numbers(values.begin(), values.end());
}
bool has_sizes(const Value& v) { return detail::ValueAccess::sizes(v) != nullptr; }

bool has_symbolic_shape(const Value& v) {
  if (v.kind() != Value::Kind::tensor || host_of(v) || has_sizes(v)) return false;
  return !std::ranges::all_of(v.tensor().symbolic_shape(), &Extent::known);
}
Extents shape_of(const Value& v) { return host_of(v) || has_sizes(v) ? Extents(v.shape()) : v.tensor().symbolic_shape(); }

/// Whether two sizes are equal for all values; an error where that depends on them.
bool are_equal(const Extent& a, const Extent& b) {
  if (a == b) return true;
  if (a.max() >= b.min() && b.max() >= a.min()) undecided(a);
  return false;
}
bool is_less(const Extent& a, const Extent& b) {
  if (a.max() < b.min()) return true;
  if (a.min() < b.max()) undecided(a);
  return false;
}

Extents broadcast(const Extents& a, const Extents& b) {
  Extents out;
  out.resize(std::max(a.size(), b.size()), Extent(1));
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t lack_a = out.size() - a.size(), lack_b = out.size() - b.size();
    const Extent x = i < lack_a ? Extent(1) : a[i - lack_a], y = i < lack_b ? Extent(1) : b[i - lack_b];
    if (x == y || are_equal(y, 1)) {
      out[i] = x;
    } else if (are_equal(x, 1)) {
      out[i] = y;
    } else {
      undecided(x);
    }
  }
  return out;
}

// Operators on sizes.

/// Elementwise on two lists, of which one may have one element.
template <class F>
std::optional<Results> elementwise(const Call& c, F f) {
  const auto a = numbers_of(c.value(0)), b = numbers_of(c.value(1));
  if (!a || !b || c.type(0) != c.type(1)) return {};
  const Sizes shapes[] = {c.shape(0), c.shape(1)};
  if (a->size() != b->size() && a->size() != 1 && b->size() != 1) return {};
  if (shapes[0].size() > 1 || shapes[1].size() > 1) return {};
  Numbers out;
  for (size_t i = 0; i < std::max(a->size(), b->size()); ++i) out.push_back(f((*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]));
  return Results{host_sizes(c.type(0), broadcast_shape(shapes), out)};
}

/// Rounding down is rounding to zero only of what is not negative.
Extent quotient(const Extent& a, const Extent& b) {
  if (a.min() < 0 || b.min() <= 0) undecided(a);
  return a / b;
}

template <class F>
std::optional<Results> compare(const Call& c, F f) {
  const auto out = elementwise(c, [&](const Extent& a, const Extent& b) { return Extent(int64_t(f(a, b))); });
  if (!out) return {};
  const HostArray* h = host_of((*out)[0]);
  return Results{host_value(HostArray::of(ElementType::bool_, h->shape, h->integers()))};
}

std::optional<Results> where_sizes(const Call& c) {
  const HostArray* condition = host_of(c.value(0));
  const auto a = numbers_of(c.value(1)), b = numbers_of(c.value(2));
  if (!condition || !a || !b || c.shape(1) != c.shape(0) || c.shape(2) != c.shape(0)) return {};
  const std::vector<int64_t> chosen = condition->integers();
  Numbers out;
  for (size_t i = 0; i < chosen.size(); ++i) out.push_back(chosen[i] ? (*a)[i] : (*b)[i]);
  return Results{host_sizes(c.type(1), c.shape(0), out)};
}

std::optional<Results> concat_sizes(const Call& c) {
  Numbers out;
  for (const Value& v : c.values()) {
    const auto part = numbers_of(v);
    if (!part || v.shape().size() != 1 || v.element_type() != c.type(0)) return {};
    out.insert(out.end(), part->begin(), part->end());
  }
  return Results{host_sizes(c.type(0), {int64_t(out.size())}, out)};
}

std::optional<Results> gather_sizes(const Call& c) {
  const HostArray* index = host_of(c.value(1));
  if (!index || is_float_type(index->type) || c.shape(0).size() != 1) return {};
  const Numbers& from = *detail::ValueAccess::sizes(c.value(0));
  const int64_t n = int64_t(from.size());
  Numbers out;
  for (int64_t i : index->integers()) {
    if (i < -n || i >= n) throw IndexError(fmt::format("the index {} for an axis of {} elements", i, n));
    out.push_back(from[size_t(i < 0 ? i + n : i)]);
  }
  return Results{host_sizes(c.type(0), index->shape, out)};
}

std::optional<Results> slice_sizes(const Call& c) {
  if (c.version() < 10 || c.shape(0).size() != 1) return {};
  const std::vector<int64_t> starts = c.integers(1), ends = c.integers(2), steps = c.has(4) ? c.integers(4) : std::vector<int64_t>{1};
  const Numbers& from = *detail::ValueAccess::sizes(c.value(0));
  if (starts.size() != 1 || ends.size() != 1 || steps != std::vector<int64_t>{1}) return {};
  const int64_t n = int64_t(from.size());
  const auto bounded = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? std::max(at, -n) + n : at, 0, n); };
  const int64_t begin = bounded(starts[0]), end = std::max(begin, bounded(ends[0]));
  const Numbers out(from.begin() + begin, from.begin() + end);
  return Results{host_sizes(c.type(0), {end - begin}, out)};
}

std::optional<Results> product_of_sizes(const Call& c) {
  if (c.shape(0).size() != 1 || c.has(1) || c.has_attribute("axes")) return {};
  Extent out(1);
  for (const Extent& e : *detail::ValueAccess::sizes(c.value(0))) out = out * e;
  return Results{host_sizes(c.type(0), c.flag("keepdims", true) ? Sizes{1} : Sizes{}, {out})};
}

std::optional<Results> cast_sizes(const Call& c) {
  const ElementType to = c.type_attribute("to", ElementType::undefined);
  if (!is_integer_type(to)) return {};
  for (const Extent& e : *detail::ValueAccess::sizes(c.value(0)))
    if (e.min() < integer_range(to).first || e.max() > integer_range(to).second) undecided(e);
  return Results{host_sizes(to, c.shape(0), *detail::ValueAccess::sizes(c.value(0)))};
}

// Operators on tensors of such sizes.

Results in_shape(const Call& c, const Extents& shape) {
  const Value& v = c.value(0);
  if (!has_sizes(v)) return results_like(v, v.tensor().reshape(shape));
  Sizes known;
  for (const Extent& e : shape) known.push_back(e.known() ? e.value() : (undecided(e), 0));
  const Numbers& sizes = *detail::ValueAccess::sizes(v);
  const auto rest = std::ranges::find(known, -1);
  if (rest != known.end()) {
    *rest = 1;
    *rest = int64_t(sizes.size()) / std::max<int64_t>(element_count(known), 1);
  }
  if (element_count(known) != int64_t(sizes.size())) c.fail("its input has another number of elements");
  return {host_sizes(v.element_type(), known, sizes)};
}

std::optional<Results> reshape(const Call& c) {
  if (c.version() < 5) return {};
  const auto wanted = numbers_of(c.value(1));
  if (!wanted) return {};
  const Extents in = shape_of(c.value(0));
  Extents shape;
  for (size_t i = 0; i < wanted->size(); ++i) {
    const Extent& e = (*wanted)[i];
    if (!e.known()) assume_at_least(e, 1);  // 0 and -1 say something else
    if (e.known() && e.value() == 0 && !c.flag("allowzero")) {
      if (i >= in.size()) c.fail("the shape takes a size from an axis that its input lacks");
      shape.push_back(in[i]);
    } else {
      shape.push_back(e);
    }
  }
  return in_shape(c, shape);
}

std::vector<int64_t> axes_of(const Call& c) {
  if (c.version() < 13) return c.attribute("axes", std::vector<int64_t>());
  return c.has(1) ? c.integers(1) : std::vector<int64_t>();
}

Results unsqueeze(const Call& c) {
  const Extents in = shape_of(c.value(0));
  const std::vector<int64_t> given = axes_of(c);
  std::vector<int> axes = normal_axes(c, given, in.size() + given.size());
  std::sort(axes.begin(), axes.end());
  Extents out = in;
  for (int a : axes) {
    if (a > int(out.size())) c.fail("an axis occurs twice");
    out.insert(out.begin() + a, Extent(1));
  }
  return in_shape(c, out);
}

Results squeeze(const Call& c) {
  const Extents in = shape_of(c.value(0));
  const std::vector<int> axes = normal_axes(c, axes_of(c), in.size());
  Extents out;
  for (size_t i = 0; i < in.size(); ++i) {
    const bool is_named = std::find(axes.begin(), axes.end(), int(i)) != axes.end(), may_go = is_named || axes.empty();
    if (may_go && are_equal(in[i], 1)) continue;
    if (is_named) c.fail(fmt::format("axis {} has more than one element", i));
    out.push_back(in[i]);
  }
  return in_shape(c, out);
}

Results flatten(const Call& c) {
  const Extents in = shape_of(c.value(0));
  int64_t axis = c.attribute("axis", 1);
  if (axis < 0) axis += int64_t(in.size());
  if (axis < 0 || axis > int64_t(in.size())) c.fail(fmt::format("the axis {}", axis));
  Extent rows(1), columns(1);
  for (size_t i = 0; i < in.size(); ++i) (int64_t(i) < axis ? rows : columns) = (int64_t(i) < axis ? rows : columns) * in[i];
  return in_shape(c, Extents{rows, columns});
}

Results expanded(const Value& v, const Extents& shape) {
  const Extents in = shape_of(v);
  Extents lead;
  lead.resize(shape.size() - in.size(), Extent(1));
  lead.insert(lead.end(), in.begin(), in.end());
  return results_like(v, v.tensor().reshape(lead).expand(shape));
}

std::optional<Results> expand(const Call& c) {
  const auto wanted = numbers_of(c.value(1));
  if (!wanted) return {};
  Extents shape;
  shape.assign(wanted->begin(), wanted->end());
  return expanded(c.value(0), broadcast(shape_of(c.value(0)), shape));
}

std::optional<Results> constant_of_shape(const Call& c) {
  Extents shape;
  shape.assign(detail::ValueAccess::sizes(c.value(0))->begin(), detail::ValueAccess::sizes(c.value(0))->end());
  for (const Extent& e : shape)
    if (e.min() < 0) undecided(e);
  const Value value = c.has_attribute("value") ? c.tensor_attribute("value")
                                               : host_value(HostArray::of(ElementType::float32, {1}, std::vector<double>{0.0}));
  return results_like(value, value.tensor().reshape(Sizes(shape.size(), 1)).expand(shape));
}

std::optional<Results> range(const Call& c) {
  const auto from = numbers_of(c.value(0)), to = numbers_of(c.value(1)), by = numbers_of(c.value(2));
  if (!from || !to || !by || c.type(0) != c.type(1) || c.type(0) != c.type(2)) return {};
  if (from->size() != 1 || to->size() != 1 || by->size() != 1 || !(*by)[0].known() || (*by)[0].value() != 1) return {};
  if (is_less((*to)[0], (*from)[0])) undecided((*to)[0]);
  return results(Tensor::arange((*from)[0], (*to)[0], 1, {.dtype = dtype_of(c.type(0))}));
}

/// Where a slice begins or ends in an axis of n elements.
Extent place_in(const Extent& at, const Extent& n) {
  if (at.known() && at.value() < 0) {
    if (at.value() < -n.max()) return 0;
    const Extent from_end = n + at;
    if (from_end.min() < 0) undecided(n);
    return from_end;
  }
  if (at.min() < 0) undecided(at);
  if (at == n || at.max() <= n.min()) return at;
  if (at.min() >= n.max()) return n;
  undecided(n);
}

std::optional<Results> slice(const Call& c) {
  if (c.version() < 10) return {};
  const Extents in = shape_of(c.value(0));
  const auto starts = numbers_of(c.value(1)), ends = numbers_of(c.value(2));
  if (!starts || !ends || starts->size() != ends->size()) return {};
  std::vector<int64_t> axes(starts->size());
  std::iota(axes.begin(), axes.end(), 0);
  if (c.has(3)) axes = c.integers(3);
  const std::vector<int64_t> steps = c.has(4) ? c.integers(4) : std::vector<int64_t>(starts->size(), 1);
  if (axes.size() != starts->size() || std::ranges::any_of(steps, [](int64_t s) { return s < 1; })) return {};
  if (steps.size() != axes.size()) return {};
  ExtentPairs bounds;
  for (const Extent& e : in) bounds.emplace_back(0, e);
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = size_t(normal_axis(c, axes[i], in.size()));
    const Extent begin = place_in((*starts)[i], in[axis]), end = place_in((*ends)[i], in[axis]);
    assume_at_least(end - begin, 0);
    bounds[axis] = {begin, end};
  }
  Tensor y = c.tensor(0).shrink(bounds);
  for (size_t i = 0; i < axes.size(); ++i)  // windows of one element
    if (steps[i] != 1) y = y.unfold(normal_axis(c, axes[i], in.size()), 1, steps[i]).squeeze(-1);
  return results_like(c.value(0), y);
}

/// Where the parts of an axis begin, and the last one ends; nothing where the operator itself says what is wrong.
std::optional<Numbers> places_of_parts(const Call& c, const Extent& n) {
  const int64_t count = int64_t(c.output_count());
  Numbers places{0};
  if (c.version() < 13 && c.has(1)) return {};
  if (c.version() >= 13 ? c.has(1) : c.has_attribute("split")) {
    for (int64_t size : c.version() >= 13 ? c.integers(1) : c.attribute("split", Sizes())) {
      if (size < 0) return {};
      places.push_back(places.back() + size);
    }
    return places.back() == n ? std::optional(places) : std::nullopt;
  }
  if (c.attribute("num_outputs", count) != count) return {};
  const Extent part = (n + (count - 1)) / count;
  for (int64_t i = 1; i < count; ++i) places.push_back(part * i);
  places.push_back(n);
  return places;
}

std::optional<Results> split(const Call& c) {
  const Extents in = shape_of(c.value(0));
  const size_t axis = size_t(normal_axis(c, c.attribute("axis", 0), in.size()));
  const auto places = places_of_parts(c, in[axis]);
  if (!places || places->size() != c.output_count() + 1) return {};
  Results out;
  for (size_t i = 0; i + 1 < places->size(); ++i) {
    ExtentPairs bounds;
    for (const Extent& e : in) bounds.emplace_back(0, e);
    bounds[axis] = {(*places)[i], (*places)[i + 1]};
    out.push_back(results_like(c.value(0), c.tensor(0).shrink(bounds))[0]);
  }
  return out;
}

std::optional<Results> gather(const Call& c) {
  const Extents in = shape_of(c.value(0));
  const size_t axis = size_t(normal_axis(c, c.attribute("axis", 0), in.size()));
  if (is_float_type(c.type(1))) return {};
  const Extent& n = in[axis];
  std::vector<Index> at(axis, Index(Slice{}));
  if (const HostArray* index = host_of(c.value(1))) {
    for (int64_t i : index->integers())
      if (i < -n.min() || i >= n.min()) undecided(n);
    if (index->shape.empty()) {
      const int64_t i = index->integers()[0];
      at.emplace_back(i < 0 ? n + i : Extent(i));
      return results_like(c.value(0), c.tensor(0).get_item(at));
    }
  }
  at.emplace_back(c.tensor(1).cast(DType::int64));
  return results_like(c.value(0), c.tensor(0).get_item(at));
}

std::optional<Results> shape(const Call& c) {
  const Extents in = shape_of(c.value(0));
  const int64_t n = int64_t(in.size());
  const auto bounded = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + n : at, 0, n); };
  const int64_t start = bounded(c.attribute("start", 0)), end = std::max(start, bounded(c.attribute("end", n)));
  return Results{host_sizes(ElementType::int64, {end - start}, {in.begin() + start, in.begin() + end})};
}

std::optional<Results> size(const Call& c) {
  Extent out(1);
  for (const Extent& e : shape_of(c.value(0))) out = out * e;
  return Results{host_sizes(ElementType::int64, {}, {out})};
}

std::optional<Results> pad(const Call& c) {
  if (c.version() < 11 || c.has(3) || c.choice("mode", {"constant", "reflect", "edge", "wrap"}) != "constant") return {};
  const std::vector<int64_t> pads = c.integers(1);
  const size_t rank = c.rank(0);
  if (pads.size() != 2 * rank || std::ranges::any_of(pads, [](int64_t p) { return p < 0 || p > (1 << 24); })) return {};
  ExtentPairs amounts;
  for (size_t i = 0; i < rank; ++i) amounts.emplace_back(pads[i], pads[i + rank]);
  const Tensor& x = c.tensor(0);
  return results_like(c.value(0), c.has(2) ? x.pad(amounts, c.tensor(2).reshape({}).cast(x.dtype())) : x.pad(amounts));
}

struct SizesRow {
  std::string_view name;
  std::optional<Results> (*run)(const Call&);
};

constexpr SizesRow of_sizes[] = {
    {"Add", [](const Call& c) { return elementwise(c, [](const Extent& a, const Extent& b) { return a + b; }); }},
    {"Sub", [](const Call& c) { return elementwise(c, [](const Extent& a, const Extent& b) { return a - b; }); }},
    {"Mul", [](const Call& c) { return elementwise(c, [](const Extent& a, const Extent& b) { return a * b; }); }},
    {"Div", [](const Call& c) { return elementwise(c, quotient); }},
    {"Equal", [](const Call& c) { return compare(c, are_equal); }},
    {"Less", [](const Call& c) { return compare(c, is_less); }},
    {"Greater", [](const Call& c) { return compare(c, [](const Extent& a, const Extent& b) { return is_less(b, a); }); }},
    {"Where", where_sizes},
    {"Concat", concat_sizes},
    {"Cast", [](const Call& c) { return has_sizes(c.value(0)) ? cast_sizes(c) : std::nullopt; }},
    {"Gather", [](const Call& c) { return has_sizes(c.value(0)) ? gather_sizes(c) : std::nullopt; }},
    {"Slice", [](const Call& c) { return has_sizes(c.value(0)) ? slice_sizes(c) : slice(c); }},
    {"ReduceProd", [](const Call& c) { return has_sizes(c.value(0)) ? product_of_sizes(c) : std::nullopt; }},
    {"Reshape", reshape},
    {"Expand", expand},
    {"ConstantOfShape", constant_of_shape},
    {"Range", range},
    {"Unsqueeze", [](const Call& c) { return std::optional(unsqueeze(c)); }},
    {"Squeeze", [](const Call& c) { return std::optional(squeeze(c)); }},
    {"Identity", [](const Call& c) { return std::optional(Results{c.value(0)}); }},
};

constexpr SizesRow of_tensors[] = {
    {"Shape", shape},
    {"Size", size},
    {"Reshape", reshape},
    {"Expand", expand},
    {"Slice", slice},
    {"Split", split},
    {"Gather", gather},
    {"Pad", pad},
    {"Unsqueeze", [](const Call& c) { return std::optional(unsqueeze(c)); }},
    {"Squeeze", [](const Call& c) { return std::optional(squeeze(c)); }},
    {"Flatten", [](const Call& c) { return std::optional(flatten(c)); }},
};

}  // namespace

std::optional<Results> with_sizes(const Call& call) {
  if (call.node().domain != onnx_domain) return {};
  const auto run = [&](std::span<const SizesRow> rows) -> std::optional<Results> {
    const auto row = std::ranges::find(rows, call.node().op_type, &SizesRow::name);
    return row == rows.end() ? std::nullopt : row->run(call);
  };
  if (std::ranges::any_of(call.values(), has_sizes))
    if (auto out = run(of_sizes)) return out;
  return std::ranges::any_of(call.values(), has_symbolic_shape) ? run(of_tensors) : std::nullopt;
}

}  // namespace tinygrad::onnx
