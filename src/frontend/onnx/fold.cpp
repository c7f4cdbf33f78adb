// Operators on what the host knows: sizes of shapes and what is computed of them.
#include <fmt/core.h>

#include <cmath>
#include <numeric>

#include <tinygrad/errors.h>

#include "frontend/onnx/operators.h"

namespace tinygrad::onnx {

namespace {

constexpr int64_t most_elements = 4096, most_floats = 8;  // more are left to devices; floats may be weights that are trained

/// A tensor's elements as numbers of one of two kinds.
struct Array {
  ElementType type = ElementType::undefined;
  Sizes shape;
  bool is_float = false;
  std::vector<int64_t> integers;
  std::vector<double> floats;

  size_t size() const { return is_float ? floats.size() : integers.size(); }
  double number(size_t i) const { return is_float ? floats[i] : double(integers[i]); }
  Value value() const { return host_value(is_float ? HostArray::of(type, shape, floats) : HostArray::of(type, shape, integers)); }
};

Array array_of(const HostArray& h) {
  Array a{.type = h.type, .shape = h.shape, .is_float = is_float_type(h.type), .integers = {}, .floats = {}};
  if (a.is_float)
    a.floats = h.numbers();
  else
    a.integers = h.integers();
  return a;
}

/// The array with elements taken from these places of it.
Array taken(const Array& from, Sizes shape, std::span<const int64_t> places) {
  Array out{.type = from.type, .shape = std::move(shape), .is_float = from.is_float, .integers = {}, .floats = {}};
  for (int64_t p : places) {
    if (from.is_float)
      out.floats.push_back(from.floats[size_t(p)]);
    else
      out.integers.push_back(from.integers[size_t(p)]);
  }
  return out;
}

/// Of a shape with elements; there are none to find in others.
Sizes strides_of(const Sizes& shape) {
  Sizes out(shape.size(), 1);
  if (element_count(shape) == 0) return out;
  for (size_t i = shape.size(); i-- > 1;) out[i - 1] = out[i] * shape[i];
  return out;
}

/// Calls f with each index into the shape, row-major.
template <class F>
void each_index(const Sizes& shape, F f) {
  Sizes index(shape.size(), 0);
  for (int64_t n = element_count(shape); n > 0; --n) {
    f(index);
    for (size_t a = shape.size(); a-- > 0;) {
      if (++index[a] < shape[a]) break;
      index[a] = 0;
    }
  }
}

/// The places of elements as they stand when broadcast to `to`.
std::vector<int64_t> broadcast_places(const Sizes& from, const Sizes& to) {
  const Sizes strides = strides_of(from);
  const size_t lead = to.size() - from.size();
  std::vector<int64_t> out;
  each_index(to, [&](const Sizes& index) {
    int64_t place = 0;
    for (size_t a = 0; a < from.size(); ++a) place += from[a] == 1 ? 0 : index[a + lead] * strides[a];
    out.push_back(place);
  });
  return out;
}

Array broadcast(const Array& a, const Sizes& to) { return a.shape == to ? a : taken(a, to, broadcast_places(a.shape, to)); }

using IntegerFunction = int64_t (*)(int64_t, int64_t);
using FloatFunction = double (*)(double, double);
struct BinaryRow {
  std::string_view name;
  IntegerFunction of_integers;
  FloatFunction of_floats;
  bool gives_bools = false;
};

int64_t wrapping(int64_t a, int64_t b, char op) {
  const uint64_t x = uint64_t(a), y = uint64_t(b);
  return int64_t(op == '+' ? x + y : op == '-' ? x - y : x * y);
}
int64_t floor_mod(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;
  const int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
int64_t divided(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? wrapping(0, a, '-') : a / b; }
int64_t power(int64_t a, int64_t b) {
  int64_t out = 1;
  for (; b > 0; b >>= 1, a = wrapping(a, a, '*'))
    if (b & 1) out = wrapping(out, a, '*');
  return out;
}

constexpr BinaryRow binary_rows[] = {
    {"Add", [](int64_t a, int64_t b) { return wrapping(a, b, '+'); }, [](double a, double b) { return a + b; }},
    {"Sub", [](int64_t a, int64_t b) { return wrapping(a, b, '-'); }, [](double a, double b) { return a - b; }},
    {"Mul", [](int64_t a, int64_t b) { return wrapping(a, b, '*'); }, [](double a, double b) { return a * b; }},
    {"Div", divided, [](double a, double b) { return a / b; }},
    {"Mod", floor_mod, nullptr},
    {"Pow", power, [](double a, double b) { return std::pow(a, b); }},
    {"Max", [](int64_t a, int64_t b) { return std::max(a, b); }, [](double a, double b) { return std::isnan(b) ? b : std::max(a, b); }},
    {"Min", [](int64_t a, int64_t b) { return std::min(a, b); }, [](double a, double b) { return std::isnan(b) ? b : std::min(a, b); }},
    {"Equal", [](int64_t a, int64_t b) { return int64_t(a == b); }, [](double a, double b) { return double(a == b); }, true},
    {"Less", [](int64_t a, int64_t b) { return int64_t(a < b); }, [](double a, double b) { return double(a < b); }, true},
    {"LessOrEqual", [](int64_t a, int64_t b) { return int64_t(a <= b); }, [](double a, double b) { return double(a <= b); }, true},
    {"Greater", [](int64_t a, int64_t b) { return int64_t(a > b); }, [](double a, double b) { return double(a > b); }, true},
    {"GreaterOrEqual", [](int64_t a, int64_t b) { return int64_t(a >= b); }, [](double a, double b) { return double(a >= b); }, true},
    {"And", [](int64_t a, int64_t b) { return int64_t(a && b); }, nullptr},
    {"Or", [](int64_t a, int64_t b) { return int64_t(a || b); }, nullptr},
    {"Xor", [](int64_t a, int64_t b) { return int64_t((a != 0) != (b != 0)); }, nullptr},
};

struct UnaryRow {
  std::string_view name;
  int64_t (*of_integers)(int64_t);
  double (*of_floats)(double);
};
constexpr UnaryRow unary_rows[] = {
    {"Neg", [](int64_t a) { return wrapping(0, a, '-'); }, [](double a) { return -a; }},
    {"Abs", [](int64_t a) { return a < 0 ? wrapping(0, a, '-') : a; }, [](double a) { return std::fabs(a); }},
    {"Sign", [](int64_t a) { return int64_t((a > 0) - (a < 0)); }, [](double a) { return std::isnan(a) ? a : double((a > 0) - (a < 0)); }},
    {"Not", [](int64_t a) { return int64_t(a == 0); }, nullptr},
    {"Floor", nullptr, [](double a) { return std::floor(a); }},
    {"Ceil", nullptr, [](double a) { return std::ceil(a); }},
    {"Round", nullptr, [](double a) { return std::nearbyint(a); }},
    {"Sqrt", nullptr, [](double a) { return std::sqrt(a); }},
    {"Relu", [](int64_t a) { return std::max<int64_t>(a, 0); }, [](double a) { return a < 0 ? 0 : a; }},
};

std::optional<Results> fold_unary(const UnaryRow& row, Array a) {
  if ((a.is_float ? !row.of_floats : !row.of_integers) || (row.name == "Not" && a.type != ElementType::bool_)) return {};
  for (double& x : a.floats) x = row.of_floats(x);
  for (int64_t& x : a.integers) x = row.of_integers(x);
  return Results{a.value()};
}

std::optional<Results> fold_binary(const Call& call, const BinaryRow& row, const std::vector<Array>& inputs) {
  if (inputs.empty() || (inputs.size() != 2 && row.name != "Max" && row.name != "Min")) return {};
  if (call.has_attribute("fmod") || call.has_attribute("axis") || call.has_attribute("broadcast")) return {};
  Array out = inputs[0];
  for (size_t i = 1; i < inputs.size(); ++i) {
    const Array& with = inputs[i];
    if (with.is_float != out.is_float || (out.type != with.type && row.name != "Pow")) return {};
    if (out.is_float ? !row.of_floats : !row.of_integers) return {};
    if ((row.name == "And" || row.name == "Or" || row.name == "Xor") && out.type != ElementType::bool_) return {};
    if (row.name == "Pow" && !with.is_float && std::any_of(with.integers.begin(), with.integers.end(), [](int64_t x) { return x < 0; }))
      return {};
    if (row.name == "Div" && !with.is_float && std::find(with.integers.begin(), with.integers.end(), 0) != with.integers.end()) return {};
    const Sizes shapes[] = {out.shape, with.shape};
    const Sizes shape = broadcast_shape(shapes);
    if (element_count(shape) > most_elements) return {};
    out = broadcast(out, shape);
    const Array b = broadcast(with, shape);
    for (size_t k = 0; k < out.floats.size(); ++k) out.floats[k] = row.of_floats(out.floats[k], b.floats[k]);
    for (size_t k = 0; k < out.integers.size(); ++k) out.integers[k] = row.of_integers(out.integers[k], b.integers[k]);
  }
  if (row.gives_bools) {
    if (out.is_float) out.integers.assign(out.floats.begin(), out.floats.end());
    out.is_float = false;
    out.type = ElementType::bool_;
  }
  return Results{out.value()};
}

std::optional<Results> fold_where(const std::vector<Array>& inputs) {
  if (inputs.size() != 3 || inputs[0].type != ElementType::bool_ || inputs[1].type != inputs[2].type) return {};
  const Sizes shapes[] = {inputs[0].shape, inputs[1].shape, inputs[2].shape};
  const Sizes shape = broadcast_shape(shapes);
  if (element_count(shape) > most_elements) return {};
  const Array c = broadcast(inputs[0], shape), y = broadcast(inputs[2], shape);
  Array x = broadcast(inputs[1], shape);
  for (size_t i = 0; i < c.integers.size(); ++i) {
    if (c.integers[i]) continue;
    if (x.is_float)
      x.floats[i] = y.floats[i];
    else
      x.integers[i] = y.integers[i];
  }
  return Results{x.value()};
}

std::optional<Results> fold_concat(const Call& call, const std::vector<Array>& inputs) {
  const size_t rank = inputs[0].shape.size();
  const size_t axis = size_t(normal_axis(call, call.attribute("axis", 1), rank));
  Sizes shape = inputs[0].shape;
  shape[axis] = 0;
  Array all = inputs[0];  // of all elements, one input after another
  std::vector<int64_t> begins;
  all.integers.clear();
  all.floats.clear();
  for (const Array& a : inputs) {
    if (a.type != all.type || a.shape.size() != rank) return {};
    begins.push_back(int64_t(all.size()));
    shape[axis] += a.shape[axis];
    all.integers.insert(all.integers.end(), a.integers.begin(), a.integers.end());
    all.floats.insert(all.floats.end(), a.floats.begin(), a.floats.end());
  }
  for (const Array& a : inputs)
    for (size_t i = 0; i < rank; ++i)
      if (i != axis && a.shape[i] != shape[i]) return {};
  std::vector<int64_t> places;
  each_index(shape, [&](Sizes index) {
    size_t of = 0;
    for (; index[axis] >= inputs[of].shape[axis]; ++of) index[axis] -= inputs[of].shape[axis];
    const Sizes strides = strides_of(inputs[of].shape);
    places.push_back(begins[of] + std::inner_product(index.begin(), index.end(), strides.begin(), int64_t{0}));
  });
  return Results{taken(all, shape, places).value()};
}

std::optional<Results> fold_gather(const Call& call, const Array& data, const Array& indices) {
  if (indices.is_float) return {};
  const size_t rank = data.shape.size(), axis = size_t(normal_axis(call, call.attribute("axis", 0), rank));
  Sizes shape(data.shape.begin(), data.shape.begin() + int64_t(axis));
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), data.shape.begin() + int64_t(axis) + 1, data.shape.end());
  if (element_count(shape) > most_elements) return {};
  const Sizes strides = strides_of(data.shape), index_strides = strides_of(indices.shape);
  std::vector<int64_t> places;
  each_index(shape, [&](const Sizes& index) {
    int64_t at = 0, place = 0;
    for (size_t a = 0; a < indices.shape.size(); ++a) at += index[axis + a] * index_strides[a];
    int64_t chosen = indices.integers[size_t(at)];
    if (chosen < 0) chosen += data.shape[axis];
    if (chosen < 0 || chosen >= data.shape[axis])
      throw IndexError(fmt::format("the index {} for an axis of {} elements", indices.integers[size_t(at)], data.shape[axis]));
    for (size_t a = 0; a < axis; ++a) place += index[a] * strides[a];
    for (size_t a = axis + 1; a < rank; ++a) place += index[a - 1 + indices.shape.size()] * strides[a];
    places.push_back(place + chosen * strides[axis]);
  });
  return Results{taken(data, shape, places).value()};
}

std::optional<Results> fold_slice(const Call& call, const std::vector<Array>& inputs) {
  const Array& data = inputs[0];
  const size_t rank = data.shape.size();
  std::vector<int64_t> starts, ends, axes, steps;
  if (call.version() < 10) {
    starts = call.required_integers("starts");
    ends = call.required_integers("ends");
    axes = call.attribute("axes", axes);
  } else {
    if (inputs.size() < 3 || std::any_of(inputs.begin() + 1, inputs.end(), [](const Array& a) { return a.is_float; })) return {};
    starts = inputs[1].integers;
    ends = inputs[2].integers;
    if (call.has(3)) axes = inputs[3].integers;
    if (call.has(4)) steps = inputs.back().integers;
  }
  if (axes.empty()) axes.resize(starts.size()), std::iota(axes.begin(), axes.end(), 0);
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size()) return {};
  Sizes shape = data.shape, first(rank, 0), step(rank, 1);
  for (size_t i = 0; i < starts.size(); ++i) {
    const size_t a = size_t(normal_axis(call, axes[i], rank));
    // No step need be longer than the axis.
    const int64_t n = data.shape[a], s = std::clamp<int64_t>(steps[i], -n - 1, n + 1);
    if (s == 0) return {};
    const auto bounded = [&](int64_t at) {
      return std::clamp<int64_t>(at < 0 ? std::max(at, -n - 1) + n : at, s > 0 ? 0 : -1, s > 0 ? n : n - 1);
    };
    const int64_t begin = bounded(starts[i]), end = bounded(ends[i]);
    first[a] = begin;
    step[a] = s;
    shape[a] = s > 0 ? std::max<int64_t>(0, (end - begin - 1) / s + (end > begin))
                     : std::max<int64_t>(0, begin > end ? (begin - end - 1) / -s + 1 : 0);
  }
  const Sizes strides = strides_of(data.shape);
  std::vector<int64_t> places;
  each_index(shape, [&](const Sizes& index) {
    int64_t place = 0;
    for (size_t a = 0; a < rank; ++a) place += (first[a] + index[a] * step[a]) * strides[a];
    places.push_back(place);
  });
  return Results{taken(data, shape, places).value()};
}

/// Reductions over all elements of a vector, which are what shapes need.
std::optional<Results> fold_reduce(const Call& call, std::string_view kind, const std::vector<Array>& inputs) {
  const Array& a = inputs[0];
  if (a.is_float || a.shape.size() != 1 || a.shape[0] == 0 || a.type == ElementType::bool_) return {};
  if (call.flag("noop_with_empty_axes") || call.has_attribute("axes")) {
    const std::vector<int64_t> axes = call.attribute("axes", std::vector<int64_t>());
    if (call.flag("noop_with_empty_axes") || axes.size() != 1 || (axes[0] != 0 && axes[0] != -1)) return {};
  }
  int64_t out = kind == "ReduceProd" ? 1 : kind == "ReduceSum" ? 0 : a.integers[0];
  for (int64_t x : a.integers)
    out = kind == "ReduceProd"  ? wrapping(out, x, '*')
          : kind == "ReduceSum" ? wrapping(out, x, '+')
          : kind == "ReduceMax" ? std::max(out, x)
                                : std::min(out, x);
  Sizes shape;
  if (call.flag("keepdims", true)) shape.push_back(1);
  return Results{host_value(HostArray::of(a.type, shape, std::vector<int64_t>{out}))};
}

std::optional<Results> fold_range(const std::vector<Array>& inputs) {
  if (inputs.size() != 3 || inputs[0].size() != 1 || inputs[1].size() != 1 || inputs[2].size() != 1) return {};
  if (inputs[1].type != inputs[0].type || inputs[2].type != inputs[0].type) return {};
  const double start = inputs[0].number(0), limit = inputs[1].number(0), delta = inputs[2].number(0);
  if (delta == 0) throw ValueError("a range with a step of 0");
  const double count = std::max(0.0, std::ceil((limit - start) / delta));
  if (!(count <= double(most_elements))) return {};
  Array out{.type = inputs[0].type, .shape = {int64_t(count)}, .is_float = inputs[0].is_float, .integers = {}, .floats = {}};
  for (int64_t i = 0; i < int64_t(count); ++i) {
    if (out.is_float)
      out.floats.push_back(start + double(i) * delta);
    else
      out.integers.push_back(wrapping(inputs[0].integers[0], wrapping(i, inputs[2].integers[0], '*'), '+'));
  }
  return Results{out.value()};
}

std::optional<Results> fold_cast(const Call& call, const Array& a) {
  const ElementType to = call.type_attribute("to", ElementType::undefined);
  if (to == ElementType::undefined || to == ElementType::string || is_low_bit(to) || is_fp8(dtype_of(to))) return {};
  if (to == ElementType::bool_ || !is_float_type(to)) {
    Array out{.type = to, .shape = a.shape, .is_float = false, .integers = {}, .floats = {}};
    for (size_t i = 0; i < a.size(); ++i) {
      if (a.is_float && !(std::fabs(a.floats[i]) < 0x1p62)) return {};
      out.integers.push_back(to == ElementType::bool_ ? a.number(i) != 0 : a.is_float ? int64_t(a.floats[i]) : a.integers[i]);
    }
    return Results{out.value()};
  }
  return Results{host_value(a.is_float ? HostArray::of(to, a.shape, a.floats) : HostArray::of(to, a.shape, a.integers))};
}

std::optional<Results> fold_transpose(const Call& call, const Array& a) {
  const size_t rank = a.shape.size();
  std::vector<int64_t> order = call.attribute("perm", std::vector<int64_t>());
  if (order.empty())
    for (size_t i = rank; i-- > 0;) order.push_back(int64_t(i));
  std::vector<int64_t> sorted = order, all(rank);
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  if (sorted != all) return {};
  Sizes shape;
  for (int64_t o : order) shape.push_back(a.shape.at(size_t(o)));
  const Sizes strides = strides_of(a.shape);
  std::vector<int64_t> places;
  each_index(shape, [&](const Sizes& index) {
    int64_t place = 0;
    for (size_t i = 0; i < rank; ++i) place += index[i] * strides[size_t(order[i])];
    places.push_back(place);
  });
  return Results{taken(a, shape, places).value()};
}

/// Whether elements may be computed here: integers and bools, and few floats.
bool is_foldable(const HostArray& h) {
  switch (h.type) {
    case ElementType::uint8:
    case ElementType::int8:
    case ElementType::uint16:
    case ElementType::int16:
    case ElementType::int32:
    case ElementType::int64:
    case ElementType::uint32:
    case ElementType::bool_: return h.numel() <= most_elements;
    case ElementType::float32:
    case ElementType::float64:
    case ElementType::float16: return h.numel() <= most_floats;
    default: return false;
  }
}

}  // namespace

std::optional<Results> fold(const Call& call) {
  if (call.node().domain != onnx_domain || call.input_count() == 0) return {};
  const std::string_view op = call.node().op_type;
  std::vector<Array> inputs;
  for (size_t i = 0; i < call.input_count(); ++i) {
    const Value& v = call.values()[i];
    const HostArray* h = host_of(v);
    const bool may_lack = op == "Slice" && i == 3;
    if (v.present() ? !h || !is_foldable(*h) : !may_lack) return {};
    if (h) inputs.push_back(array_of(*h));
  }
  if (inputs.empty()) return {};
  for (const UnaryRow& row : unary_rows)
    if (row.name == op) return fold_unary(row, inputs[0]);
  for (const BinaryRow& row : binary_rows)
    if (row.name == op) return fold_binary(call, row, inputs);
  if (op == "Cast") return fold_cast(call, inputs[0]);
  if (op == "Concat") return fold_concat(call, inputs);
  if (op == "Gather" && inputs.size() == 2) return fold_gather(call, inputs[0], inputs[1]);
  if (op == "Slice") return fold_slice(call, inputs);
  if (op == "Where") return fold_where(inputs);
  if (op == "Range") return fold_range(inputs);
  if (op == "Transpose") return fold_transpose(call, inputs[0]);
  if (op == "ReduceProd" || op == "ReduceSum" || op == "ReduceMax" || op == "ReduceMin") {
    if (inputs.size() > 1 && (inputs[1].is_float || inputs[1].size() != 1 || (inputs[1].integers[0] != 0 && inputs[1].integers[0] != -1)))
      return {};
    return fold_reduce(call, op, inputs);
  }
  return {};
}

}  // namespace tinygrad::onnx
