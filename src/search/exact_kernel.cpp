#include "search/exact_kernel.h"

#include <algorithm>

#include "codegen/rebuild.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::search {
namespace {

bool looks_at_bits(const UOp& u) { return u.is(Op::BITCAST) && (is_float(u.dtype()) || is_float(u.src(0).dtype())); }

UOp widened(const UOp& root) {
  return codegen::rebuild(root, [](const UOp& u, const UOps& sources) {
    if (u.is(Op::FUNCTION)) return u.with_src(UOps{widened(u.src(0))});  // bodies hold no FUNCTIONs
    if (!is_float(u.dtype())) return u.with_src(sources);
    if (u.is(Op::CONST)) return constant(u.arg_as<ConstArg>().value.cast(DType::float64));
    if (u.is(Op::CAST) && sources[0].dtype() == DType::float64) return sources[0];
    return UOp(u.op(), DType::float64, sources, u.arg());
  });
}

}  // namespace

std::optional<UOp> exact_kernel(const UOp& sink) {
  bool any = false;
  for (const UOp& u : toposort(sink, Scopes::enter)) {
    if (looks_at_bits(u)) return std::nullopt;
    any = any || (is_float(u.dtype()) && u.dtype() != DType::float64);
  }
  if (!any) return std::nullopt;
  return widened(sink);
}

}  // namespace tinygrad::search
