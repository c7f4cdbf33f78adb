#pragma once
/// Values of a graph while it is walked: tensors, and what of them is known on the host.

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <tinygrad/onnx.h>

namespace tinygrad::onnx {

namespace detail {

/// Elements on the host, row-major, in the dtype of dtype_of(type).
struct HostArray {
  ElementType type = ElementType::undefined;
  Sizes shape = {};
  std::shared_ptr<const std::byte> bytes = {};
  size_t byte_count = 0;

  DType dtype() const { return dtype_of(type); }
  int64_t numel() const { return int64_t(byte_count / itemsize(dtype())); }
  /// The elements as numbers: those of integers and bools, or (rounded) of floats.
  std::vector<int64_t> integers() const;
  std::vector<double> numbers() const;

  static HostArray of_bytes(ElementType type, const Sizes& shape, std::span<const std::byte> bytes);
  /// The numbers are converted to the type; integers wrap.
  static HostArray of(ElementType type, const Sizes& shape, std::span<const int64_t> values);
  static HostArray of(ElementType type, const Sizes& shape, std::span<const double> values);
  template <class T>
  static HostArray of(ElementType type, const Sizes& shape, const std::vector<T>& values) {
    return of(type, shape, std::span<const T>(values));
  }
};

/// Elements on the host, and the tensor that was made of them.
struct HostValue {
  HostArray array;
  std::vector<Extent> sizes = {};  ///< the elements, where some are sizes that are known when kernels run; `array` has none then
  mutable Tensor tensor = {};
};

/// What a tensor of floats was computed of: codes of 8 bits, less their zero point (if there is one) and times their scale. Both are one
/// number, or one for each index of the axis.
struct Codes {
  Tensor codes, scale, zero;
  int axis = -1;  ///< of the codes; -1: one number
};

struct ValueAccess {
  static Value of_host(HostArray array);
  static Value of_sizes(ElementType type, Sizes shape, std::vector<Extent> sizes);
  static const HostArray* host(const Value& v) { return v.host_ && v.host_->sizes.empty() ? &v.host_->array : nullptr; }
  static const std::vector<Extent>* sizes(const Value& v) { return v.host_ && !v.host_->sizes.empty() ? &v.host_->sizes : nullptr; }
  static bool from_input(const Value& v) { return v.from_input_; }
  static void set_from_input(Value& v, bool from_input) { v.from_input_ = from_input; }
  static const Codes* codes(const Value& v) { return v.codes_.get(); }
  static void set_codes(Value& v, Codes codes) { v.codes_ = std::make_shared<const Codes>(std::move(codes)); }
  static void set_host(Value& v, HostArray array) { v.host_ = std::make_shared<HostValue>(HostValue{.array = std::move(array)}); }
};

}  // namespace detail

using detail::Codes;
using detail::HostArray;

/// A value that is known on the host; a tensor is made of it when it is asked for.
inline Value host_value(HostArray array) { return detail::ValueAccess::of_host(std::move(array)); }
Value host_integers(const std::vector<int64_t>& values);  ///< int64, a vector
Value host_integer(int64_t value);                        ///< int64, of shape ()
/// Integers of which some are sizes that are known when kernels run, or not even one.
Value host_sizes(ElementType type, const Sizes& shape, const std::vector<Extent>& sizes);
inline const HostArray* host_of(const Value& v) { return detail::ValueAccess::host(v); }
/// Null where it was not dequantized, or else than 8 bits are.
inline const Codes* codes_of(const Value& v) { return detail::ValueAccess::codes(v); }
inline bool is_from_input(const Value& v) { return detail::ValueAccess::from_input(v); }

/// The number of elements; ShapeError where 64 bits do not count them, and for a negative size.
int64_t element_count(const Sizes& shape);
bool is_float_type(ElementType type);  ///< of any width
bool is_low_bit(ElementType type);     ///< narrower than a byte, or float8e8m0: no dtype is that type
int bits_of(ElementType type);
/// The least and greatest value of an integer type.
std::pair<int64_t, int64_t> integer_range(ElementType type);

/// The elements as numbers that can be computed with: those that lie as bits, as float32; others as they are.
Tensor decode(const Value& v);
/// Numbers as elements of a type that lies as bits, rounded to the nearest, ties to even; too large ones become the greatest one.
Tensor encode_bits(const Tensor& x, ElementType type);
/// A cast as the operator Cast does it.
Value cast_value(const Value& v, ElementType to, bool saturate);

}  // namespace tinygrad::onnx
