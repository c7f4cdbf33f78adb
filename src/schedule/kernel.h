#pragma once
#include <optional>
#include <vector>

#include "schedule/cost.h"
#include "uop/uop.h"

namespace tinygrad::schedule {

/// One kernel or copy, its index expressions written out, over the PARAMs of the whole schedule, with what its order depends on.
struct Kernel {
  UOp root;  ///< the STORE, stored value, COPY or COLLECTIVE it computes
  Devices devices;
  UOp target;               ///< PARAM that is written
  UOp target_index, value;  ///< STORE(INDEX(target, target_index), value); null for a copy
  UOps ranges;              ///< over which that happens, outermost first
  UOp copied;               ///< a copy: the PARAM it reads
  std::vector<int> after;   ///< kernels that make what this one reads
  std::vector<UOp> reads;   ///< states of memory it reads (PARAM or AFTER nodes)
  int store = -1;           ///< number of the STORE in Effects, if it is one
};

/// What was decided of a value. Kernels are numbers.
struct ValueNote {
  UOp value;
  Decision decision;
  double evaluations = 0;          ///< of one element each, if it is computed in place
  std::vector<int> users;          ///< kernels
  std::optional<int> kernel = {};  ///< that stores it
  bool is_handed_on = false;       ///< only to what that kernel computes: it needs no memory any more
};

struct Kernels {
  std::vector<Kernel> kernels;   ///< in the walking order of their roots
  std::vector<ValueNote> notes;  ///< if they are asked for, from inputs to outputs
};

}  // namespace tinygrad::schedule
