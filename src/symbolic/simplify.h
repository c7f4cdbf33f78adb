#pragma once
/// Algebra as rule tables. Index algebra and data algebra are different tables: index expressions are unbounded integers, sized integers
/// wrap, and what holds for floats must hold for NaN, infinities and -0.0.

#include "rewrite/rewrite.h"

namespace tinygrad::symbolic {

/// Rules for expressions of dtype `index` and bools over them: folds, cancels and orders them into a normal form (a sum of products with
/// constant coefficients, sorted, the constant last; comparisons with positive terms on the left), takes divisions and remainders
/// apart, decides by bounds, and turns ranges of size 1 into 0 (END, REDUCE, STAGE and AFTER over them included).
const rewrite::Rules<>& index_rules();

/// Rules for values of every sized dtype and bool: only what changes no bit of any result (a NaN stays a NaN).
const rewrite::Rules<>& data_rules();

/// Logic on bools, part of both tables above.
const rewrite::Rules<>& bool_rules();

/// Movement ops of movement ops that merge without knowing shapes, and those that do nothing.
const rewrite::Rules<>& movement_rules();

/// An index or bool expression in normal form.
UOp simplify_index(const UOp& u);

/// The value of an ALU op, CAST or BITCAST over CONSTs as a CONST; null if a source is not one, their devices differ or the dtype cannot
/// hold the result (an index expression beyond 64 bits).
UOp fold_constants(const UOp& u);

}  // namespace tinygrad::symbolic
