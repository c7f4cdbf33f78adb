#include "schedule/merge_facts.h"

#include <algorithm>
#include <span>
#include <utility>

#include "shape/ranges.h"
#include "uop/graph.h"
#include "uop/node_map.h"

namespace tinygrad::schedule {

namespace {

bool is_loop(const UOp& range) { return range.arg_as<RangeArg>().kind == AxisKind::loop; }

bool contains(std::span<const UOp> all, const UOp& u) { return std::find(all.begin(), all.end(), u) != all.end(); }

/// A load inside the REDUCE that changes with its ranges depends on all loops around the REDUCE.
bool streams(const UOp& reduce, const UOps& loops) {
  const std::span<const UOp> own = closed_ranges(reduce);
  const UOp& body = reduce.src(0);
  for (const UOp& u : toposort(body)) {
    if (!u.is(Op::LOAD)) continue;
    const OpenRanges open = ranges_of(u);
    const bool changes = std::any_of(own.begin(), own.end(), [&](const UOp& r) { return contains(open, r); });
    if (changes && !std::all_of(loops.begin(), loops.end(), [&](const UOp& r) { return contains(open, r); })) return false;
  }
  return true;
}

}  // namespace

MergeFacts merge_facts(const UOp& value) {
  MergeFacts f;
  NodeMap<int> depth;
  for (const UOp& u : toposort(value)) {
    int d = 0;
    for (const UOp& s : u.src()) d = std::max(d, depth[s]);
    depth[u] = u.is(Op::REDUCE) ? d + 1 : d;
    if (u.is(Op::LOAD)) f.loads.push_back(u.src(0));
    if (!u.is(Op::REDUCE)) continue;
    const std::span<const UOp> own = closed_ranges(u);
    ReduceLoop loop{{d, ranges_of(u), {}}, UOps(own)};
    for (const UOp& r : own) loop.key.sizes.push_back(r.src(0));
    f.streams = f.streams && streams(u, loop.key.around);
    if (std::all_of(loop.key.around.begin(), loop.key.around.end(), is_loop)) f.reduces.push_back(std::move(loop));
  }
  return f;
}

}  // namespace tinygrad::schedule
