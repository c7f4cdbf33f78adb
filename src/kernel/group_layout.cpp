#include "kernel/group_layout.h"

#include "kernel/kernel_info.h"
#include "uop/build.h"

namespace tinygrad {

GroupLayout::GroupLayout(const UOp& linear) {
  for (const bool whole : {true, false})
    for (const UOp& u : linear.src()) {
      may_swizzle_ |= is_asynchronous(u);
      if (!u.is(Op::BUFFER) || u.arg_as<BufferArg>().scope != Scope::group || is_whole_pattern(u) != whole) continue;
      places_[u] = bytes_;
      bytes_ += group_bytes(u);
    }
}

int GroupLayout::alignment(const UOp& buffer) const { return may_swizzle_ && is_whole_pattern(buffer) ? pattern_bytes : least_alignment; }

bool GroupLayout::is_whole_pattern(const UOp& buffer) { return group_bytes(buffer) % pattern_bytes == 0; }

}  // namespace tinygrad
