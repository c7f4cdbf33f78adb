#pragma once
#include <cstdint>
#include <optional>

#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// x / divisor is x * factor >> shift.
struct Reciprocal {
  int64_t factor;
  int shift;
};

/// For every 0 <= x <= most and products up to `limit`; the smallest such factor. None where there is no such pair.
std::optional<Reciprocal> reciprocal_of(int64_t divisor, int64_t most, int64_t limit);

/// CDIV of an integer by a constant, as multiplication and shift, where the bounds of x show it to be exact in x's own type; null
/// otherwise.
UOp short_quotient(const UOp& x, const UOp& divisor);

/// The upper half of the product of two unsigned numbers of one dtype, by halves of them.
UOp high_by_halves(const UOp& a, const UOp& b);

/// CDIV of any integer by a constant without division (Granlund and Montgomery, "Division by invariant integers using multiplication", PLDI
/// 1994): for targets that have none.
UOp quotient_by_constant(const UOp& x, const UOp& divisor, const Target& target);

}  // namespace tinygrad::codegen
