#pragma once
/// Index expressions as sums of terms with constant coefficients.

#include <cstdint>
#include <optional>

#include "symbolic/bounds.h"

namespace tinygrad::symbolic {

struct Term {
  UOp node;  ///< neither a sum nor a multiple
  int64_t factor = 0;
};

/// The sum of terms with different nodes, and a number. All arithmetic is exact: what overflows 64 bits is refused.
struct Linear {
  static constexpr size_t max_terms = 64;

  SmallVector<Term, 6> terms;
  int64_t offset = 0;

  /// Adds `factor` times a term.
  [[nodiscard]] bool add(const UOp& node, int64_t factor);
  /// Adds `factor` times another sum.
  [[nodiscard]] bool add(const Linear& other, int64_t factor);
  /// Adds `factor` times an expression, taken apart.
  [[nodiscard]] bool add_expression(const UOp& u, int64_t factor);
  void drop_zeros();
  /// Knows that k*c*(n//c) is k*n but for a remainder; otherwise of each term for itself.
  Bounds bounds() const;
  /// The sum in normal form: terms sorted, as (((a + b*2) + c) + 5).
  UOp build() const;
  /// Whether build() would give `u`; makes no nodes.
  bool is_written_as(const UOp& u) const;

 private:
  Bounds bounds_of_terms() const;
};

/// The expression as a sum; none where it has too many terms or a number is too large.
std::optional<Linear> linear(const UOp& u);
/// a - b as a sum, without terms that cancel.
std::optional<Linear> difference(const UOp& a, const UOp& b);

}  // namespace tinygrad::symbolic
