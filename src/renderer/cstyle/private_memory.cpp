#include "renderer/cstyle/private_memory.h"

#include "uop/build.h"

namespace tinygrad::renderer::cstyle {

PrivateMemory::PrivateMemory(const UOp& linear) {
  const auto list = linear.src();
  for (size_t at = 0; at < list.size(); ++at) {
    const UOp& u = list[at];
    if (u.is(Op::BUFFER)) {
      number_[u] = static_cast<int32_t>(layouts_.size());
      layouts_.push_back({});
    }
    for (const UOp& s : u.src()) {
      if (!s.is(Op::INDEX) || !s.src(0).is(Op::BUFFER)) continue;
      Layout& l = layouts_[static_cast<size_t>(*number_.find(s.src(0)))];
      if (l.first_access < 0) l.first_access = static_cast<int32_t>(at);
    }
    if (!u.is(Op::INDEX) || !u.src(0).is(Op::BUFFER)) continue;
    Layout& l = layouts_[static_cast<size_t>(*number_.find(u.src(0)))];
    const int width = u.arg_as<IndexArg>().width;
    if (l.width == 0) l.width = width;
    const auto constant = constant_index(u);
    const bool vector_of_indices = !u.src(1)->scalar;
    if (width != l.width || vector_of_indices || u.src(0).arg_as<BufferArg>().size % width != 0 ||
        (width > 1 && (!constant || *constant % width != 0))) {
      l.regular = false;
    }
  }
}

std::optional<int64_t> PrivateMemory::constant_index(const UOp& index) {
  const Scalar* c = const_value(index.src(1));
  return c ? std::optional(c->as_int()) : std::nullopt;
}

}  // namespace tinygrad::renderer::cstyle
