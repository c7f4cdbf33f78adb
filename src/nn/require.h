#pragma once
/// Options that make no sense.

#include <fmt/core.h>

#include <string_view>

#include <tinygrad/errors.h>

namespace tinygrad::nn {

/// ValueError unless it fits.
inline void require(bool fits, std::string_view who, std::string_view what, double got, std::string_view expected) {
  if (!fits) throw ValueError(fmt::format("{}: {} is {}, expects {}", who, what, got, expected));
}

}  // namespace tinygrad::nn
