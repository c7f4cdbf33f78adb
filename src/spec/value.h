#pragma once
/// Arrays with named axes, on which the evaluator computes.

#include <cstring>
#include <memory>
#include <span>

#include "base/small_vector.h"
#include "dtype/scalar.h"
#include "uop/uop.h"

namespace tinygrad::spec {

using Sizes = SmallVector<int64_t, 6>;
/// A named axis stands for an open RANGE (or SPECIAL); its number is an index into the evaluator's table.
using AxisIds = SmallVector<uint32_t, 4>;

/// A dense row-major array: named axes in ascending order of their numbers, then the axes of the shape.
class Data {
 public:
  Data(DType d, AxisIds a, Sizes s);

  const DType dtype;
  const AxisIds axes;
  const Sizes sizes;  ///< of the named axes, then of the shape

  size_t count() const { return count_; }
  std::span<const int64_t> shape() const { return {sizes.data() + axes.size(), sizes.size() - axes.size()}; }
  std::span<const int64_t> axis_sizes() const { return {sizes.data(), axes.size()}; }
  /// One element, for all purposes.
  bool is_single() const { return count_ == 1 && axes.empty(); }

  std::byte* bytes() { return bytes_.get(); }
  const std::byte* bytes() const { return bytes_.get(); }
  size_t byte_count() const { return count_ * itemsize(dtype); }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(bytes_.get());
  }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(bytes_.get());
  }
  Scalar element(size_t i) const { return Scalar::from_bytes(bytes() + i * itemsize(dtype), dtype); }

 private:
  size_t count_;
  std::unique_ptr<std::byte[]> bytes_;
};
using Value = std::shared_ptr<const Data>;

int64_t product(std::span<const int64_t> sizes);
Sizes row_major(std::span<const int64_t> sizes);

/// One element without axes.
Value single(const Scalar& s);
/// All elements set to `s`.
std::shared_ptr<Data> filled(const Scalar& s, AxisIds axes, Sizes sizes);
/// 0 .. n-1, of shape (n).
Value iota(DType dtype, int64_t n);
/// 0 .. n-1 along a named axis.
Value axis_iota(DType dtype, uint32_t axis, int64_t n);
std::shared_ptr<Data> copy_of(const Data& x);
/// The same elements with another shape of as many.
Value with_shape(const Value& x, std::span<const int64_t> shape);

/// Values of one shape side by side along a new leading axis.
Value stacked(std::span<const Value> values);

/// Copies an N-dimensional box of elements of `item` bytes; strides and offsets are in elements.
struct Strided {
  std::span<const int64_t> strides;
  int64_t offset = 0;
};
void copy_strided(size_t item, std::span<const int64_t> sizes, std::byte* to, Strided to_layout, const std::byte* from,
                  Strided from_layout);

/// `x` repeated along the axes and the shape it lacks: its axes must be among `axes` (in any order there), its shape `shape` or (). The
/// result has the axes in the order given; that of Data only if it ascends. ShapeError if the shapes differ.
Value broadcast(const Value& x, const AxisIds& axes, std::span<const int64_t> axis_sizes, std::span<const int64_t> shape);

/// The elements' common frame: the union of the axes, and the one shape that is not ().
struct Frame {
  AxisIds axes;
  Sizes axis_sizes;
  Sizes shape;

  void include(const Data& x);
  void include_axes(const Data& x);
  Sizes sizes() const;
};
Value broadcast(const Value& x, const Frame& frame);

/// One movement op with its sizes known.
struct Move {
  Op op;
  Axes axes;   ///< of PERMUTE and FLIP
  Sizes args;  ///< the sizes and offsets of the others
};
/// Applies it to the shape of `x`; PAD fills with `fill`.
Value moved(const Value& x, const Move& m, const Scalar& fill);

}  // namespace tinygrad::spec
