#pragma once
/// Index expressions with the trivial cases folded while they are built: much cheaper than building and simplifying. What is not trivial
/// is left to simplify_index.

#include "uop/build.h"

namespace tinygrad::symbolic {

UOp sym_add(const UOp& a, const UOp& b);  ///< constants fold and gather at the end: (x+1)+2 is x+3
UOp sym_sub(const UOp& a, const UOp& b);
UOp sym_mul(const UOp& a, const UOp& b);  ///< by 0 and 1, (x*2)*3
UOp sym_div(const UOp& a, const UOp& b);  ///< FLOORDIV: by 1, of 0 <= a < b
UOp sym_mod(const UOp& a, const UOp& b);  ///< FLOORMOD: the same
UOp sym_max(const UOp& a, const UOp& b);  ///< decided by bounds
UOp sym_min(const UOp& a, const UOp& b);
UOp sym_lt(const UOp& a, const UOp& b);  ///< a < b, decided by bounds
UOp sym_ge(const UOp& a, const UOp& b);  ///< !(a < b)
UOp sym_and(const UOp& a, const UOp& b);
UOp sym_or(const UOp& a, const UOp& b);
UOp sym_not(const UOp& a);
UOp sym_where(const UOp& c, const UOp& a, const UOp& b);

inline UOp sym_add(const UOp& a, int64_t b) { return sym_add(a, index_const(b)); }
inline UOp sym_sub(const UOp& a, int64_t b) { return sym_sub(a, index_const(b)); }
inline UOp sym_mul(const UOp& a, int64_t b) { return sym_mul(a, index_const(b)); }
inline UOp sym_div(const UOp& a, int64_t b) { return sym_div(a, index_const(b)); }
inline UOp sym_mod(const UOp& a, int64_t b) { return sym_mod(a, index_const(b)); }
inline UOp sym_lt(const UOp& a, int64_t b) { return sym_lt(a, index_const(b)); }
inline UOp sym_ge(const UOp& a, int64_t b) { return sym_ge(a, index_const(b)); }

}  // namespace tinygrad::symbolic
