#include "codegen/lower/expand_unrolled.h"

#include <algorithm>
#include <numeric>

#include "codegen/kernel_axes.h"
#include "codegen/online_step.h"
#include "codegen/opt/tensor_core.h"
#include "codegen/rebuild.h"
#include "codegen/reduce_op.h"
#include "shape/ranges.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

namespace {

bool has_kind(const UOp& range, AxisKind kind) { return range.arg_as<RangeArg>().kind == kind; }

/// The values with every combination of indices of the ranges put in, the last range fastest.
std::vector<std::vector<UOp>> copies(std::span<const UOp> values, std::span<const UOp> ranges) {
  int64_t count = 1;
  for (const UOp& r : ranges) count *= constant_size(r);
  std::vector<std::vector<UOp>> out;
  for (int64_t n = 0; n < count; ++n) {
    NodeMap<UOp> at;
    int64_t rest = n;
    for (size_t i = ranges.size(); i-- > 0; rest /= constant_size(ranges[i])) at[ranges[i]] = index_const(rest % constant_size(ranges[i]));
    out.push_back(substitute_open(values, ranges, std::move(at)));
  }
  return out;
}

/// The closed ranges of `sources` apart: those of the kind, and the others.
std::pair<UOps, UOps> partition(std::span<const UOp> ranges, AxisKind kind) {
  std::pair<UOps, UOps> out;
  for (const UOp& r : ranges) (has_kind(r, kind) ? out.first : out.second).push_back(r);
  return out;
}

/// True for a load of an accumulator. Each copy has an accumulator of its own.
bool loads_accumulator(const UOp& load) {
  UOp memory = load.src(0).src(0);
  while (memory.is(Op::AFTER)) memory = UOp(memory.src(0));
  return memory.is(Op::BUFFER);
}

/// True if the range moves a load of a vector.
bool moves_vectors(const std::vector<UOp>& nodes, const UOp& range) {
  return std::any_of(nodes.begin(), nodes.end(), [&](const UOp& u) {
    if ((!u.is(Op::LOAD) || loads_accumulator(u)) && !(u.is(Op::INDEX) && u.src(0).is(Op::STAGE))) return false;
    const OpenRanges open = ranges_of(u);
    return std::find(open.begin(), open.end(), range) != open.end() &&
           std::any_of(open.begin(), open.end(), [](const UOp& r) { return has_kind(r, AxisKind::lane); });
  });
}

/// Orders ranges so that neighbouring copies share what there is more of, vectors or broadcast scalars, and differ in the others: these a
/// step holds in registers, and of those one at a time.
void sort_copies(UOps& ranges, const UOp& body) {
  const std::vector<UOp> nodes = toposort(body);
  const auto vectors = std::stable_partition(ranges.begin(), ranges.end(), [&](const UOp& r) { return !moves_vectors(nodes, r); });
  const auto count = [](auto first, auto last) {
    return std::accumulate(first, last, int64_t{1}, [](int64_t n, const UOp& r) { return n * constant_size(r); });
  };
  if (count(vectors, ranges.end()) > count(ranges.begin(), vectors)) std::rotate(ranges.begin(), vectors, ranges.end());
}

}  // namespace

UOp expand_end(const UOp& end) {
  auto [expanded, kept] = partition(closed_ranges(end), AxisKind::upcast);
  if (expanded.empty()) return end;
  if (expanded.size() > 1) sort_copies(expanded, end.src(0));
  UOps effects;
  NodeSet seen;
  for (const auto& copy : copies(end.src().first(1), expanded)) {
    const std::span<const UOp> parts = copy[0].is(Op::GROUP) ? copy[0].src() : std::span(copy);
    for (const UOp& e : parts)
      if (seen.insert(e)) effects.push_back(e);
  }
  return tinygrad::end(group(effects), kept);
}

namespace {

/// Combines neighbours until one set of values is left: a shallow tree.
UOps merge_tree(const UOp& reduce, std::vector<UOps> partials) {
  while (partials.size() > 1) {
    std::vector<UOps> next;
    for (size_t i = 0; i + 1 < partials.size(); i += 2) next.push_back(merge_partials(reduce, partials[i], partials[i + 1]));
    if (partials.size() % 2) next.push_back(partials.back());
    partials = std::move(next);
  }
  return partials[0];
}

/// The result of one copy of a REDUCE. Without a loop it is the value itself for an ALU op, and one step of the general form.
UOps reduce_copy(const UOp& reduce, const std::vector<UOp>& values, const UOps& loops) {
  if (!loops.empty()) return reduce_results(make_reduce(reduce, values, loops));
  if (is_general_reduce(reduce)) return reduce_step(reduce, reduce_identities(reduce), values);
  return UOps(values.begin(), values.end());
}

/// The REDUCE with one step that takes the values of several, one after another.
UOp in_turn(const UOp& reduce, const std::vector<std::vector<UOp>>& steps, const UOps& loops) {
  const auto param_like = [](const UOp& value, size_t slot) { return UOp(Op::PARAM, value.dtype(), {}, ParamArg{.slot = int32_t(slot)}); };
  UOps carried, values;
  for (const UOp& v : reduce_identities(reduce)) carried.push_back(param_like(v, carried.size()));
  const size_t first = carried.size();
  for (const auto& taken : steps) {
    UOps x;
    for (const UOp& v : taken) {
      x.push_back(param_like(v, first + values.size()));
      values.push_back(v);
    }
    carried = reduce_step(reduce, carried, x);
  }
  const UOp step(Op::FUNCTION, DType::void_, {UOp(Op::TUPLE, DType::void_, carried)}, reduce.src(2).arg());
  UOps sources{UOp(Op::TUPLE, DType::void_, values), reduce.src(1), step, reduce.src(3)};
  sources.append(loops.begin(), loops.end());
  return reduce.with_src(sources);
}

/// What a REDUCE gives, one value for each carried one, without its unroll ranges.
UOps expand_reduce(const UOp& reduce) {
  const auto [expanded, kept] = partition(closed_ranges(reduce), AxisKind::unroll);
  if (expanded.empty() && !kept.empty()) return reduce_results(reduce);
  const auto all = copies(reduced_values(reduce), expanded);
  if (const auto step = online_step(reduce); step && all.size() > 1) {
    std::vector<UOps> steps;
    for (const auto& v : all) steps.push_back(UOps(v.begin(), v.end()));
    const UOp together = take_together(reduce, *step, steps);
    return reduce_results(make_reduce(together, reduced_values(together), kept));
  }
  std::vector<UOps> partials;

  // An accumulator for each copy shortens the chain of dependent steps. Where upcast axes make several accumulators anyway, the copies
  // share one.
  const OpenRanges open = ranges_of(reduce);
  const bool many = std::any_of(open.begin(), open.end(), [](const UOp& r) { return has_kind(r, AxisKind::upcast); });
  if (many && !kept.empty() && !is_general_reduce(reduce)) {
    for (const auto& v : all) partials.push_back(UOps(v.begin(), v.end()));
    return {make_reduce(reduce, merge_tree(reduce, std::move(partials)), kept)};
  }
  // A tensor core that reads group memory adds to the sums of the product before without waiting for them.
  if (all.size() > 1 && sums_products_of_memory(reduce)) {
    const UOp together = in_turn(reduce, all, kept);
    return kept.empty() ? reduce_step(together, reduce_identities(together), reduced_values(together)) : reduce_results(together);
  }
  // Vectors are merged before their lanes are.
  const auto [lanes, loops] = partition(kept, AxisKind::lane);
  for (const auto& v : all) partials.push_back(reduce_copy(reduce, v, loops));
  const UOps merged = merge_tree(reduce, std::move(partials));
  return lanes.empty() ? merged : reduce_partials(reduce, merged, lanes);
}

}  // namespace

UOp expand_unrolled(const UOp& sink) {
  NodeMap<UOps> reduced;
  return rebuild(sink, [&](const UOp& u, const UOps& sources) -> UOp {
    UOp out = u.with_src(sources);
    if (u.is(Op::REDUCE)) return (reduced[u] = expand_reduce(out))[0];
    if (u.is(Op::GETTUPLE) && is_general_reduce(u.src(0))) return reduced[u.src(0)][size_t(u.arg_as<TupleArg>().index)];
    return out;
  });
}

UOp expand_upcast(const UOp& sink) {
  return rebuild(sink, [](const UOp& u, const UOps& sources) -> UOp {
    const UOp out = u.with_src(sources);
    return u.is(Op::END) ? expand_end(out) : out;
  });
}

}  // namespace tinygrad::codegen
