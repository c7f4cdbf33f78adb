#include "renderer/llvmir/liveness.h"

#include "kernel/address_parts.h"
#include "renderer/exact.h"

namespace tinygrad::renderer::llvmir {

Liveness::Liveness(const UOp& linear) {
  const auto list = linear.src();
  for (size_t i = list.size(); i-- > 0;) {
    const UOp& u = list[i];
    if (u.in(Group::memory) || u.is(Op::END) || u.is(Op::GROUP) || u.is(Op::SINK)) continue;
    if (u.is(Op::INDEX) && u.src(0).in(Group::memory)) {
      read_address(u);
      continue;
    }
    if (is_wide(u) && is_wide_sum(u)) {
      for (const UOp& s : u.src()) read_wide(s);
    } else if (is_wide(u) && !u.is(Op::RANGE)) {
      read(u);
    }
    if (is_live(u) || u.is(Op::RANGE))
      for (const UOp& s : u.src()) read(s);
  }
}

bool Liveness::is_wide_sum(const UOp& u) { return u.is(Op::CONST) || ((u.is(Op::ADD) || u.is(Op::SUB) || u.is(Op::MUL)) && is_exact(u)); }

bool Liveness::is_pure(const UOp& u) {
  if (u.is(Op::INDEX)) return !u.src(0).in(Group::memory);
  return u.in(Group::alu) || u.is(Op::EXPAND) || u.is(Op::STACK) || u.is(Op::CAST) || u.is(Op::BITCAST) || u.is(Op::SHRINK) ||
         u.is(Op::RANGE);
}

void Liveness::read_wide(const UOp& u) {
  if (u.dtype() == DType::int32)
    wide_.insert(u);
  else
    read(u);
}

void Liveness::read_address(const UOp& index) {
  const auto parts = address_parts(index.src(1));
  if (!parts)
    read(index.src(1));
  else if (parts->base)
    read_wide(*parts->base);
}

}  // namespace tinygrad::renderer::llvmir
