#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/core.h>

#include <tinygrad/errors.h>
#include "dtype/convert.h"
#include "spec/alu.h"

namespace tinygrad::spec {

Scalar reduce_identity(Op op, DType dtype) {
  switch (op) {
    case Op::ADD:
    case Op::OR:
    case Op::XOR: return Scalar::from_int(0, dtype);
    case Op::MUL: return Scalar::from_int(1, dtype);
    case Op::MAX: return min_value(dtype);
    case Op::AND: return is_bool(dtype) ? Scalar::from_bool(true) : Scalar::from_int(-1, dtype);
    default: throw InternalError(fmt::format("REDUCE does not take {}", name(op)));
  }
}

namespace {

/// Where the elements are: kept[k] + reduced[r], in elements.
struct Layout {
  std::vector<int64_t> kept, reduced;
};

std::vector<int64_t> offsets(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  std::vector<int64_t> out{0};
  for (size_t d = 0; d < sizes.size(); ++d) {
    std::vector<int64_t> next;
    next.reserve(out.size() * size_t(sizes[d]));
    for (int64_t o : out)
      for (int64_t i = 0; i < sizes[d]; ++i) next.push_back(o + i * strides[d]);
    out = std::move(next);
  }
  return out;
}

template <class T, class F>
void fold(const Layout& at, const T* x, T* out, T identity, double* peak, F f) {
  for (size_t k = 0; k < at.kept.size(); ++k) {
    const T* from = x + at.kept[k];
    T sum = identity;
    for (int64_t r : at.reduced) {
      sum = f(sum, from[r]);
      if constexpr (std::is_same_v<T, double>)
        if (peak && std::isfinite(sum)) *peak = std::max(*peak, std::abs(sum));
    }
    out[k] = sum;
  }
}

template <class T>
T as_element(const Scalar& s) {
  T out;
  s.to_bytes(reinterpret_cast<std::byte*>(&out));
  return out;
}

template <class T>
T maximum(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(x)) return x;
    if (std::isnan(y)) return y;
    if (x == y) return std::signbit(x) ? y : x;
  }
  return x < y ? y : x;
}

/// T computes as its dtype does: float, double, or an integer that wraps.
template <class T>
bool typed(Op op, const Layout& at, const Data& x, Data& out, double* peak) {
  const T identity = as_element<T>(reduce_identity(op, x.dtype));
  auto run = [&](auto f) {
    fold<T>(at, x.as<T>(), out.as<T>(), identity, peak, f);
    return true;
  };
  switch (op) {
    case Op::ADD:
      if constexpr (std::is_integral_v<T>) return run([](T a, T b) { return T(uint64_t(a) + uint64_t(b)); });
      return run([](T a, T b) { return T(a + b); });
    case Op::MUL:
      if constexpr (std::is_integral_v<T>) return run([](T a, T b) { return T(uint64_t(a) * uint64_t(b)); });
      return run([](T a, T b) { return T(a * b); });
    case Op::MAX: return run([](T a, T b) { return maximum(a, b); });
    default: break;
  }
  if constexpr (std::is_integral_v<T>) {
    switch (op) {
      case Op::AND: return run([](T a, T b) { return T(a & b); });
      case Op::OR: return run([](T a, T b) { return T(a | b); });
      case Op::XOR: return run([](T a, T b) { return T(a ^ b); });
      default: break;
    }
  }
  return false;
}

bool dispatch(Op op, const Layout& at, const Data& x, Data& out, double* peak) {
  switch (x.dtype) {
    case DType::int8: return typed<int8_t>(op, at, x, out, peak);
    case DType::uint8: return typed<uint8_t>(op, at, x, out, peak);
    case DType::int16: return typed<int16_t>(op, at, x, out, peak);
    case DType::uint16: return typed<uint16_t>(op, at, x, out, peak);
    case DType::int32: return typed<int32_t>(op, at, x, out, peak);
    case DType::uint32: return typed<uint32_t>(op, at, x, out, peak);
    case DType::int64: return typed<int64_t>(op, at, x, out, peak);
    case DType::uint64: return typed<uint64_t>(op, at, x, out, peak);
    case DType::float32: return typed<float>(op, at, x, out, peak);
    case DType::float64: return typed<double>(op, at, x, out, peak);
    default: return false;
  }
}

/// bool, `index`, the small floats, and ops that a dtype does not take.
void by_element(Op op, const Layout& at, const Data& x, Data& out) {
  for (size_t k = 0; k < at.kept.size(); ++k) {
    Scalar pair[2] = {reduce_identity(op, x.dtype), {}};
    for (int64_t r : at.reduced) {
      pair[1] = x.element(size_t(at.kept[k] + r));
      pair[0] = alu_element(op, pair);
    }
    pair[0].to_bytes(out.bytes() + k * itemsize(out.dtype));
  }
}

}  // namespace

Value reduce_value(Op op, const Value& x, const AxisIds& closed, std::span<const int64_t> closed_sizes, const Axes& axes, double* peak) {
  const Sizes strides = row_major(x->sizes);
  AxisIds open;
  Sizes kept_sizes, kept_strides, sizes(closed_sizes), reduced_strides(closed.size());
  for (size_t i = 0; i < x->axes.size(); ++i) {
    const auto c = std::find(closed.begin(), closed.end(), x->axes[i]);
    if (c != closed.end()) {
      reduced_strides[size_t(c - closed.begin())] = strides[i];
    } else {
      open.push_back(x->axes[i]);
      kept_sizes.push_back(x->sizes[i]);
      kept_strides.push_back(strides[i]);
    }
  }
  for (size_t i = 0; i < x->shape().size(); ++i) {
    const bool reduced = std::find(axes.begin(), axes.end(), int(i)) != axes.end();
    (reduced ? sizes : kept_sizes).push_back(x->shape()[i]);
    (reduced ? reduced_strides : kept_strides).push_back(strides[x->axes.size() + i]);
  }
  const Layout at{offsets(kept_sizes, kept_strides), offsets(sizes, reduced_strides)};
  auto out = std::make_shared<Data>(x->dtype, open, kept_sizes);
  if (!dispatch(op, at, *x, *out, peak)) by_element(op, at, *x, *out);
  return out;
}

}  // namespace tinygrad::spec
