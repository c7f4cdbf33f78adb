#include "search/accuracy.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/core.h>

#include "dtype/convert.h"

namespace tinygrad::search {
namespace {

constexpr double telling = 1.0 / 16;  // of an error: a larger one comes from an overflow, or a comparison that flips

double ulp_of(DType d) { return std::ldexp(1.0, -finfo(d).mantissa_bits); }

std::vector<double> as_doubles(DType d, std::span<const std::byte> bytes) {
  std::vector<double> out(bytes.size() / itemsize(d));
  if (!out.empty()) convert_array(DType::float64, out.data(), d, bytes.data(), out.size());
  return out;
}

double root_mean_square(const std::vector<double>& values) {
  double sum = 0;
  size_t count = 0;
  for (double v : values)
    if (std::isfinite(v)) sum += v * v, ++count;
  return count ? std::sqrt(sum / double(count)) : 0;
}

/// Infinite where one of two values is finite, or they are different infinities; what overflows in the dtype alone counts as no error.
double difference(double got, double exact, double unit, DType d) {
  if (std::isnan(got) && std::isnan(exact)) return 0;
  if (got == exact) return 0;
  if (std::isinf(got) && std::isfinite(exact) && std::isinf(Scalar::from_double(exact, d).as_double())) return 0;
  if (!std::isfinite(got) || !std::isfinite(exact)) return std::numeric_limits<double>::infinity();
  const double scale = std::max(std::abs(exact), unit);
  return scale > 0 ? std::abs(got - exact) / scale : std::numeric_limits<double>::infinity();
}

double largest_difference(const std::vector<double>& got, const std::vector<double>& exact, double unit, DType d) {
  double most = 0;
  for (size_t i = 0; i < got.size(); ++i) most = std::max(most, difference(got[i], exact[i], unit, d));
  return most;
}

}  // namespace

Accuracy::Accuracy(const TrialMemory& memory, const TrialMemory* exact, double factor, double least) {
  for (size_t i = 0; i < memory.slots().size(); ++i) {
    const TrialMemory::Slot& slot = memory.slots()[i];
    if (!slot.place.written || slot.count == 0) continue;
    const std::span<const std::byte> bytes = memory.result(slot);
    Expected& e = expected_.emplace_back();
    e.slot = i;
    e.bytes.assign(bytes.begin(), bytes.end());
    if (!is_float(slot.dtype)) continue;
    const std::vector<double> ours = as_doubles(slot.dtype, bytes);
    e.exact = exact ? as_doubles(DType::float64, exact->result(exact->slots()[i])) : ours;
    e.unit = root_mean_square(e.exact);
    double error = largest_difference(ours, e.exact, e.unit, slot.dtype);
    if (!(error < telling)) {
      e.exact = ours;
      e.unit = root_mean_square(ours);
      error = 0;
    }
    const double ulps = slot.dtype == DType::float64 ? 64 : 4;
    e.allowed = factor * error + std::max(ulps * ulp_of(slot.dtype), least);
  }
}

std::string Accuracy::complaint(const TrialMemory& memory) const {
  for (const Expected& e : expected_) {
    const TrialMemory::Slot& slot = memory.slots()[e.slot];
    const std::span<const std::byte> bytes = memory.result(slot);
    if (std::memcmp(bytes.data(), e.bytes.data(), bytes.size()) == 0) continue;
    if (!is_float(slot.dtype)) return fmt::format("wrong: argument {} differs", e.slot);
    const double error = largest_difference(as_doubles(slot.dtype, bytes), e.exact, e.unit, slot.dtype);
    if (!(error <= e.allowed))
      return fmt::format("wrong: the error of argument {} is {:.3g}, at most {:.3g} is allowed", e.slot, error, e.allowed);
  }
  return {};
}

}  // namespace tinygrad::search
