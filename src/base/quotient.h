#pragma once
#include <cstdint>

namespace tinygrad {

/// a / b, rounded towards minus and plus infinity; b is not 0.
constexpr int64_t floor_quotient(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }
constexpr int64_t ceil_quotient(int64_t a, int64_t b) { return a / b + (a % b != 0 && (a % b < 0) == (b < 0)); }

}  // namespace tinygrad
