#pragma once
/// Random programs on the tensor graph: memory, values computed from it, stores, and states of the memory that is stored to.

#include <vector>

#include "spec/evaluate.h"
#include "uop/node_map.h"
#include "uop/uop.h"

namespace tinygrad::test {

struct Program {
  struct Memory {
    UOp buffer;  ///< a BUFFER on no device
    spec::Array data;
  };
  std::vector<Memory> memories;
  std::vector<UOp> effects;  ///< STOREs and AFTERs; sizes that are symbolic are BINDs in them
  std::vector<UOp> exact;    ///< values without rounding errors, as is all that they are computed from

  /// Memory with these elements, flat.
  UOp memory(spec::Array data);
};

/// The same for the same seed.
Program random_program(uint64_t seed);

/// The program as a graph, for people.
std::string to_string(const Program& p);

}  // namespace tinygrad::test
