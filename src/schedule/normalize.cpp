#include "schedule/normalize.h"

#include <fmt/core.h>

#include <algorithm>

#include <tinygrad/errors.h>

#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::schedule {

namespace {

/// The body of CALL(FUNCTION(body), arg...) with its PARAMs replaced by the args.
UOp inline_call(const UOp& call) {
  const UOp body = call.src(0).src(0);
  NodeMap<UOp> bound;
  for (const UOp& u : toposort(body))
    if (u.is(Op::PARAM)) bound[u] = call.src(1 + size_t(u.arg_as<ParamArg>().slot));
  return substitute(body, bound);
}

}  // namespace

UOp inline_calls(UOp sink) {
  for (;;) {
    NodeMap<UOp> replaced;
    for (const UOp& u : toposort(sink)) {
      const bool tuple = u.is(Op::GETTUPLE) && u.src(0).is(Op::CALL);
      const UOp& call = tuple ? u.src(0) : u;
      if (!call.is(Op::CALL) || !call.src(0).is(Op::FUNCTION)) continue;
      const UOp body = inline_call(call);
      if (tuple)
        replaced[u] = body.src(size_t(u.arg_as<TupleArg>().index));
      else if (!body.is(Op::TUPLE))
        replaced[u] = body;
    }
    if (replaced.size() == 0) return sink;
    sink = substitute(sink, replaced);
  }
}

Normalized normalize(const UOp& given) {
  Normalized n;
  const UOp root = inline_calls(given);
  NodeMap<UOp> map;
  for (const UOp& u : toposort(root)) {
    if (u.is(Op::BUFFER)) {
      const auto& b = u.arg_as<BufferArg>();
      map[u] = param(u.dtype(), b.size, {.slot = int32_t(n.inputs.size()), .device = b.device});
      n.inputs.push_back(u);
    } else if (u.is(Op::BIND)) {
      map[u] = u.src(0);
      n.variables.emplace_back(u.src(0), const_value(u)->as_int());
    }
  }
  std::sort(n.variables.begin(), n.variables.end(), [](const auto& a, const auto& b) {
    const auto c = compare(a.first, b.first);
    return c != 0 ? c < 0 : a.second < b.second;
  });
  n.variables.erase(std::unique(n.variables.begin(), n.variables.end()), n.variables.end());
  for (size_t i = 1; i < n.variables.size(); ++i) {
    if (n.variables[i].first.arg_as<VarArg>().name != n.variables[i - 1].first.arg_as<VarArg>().name) continue;
    if (n.variables[i].first != n.variables[i - 1].first)
      throw ValueError(fmt::format("realize: two variables have the name {} and other bounds; give one another name",
                                   n.variables[i].first.arg_as<VarArg>().name.str()));
    throw ValueError(fmt::format("realize: variable {} is bound to both {} and {}; one call can have one value only",
                                 n.variables[i].first.arg_as<VarArg>().name.str(), n.variables[i - 1].second, n.variables[i].second));
  }
  n.sink = substitute(root, map);
  return n;
}

}  // namespace tinygrad::schedule
