#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// A value that the loop of a reduction computes, and that a loop over results computes again along its own loops.
struct RepeatedTerm {
  UOp term, again;
};

/// The largest parts of `result` that equal parts of `body` once the ranges `of` are replaced by `to`, as far as storing and reading them
/// is cheaper than computing them again. Mostly exponentials are.
std::vector<RepeatedTerm> repeated_terms(const UOp& body, std::span<const UOp> of, const UOp& result, std::span<const UOp> to);

/// The most bytes of terms that are worth storing: with their operands they fill half of the second cache.
inline int64_t most_kept_bytes(const Target& target) { return target.l2_bytes / 4; }

}  // namespace tinygrad::codegen
