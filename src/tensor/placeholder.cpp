#include "tensor/placeholder.h"

#include <atomic>

#include "ops/gradient.h"

namespace tinygrad::tensor {

namespace {

/// Slots of placeholders begin here, far behind those of the PARAMs of finished bodies.
constexpr int32_t first_slot = 1 << 20;

}  // namespace

UOp placeholder_like(const UOp& value) {
  static std::atomic<int32_t> next{first_slot};  // no two functions, one inside of the other, have the same
  return ops::param_like(value, next++);
}

bool is_placeholder(const UOp& node) { return node.is(Op::PARAM) && node.arg_as<ParamArg>().slot >= first_slot; }

}  // namespace tinygrad::tensor
