#include "spec/value.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tinygrad/errors.h>

namespace tinygrad::spec {

int64_t product(std::span<const int64_t> sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

Sizes row_major(std::span<const int64_t> sizes) {
  Sizes strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0; stride *= sizes[i]) strides[i] = stride;
  return strides;
}

Data::Data(DType d, AxisIds a, Sizes s) : dtype(d), axes(std::move(a)), sizes(std::move(s)), count_(size_t(product(sizes))) {
  bytes_.reset(new std::byte[std::max<size_t>(byte_count(), 1)]);
}

Value single(const Scalar& s) {
  auto out = std::make_shared<Data>(s.dtype(), AxisIds{}, Sizes{});
  s.to_bytes(out->bytes());
  return out;
}

std::shared_ptr<Data> filled(const Scalar& s, AxisIds axes, Sizes sizes) {
  auto out = std::make_shared<Data>(s.dtype(), std::move(axes), std::move(sizes));
  const size_t item = itemsize(s.dtype());
  if (s.is_positive_zero()) {
    std::memset(out->bytes(), 0, out->byte_count());
  } else {
    for (size_t i = 0; i < out->count(); ++i) s.to_bytes(out->bytes() + i * item);
  }
  return out;
}

namespace {

Value counted(std::shared_ptr<Data> out) {
  for (size_t i = 0; i < out->count(); ++i) Scalar::from_uint(i, out->dtype).to_bytes(out->bytes() + i * itemsize(out->dtype));
  return out;
}

}  // namespace

Value iota(DType dtype, int64_t n) { return counted(std::make_shared<Data>(dtype, AxisIds{}, Sizes{n})); }
Value axis_iota(DType dtype, uint32_t axis, int64_t n) { return counted(std::make_shared<Data>(dtype, AxisIds{axis}, Sizes{n})); }

std::shared_ptr<Data> copy_of(const Data& x) {
  auto out = std::make_shared<Data>(x.dtype, x.axes, x.sizes);
  std::memcpy(out->bytes(), x.bytes(), x.byte_count());
  return out;
}

Value with_shape(const Value& x, std::span<const int64_t> shape) {
  if (std::ranges::equal(x->shape(), shape)) return x;
  Sizes sizes(x->axis_sizes());
  sizes.append(shape.begin(), shape.end());
  auto out = std::make_shared<Data>(x->dtype, x->axes, sizes);
  if (out->count() != x->count())
    throw ShapeError(fmt::format("RESHAPE: cannot view ({}) as ({})", fmt::join(x->shape(), ", "), fmt::join(shape, ", ")));
  std::memcpy(out->bytes(), x->bytes(), x->byte_count());
  return out;
}

namespace {

template <class T>
void copy_rows(std::span<const int64_t> sizes, T* to, Strided a, const T* from, Strided b) {
  const size_t outer = sizes.size() - 1;
  const int64_t n = sizes[outer], step_to = a.strides[outer], step_from = b.strides[outer];
  Sizes at(outer);
  int64_t i = a.offset, j = b.offset;
  while (true) {
    if (step_to == 1 && step_from == 1)
      std::memcpy(to + i, from + j, size_t(n) * sizeof(T));
    else if (step_to == 1 && step_from == 0)
      std::fill_n(to + i, n, from[j]);
    else
      for (int64_t k = 0; k < n; ++k) to[i + k * step_to] = from[j + k * step_from];
    size_t d = outer;
    while (d-- > 0) {
      i += a.strides[d];
      j += b.strides[d];
      if (++at[d] < sizes[d]) break;
      i -= a.strides[d] * sizes[d];
      j -= b.strides[d] * sizes[d];
      at[d] = 0;
    }
    if (d == size_t(-1)) return;
  }
}

}  // namespace

void copy_strided(size_t item, std::span<const int64_t> sizes, std::byte* to, Strided a, const std::byte* from, Strided b) {
  if (product(sizes) == 0) return;
  const int64_t one = 1, zero = 0;
  if (sizes.empty()) {
    sizes = {&one, 1};
    a.strides = b.strides = {&zero, 1};
  }
  auto run = [&]<class T>(T) { copy_rows(sizes, reinterpret_cast<T*>(to), a, reinterpret_cast<const T*>(from), b); };
  switch (item) {
    case 1: return run(uint8_t{});
    case 2: return run(uint16_t{});
    case 4: return run(uint32_t{});
    default: return run(uint64_t{});
  }
}

Value broadcast(const Value& x, const AxisIds& axes, std::span<const int64_t> axis_sizes, std::span<const int64_t> shape) {
  if (x->axes == axes && std::ranges::equal(x->shape(), shape)) return x;
  if (!x->shape().empty() && !std::ranges::equal(x->shape(), shape))
    throw ShapeError(fmt::format("the shapes ({}) and ({}) differ", fmt::join(x->shape(), ", "), fmt::join(shape, ", ")));
  const Sizes own = row_major(x->sizes);
  Sizes sizes(axis_sizes), strides;
  for (uint32_t a : axes) {
    const auto at = std::find(x->axes.begin(), x->axes.end(), a);
    strides.push_back(at == x->axes.end() ? 0 : own[size_t(at - x->axes.begin())]);
  }
  for (size_t i = 0; i < shape.size(); ++i) strides.push_back(x->shape().empty() ? 0 : own[x->axes.size() + i]);
  sizes.append(shape.begin(), shape.end());
  auto out = std::make_shared<Data>(x->dtype, axes, sizes);
  copy_strided(itemsize(x->dtype), sizes, out->bytes(), {row_major(sizes)}, x->bytes(), {strides});
  return out;
}

void Frame::include_axes(const Data& x) {
  for (size_t i = 0; i < x.axes.size(); ++i) {
    const auto at = std::lower_bound(axes.begin(), axes.end(), x.axes[i]);
    if (at != axes.end() && *at == x.axes[i]) continue;
    axis_sizes.insert(axis_sizes.begin() + (at - axes.begin()), x.sizes[i]);
    axes.insert(at, x.axes[i]);
  }
}

void Frame::include(const Data& x) {
  include_axes(x);
  if (shape.empty()) shape = Sizes(x.shape());
}

Sizes Frame::sizes() const {
  Sizes out = axis_sizes;
  out.append(shape.begin(), shape.end());
  return out;
}

Value broadcast(const Value& x, const Frame& frame) { return broadcast(x, frame.axes, frame.axis_sizes, frame.shape); }

Value stacked(std::span<const Value> values) {
  Frame frame;
  for (const Value& v : values) frame.include(*v);
  Sizes sizes = frame.axis_sizes;
  sizes.push_back(int64_t(values.size()));
  sizes.append(frame.shape.begin(), frame.shape.end());
  auto out = std::make_shared<Data>(values[0]->dtype, frame.axes, sizes);
  const Sizes box = frame.sizes();
  Sizes to = row_major(sizes);
  const int64_t step = to[frame.axes.size()];
  to.erase(to.begin() + frame.axes.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const Value v = broadcast(values[i], frame);
    copy_strided(itemsize(v->dtype), box, out->bytes(), {to, int64_t(i) * step}, v->bytes(), {row_major(box)});
  }
  return out;
}

namespace {

/// Copies `x` into a new array whose shape axis i has out_shape[i] elements, of which box[i] come from x.
struct Box {
  Sizes shape, box, to_strides, from_strides;
  int64_t to_offset = 0, from_offset = 0;
};

Box same_box(const Data& x) {
  const Sizes strides = row_major(x.shape());
  return {Sizes(x.shape()), Sizes(x.shape()), {}, strides, 0, 0};
}

Box permute_box(const Data& x, const Move& m) {
  Box b = same_box(x);
  const Sizes strides = b.from_strides;
  for (size_t i = 0; i < m.axes.size(); ++i) {
    b.shape[i] = b.box[i] = x.shape()[size_t(m.axes[i])];
    b.from_strides[i] = strides[size_t(m.axes[i])];
  }
  return b;
}

Box flip_box(const Data& x, const Move& m) {
  Box b = same_box(x);
  for (int a : m.axes) {
    b.from_offset += (b.shape[size_t(a)] - 1) * b.from_strides[size_t(a)];
    b.from_strides[size_t(a)] = -b.from_strides[size_t(a)];
  }
  return b;
}

Box expand_box(const Data& x, const Move& m) {
  Box b = same_box(x);
  if (x.shape().empty())
    b.from_strides = Sizes(m.args.size());
  else if (x.shape().size() != m.args.size())
    throw ShapeError("EXPAND: the number of axes differs");
  for (size_t i = 0; i < x.shape().size(); ++i) {
    if (x.shape()[i] == m.args[i]) continue;
    if (x.shape()[i] != 1) throw ShapeError(fmt::format("EXPAND: axis {} has size {}, not 1 or {}", i, x.shape()[i], m.args[i]));
    b.from_strides[i] = 0;
  }
  b.shape = b.box = m.args;
  return b;
}

Box shrink_box(const Data& x, const Move& m) {
  Box b = same_box(x);
  for (size_t i = 0; i < b.shape.size(); ++i) {
    const int64_t begin = m.args[2 * i], stop = m.args[2 * i + 1];
    if (begin < 0 || stop < begin || stop > x.shape()[i])
      throw ShapeError(fmt::format("SHRINK: [{}, {}) is not within axis {} of size {}", begin, stop, i, x.shape()[i]));
    b.shape[i] = b.box[i] = stop - begin;
    b.from_offset += begin * b.from_strides[i];
  }
  return b;
}

Box pad_box(const Data& x, const Move& m) {
  Box b = same_box(x);
  for (size_t i = 0; i < b.shape.size(); ++i) {
    if (m.args[2 * i] < 0 || m.args[2 * i + 1] < 0) throw ShapeError(fmt::format("PAD: negative padding of axis {}", i));
    b.shape[i] += m.args[2 * i] + m.args[2 * i + 1];
  }
  b.to_strides = row_major(b.shape);
  for (size_t i = 0; i < b.shape.size(); ++i) b.to_offset += m.args[2 * i] * b.to_strides[i];
  return b;
}

Box box_of(const Data& x, const Move& m) {
  switch (m.op) {
    case Op::PERMUTE: return permute_box(x, m);
    case Op::FLIP: return flip_box(x, m);
    case Op::EXPAND: return expand_box(x, m);
    case Op::SHRINK: return shrink_box(x, m);
    case Op::PAD: return pad_box(x, m);
    default: throw InternalError(fmt::format("{} is no movement op", name(m.op)));
  }
}

/// The same value of each named axis before and after.
Sizes with_axes(const Data& x, std::span<const int64_t> axis_strides, const Sizes& rest) {
  Sizes out(axis_strides.first(x.axes.size()));
  out.append(rest.begin(), rest.end());
  return out;
}

}  // namespace

Value moved(const Value& x, const Move& m, const Scalar& fill) {
  if (m.op == Op::RESHAPE) return with_shape(x, m.args);
  const Box b = box_of(*x, m);
  const Sizes sizes = with_axes(*x, x->sizes, b.shape), box = with_axes(*x, x->sizes, b.box);
  auto out = m.op == Op::PAD ? filled(fill, x->axes, sizes) : std::make_shared<Data>(x->dtype, x->axes, sizes);
  const Sizes to = row_major(sizes), from = with_axes(*x, row_major(x->sizes), b.from_strides);
  copy_strided(itemsize(x->dtype), box, out->bytes(), {to, b.to_offset}, x->bytes(), {from, b.from_offset});
  return out;
}

}  // namespace tinygrad::spec
