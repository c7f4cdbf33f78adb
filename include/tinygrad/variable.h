#pragma once
/// Sizes that are known only when a kernel is launched.

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

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

/// A number, a bound Variable, or the sum of both.
class Extent {
 public:
  template <std::integral T>
  Extent(T number) : number_(static_cast<int64_t>(number)) {}
  Extent(Variable variable) : variable_(std::move(variable)) {}
  const std::optional<Variable>& variable() const { return variable_; }
  int64_t number() const { return number_; }
  friend Extent operator+(Extent e, int64_t number) {
    e.number_ += number;
    return e;
  }
  friend Extent operator-(const Extent& e, int64_t number) { return e + -number; }

 private:
  std::optional<Variable> variable_;
  int64_t number_ = 0;
};

}  // namespace tinygrad
