#pragma once
/// What values an integer or bool expression can have.

#include <cstdint>
#include <limits>
#include <optional>

#include "uop/uop.h"

namespace tinygrad::symbolic {

/// Inclusive bounds. INT64_MIN as `min` and INT64_MAX as `max` mean "none": index expressions are unbounded integers, and a uint64 may
/// be larger than any int64.
struct Bounds {
  int64_t min = std::numeric_limits<int64_t>::min();
  int64_t max = std::numeric_limits<int64_t>::max();

  bool has_min() const { return min != std::numeric_limits<int64_t>::min(); }
  bool has_max() const { return max != std::numeric_limits<int64_t>::max(); }
  bool contains(int64_t v) const { return min <= v && v <= max; }
  /// The only value, if there is just one.
  std::optional<int64_t> single() const {
    if (min != max || !has_min() || !has_max()) return std::nullopt;
    return min;
  }
  friend bool operator==(const Bounds&, const Bounds&) = default;
};

/// Sound bounds of an expression of an integer dtype, `index` or bool (0 and 1), whatever its variables, ranges and loads hold; those of
/// the dtype where nothing better is known. Sized integers wrap, so a sum that may leave its dtype has the bounds of the dtype. Cached in
/// the node. For other dtypes: no bounds.
Bounds bounds(const UOp& u);

}  // namespace tinygrad::symbolic
