#include "codegen/lower/lower_gates.h"

#include "codegen/rebuild.h"
#include "uop/build.h"

namespace tinygrad::codegen {

UOp lower_gates(const UOp& sink) {
  return rebuild(sink, [](const UOp& u, const UOps& sources) -> UOp {
    if (!u.is(Op::LOAD) && !u.is(Op::STORE)) return u.with_src(sources);
    const UOp& at = sources[0];
    if (!at.is(Op::INDEX) || at.src_count() < 3) return u.with_src(sources);
    UOps s = sources;
    s[0] = at.with_src(at.src().first(2));
    if (is_const(at.src(2), 1)) return u.with_src(s);
    if (s.size() > 2) {
      s[2] = s[2] & at.src(2);
    } else {
      if (u.is(Op::LOAD) && s.size() == 1) s.push_back(constant(u.dtype(), 0));
      s.push_back(at.src(2));
    }
    return u.with_src(s);
  });
}

}  // namespace tinygrad::codegen
