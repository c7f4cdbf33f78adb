#include "schedule/finish_kernels.h"

#include <fmt/core.h>

#include <algorithm>

#include "schedule/kernel_calls.h"
#include "schedule/online_reduce.h"
#include "shape/ranges.h"
#include "shape/sint.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::schedule {

namespace {

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
std::vector<UOp> stored_values(const UOp& nest, const Target& target, int32_t& next_range) {
  std::vector<UOp> values;
  for (const UOp& s : stores_of(nest)) values.push_back(stored_value(s));
  join_reduces(values, target, next_range);
  return values;
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

/// With an argument for each memory, each factor that has one of its own, and each variable.
UOp finished(const UOp& kernel, const Target& target) {
  UOps effects;
  std::vector<UOp> params, ranges, variables;
  int32_t next_range = next_range_of(nests_of(kernel));
  for (const UOp& nest : nests_of(kernel)) {
    UOps stores;
    const std::span<const UOp> given = stores_of(nest), loops = loops_of(nest);
    const std::vector<UOp> values = stored_values(nest, target, next_range);
    for (size_t i = 0; i < values.size(); ++i) {
      stores.push_back(stored(stored_to(given[i]), stored_at(given[i]), values[i]));
      params.push_back(stored_to(given[i]));
    }
    effects.push_back(end(stores.size() == 1 ? stores[0] : group(stores), loops));
    ranges.insert(ranges.end(), loops.begin(), loops.end());
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
  UOps sources{sink(body.src(), KernelArg{.name = kernel_name(ranges, nests_of(kernel).size()), .opts = {}})};
  for (const UOp& p : params) {
    const auto t = std::ranges::find(twins, p, &Twin::twin);
    sources.push_back(t == twins.end() ? p : t->memory);
  }
  for (const UOp& v : variables) {
    const auto bound = std::ranges::find_if(binds_of(kernel), [&](const UOp& b) { return b.src(0) == v; });
    sources.push_back(bound == binds_of(kernel).end() ? v : *bound);
  }
  return UOp(Op::CALL, DType::void_, sources);
}

}  // namespace

UOp finish_kernels(const UOp& linear, const TargetOf& target_of) {
  std::vector<UOp> out;
  for (const UOp& step : linear.src()) {
    if (is_loop(step))
      out.push_back(loop_around(finish_kernels(step.src(0), target_of).src(), step.src(1)));
    else
      out.push_back(is_copy(step) ? step : finished(step, target_of(devices_of_call(step).first())));
  }
  return linear_of(out);
}

}  // namespace tinygrad::schedule
