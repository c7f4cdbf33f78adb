#include "dtype/convert.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "dtype/float_format.h"
#include "dtype/visit.h"

namespace tinygrad {

static_assert(std::endian::native == std::endian::little, "elements are little-endian in memory");

namespace {

// The layouts of 8 bits share their code: a copy of each in every loop would be a percent of a small program.
[[gnu::noinline]] uint64_t encode_fp8(DType d, double value) { return encode_float(format_of(d), value); }
[[gnu::noinline]] double decode_fp8(DType d, uint64_t bits) { return decode_float(format_of(d), bits); }

void widen_fp8(DType d, uint64_t* wide, const std::byte* bytes, size_t n) {
  for (size_t i = 0; i < n; ++i) wide[i] = std::bit_cast<uint64_t>(decode_fp8(d, std::to_integer<uint64_t>(bytes[i])));
}
void narrow_fp8(DType d, std::byte* bytes, const uint64_t* wide, size_t n) {
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(encode_fp8(d, std::bit_cast<double>(wide[i])));
}

}  // namespace

template <DType D, class Bits>
SmallFloat<D, Bits>::SmallFloat(float value) : SmallFloat(static_cast<double>(value)) {}
template <DType D, class Bits>
SmallFloat<D, Bits>::SmallFloat(double value)
    : bits(static_cast<Bits>(is_fp8(D) ? encode_fp8(D, value) : encode_float(format_of(D), value))) {}
template <DType D, class Bits>
SmallFloat<D, Bits>::operator float() const {
  return static_cast<float>(is_fp8(D) ? decode_fp8(D, bits) : decode_float(format_of(D), bits));
}

template struct SmallFloat<DType::fp8e4m3, uint8_t>;
template struct SmallFloat<DType::fp8e5m2, uint8_t>;
template struct SmallFloat<DType::fp8e4m3fnuz, uint8_t>;
template struct SmallFloat<DType::fp8e5m2fnuz, uint8_t>;
template struct SmallFloat<DType::float16, uint16_t>;
template struct SmallFloat<DType::bfloat16, uint16_t>;

namespace {

// Any byte may stand for a bool in memory, but only 0 and 1 may be read as a C++ bool.
template <class T>
using InMemory = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;

template <class T>
uint64_t widen_element(InMemory<T> element) {
  if constexpr (std::is_same_v<T, bool>)
    return element != 0;
  else if constexpr (std::is_unsigned_v<T>)
    return element;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<uint64_t>(static_cast<int64_t>(element));
  else
    return std::bit_cast<uint64_t>(static_cast<double>(element));
}

template <class T>
InMemory<T> narrow_element(uint64_t wide) {
  if constexpr (std::is_same_v<T, bool>)
    return wide != 0;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(wide);
  else
    return static_cast<T>(std::bit_cast<double>(wide));
}

constexpr double two_to_63 = 9223372036854775808.0;

uint64_t float_to_integer(DType to, double value) {
  if (value >= -two_to_63 && value < two_to_63) return static_cast<uint64_t>(static_cast<int64_t>(value));
  if (to == DType::uint64 && value >= two_to_63 && value < 2 * two_to_63) return static_cast<uint64_t>(value);
  return uint64_t{1} << 63;
}

// A narrower float than double is rounded from this a second time. Rounding to odd first keeps what the second rounding needs to
// know: whether anything was cut off. (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums", 2008.)
double magnitude_to_double(DType to, uint64_t magnitude) {
  if (to != DType::float64 && (magnitude >> 53) != 0) {
    const uint64_t cut = magnitude & 0x7ff;
    magnitude = (magnitude - cut) | (cut != 0 ? 0x800 : 0);
  }
  return static_cast<double>(magnitude);
}

uint64_t integer_to_float(DType to, DType from, uint64_t wide) {
  const bool negative = is_signed(from) && static_cast<int64_t>(wide) < 0;
  const double magnitude = magnitude_to_double(to, negative ? 0 - wide : wide);
  return std::bit_cast<uint64_t>(negative ? -magnitude : magnitude);
}

}  // namespace

uint64_t widen(DType d, uint64_t storage) {
  return visit_dtype(d, [&]<class T>(std::type_identity<T>) {
    InMemory<T> element;
    std::memcpy(&element, &storage, sizeof element);
    return widen_element<T>(element);
  });
}

uint64_t narrow(DType d, uint64_t wide) {
  return visit_dtype(d, [&]<class T>(std::type_identity<T>) {
    const InMemory<T> element = narrow_element<T>(wide);
    uint64_t storage = 0;
    std::memcpy(&storage, &element, sizeof element);
    return storage;
  });
}

uint64_t change_form(DType to, DType from, uint64_t wide) {
  if (is_float(from)) {
    const double value = std::bit_cast<double>(wide);
    if (is_float(to)) return wide;
    return is_bool(to) ? value != 0 : float_to_integer(to, value);
  }
  return is_float(to) ? integer_to_float(to, from, wide) : wide;
}

void convert_array(DType to, void* dst, DType from, const void* src, size_t count) {
  auto* out = static_cast<std::byte*>(dst);
  const auto* in = static_cast<const std::byte*>(src);
  if (to == from) {
    if (count != 0) std::memcpy(out, in, count * itemsize(to));
    return;
  }
  // Through blocks in 64-bit form: a loop a type on each side instead of one for every pair.
  constexpr size_t block = 256;
  uint64_t wide[block];
  for (size_t done = 0; done < count; done += block) {
    const size_t n = std::min(block, count - done);
    visit_dtype(from, [&]<class T>(std::type_identity<T>) {
      if constexpr (is_fp8(dtype_of<T>())) return widen_fp8(from, wide, in + done, n);
      InMemory<T> elements[block];
      std::memcpy(elements, in + done * sizeof(T), n * sizeof(T));
      for (size_t i = 0; i < n; ++i) wide[i] = widen_element<T>(elements[i]);
    });
    if (is_float(from) != is_float(to)) {
      for (size_t i = 0; i < n; ++i) wide[i] = change_form(to, from, wide[i]);
    }
    visit_dtype(to, [&]<class T>(std::type_identity<T>) {
      if constexpr (is_fp8(dtype_of<T>())) return narrow_fp8(to, out + done, wide, n);
      InMemory<T> elements[block];
      for (size_t i = 0; i < n; ++i) elements[i] = narrow_element<T>(wide[i]);
      std::memcpy(out + done * sizeof(T), elements, n * sizeof(T));
    });
  }
}

}  // namespace tinygrad
