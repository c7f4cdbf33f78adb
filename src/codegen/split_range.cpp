#include "codegen/split_range.h"

#include <algorithm>

#include "codegen/kernel_axes.h"
#include "codegen/online_step.h"
#include "codegen/rebuild.h"
#include "codegen/reduce_op.h"
#include "shape/ranges.h"
#include "uop/build.h"

namespace tinygrad::codegen {

UOp rounds_of(const UOp& range, int64_t n) {
  if (const int64_t size = constant_size(range)) return index_const((size + n - 1) / n);
  return floor_div(range.src(0) + (n - 1), n);
}

UOp mask_index(const UOp& index, const UOp& valid) {
  UOps s(index.src().begin(), index.src().end());
  if (s.size() > 2)
    s[2] = s[2] & valid;
  else
    s.push_back(valid);
  return index.with_src(s);
}

namespace {

/// A step that keeps what is carried where a further value, a bool, is false.
UOp masked_step(const UOp& reduce, const UOps& values, const UOps& identities) {
  const auto param_like = [](const UOp& value, size_t slot) { return UOp(Op::PARAM, value.dtype(), {}, ParamArg{.slot = int32_t(slot)}); };
  UOps carried, x;
  for (const UOp& v : identities) carried.push_back(param_like(v, carried.size()));
  for (const UOp& v : values) x.push_back(param_like(v, carried.size() + x.size()));
  const UOp flag = UOp(Op::PARAM, DType::bool_, {}, ParamArg{.slot = int32_t(carried.size() + x.size())});
  UOps stepped = reduce_step(reduce, carried, x);
  for (size_t i = 0; i < stepped.size(); ++i) stepped[i] = where(flag, stepped[i], carried[i]);
  return UOp(Op::FUNCTION, DType::void_, {UOp(Op::TUPLE, DType::void_, stepped)}, reduce.src(2).arg());
}

UOp mask_reduce(const UOp& reduce, const UOp& valid) {
  UOps values = reduced_values(reduce);
  const UOps identities = reduce_identities(reduce);
  if (!is_general_reduce(reduce)) {
    values[0] = where(valid, values[0], identities[0]);
    return make_reduce(reduce, values, closed_ranges(reduce));
  }
  if (const auto online = online_step(reduce)) return mask_online(reduce, *online, valid);
  const UOp step = masked_step(reduce, values, identities);
  values.push_back(valid);
  UOps sources{UOp(Op::TUPLE, DType::void_, values), reduce.src(1), step, reduce.src(3)};
  sources.append(closed_ranges(reduce).begin(), closed_ranges(reduce).end());
  return reduce.with_src(sources);
}

/// Replaces a range among the closed ones of END, REDUCE by its parts.
UOp close_parts(const UOp& u, const UOps& sources, const Split& split) {
  const size_t first = sources.size() - closed_ranges(u).size();
  UOps out(sources.begin(), sources.begin() + first);
  for (size_t i = first; i < sources.size(); ++i) {
    if (u.src(i) == split.range)
      out.append(split.parts.begin(), split.parts.end());
    else
      out.push_back(sources[i]);
  }
  return u.with_src(out);
}

}  // namespace

UOp apply_split(const UOp& root, const Split& split) {
  const std::span<const UOp> one(&split.range, 1);
  return rebuild(root, [&](const UOp& u, const UOps& sources) -> UOp {
    if (u == split.range) return split.value;
    const auto closed = closed_ranges(u);
    const bool closes = std::find(closed.begin(), closed.end(), split.range) != closed.end();
    UOp out = closes ? close_parts(u, sources, split) : u.with_src(sources);
    if (!split.valid) return out;
    if (closes && u.is(Op::REDUCE)) return mask_reduce(out, split.valid);
    if ((u.is(Op::LOAD) && !split.repeats_last && is_open_over(u.src(0), one)) || (u.is(Op::STORE) && is_open_over(u, one))) {
      UOps s(out.src().begin(), out.src().end());
      s[0] = mask_index(s[0], split.valid);
      return out.with_src(s);
    }
    return out;
  });
}

}  // namespace tinygrad::codegen
