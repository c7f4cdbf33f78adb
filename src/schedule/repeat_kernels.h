#pragma once
#include <string_view>

#include "schedule/schedule.h"

namespace tinygrad::schedule {

/// The variable of a loop has this name and a number.
inline constexpr std::string_view loop_variable = "repeat";

/// Puts loops around kernels that pass far memory on to each other, where each iteration reads only the part of it that the same iteration
/// writes, as each head of an attention has its own scores. Then that part is all there is of such a temporary, and it stays near. A sum
/// over what is passed on, as gradients of keys are over queries, is added up from iteration to iteration. Takes the list of
/// merge_kernels; the result is in an order in which it may run, too. Temporaries, with slots from `first_temporary` on, get the sizes
/// that they have then; there may be more.
UOp repeat_kernels(const UOp& linear, const TargetOf& target_of, int32_t first_temporary);

}  // namespace tinygrad::schedule
