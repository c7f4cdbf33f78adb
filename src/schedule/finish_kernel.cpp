#include "schedule/finish_kernel.h"

#include <fmt/core.h>

#include <algorithm>

#include "schedule/online_reduce.h"
#include "shape/sint.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::schedule {

namespace {

UOp copy_call(const MergedKernel& k) {
  const UOp& target = k.outputs[0].target;
  const UOp from = UOp(Op::PARAM, k.copied.dtype(), k.copied.src(), ParamArg{.slot = 1, .device = k.copied.arg_as<ParamArg>().device});
  const UOp body(Op::COPY, target.dtype(), {from}, DeviceArg{k.device});
  return UOp(Op::CALL, DType::void_, {body, target, k.copied});
}

/// "E_32_10" for elementwise kernels, "r_32_10_784" for those that reduce: the sizes of the loops. "E_32_10_n2" has two nests.
Symbol kernel_name(std::span<const UOp> ranges, size_t nests) {
  bool reduces = false;
  std::string sizes;
  for (const UOp& r : ranges) {
    reduces = reduces || r.arg_as<RangeArg>().kind == AxisKind::reduce;
    sizes += fmt::format("_{}", SInt(r.src(0)).max());
  }
  if (nests > 1) sizes += fmt::format("_n{}", nests);
  return Symbol((reduces ? "r" : "E") + sizes);
}

/// The values it stores, with sums and maxima joined.
std::vector<UOp> stored_values(const MergedKernel& k, const Target& target) {
  std::vector<UOp> values;
  for (const Output& o : k.outputs) values.push_back(o.value);
  join_reduces(values, target);
  return values;
}

}  // namespace

UOp finish_kernel(std::span<const MergedKernel> nests, const Target& target) {
  if (nests[0].copied) return copy_call(nests[0]);
  UOps effects;
  std::vector<UOp> params, ranges, variables;
  for (const MergedKernel& k : nests) {
    UOps stores;
    const std::vector<UOp> values = stored_values(k, target);
    for (size_t i = 0; i < values.size(); ++i) {
      stores.push_back(store(index(k.outputs[i].target, k.outputs[i].target_index), values[i]));
      params.push_back(k.outputs[i].target);
    }
    effects.push_back(end(stores.size() == 1 ? stores[0] : group(stores), k.ranges));
    ranges.insert(ranges.end(), k.ranges.begin(), k.ranges.end());
  }
  const UOp draft = sink(effects);

  NodeMap<UOp> map;
  NodeSet seen;
  for (const UOp& r : ranges) seen.insert(r);
  for (const UOp& p : params) seen.insert(p);
  for (const UOp& u : toposort(draft)) {
    if (u.is(Op::VAR)) variables.push_back(u);
    if (u.is(Op::RANGE) && seen.insert(u)) ranges.push_back(u);
    if (u.is(Op::PARAM) && seen.insert(u)) params.push_back(u);
  }
  std::sort(variables.begin(), variables.end(), StructuralLess());
  for (size_t i = 0; i < ranges.size(); ++i) {
    const RangeArg arg{.id = int32_t(i), .kind = ranges[i].arg_as<RangeArg>().kind, .order = int32_t(i)};
    map[ranges[i]] = range(ranges[i].src(0), arg);
  }
  for (size_t i = 0; i < params.size(); ++i)
    map[params[i]] = UOp(Op::PARAM, params[i].dtype(), params[i].src(), ParamArg{.slot = int32_t(i), .alias = uint16_t(i + 1)});

  const UOp body = substitute(draft, map);
  UOps sources{sink(body.src(), KernelArg{.name = kernel_name(ranges, nests.size()), .opts = {}})};
  sources.append(params.begin(), params.end());
  sources.append(variables.begin(), variables.end());
  return UOp(Op::CALL, DType::void_, sources);
}

}  // namespace tinygrad::schedule
