#include "engine/recorded_call.h"

#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::engine {

std::vector<bool> written_arguments(const RecordedCall& call) {
  std::vector<bool> out(call.slots.size());
  if (!call.body.is(Op::SINK)) {
    out[0] = true;
    return out;
  }
  for (const UOp& u : toposort(call.body)) {
    if (!u.is(Op::STORE)) continue;
    const UOp* to = &u.src(0);
    while (!to->is(Op::PARAM) && to->src_count() > 0) to = &to->src(0);
    if (to->is(Op::PARAM)) out[size_t(to->arg_as<ParamArg>().slot)] = true;
  }
  return out;
}

std::optional<int64_t> value_bound_to(Symbol variable, std::span<const UOp> sources) {
  for (const UOp& s : sources)
    if (s.is(Op::BIND) && s.src(0).arg_as<VarArg>().name == variable) return const_value(s)->as_int();
  return std::nullopt;
}

}  // namespace tinygrad::engine
