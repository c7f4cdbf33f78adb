#include "codegen/reduce_op.h"

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "shape/ranges.h"
#include "uop/build.h"
#include "uop/graph.h"
#include "uop/reduce.h"

namespace tinygrad::codegen {

UOp inline_function(const UOp& function, std::span<const UOp> arguments) {
  NodeMap<UOp> values;
  for (const UOp& u : toposort(function.src(0)))
    if (u.is(Op::PARAM)) {
      const auto slot = size_t(u.arg_as<ParamArg>().slot);
      if (slot >= arguments.size())
        throw InternalError(fmt::format("reduce: the function reads slot {} of {} arguments", slot, arguments.size()));
      values[u] = arguments[slot];
    }
  return substitute(function.src(0), values);
}

namespace {

UOps tuple_values(const UOp& tuple) { return tuple.is(Op::TUPLE) ? UOps(tuple.src().begin(), tuple.src().end()) : UOps{tuple}; }

UOps call_with(const UOp& function, std::span<const UOp> first, std::span<const UOp> second) {
  UOps arguments(first.begin(), first.end());
  arguments.append(second.begin(), second.end());
  return tuple_values(inline_function(function, arguments));
}

}  // namespace

UOps merge_partials(const UOp& reduce, std::span<const UOp> a, std::span<const UOp> b) {
  if (is_general_reduce(reduce)) return call_with(reduce.src(3), a, b);
  return {alu(reduce.arg_as<ReduceArg>().op, {a[0], b[0]})};
}

UOps reduce_step(const UOp& reduce, std::span<const UOp> carried, std::span<const UOp> x) {
  if (is_general_reduce(reduce)) return call_with(reduce.src(2), carried, x);
  return {alu(reduce.arg_as<ReduceArg>().op, {carried[0], x[0]})};
}

UOps reduced_values(const UOp& reduce) {
  if (is_general_reduce(reduce)) return tuple_values(reduce.src(0));
  return {cast(reduce.src(0), reduce.dtype())};
}

UOps reduce_identities(const UOp& reduce) {
  if (is_general_reduce(reduce)) return tuple_values(reduce.src(1));
  return {reduce_identity(reduce.arg_as<ReduceArg>().op, reduce.dtype())};
}

UOp make_reduce(const UOp& like, std::span<const UOp> values, std::span<const UOp> ranges) {
  UOps sources{values[0]};
  if (is_general_reduce(like)) sources = {UOp(Op::TUPLE, DType::void_, values), like.src(1), like.src(2), like.src(3)};
  sources.append(ranges.begin(), ranges.end());
  return UOp(Op::REDUCE, like.dtype(), sources, like.arg());
}

UOps reduce_results(const UOp& reduce) {
  if (!is_general_reduce(reduce)) return {reduce};
  UOps out;
  for (const UOp& identity : reduce_identities(reduce))
    out.push_back(UOp(Op::GETTUPLE, identity.dtype(), {reduce}, TupleArg{int32_t(out.size())}));
  return out;
}

UOps reduce_partials(const UOp& like, std::span<const UOp> partials, std::span<const UOp> ranges) {
  UOp over = make_reduce(like, partials, ranges);
  if (is_general_reduce(like)) {
    UOps sources(over.src().begin(), over.src().end());
    sources[2] = sources[3];  // merge takes the carried values of both sides, as step then does
    over = over.with_src(sources);
  }
  return reduce_results(over);
}

}  // namespace tinygrad::codegen
