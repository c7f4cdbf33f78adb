#pragma once
#include "uop/uop.h"

namespace tinygrad::codegen {

/// A value that the loop of a reduction computes, and a loop over results the same but for the loops.
struct RepeatedTerm {
  UOp term, again;
};

/// The largest parts of `result` that are parts of `body` with the ranges `to` for `of`, if they are dear enough to be stored and read
/// instead: exponentials, above all.
std::vector<RepeatedTerm> repeated_terms(const UOp& body, std::span<const UOp> of, const UOp& result, std::span<const UOp> to);

}  // namespace tinygrad::codegen
