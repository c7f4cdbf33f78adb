#pragma once
#include <vector>

#include "schedule/effects.h"
#include "schedule/explanation.h"
#include "schedule/schedule.h"
#include "uop/graph.h"

namespace tinygrad::schedule {

/// One kernel or copy, its index expressions written out, over the PARAMs of the whole schedule.
struct Kernel {
  UOp root;  ///< the STORE, stored value or COPY it computes
  Symbol device;
  UOp target;               ///< PARAM that is written
  UOp target_index, value;  ///< STORE(INDEX(target, target_index), value); null for a copy
  UOps ranges;              ///< over which that happens, outermost first
  UOp copied;               ///< a copy: the PARAM it reads
  std::vector<int> after;   ///< kernels that make what this one reads
  std::vector<UOp> reads;   ///< states of memory it reads (PARAM or AFTER nodes)
  int store = -1;           ///< number of the STORE in Effects, if it is one
};

struct Kernels {
  std::vector<Kernel> kernels;   ///< in the walking order of their roots
  std::vector<UOp> temporaries;  ///< PARAMs with slots from `first_temporary` on
  std::vector<ValueNote> notes;  ///< if they are asked for, from inputs to outputs
};

/// From outputs to inputs, gives each value the places it is needed at and decides by cost which values are stored; then, from inputs to
/// outputs, writes each kernel as scalar expressions over ranges. `order` is the walking order of a prepared graph.
Kernels rangeify(const std::vector<UOp>& order, const Effects& effects, const TargetOf& target_of, int32_t first_temporary,
                 bool explains = false);

}  // namespace tinygrad::schedule
