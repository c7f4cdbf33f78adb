#pragma once
/// Scalar types: what an element is, how wide it is, and how two types promote.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>

#include <tinygrad/export.h>

namespace tinygrad {

/// The type of one element. `index` is the unbounded integer of index expressions; it is evaluated and stored as int64.
enum class DType : uint8_t {
  void_,
  bool_,
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  int64,
  uint64,
  fp8e4m3,  ///< OCP E4M3FN: no infinities, largest value 448
  fp8e5m2,  ///< OCP E5M2: IEEE-like, with infinities
  float16,
  bfloat16,
  float32,
  float64,
  index,
  // After the others, whose numbers are in files.
  fp8e4m3fnuz,  ///< E4M3 with bias 8: no infinities and no -0, largest value 240
  fp8e5m2fnuz,  ///< E5M2 with bias 16: no infinities and no -0, largest value 57344
};

inline constexpr int dtype_count = 19;

/// The types under tinygrad's names and aliases.
namespace dtypes {
inline constexpr DType void_ = DType::void_, bool_ = DType::bool_, index = DType::index;
inline constexpr DType int8 = DType::int8, int16 = DType::int16, int32 = DType::int32, int64 = DType::int64;
inline constexpr DType uint8 = DType::uint8, uint16 = DType::uint16, uint32 = DType::uint32, uint64 = DType::uint64;
inline constexpr DType fp8e4m3 = DType::fp8e4m3, fp8e5m2 = DType::fp8e5m2;
inline constexpr DType fp8e4m3fnuz = DType::fp8e4m3fnuz, fp8e5m2fnuz = DType::fp8e5m2fnuz;
inline constexpr DType float16 = DType::float16, bfloat16 = DType::bfloat16, float32 = DType::float32, float64 = DType::float64;

inline constexpr DType half = float16, float_ = float32, double_ = float64;
inline constexpr DType char_ = int8, short_ = int16, int_ = int32, long_ = int64;
inline constexpr DType uchar = uint8, ushort = uint16, uint = uint32, ulong = uint64;

/// Every type that data can have, narrow to wide: all but `void_` and `index`.
inline constexpr DType all[] = {bool_,   int8,    uint8,       int16,       uint16,  int32,    uint32,  int64,  uint64,
                                fp8e4m3, fp8e5m2, fp8e4m3fnuz, fp8e5m2fnuz, float16, bfloat16, float32, float64};
}  // namespace dtypes

/// Widths of the fields of a floating-point type, the implied leading bit not counted.
struct FloatInfo {
  int exponent_bits = 0;
  int mantissa_bits = 0;
};

namespace detail {

enum class DTypeKind : uint8_t { void_, bool_, signed_, unsigned_, float_ };

struct DTypeInfo {
  DTypeKind kind;
  uint8_t bits;
  std::string_view name;  // as C spells it
  std::string_view repr;
  FloatInfo fields = {};
};

// In the order of the enum.
inline constexpr DTypeInfo dtype_table[dtype_count] = {
    {DTypeKind::void_, 0, "void", "dtypes.void"},
    {DTypeKind::bool_, 1, "bool", "dtypes.bool"},
    {DTypeKind::signed_, 8, "signed char", "dtypes.int8"},
    {DTypeKind::unsigned_, 8, "unsigned char", "dtypes.uint8"},
    {DTypeKind::signed_, 16, "short", "dtypes.int16"},
    {DTypeKind::unsigned_, 16, "unsigned short", "dtypes.uint16"},
    {DTypeKind::signed_, 32, "int", "dtypes.int32"},
    {DTypeKind::unsigned_, 32, "unsigned int", "dtypes.uint32"},
    {DTypeKind::signed_, 64, "long", "dtypes.int64"},
    {DTypeKind::unsigned_, 64, "unsigned long", "dtypes.uint64"},
    {DTypeKind::float_, 8, "float8_e4m3", "dtypes.fp8e4m3", {4, 3}},
    {DTypeKind::float_, 8, "float8_e5m2", "dtypes.fp8e5m2", {5, 2}},
    {DTypeKind::float_, 16, "half", "dtypes.float16", {5, 10}},
    {DTypeKind::float_, 16, "__bf16", "dtypes.bfloat16", {8, 7}},
    {DTypeKind::float_, 32, "float", "dtypes.float32", {8, 23}},
    {DTypeKind::float_, 64, "double", "dtypes.float64", {11, 52}},
    {DTypeKind::signed_, 64, "index", "dtypes.index"},
    {DTypeKind::float_, 8, "float8_e4m3fnuz", "dtypes.fp8e4m3fnuz", {4, 3}},
    {DTypeKind::float_, 8, "float8_e5m2fnuz", "dtypes.fp8e5m2fnuz", {5, 2}},
};

constexpr const DTypeInfo& dtype_info(DType d) { return dtype_table[static_cast<size_t>(d)]; }

[[noreturn]] TINYGRAD_EXPORT void throw_not_a_float(DType d);

}  // namespace detail

/// Width in bits; a bool has 1, `index` 64, `void_` 0.
constexpr int bitsize(DType d) { return detail::dtype_info(d).bits; }
/// Bytes an element takes in memory; `index` 8, `void_` 0.
constexpr size_t itemsize(DType d) { return (static_cast<size_t>(bitsize(d)) + 7) / 8; }

/// A floating-point type of any width.
constexpr bool is_float(DType d) { return detail::dtype_info(d).kind == detail::DTypeKind::float_; }
/// An unsigned integer; bool is not one.
constexpr bool is_unsigned(DType d) { return detail::dtype_info(d).kind == detail::DTypeKind::unsigned_; }
/// A signed integer, `index` included; false for floats.
constexpr bool is_signed(DType d) { return detail::dtype_info(d).kind == detail::DTypeKind::signed_; }
/// An integer: fixed width or `index`; bool is not one.
constexpr bool is_int(DType d) { return is_signed(d) || is_unsigned(d); }
constexpr bool is_bool(DType d) { return d == DType::bool_; }
/// fp8 with finite numbers, one zero and one NaN alone, whose bits are those of -0 elsewhere.
constexpr bool is_fp8_fnuz(DType d) { return d == DType::fp8e4m3fnuz || d == DType::fp8e5m2fnuz; }
/// fp8 of any layout.
constexpr bool is_fp8(DType d) { return d == DType::fp8e4m3 || d == DType::fp8e5m2 || is_fp8_fnuz(d); }

/// Order of preference among promotions, as tinygrad's: `void_` -1, bool 0, `index` 1, then the integers and floats, narrow to wide.
/// The two layouts of an fp8 have the same.
constexpr int priority(DType d) {
  if (d == DType::index) return 1;
  if (d == DType::fp8e4m3fnuz) return priority(DType::fp8e4m3);
  if (d == DType::fp8e5m2fnuz) return priority(DType::fp8e5m2);
  return static_cast<int>(d) - (d <= DType::bool_ ? 1 : 0);
}

/// The name in C, as in generated code: "float", "unsigned int".
constexpr std::string_view name(DType d) { return detail::dtype_info(d).name; }
/// The name users know: "dtypes.float32".
constexpr std::string_view repr(DType d) { return detail::dtype_info(d).repr; }

/// Field widths of a floating-point type; throws DTypeError for any other.
constexpr FloatInfo finfo(DType d) {
  if (!is_float(d)) detail::throw_not_a_float(d);
  return detail::dtype_info(d).fields;
}

/// Reads "float32", "half", "long", "dtypes.int8", "FLOAT", ... (names and aliases in any case); throws DTypeError.
TINYGRAD_EXPORT DType parse_dtype(std::string_view text);

/// The narrowest type that every given type promotes to (tinygrad's lattice, after JAX's). int8 with uint8 is int16; an integer with a
/// float is the float; two fp8 are float16; float16 with bfloat16 is float32. A signed integer with uint64, which no integer type
/// holds, is `default_float` unless a float is given too. `index` gives way to every sized type but bool. The order of the arguments
/// does not matter. Throws DTypeError for none and for `void_` mixed with another type.
TINYGRAD_EXPORT DType least_upper_dtype(std::span<const DType> ds, DType default_float = DType::float32);
inline DType least_upper_dtype(std::initializer_list<DType> ds, DType default_float = DType::float32) {
  return least_upper_dtype(std::span<const DType>(ds.begin(), ds.size()), default_float);
}
inline DType least_upper_dtype(DType a, DType b) { return least_upper_dtype({a, b}); }

/// The type a float function of `d` has: `d` if it is a float, else `default_float`.
TINYGRAD_EXPORT DType least_upper_float(DType d, DType default_float = DType::float32);

/// The type sums of `d` accumulate in: at least 32 bits, an integer for bool and integers, at least `float_acc` for floats.
TINYGRAD_EXPORT DType sum_acc_dtype(DType d, DType float_acc = DType::float32);

/// True where every value of `from` is a value of `to`.
TINYGRAD_EXPORT bool can_lossless_cast(DType from, DType to);

/// A small float as C++ storage: bits with explicit conversions, rounded to nearest even; no arithmetic.
template <DType D, class Bits>
struct SmallFloat {
  Bits bits;  // left unset by the default constructor, as a float is

  SmallFloat() = default;
  TINYGRAD_EXPORT explicit SmallFloat(float value);
  TINYGRAD_EXPORT explicit SmallFloat(double value);  // rounds once
  TINYGRAD_EXPORT explicit operator float() const;    // exact
  explicit operator double() const { return static_cast<double>(static_cast<float>(*this)); }

  static constexpr SmallFloat from_bits(Bits b) {
    SmallFloat r{};
    r.bits = b;
    return r;
  }
  /// As numbers: -0 equals 0, NaN differs from itself.
  friend bool operator==(SmallFloat a, SmallFloat b) { return static_cast<float>(a) == static_cast<float>(b); }
};

using float16 = SmallFloat<DType::float16, uint16_t>;
using bfloat16 = SmallFloat<DType::bfloat16, uint16_t>;
using fp8e4m3 = SmallFloat<DType::fp8e4m3, uint8_t>;
using fp8e5m2 = SmallFloat<DType::fp8e5m2, uint8_t>;
using fp8e4m3fnuz = SmallFloat<DType::fp8e4m3fnuz, uint8_t>;
using fp8e5m2fnuz = SmallFloat<DType::fp8e5m2fnuz, uint8_t>;

namespace detail {
template <class T>
struct DTypeOf {
  static constexpr DType value = DType::void_;
};
template <DType D, class Bits>
struct DTypeOf<SmallFloat<D, Bits>> {
  static constexpr DType value = D;
};
template <std::integral T>
struct DTypeOf<T> {
  static constexpr DType by_size(DType b1, DType b2, DType b4, DType b8) {
    return sizeof(T) == 1 ? b1 : sizeof(T) == 2 ? b2 : sizeof(T) == 4 ? b4 : b8;
  }
  static constexpr DType value = std::is_same_v<T, bool> ? DType::bool_
                                 : std::is_signed_v<T>   ? by_size(DType::int8, DType::int16, DType::int32, DType::int64)
                                                         : by_size(DType::uint8, DType::uint16, DType::uint32, DType::uint64);
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::float32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::float64;
};
}  // namespace detail

/// C++ types that are an element type: bool, the integers by size, float, double and the small floats above.
template <class T>
concept Element = detail::DTypeOf<T>::value != DType::void_;

/// The element type of a C++ type: `dtype_of<float>() == dtypes::float32`.
template <Element T>
constexpr DType dtype_of() {
  return detail::DTypeOf<T>::value;
}

}  // namespace tinygrad
