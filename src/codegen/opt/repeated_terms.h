#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// A value that the loop of a reduction computes, and a loop over results the same but for the loops.
struct RepeatedTerm {
  UOp term, again;
};

/// The largest parts of `result` that are parts of `body` with the ranges `to` for `of`, if they are dear enough to be stored and read
/// instead: exponentials, above all.
std::vector<RepeatedTerm> repeated_terms(const UOp& body, std::span<const UOp> of, const UOp& result, std::span<const UOp> to);

/// Bytes of terms that are worth storing: with what they are computed of they fill half of the second cache.
inline int64_t most_kept_bytes(const Target& target) { return target.l2_bytes / 4; }

}  // namespace tinygrad::codegen
