#pragma once
#include "uop/uop.h"

namespace tinygrad::codegen {

/// A loop and what takes its place.
struct Split {
  UOp range;
  UOps parts;                 ///< the new loops, outermost first
  UOp value;                  ///< the old index
  UOp valid;                  ///< where the old index is within its loop; null: everywhere
  bool repeats_last = false;  ///< `value` is within the loop also elsewhere: loads need no mask there
};

/// The graph with the range replaced by its parts. Where the index is not valid, loads and stores that move with it are not made, and a
/// REDUCE over it gets the identity.
UOp apply_split(const UOp& root, const Split& split);

/// How many times `n` iterations cover the range.
UOp rounds_of(const UOp& range, int64_t n);

/// An INDEX that is also not accessed where `valid` is false.
UOp mask_index(const UOp& index, const UOp& valid);

}  // namespace tinygrad::codegen
