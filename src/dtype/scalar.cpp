#include "dtype/scalar.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "dtype/convert.h"
#include "dtype/float_format.h"

namespace tinygrad {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr uint64_t quiet_nan = 0x7ff8000000000000u;

// Rounds or wraps a number in 64-bit form to what `dtype` holds.
uint64_t canonical(DType dtype, uint64_t wide) {
  wide = widen(dtype, narrow(dtype, wide));
  return is_float(dtype) && std::isnan(std::bit_cast<double>(wide)) ? quiet_nan : wide;
}

// The shortest decimal text that rounds to `value` in a type narrower than float32, which the library's formatting knows nothing of.
std::string shortest_decimal(double value, DType dtype) {
  for (int digits = 1;; ++digits) {
    std::string text = fmt::format("{:.{}g}", value, digits);
    double parsed = 0;
    std::from_chars(text.data(), text.data() + text.size(), parsed);
    if (Scalar::from_double(parsed, dtype).as_double() == value) return text;
  }
}

}  // namespace

Scalar Scalar::from_double(double value, DType dtype) {
  return {dtype, canonical(dtype, change_form(dtype, DType::float64, std::bit_cast<uint64_t>(value)))};
}
Scalar Scalar::from_int(int64_t value, DType dtype) {
  return {dtype, canonical(dtype, change_form(dtype, DType::int64, static_cast<uint64_t>(value)))};
}
Scalar Scalar::from_uint(uint64_t value, DType dtype) { return {dtype, canonical(dtype, change_form(dtype, DType::uint64, value))}; }
Scalar Scalar::from_bool(bool value, DType dtype) { return from_uint(value, dtype); }

Scalar Scalar::from_storage_bits(uint64_t storage, DType dtype) { return {dtype, canonical(dtype, widen(dtype, storage))}; }
uint64_t Scalar::storage_bits() const { return narrow(dtype_, bits_); }

Scalar Scalar::from_bytes(const std::byte* bytes, DType dtype) {
  uint64_t storage = 0;
  std::memcpy(&storage, bytes, itemsize(dtype));
  return from_storage_bits(storage, dtype);
}

void Scalar::to_bytes(std::byte* bytes) const {
  const uint64_t storage = storage_bits();
  std::memcpy(bytes, &storage, itemsize(dtype_));
}

double Scalar::as_double() const { return std::bit_cast<double>(cast(DType::float64).bits_); }
int64_t Scalar::as_int() const { return static_cast<int64_t>(cast(DType::int64).bits_); }
uint64_t Scalar::as_uint() const { return cast(DType::uint64).bits_; }
bool Scalar::as_bool() const { return !is_zero(); }

Scalar Scalar::cast(DType dtype) const {
  if (dtype == dtype_) return *this;
  return {dtype, canonical(dtype, change_form(dtype, dtype_, bits_))};
}

Scalar Scalar::bitcast(DType dtype) const {
  if (itemsize(dtype) != itemsize(dtype_)) {
    throw DTypeError(fmt::format("bitcast: cannot read {} as {}: {} and {} bytes differ; use cast to convert the value", repr(dtype_),
                                 repr(dtype), itemsize(dtype_), itemsize(dtype)));
  }
  return from_storage_bits(storage_bits(), dtype);
}

std::string Scalar::to_string() const {
  if (is_bool(dtype_)) return as_bool() ? "true" : "false";
  if (is_unsigned(dtype_)) return fmt::format("{}", bits_);
  if (!is_float(dtype_)) return fmt::format("{}", as_int());
  const double value = as_double();
  if (dtype_ == DType::float64 || !is_finite()) return fmt::format("{}", value);
  const bool short_integer = value == std::trunc(value) && std::abs(value) < 1e6;  // 416, not 4.2e+02
  if (dtype_ == DType::float32 || short_integer) return fmt::format("{}", static_cast<float>(value));
  return shortest_decimal(value, dtype_);
}

bool holds(DType dtype, const Scalar& number) {
  if (!is_int(dtype)) return true;
  const Scalar least = min_value(dtype), greatest = max_value(dtype);
  if (is_float(number.dtype())) {  // limits that a double rounds are powers of two beyond the greatest
    const double whole = std::trunc(number.as_double());
    return whole >= least.as_double() && whole < greatest.as_double() + 1;
  }
  if (is_signed(number.dtype()) && number.as_int() < 0) return is_signed(dtype) && number.as_int() >= least.as_int();
  return number.as_uint() <= greatest.as_uint();
}

Scalar checked_cast(const Scalar& number, DType dtype, std::string_view what) {
  const bool wraps =
      is_unsigned(dtype) && is_signed(number.dtype()) && number.as_int() < 0 && 0 - number.as_uint() <= max_value(dtype).as_uint();
  if (!wraps && !holds(dtype, number))
    throw ValueError(fmt::format("{}: {} does not fit {}, which holds {} to {}", what, number.to_string(), repr(dtype),
                                 min_value(dtype).to_string(), max_value(dtype).to_string()));
  return number.cast(dtype);
}

double greatest_finite(DType dtype) {
  if (dtype == DType::float64) return std::numeric_limits<double>::max();
  return Scalar::from_storage_bits(format_of(dtype).first_non_finite() - 1, dtype).as_double();
}

Scalar min_value(DType dtype) {
  if (is_fp8(dtype) && !format_of(dtype).has_infinity) return Scalar::from_double(-greatest_finite(dtype), dtype);
  if (is_float(dtype)) return Scalar::from_double(-infinity, dtype);
  if (is_signed(dtype)) return Scalar::from_uint(uint64_t{1} << (bitsize(dtype) - 1), dtype);
  return Scalar::from_uint(0, dtype);
}

Scalar max_value(DType dtype) {
  if (is_fp8(dtype) && !format_of(dtype).has_infinity) return Scalar::from_double(greatest_finite(dtype), dtype);
  if (is_float(dtype)) return Scalar::from_double(infinity, dtype);
  if (is_signed(dtype)) return Scalar::from_uint((uint64_t{1} << (bitsize(dtype) - 1)) - 1, dtype);
  return Scalar::from_uint(~uint64_t{0}, dtype);
}

}  // namespace tinygrad
