#include "schedule/finish_kernel.h"

#include <fmt/core.h>

#include <algorithm>

#include "schedule/online_reduce.h"
#include "shape/ranges.h"
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
std::vector<UOp> stored_values(const MergedKernel& k, const Target& target, int32_t& next_range) {
  std::vector<UOp> values;
  for (const Output& o : k.outputs) values.push_back(o.value);
  join_reduces(values, target, next_range);
  return values;
}

/// The first id that no range of the nests has.
int32_t first_free_range(std::span<const MergedKernel> nests) {
  std::vector<UOp> all;
  for (const MergedKernel& k : nests) {
    all.insert(all.end(), k.ranges.begin(), k.ranges.end());
    for (const Output& o : k.outputs) {
      all.push_back(o.value);
      all.push_back(o.target_index);
    }
  }
  return next_range_of(all);
}

/// Memory that a kernel has as one more argument.
struct Twin {
  UOp memory, twin;
};

/// Loads of one memory that move with the same loops.
struct Factor {
  UOp memory;
  UOps loops;
  UOp argument;
};

bool is_within(const UOps& a, const UOps& b) {
  return std::ranges::all_of(a, [&](const UOp& r) { return std::ranges::find(b, r) != b.end(); });
}

/// What a REDUCE is made of, without REDUCEs inside.
std::vector<UOp> terms_of(const UOp& reduce) {
  std::vector<UOp> all{reduce.src(0)};
  NodeSet seen;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].is(Op::REDUCE)) continue;
    const UOp u = all[i];
    for (const UOp& s : u.src())
      if (seen.insert(s)) all.push_back(s);
  }
  return all;
}

/// Gives what a sum uses as several factors, each in loops of its own, such as queries and keys that lie in one memory, an argument each:
/// opts treat arguments apart. Only memory that is not `written`, at most so many.
UOp with_twins(const UOp& draft, const NodeSet& written, size_t most, std::vector<Twin>& twins) {
  NodeMap<UOp> map;
  std::vector<UOp> held;
  for (const UOp& reduce : toposort(draft)) {
    if (!reduce.is(Op::REDUCE)) continue;
    std::vector<Factor> factors;
    for (const UOp& u : terms_of(reduce)) {
      if (!u.is(Op::INDEX) || written.contains(u.src(0)) || map.contains(u)) continue;
      const UOps loops = ranges_of(u.src(1));
      const auto is_same = [&](const Factor& f) { return f.memory == u.src(0) && f.loops == loops; };
      const auto is_apart = [&](const Factor& f) {
        return f.memory != u.src(0) || !(is_within(f.loops, loops) || is_within(loops, f.loops));
      };
      auto f = std::ranges::find_if(factors, is_same);
      if (f == factors.end()) {
        UOp argument = u.src(0);
        const bool is_first = std::ranges::find(factors, u.src(0), &Factor::memory) == factors.end();
        if (!is_first && std::ranges::all_of(factors, is_apart) && twins.size() < most) {
          ParamArg arg = argument.arg_as<ParamArg>();
          arg.slot = -1 - int32_t(twins.size());
          argument = UOp(Op::PARAM, argument.dtype(), argument.src(), arg);
          twins.push_back({u.src(0), argument});
        }
        f = factors.insert(f, {u.src(0), loops, argument});
      }
      if (f->argument == u.src(0)) continue;
      UOps sources(u.src());
      sources[0] = f->argument;
      held.push_back(u.with_src(sources));
      map[u] = held.back();
    }
  }
  return twins.empty() ? draft : substitute(draft, map);
}

}  // namespace

UOp finish_kernel(std::span<const MergedKernel> nests, const Target& target) {
  if (nests[0].copied) return copy_call(nests[0]);
  UOps effects;
  std::vector<UOp> params, ranges, variables;
  int32_t next_range = first_free_range(nests);
  for (const MergedKernel& k : nests) {
    UOps stores;
    const std::vector<UOp> values = stored_values(k, target, next_range);
    for (size_t i = 0; i < values.size(); ++i) {
      stores.push_back(store(index(k.outputs[i].target, k.outputs[i].target_index), values[i]));
      params.push_back(k.outputs[i].target);
    }
    effects.push_back(end(stores.size() == 1 ? stores[0] : group(stores), k.ranges));
    ranges.insert(ranges.end(), k.ranges.begin(), k.ranges.end());
  }
  const UOp whole = sink(effects);
  NodeSet written;
  for (const UOp& p : params) written.insert(p);
  const auto used = size_t(std::ranges::count_if(toposort(whole), [](const UOp& u) { return u.is(Op::PARAM); }));
  const auto most = size_t(target.max_buffers);
  std::vector<Twin> twins;
  const UOp draft = with_twins(whole, written, most - std::min(used, most), twins);

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
  for (const UOp& p : params) {
    const auto t = std::ranges::find(twins, p, &Twin::twin);
    sources.push_back(t == twins.end() ? p : t->memory);
  }
  sources.append(variables.begin(), variables.end());
  return UOp(Op::CALL, DType::void_, sources);
}

}  // namespace tinygrad::schedule
