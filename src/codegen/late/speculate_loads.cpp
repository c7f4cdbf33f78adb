#include "codegen/late/speculate_loads.h"

#include "codegen/rebuild.h"
#include "kernel/accessed_memory.h"
#include "shape/shape.h"
#include "uop/build.h"

namespace tinygrad::codegen {

namespace {

bool has_elements(const UOp& memory) {
  const Shape& shape = shape_of(memory);
  return shape.size() == 1 && shape[0].known() && shape[0].value() > 0;
}

}  // namespace

UOp speculate_loads(const UOp& sink) {
  NodeSet written;
  for (const UOp& u : toposort(sink))
    if (u.is(Op::STORE)) written.insert(memory_of(u.src(0)));
  return rebuild(sink, [&](const UOp& u, const UOps& sources) -> UOp {
    if (!u.is(Op::LOAD) || sources.size() != 3) return u.with_src(sources);
    const UOp &place = sources[0], &at = place.src(1), &gate = sources[2];
    // One gate for all lanes of a vector of addresses keeps its branch: it saves them all.
    if (place.arg_as<IndexArg>().width != 1 || !has_elements(place.src(0)) || shape_of(at) != shape_of(gate)) return u.with_src(sources);
    if (written.contains(memory_of(place))) return u.with_src(sources);  // another thread may be writing element 0
    UOp zero = constant(at.dtype(), 0);
    if (const Shape& shape = shape_of(at); !shape.empty())
      zero = UOp(Op::EXPAND, zero.dtype(), {zero, constant(DType::int32, shape[0].value())});
    return where(gate, UOp(Op::LOAD, u.dtype(), {index(place.src(0), where(gate, at, zero))}), sources[1]);
  });
}

}  // namespace tinygrad::codegen
