#pragma once
/// What the form of a value alone says about storing it.

#include "uop/uop.h"

namespace tinygrad::schedule {

/// False for what is no value, or is in memory or at hand already.
bool can_be_stored(const UOp& u);

/// A comparison of numbers of elements, which loops have at hand: where it chooses between values, whole loops may do without.
bool is_test_of_place(const UOp& u);

/// What a padding, and masks around it, leave as it is: that is smaller, and its kernel has whole loops. Null where nothing is padded.
UOp inside_of_padding(const UOp& u);

}  // namespace tinygrad::schedule
