// Operators that take elements from where indices say, or put them there.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cmath>
#include <numeric>

#include <tinygrad/errors.h>

#include "frontend/onnx/operators.h"

namespace tinygrad::onnx {

namespace {

/// Indices from the end, as those from the start.
Tensor wrapped(const Tensor& index, int64_t n) {
  const Tensor wide = index.cast(DType::int64);
  return (wide < 0).where(wide + n, wide);
}

void check_indices(const Value& v, int64_t n) {
  if (is_float_type(v.element_type())) throw DTypeError(fmt::format("indices are {}, expected integers", v.to_string()));
  if (const HostArray* h = host_of(v))
    for (int64_t i : h->integers())
      if (i < -n || i >= n) throw IndexError(fmt::format("the index {} for an axis of {} elements", i, n));
}

/// Indices from the start, which are checked where the host knows them.
Tensor indices_of(const Value& v, int64_t n) {
  check_indices(v, n);
  return wrapped(v.tensor(), n);
}

std::vector<Index> at_axis(int axis, Index index) {
  std::vector<Index> indices(size_t(axis), Index(Slice{}));
  indices.push_back(std::move(index));
  return indices;
}

Results gather_texts(const Call& c, int axis) {
  const Strings& data = c.value(0).strings();
  std::vector<int64_t> places(data.values.size());
  std::iota(places.begin(), places.end(), 0);
  const Value index = host_value(c.host(1));
  check_indices(index, data.shape[size_t(axis)]);
  const Tensor there = Tensor(places, data.shape).get_item(at_axis(axis, index.tensor().cast(DType::int64)));
  host_count(c, there.shape());
  Strings out{.shape = there.shape()};
  for (int64_t p : there.tolist<int64_t>()) out.values.push_back(data.values[size_t(p)]);
  return {out};
}

Results gather(Call& c) {
  const Sizes in = c.shape(0);
  const int axis = normal_axis(c, c.attribute("axis", 0), in.size());
  if (c.value(0).kind() == Value::Kind::strings) return gather_texts(c, axis);
  const Tensor& x = c.tensor(0);
  if (const HostArray* index = host_of(c.value(1)); index && index->shape.empty()) {
    if (is_float_type(index->type)) throw DTypeError("the index is a float, expected an integer");
    const int64_t at = index->integers()[0], n = in[size_t(axis)];
    if (at < -n || at >= n) throw IndexError(fmt::format("the index {} for an axis of {} elements", at, n));
    return results_like(c.value(0), x.get_item(at_axis(axis, Index(at))));
  }
  check_indices(c.value(1), in[size_t(axis)]);
  return results_like(c.value(0), x.get_item(at_axis(axis, c.tensor(1).cast(DType::int64))));
}

Results gather_elements(Call& c) {
  const Tensor& x = c.tensor(0);
  const int axis = normal_axis(c, c.attribute("axis", 0), size_t(x.ndim()));
  return results_like(c.value(0), x.gather(axis, indices_of(c.value(1), x.size(axis))));
}

/// The places in the first axes, flattened to one, that the rows of `indices` name; `sizes` are of these axes. Where an index lies outside
/// of its axis it is `outside`.
Tensor flat_places(const Tensor& indices, const Sizes& sizes, int64_t outside) {
  Tensor out, is_inside;
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::vector<Index> at{Index(Ellipsis{}), Index(int64_t(i))};
    const Tensor part = wrapped(indices.get_item(at), sizes[i]);
    const Tensor fits = (part >= 0) & (part < sizes[i]);
    is_inside = out.defined() ? is_inside & fits : fits;
    out = out.defined() ? out * sizes[i] + part : part;
  }
  if (out.defined()) return is_inside.where(out, outside);
  Sizes shape = indices.shape();
  shape.pop_back();
  return Tensor::zeros(shape, {.dtype = DType::int64});
}

Results gather_nd(Call& c) {
  const Tensor &x = c.tensor(0), &indices = c.tensor(1);
  const size_t batch = size_t(c.attribute_within("batch_dims", 0, 0, x.ndim()));
  const Sizes in = x.shape(), at = indices.shape();
  const auto same_batches = [&] { return std::equal(in.begin(), in.begin() + int64_t(batch), at.begin()); };
  if (at.empty() || batch >= at.size() || batch + size_t(at.back()) > in.size() || !same_batches())
    c.fail(fmt::format("indices of the shape ({}) into ({})", fmt::join(at, ", "), fmt::join(in, ", ")));
  const size_t depth = size_t(at.back());
  const Sizes batch_sizes(in.begin(), in.begin() + int64_t(batch));
  const Sizes named(in.begin() + int64_t(batch), in.begin() + int64_t(batch + depth)), rest(in.begin() + int64_t(batch + depth), in.end());
  const int64_t batches = element_count(batch_sizes), places = element_count(named);
  Tensor flat = flat_places(indices, named, batches * places).reshape({batches, -1});
  if (batches != 1) flat = flat + (Tensor::arange(batches, {.dtype = DType::int64}) * places).reshape({batches, 1});
  Sizes rows{batches * places}, shape(at.begin(), at.end() - 1);
  rows.insert(rows.end(), rest.begin(), rest.end());
  shape.insert(shape.end(), rest.begin(), rest.end());
  return results_like(c.value(0), x.reshape(rows)[flat.flatten()].reshape(shape));
}

Tensor scatter(const Call& c, const Tensor& x, int axis, const Tensor& index, const Tensor& updates) {
  const std::string reduction = c.choice("reduction", {"none", "add", "mul", "max", "min"});
  if (index.shape() != updates.shape())
    throw ShapeError(fmt::format("indices ({}) and updates ({})", fmt::join(index.shape(), ", "), fmt::join(updates.shape(), ", ")));
  if (reduction == "none") return x.scatter(axis, index, updates);
  const ScatterMode mode = reduction == "add"   ? ScatterMode::sum
                           : reduction == "mul" ? ScatterMode::prod
                           : reduction == "max" ? ScatterMode::amax
                                                : ScatterMode::amin;
  return x.scatter_reduce(axis, index, updates, mode);
}

Results scatter_elements(Call& c) {
  const Tensor& x = c.tensor(0);
  const int axis = normal_axis(c, c.attribute("axis", 0), size_t(x.ndim()));
  return results_like(c.value(0), scatter(c, x, axis, indices_of(c.value(1), x.size(axis)), c.tensor(2)));
}

Results scatter_nd(Call& c) {
  const Tensor &x = c.tensor(0), &indices = c.tensor(1), &updates = c.tensor(2);
  const Sizes in = x.shape(), at = indices.shape();
  if (at.empty() || size_t(at.back()) > in.size())
    c.fail(fmt::format("indices of the shape ({}) into ({})", fmt::join(at, ", "), fmt::join(in, ", ")));
  const Sizes named(in.begin(), in.begin() + at.back()), rest(in.begin() + at.back(), in.end());
  const int64_t width = element_count(rest), places = element_count(named);
  const Tensor flat = flat_places(indices, named, places).flatten();
  const int64_t count = flat.numel();
  Sizes wanted(at.begin(), at.end() - 1);
  wanted.insert(wanted.end(), rest.begin(), rest.end());
  if (updates.shape() != wanted)
    throw ShapeError(fmt::format("updates of ({}), expected ({})", fmt::join(updates.shape(), ", "), fmt::join(wanted, ", ")));
  if (count == 0) return {c.value(0)};
  const Tensor index = flat.reshape({count, 1}).expand({count, width});
  return results_like(c.value(0), scatter(c, x.reshape({places, width}), 0, index, updates.reshape({count, width})).reshape(in));
}

/// Rows of a cache written over from an index on, a different one for each element of the batch.
Results tensor_scatter(Call& c) {
  const Tensor &past = c.tensor(0), &update = c.tensor(1);
  const int axis = normal_axis(c, c.attribute("axis", -2), size_t(past.ndim()));
  const int64_t n = past.size(axis), length = update.size(axis);
  Sizes along_axis(size_t(past.ndim()), 1), along_batch(size_t(past.ndim()), 1);
  along_axis[size_t(axis)] = n;
  along_batch[0] = past.size(0);
  Tensor place = Tensor::arange(n, {.dtype = DType::int64}).reshape(along_axis);
  if (c.has(2)) place = place - c.tensor(2).reshape(along_batch);
  if (c.choice("mode", {"linear", "circular"}) == "circular") place = place.mod(n);
  const Tensor is_written = (place >= 0) & (place < length);
  const Tensor from = update.gather(axis, is_written.where(place, 0).expand(past.shape()));
  return results_like(c.value(0), is_written.where(from, past));
}

Results one_hot(Call& c) {
  const Tensor &indices = c.tensor(0), &values = c.tensor(2);
  const double named = c.number(1);  // of any type
  if (!(named >= 1 && named < 0x1p31)) c.fail(fmt::format("the depth {}", named));
  const int64_t depth = int64_t(named);
  if (values.shape() != Sizes{2}) c.fail(fmt::format("expects the values off and on, got {}", values.to_string()));
  const int rank = indices.ndim();
  const int axis = normal_axis(c, c.attribute("axis", -1), size_t(rank) + 1);
  Sizes along(size_t(rank) + 1, 1);
  along[size_t(axis)] = depth;
  const Tensor is_hot = wrapped(indices, depth).unsqueeze(axis) == Tensor::arange(depth, {.dtype = DType::int64}).reshape(along);
  return results(is_hot.where(values[1], values[0]));
}

Results top_k(Call& c) {
  const Tensor& x = c.tensor(0);
  const int axis = normal_axis(c, c.attribute("axis", -1), size_t(x.ndim()));
  const int64_t k = c.version() < 10 ? c.required_integer("k") : c.integer(1);
  if (k < 0 || k > x.size(axis)) c.fail(fmt::format("{} of an axis of {} elements", k, x.size(axis)));
  const ValuesAndIndices out = x.topk(k, axis, c.flag("largest", true));
  return {Value(out.values), Value(out.indices.cast(DType::int64))};
}

Results non_zero(Call& c) {
  const HostArray x = c.host(0);
  const std::vector<double> numbers = x.numbers();
  const Sizes shape = x.shape.empty() ? Sizes{1} : x.shape;  // a scalar is a vector of one
  std::vector<std::vector<int64_t>> found(shape.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] == 0) continue;
    int64_t place = int64_t(i);
    for (size_t a = shape.size(); a-- > 0; place /= shape[a]) found[a].push_back(place % shape[a]);
  }
  std::vector<int64_t> all;
  for (const auto& axis : found) all.insert(all.end(), axis.begin(), axis.end());
  return {host_value(HostArray::of(ElementType::int64, {int64_t(shape.size()), int64_t(found[0].size())}, all))};
}

Results compress(Call& c) {
  Tensor x = c.tensor(0);
  int axis = 0;
  if (c.has_attribute("axis"))
    axis = normal_axis(c, c.attribute("axis", 0), size_t(x.ndim()));
  else
    x = x.flatten();
  std::vector<int64_t> taken;
  const std::vector<int64_t> condition = c.integers(1);
  for (size_t i = 0; i < condition.size(); ++i)
    if (condition[i]) taken.push_back(int64_t(i));
  if (!taken.empty() && taken.back() >= x.size(axis))
    c.fail(fmt::format("a condition for {} elements of an axis of {}", condition.size(), x.size(axis)));
  if (taken.empty()) {
    std::vector<std::pair<int64_t, int64_t>> bounds;
    for (int i = 0; i < x.ndim(); ++i) bounds.push_back({0, i == axis ? 0 : x.size(i)});
    return results_like(c.value(0), x.shrink(bounds));
  }
  return results_like(c.value(0), x.get_item(at_axis(axis, Index(Tensor(taken)))));
}

/// Which slices along an axis are the first of their kind, how often each occurs and which of them each is.
struct Distinct {
  std::vector<int64_t> first, counts, of_each;
};
template <class Less>
Distinct distinct(int64_t n, bool is_sorted, Less less) {
  std::vector<int64_t> order(size_t(n), 0);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), less);
  Distinct out;
  out.of_each.resize(size_t(n));
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || less(order[i - 1], order[i])) {
      out.first.push_back(order[i]);
      out.counts.push_back(0);
    }
    ++out.counts.back();
    out.of_each[size_t(order[i])] = int64_t(out.first.size()) - 1;
  }
  if (is_sorted) return out;
  std::vector<size_t> by_place(out.first.size());
  std::iota(by_place.begin(), by_place.end(), 0);
  std::sort(by_place.begin(), by_place.end(), [&](size_t a, size_t b) { return out.first[a] < out.first[b]; });
  Distinct there{.first = {}, .counts = {}, .of_each = std::vector<int64_t>(size_t(n))};
  std::vector<int64_t> now(by_place.size());
  for (size_t i = 0; i < by_place.size(); ++i) {
    now[by_place[i]] = int64_t(i);
    there.first.push_back(out.first[by_place[i]]);
    there.counts.push_back(out.counts[by_place[i]]);
  }
  for (size_t i = 0; i < there.of_each.size(); ++i) there.of_each[i] = now[size_t(out.of_each[i])];
  return there;
}

Results unique(Call& c) {
  const bool is_sorted = c.flag("sorted", true);
  Distinct d;
  Results out;
  if (c.value(0).kind() == Value::Kind::strings) {
    const Strings& x = c.value(0).strings();
    d = distinct(int64_t(x.values.size()), is_sorted, [&](int64_t a, int64_t b) { return x.values[size_t(a)] < x.values[size_t(b)]; });
    Strings first{.shape = {int64_t(d.first.size())}};
    for (int64_t i : d.first) first.values.push_back(x.values[size_t(i)]);
    out.push_back(first);
  } else {
    const HostArray x = c.host(0);
    const std::vector<double> numbers = x.numbers();
    const std::vector<int64_t> integers = is_float_type(x.type) ? std::vector<int64_t>() : x.integers();
    const bool has_axis = c.has_attribute("axis");
    const int axis = has_axis ? normal_axis(c, c.attribute("axis", 0), x.shape.size()) : 0;
    const int64_t n = has_axis ? x.shape[size_t(axis)] : x.numel();
    const int64_t inner = has_axis ? count_of(x.shape, size_t(axis) + 1, x.shape.size()) : 1;
    const int64_t outer = has_axis ? count_of(x.shape, 0, size_t(axis)) : 1;
    const auto is_nan = [](double v) { return std::isnan(v); };  // equal to one another, and greater than numbers
    const auto less = [&](int64_t a, int64_t b) {
      for (int64_t o = 0; o < outer; ++o) {
        for (int64_t i = 0; i < inner; ++i) {
          const size_t at = size_t((o * n + a) * inner + i), bt = size_t((o * n + b) * inner + i);
          if (!integers.empty() && integers[at] != integers[bt]) return integers[at] < integers[bt];
          if (!integers.empty() || numbers[at] == numbers[bt] || (is_nan(numbers[at]) && is_nan(numbers[bt]))) continue;
          return is_nan(numbers[bt]) ? true : is_nan(numbers[at]) ? false : numbers[at] < numbers[bt];
        }
      }
      return false;
    };
    d = distinct(n, is_sorted, less);
    const Tensor from = has_axis ? c.tensor(0) : c.tensor(0).flatten();
    out.push_back(results_like(c.value(0), from.get_item(at_axis(axis, Index(Tensor(d.first)))))[0]);
  }
  for (const auto* list : {&d.first, &d.of_each, &d.counts}) out.push_back(host_integers(*list));
  return out;
}

Results array_feature_extractor(Call& c) {
  const Tensor& x = c.tensor(0);
  const Tensor index = indices_of(c.value(1), x.size(-1)).flatten();
  const Tensor out = x.get_item(at_axis(x.ndim() - 1, index));
  return results(x.ndim() == 1 ? out.reshape({1, index.numel()}) : out);
}

constexpr OperatorRow rows[] = {
    {onnx_domain, "Compress", 9, compress},
    {onnx_domain, "Gather", 1, gather},
    {onnx_domain, "GatherElements", 11, gather_elements},
    {onnx_domain, "GatherND", 11, gather_nd},
    {onnx_domain, "NonZero", 9, non_zero},
    {onnx_domain, "OneHot", 9, one_hot},
    {onnx_domain, "Scatter", 9, scatter_elements},
    {onnx_domain, "ScatterElements", 11, scatter_elements},
    {onnx_domain, "ScatterND", 11, scatter_nd},
    {onnx_domain, "TensorScatter", 24, tensor_scatter},
    {onnx_domain, "TopK", 1, top_k},
    {onnx_domain, "Unique", 11, unique},
    {ml_domain, "ArrayFeatureExtractor", 1, array_feature_extractor},
};

}  // namespace

std::span<const OperatorRow> indexing_operators() { return rows; }

}  // namespace tinygrad::onnx
