#pragma once
/// Sizes that are known only when a kernel is launched.

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tinygrad/dtype.h>
#include <tinygrad/export.h>

namespace tinygrad {

/// An integer with a name and bounds. It can stand wherever a size, an offset, an index or a number does:
/// `x[{Slice{.stop = n.bind(3)}}]`, `x.reshape({n.bind(3), -1})`, `x * n.bind(3)`. Kernels are compiled once for all values; memory is laid
/// out for the upper bound. Graphs can be built of variables without values; computing them is a ValueError.
class TINYGRAD_EXPORT Variable {
 public:
  /// Values are min to max. Throws ValueError unless 0 <= min <= max and for a name that is empty or begins with _, and DTypeError for a
  /// dtype that is not of integers; it is that of Tensor(variable).
  Variable(std::string name, int64_t min, int64_t max, std::optional<DType> dtype = {});
  /// The same with a value. Throws ValueError for one out of bounds.
  Variable bind(int64_t value) const;

  const std::string& name() const& { return name_; }
  std::string name() && { return std::move(name_); }
  int64_t min() const { return min_; }
  int64_t max() const { return max_; }
  const std::optional<DType>& dtype() const { return dtype_; }
  /// Empty unless bound.
  std::optional<int64_t> value() const { return value_; }
  /// The same name, bounds and value.
  bool operator==(const Variable&) const = default;

 private:
  std::string name_;
  int64_t min_, max_;
  std::optional<DType> dtype_;
  std::optional<int64_t> value_;
};

namespace detail {
struct ExtentAccess;
struct SymbolicExtent;
}  // namespace detail

/// A size or an offset: a number, a Variable, or what sums, products, quotients and remainders make of them.
class TINYGRAD_EXPORT Extent {
 public:
  template <std::integral T>
  Extent(T number) : number_(static_cast<int64_t>(number)) {}
  Extent(const Variable& variable);

  /// A number, the same in each call.
  bool known() const { return !symbolic_; }
  /// The number, or what the values of the variables give; ValueError where one has none.
  int64_t value() const;
  // Bounds over all values of the variables.
  int64_t min() const;
  int64_t max() const;
  /// "3", "n", "n + 1".
  std::string to_string() const;

  friend TINYGRAD_EXPORT Extent operator+(const Extent& a, const Extent& b);
  friend TINYGRAD_EXPORT Extent operator-(const Extent& a, const Extent& b);
  friend TINYGRAD_EXPORT Extent operator*(const Extent& a, const Extent& b);
  /// Rounded down. ValueError for a divisor of 0.
  friend TINYGRAD_EXPORT Extent operator/(const Extent& a, const Extent& b);
  /// The remainder, with the sign of the divisor.
  friend TINYGRAD_EXPORT Extent operator%(const Extent& a, const Extent& b);
  /// True where both are the same for all values of their variables.
  friend TINYGRAD_EXPORT bool operator==(const Extent& a, const Extent& b);

 private:
  friend struct detail::ExtentAccess;
  int64_t number_ = 0;
  std::shared_ptr<const detail::SymbolicExtent> symbolic_;  ///< null for a number
};

/// Sizes, one an axis; -1 where a method says so.
using Sizes = std::vector<int64_t>;

/// Sizes that may be symbolic, one an axis.
class Extents : public std::vector<Extent> {
 public:
  using std::vector<Extent>::vector;
  Extents(const Sizes& sizes) : std::vector<Extent>(sizes.begin(), sizes.end()) {}
};

/// (begin, end) or (before, after), one an axis.
class ExtentPairs : public std::vector<std::pair<Extent, Extent>> {
 public:
  using std::vector<std::pair<Extent, Extent>>::vector;
  ExtentPairs(const std::vector<std::pair<int64_t, int64_t>>& pairs) : std::vector<std::pair<Extent, Extent>>(pairs.begin(), pairs.end()) {}
};

}  // namespace tinygrad
