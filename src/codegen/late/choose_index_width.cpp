#include "codegen/late/choose_index_width.h"

#include <cstdint>
#include <limits>

#include "codegen/rebuild.h"
#include "symbolic/bounds.h"
#include "uop/build.h"

namespace tinygrad::codegen {

namespace {

bool fits_int32(const symbolic::Bounds& b) {
  return b.min >= std::numeric_limits<int32_t>::min() && b.max <= std::numeric_limits<int32_t>::max();
}

bool needs_int64(const UOp& sink) {
  for (const UOp& u : toposort(sink))
    if (u.dtype() == DType::index && !fits_int32(symbolic::bounds(u))) return true;
  return false;
}

/// Where no operand is negative, the processor's division is that of indices.
Op division(const UOp& u) {
  if (!u.is(Op::FLOORDIV) && !u.is(Op::FLOORMOD)) return u.op();
  if (symbolic::bounds(u.src(0)).min < 0 || symbolic::bounds(u.src(1)).min < 0) return u.op();
  return u.is(Op::FLOORDIV) ? Op::CDIV : Op::CMOD;
}

UOp as_width(const UOp& u, const UOps& sources, DType width) {
  if (u.is(Op::CONST)) return constant(u.arg_as<ConstArg>().value.cast(width));
  if (u.is(Op::CAST) && sources[0].dtype() == width) return sources[0];
  return UOp(division(u), width, sources, u.arg());
}

}  // namespace

UOp choose_index_width(const UOp& sink) {
  const DType width = needs_int64(sink) ? DType::int64 : DType::int32;
  return rebuild(sink, [&](const UOp& u, const UOps& sources) -> UOp {
    if (u.dtype() == DType::index) return as_width(u, sources, width);
    // A value that was cast from an index of the same width is that index.
    if (u.is(Op::CAST) && sources[0].dtype() == u.dtype()) return sources[0];
    return u.with_src(sources);
  });
}

}  // namespace tinygrad::codegen
