#include "kernel/scratch_layout.h"

#include <algorithm>

namespace tinygrad {
namespace {

int64_t bytes_of(const UOp& buffer) { return buffer.arg_as<BufferArg>().size * static_cast<int64_t>(itemsize(buffer.dtype())); }

}  // namespace

ScratchLayout::ScratchLayout(const UOp& linear) {
  std::vector<UOp> buffers;
  const auto is_private = [](Scope scope) { return scope == Scope::reg || scope == Scope::thread; };
  for (const UOp& u : linear.src())
    if (u.is(Op::BUFFER) && is_private(u.arg_as<BufferArg>().scope)) buffers.push_back(u);
  std::ranges::stable_sort(buffers, {}, bytes_of);
  int64_t on_stack = 0;
  for (const UOp& b : buffers) {
    on_stack += bytes_of(b);
    if (on_stack <= stack_bytes) continue;
    buffers_.push_back(b);
    offsets_[b] = bytes_;
    bytes_ += (bytes_of(b) + alignment - 1) / alignment * alignment;
  }
}

std::optional<int64_t> ScratchLayout::offset(const UOp& buffer) const {
  const int64_t* at = offsets_.find(buffer);
  return at ? std::optional(*at) : std::nullopt;
}

}  // namespace tinygrad
