#pragma once
/// How far a float is from the exact result, and numbers to try functions on.

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "dtype/scalar.h"

namespace tinygrad::test {

inline bool is_greatest(double x, DType d) {
  const FloatInfo f = finfo(d);
  return std::abs(x) >= std::ldexp(2 - std::ldexp(1.0, -f.mantissa_bits), (1 << (f.exponent_bits - 1)) - 1);
}

/// The distance in units in the last place of the exact result, given in long double.
inline double ulps(double got, long double exact, DType d) {
  const double rounded = Scalar::from_double(double(exact), d).as_double();
  if (std::isnan(got) || std::isnan(rounded)) return std::isnan(got) && std::isnan(rounded) ? 0 : INFINITY;
  if (got == rounded) return std::signbit(got) == std::signbit(rounded) ? 0 : INFINITY;
  if (std::isinf(got) || std::isinf(rounded)) return is_greatest(std::isinf(got) ? rounded : got, d) ? 1 : INFINITY;
  const FloatInfo f = finfo(d);
  const int mantissa = f.mantissa_bits, least = 2 - (1 << (f.exponent_bits - 1)) - mantissa - is_fp8_fnuz(d);
  const double ulp = std::ldexp(1.0, std::max(std::ilogb(double(exact)) - mantissa, least));
  return double(std::abs(got - exact) / ulp);
}

/// Random numbers with every exponent as likely as the others, and the special ones.
inline std::vector<double> float_samples(DType d, uint64_t seed, size_t count) {
  std::vector<double> out = {0.0,  -0.0,       1,         -1,     2,      0.5,           INFINITY,   -INFINITY,  NAN,
                             0.25, 0.49999997, 0.5000001, 1e-45,  -1e-45, 1.1754944e-38, 3.4e38,     126.99999,  127.5,
                             128,  -126,       -149,      -149.5, -150.5, 3.14159274,    1.57079637, 16367173.0, 1e22};
  if (d == DType::float64) out.insert(out.end(), {5e-324, 1.7e308, 1023.99999, -1074, -1074.9, 6381956970095103.0 * 0x1p797, 1e300});
  std::mt19937_64 random(seed);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t bits = random();
    out.push_back(Scalar::from_storage_bits(bits >> (64 - bitsize(d)), d).as_double());
    out.push_back(Scalar::from_double((double(random()) / 0x1p63 - 1) * std::pow(10.0, double(random() % 6)) / 100, d).as_double());
  }
  return out;
}

}  // namespace tinygrad::test
