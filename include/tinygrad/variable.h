#pragma once
/// Sizes that are known only when a kernel is launched.

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <tinygrad/export.h>

namespace tinygrad {

/// An integer with a name and bounds. Bound to a value it can stand in slices: `x[{Slice{.stop = n.bind(3)}}]`. Kernels are compiled once
/// for all values; memory is laid out for the upper bound.
class TINYGRAD_EXPORT Variable {
 public:
  /// Values are min to max. Throws ValueError unless 0 <= min <= max and the name is not empty.
  Variable(std::string name, int64_t min, int64_t max);
  /// The same with a value. Throws ValueError for one out of bounds.
  Variable bind(int64_t value) const;

  const std::string& name() const { return name_; }
  int64_t min() const { return min_; }
  int64_t max() const { return max_; }
  /// Empty unless bound.
  std::optional<int64_t> value() const { return value_; }

 private:
  std::string name_;
  int64_t min_, max_;
  std::optional<int64_t> value_;
};

/// A number, or a bound Variable.
class Extent {
 public:
  template <std::integral T>
  Extent(T number) : value_(static_cast<int64_t>(number)) {}
  Extent(Variable variable) : value_(std::move(variable)) {}
  const std::variant<int64_t, Variable>& value() const { return value_; }

 private:
  std::variant<int64_t, Variable> value_;
};

}  // namespace tinygrad
