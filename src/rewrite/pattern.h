#pragma once
/// Patterns: runtime data that says which nodes a rule is about.

#include <bitset>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <type_traits>
#include <vector>

#include "uop/uop.h"

namespace tinygrad::rewrite {

class Pat;

inline constexpr int max_captures = 16;

/// A numbered name for a matched node. Declare them at namespace scope, so that captureless lambdas may use them:
/// `constexpr Capture x{0}, y{1};`. Used twice in one pattern it must be the same node both times.
struct Capture {
  uint8_t id;

  /// Anything of the dtype(s).
  Pat dtype(DType d) const;
  Pat dtype(std::initializer_list<DType> ds) const;
  Pat dtype(bool (*test)(DType)) const;
  /// Anything that passes a test; see Pat::where.
  Pat where(bool (*test)(const UOp&)) const;
};

using OpSet = std::bitset<op_count>;
using DTypeSet = std::bitset<dtype_count>;
using Predicate = bool (*)(const UOp&);

/// A number written in a pattern. It matches a CONST that equals it after conversion to the CONST's dtype: 1 matches 1, 1.0f and true,
/// but for bool only 0 and 1 match. -1 matches 255 of uint8. 0 matches 0.0 and not -0.0, which -0.0 matches; a NaN matches any NaN.
struct Number {
  bool integral;
  int64_t i;
  double d;
};

/// What a node must look like: ops, dtypes, sources, a name, a test. A pattern of a commutative op matches its two sources in both
/// orders. Built once when a rule table is made; Rules compiles it.
class Pat {
 public:
  Pat(Capture c) : capture_(c.id) {}
  template <class T>
    requires std::is_arithmetic_v<T>
  Pat(T value) : Pat(std::floating_point<T> ? Number{false, 0, double(value)} : Number{true, int64_t(value), 0}) {}
  explicit Pat(Number n);
  Pat(OpSet ops, std::optional<std::vector<Pat>> sources, bool more);

  /// Gives the matched node a name.
  Pat named(Capture c) &&;
  Pat named(Capture c) const& { return Pat(*this).named(c); }
  /// Only these dtypes: one, several, or all for which a function such as `is_float` holds.
  Pat dtype(DType d) &&;
  Pat dtype(std::initializer_list<DType> ds) &&;
  Pat dtype(bool (*test)(DType)) &&;
  /// Only nodes that pass `test`, a captureless function; it runs after ops and dtype matched and before sources are looked at. Tests
  /// that need several captures belong in the rule, which returns a null UOp.
  Pat where(Predicate test) &&;
  /// Sources in the written order only, though the op is commutative.
  Pat ordered() &&;

 private:
  friend struct PatAccess;

  OpSet ops_ = OpSet().set();
  DTypeSet dtypes_ = DTypeSet().set();
  std::optional<std::vector<Pat>> sources_;  ///< none: any sources
  bool more_ = false;                        ///< further sources may follow
  bool ordered_ = false;
  std::optional<uint8_t> capture_;
  std::optional<Number> number_;
  std::vector<Predicate> tests_;
};

/// Says that any further sources may follow those listed; a rule reads them from the matched node.
struct Rest {};
inline constexpr Rest rest;

/// A node of the op, with any sources, exactly the listed ones, or those and more.
Pat pat(Op op);
Pat pat(Op op, std::initializer_list<Pat> sources);
Pat pat(Op op, std::initializer_list<Pat> sources, Rest);
/// The same for one of several ops, ...
Pat pat(std::initializer_list<Op> ops);
Pat pat(std::initializer_list<Op> ops, std::initializer_list<Pat> sources);
Pat pat(std::initializer_list<Op> ops, std::initializer_list<Pat> sources, Rest);
/// ... or any op of a group.
Pat pat(Group group);
Pat pat(Group group, std::initializer_list<Pat> sources);
Pat pat(Group group, std::initializer_list<Pat> sources, Rest);

/// A CONST equal to a number; see Number. Numbers among operands may also be written as they are: `x + 0`.
template <class T>
  requires std::is_arithmetic_v<T>
Pat cconst(T value) {
  return Pat(value);
}
/// Any CONST.
Pat any_const(Capture c);

// The algebra. `<`, `eq` and `ne` are the comparisons; there is no `==`, which C++ would reverse.
Pat operator+(const Pat& a, const Pat& b);
Pat operator-(const Pat& a, const Pat& b);
Pat operator*(const Pat& a, const Pat& b);
Pat operator-(const Pat& a);
Pat operator&(const Pat& a, const Pat& b);
Pat operator|(const Pat& a, const Pat& b);
Pat operator^(const Pat& a, const Pat& b);
Pat operator<<(const Pat& a, const Pat& b);
Pat operator>>(const Pat& a, const Pat& b);
Pat operator<(const Pat& a, const Pat& b);
Pat floor_div(const Pat& a, const Pat& b);
Pat floor_mod(const Pat& a, const Pat& b);
Pat max(const Pat& a, const Pat& b);
Pat eq(const Pat& a, const Pat& b);
Pat ne(const Pat& a, const Pat& b);
/// `a` negated as build.h's logical_not writes it: CMPNE(a, true).
Pat logical_not(const Pat& a);
Pat where(const Pat& c, const Pat& a, const Pat& b);

}  // namespace tinygrad::rewrite
