#pragma once
#include <string_view>
#include <vector>

#include "schedule/merge_kernels.h"
#include "schedule/schedule.h"

namespace tinygrad::schedule {

/// A kernel, or a loop around steps: they run one after another for each value of the VAR.
struct Step {
  MergedKernel kernel;
  UOp loop;  ///< null for a kernel
  std::vector<Step> body;
};

/// The variable of a loop has this name and a number.
inline constexpr std::string_view loop_variable = "repeat";

/// Puts loops around kernels that pass far memory on to each other, where each iteration reads only the part of it that the same iteration
/// writes, as each head of an attention has its own scores. Then that part is all there is of such a temporary, and it stays near. A sum
/// over what is passed on, as gradients of keys are over queries, is added up from iteration to iteration. `kernels` in an order in which
/// they may run; so is the result. Temporaries, with slots from `first_temporary` on, get the sizes that they have then; new ones are
/// added.
std::vector<Step> repeat_kernels(std::vector<MergedKernel> kernels, std::vector<UOp>& temporaries, const TargetOf& target_of,
                                 int32_t first_temporary);

}  // namespace tinygrad::schedule
