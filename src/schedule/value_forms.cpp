#include "schedule/value_forms.h"

#include <algorithm>

namespace tinygrad::schedule {

namespace {

bool is_made_of_places(const UOp& u, int& most_nodes) {
  const bool is_part = u.in(Group::comparison) || u.in(Group::movement) || u.is(Op::IOTA) || u.is(Op::CONST) || u.is(Op::VAR) ||
                       u.is(Op::CAST) || u.is(Op::AND) || u.is(Op::ADD);
  if (!is_part || most_nodes-- == 0) return false;
  return std::ranges::all_of(u.src(), [&](const UOp& s) { return s.dtype() == DType::index || is_made_of_places(s, most_nodes); });
}

bool is_filler(const UOp& u) { return u.is(Op::CONST) || (u.in(Group::movement) && is_filler(u.src(0))); }

}  // namespace

bool can_be_stored(const UOp& u) {
  return u.dtype() != DType::void_ && u.dtype() != DType::index && !u.in(Group::movement) && !u.in(Group::memory) && !u.is(Op::AFTER) &&
         !u.is(Op::CONST) && !u.is(Op::VAR);
}

bool is_test_of_place(const UOp& u) {
  int most_nodes = 16;
  return u.dtype() == DType::bool_ && is_made_of_places(u, most_nodes);
}

UOp inside_of_padding(const UOp& u) {
  bool padded = false;
  const UOp* x = &u;
  for (;;) {
    if (x->is(Op::WHERE) && (is_filler(x->src(2)) || is_filler(x->src(1)))) {
      x = &x->src(is_filler(x->src(2)) ? 1 : 2);
    } else if (x->in(Group::movement)) {
      padded = padded || x->is(Op::PAD);
      x = &x->src(0);
    } else {
      return padded ? *x : UOp();
    }
  }
}

}  // namespace tinygrad::schedule
