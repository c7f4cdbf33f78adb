#pragma once
/// The value of one constant: a dtype and canonical bits.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <tinygrad/dtype.h>

namespace tinygrad {

/// One value of a given type. Two scalars are equal when dtype and canonical bits are, so -0.0 differs from 0.0, a NaN equals itself
/// and `true` is not 1: the identity that constants intern by. Canonical bits are, by type:
///   signed integers, `index`   two's complement, wrapped to the width and sign-extended to 64 bits
///   unsigned integers, bool    wrapped (bool: 0 or 1) and zero-extended
///   every float                the bits of the double with exactly the rounded value; any NaN is the one quiet NaN
/// `void_` has no values: making a scalar of it throws DTypeError.
class Scalar {
 public:
  /// False; the value of a default-made scalar has no other meaning.
  Scalar() = default;

  // Each converts `value` to `dtype` as cast() does.
  static Scalar from_double(double value, DType dtype);
  static Scalar from_int(int64_t value, DType dtype);
  static Scalar from_uint(uint64_t value, DType dtype);
  static Scalar from_bool(bool value, DType dtype = DType::bool_);
  /// From any C++ number, in its own type: `Scalar::of(1.0f)` is a float32.
  template <Element T>
  static Scalar of(T value) {
    return of(value, dtype_of<T>());
  }
  /// From any C++ number, converted to `dtype`.
  template <Element T>
  static Scalar of(T value, DType dtype) {
    if constexpr (std::is_same_v<T, bool>)
      return from_bool(value, dtype);
    else if constexpr (std::is_unsigned_v<T>)
      return from_uint(value, dtype);
    else if constexpr (std::is_signed_v<T> && std::is_integral_v<T>)
      return from_int(value, dtype);
    else
      return from_double(static_cast<double>(value), dtype);
  }

  /// Reads itemsize(dtype) little-endian bytes; a bool is true for any byte but 0.
  static Scalar from_bytes(const std::byte* bytes, DType dtype);
  /// Writes itemsize(dtype()) little-endian bytes. A NaN is written as the type's positive quiet NaN.
  void to_bytes(std::byte* bytes) const;
  /// The bytes as an integer, zero-extended: 0x3c00 for a float16 one.
  static Scalar from_storage_bits(uint64_t storage, DType dtype);
  uint64_t storage_bits() const;

  DType dtype() const { return dtype_; }
  /// The canonical bits (see above), not the bytes in memory.
  uint64_t bits() const { return bits_; }

  /// The value as a C++ number, converted as cast() to float64, int64, uint64 and bool.
  double as_double() const;
  int64_t as_int() const;
  uint64_t as_uint() const;
  bool as_bool() const;

  /// Zero of either sign, or false.
  bool is_zero() const { return is_float(dtype_) ? (bits_ << 1) == 0 : bits_ == 0; }
  bool is_positive_zero() const { return bits_ == 0; }
  bool is_one() const { return bits_ == (is_float(dtype_) ? std::bit_cast<uint64_t>(1.0) : 1); }
  bool is_nan() const { return is_float(dtype_) && (bits_ << 1) > 0xffe0000000000000u; }
  bool is_inf() const { return is_float(dtype_) && (bits_ << 1) == 0xffe0000000000000u; }
  bool is_finite() const { return !is_nan() && !is_inf(); }

  /// The value in another type, with PyTorch's semantics on the CPU:
  ///   integer to integer   wraps to the width
  ///   anything to bool     whether it is not zero (NaN is true)
  ///   integer to float     rounds once, to nearest even, to infinity or NaN on overflow
  ///   float to float       the same
  ///   float to integer     truncates towards zero to an int64, then wraps to the width. NaN and what no int64 holds give INT64_MIN
  ///                        (then wrapped, so 0 in narrower types); for uint64 values from 2^63 up to 2^64 convert exactly.
  Scalar cast(DType dtype) const;
  /// The same bytes read as another type of the same size; throws DTypeError if the sizes differ.
  Scalar bitcast(DType dtype) const;

  /// Short text that reads back as the same value of this dtype: "1", "-0.5", "0.1", "inf", "nan", "true".
  std::string to_string() const;

  friend bool operator==(const Scalar&, const Scalar&) = default;
  /// A total order for sorting, not that of the numbers.
  friend auto operator<=>(const Scalar&, const Scalar&) = default;

  size_t hash() const {
    uint64_t h = (bits_ ^ (static_cast<uint64_t>(dtype_) << 56)) * 0x9e3779b97f4a7c15u;
    return static_cast<size_t>(h ^ (h >> 32));
  }

 private:
  Scalar(DType dtype, uint64_t canonical) : bits_(canonical), dtype_(dtype) {}

  uint64_t bits_ = 0;
  DType dtype_ = DType::bool_;
};

/// Whether an integer dtype has this number, a fraction cut off; true for floats, which round, and for bool.
bool holds(DType dtype, const Scalar& number);
/// The number as a value of a dtype that somebody has named: ValueError, which begins with `what`, if the dtype does not hold it. Unsigned
/// dtypes take a negative number modulo their size, as PyTorch does.
Scalar checked_cast(const Scalar& number, DType dtype, std::string_view what);

/// The greatest finite number of a float dtype; throws DTypeError for any other.
double greatest_finite(DType dtype);
/// The least value of a type: 0 for unsigned, minus infinity for floats (-448 for fp8e4m3: what has no infinity, the least number), false
/// for bool.
Scalar min_value(DType dtype);
/// The greatest value of a type: infinity for floats (the greatest number where there is none), true for bool.
Scalar max_value(DType dtype);

}  // namespace tinygrad

template <>
struct std::hash<tinygrad::Scalar> {
  size_t operator()(const tinygrad::Scalar& s) const noexcept { return s.hash(); }
};
