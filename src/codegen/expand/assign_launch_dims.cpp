#include "codegen/expand/assign_launch_dims.h"

#include <algorithm>

#include "codegen/opt/kernel_axes.h"
#include "codegen/rebuild.h"
#include "shape/ranges.h"
#include "uop/build.h"

namespace tinygrad::codegen {

namespace {

UOps of_kind(std::span<const UOp> ranges, AxisKind kind) {
  UOps out;
  for (const UOp& r : ranges)
    if (r.arg_as<RangeArg>().kind == kind) out.push_back(r);
  return out;
}

bool outside(const UOp& a, const UOp& b) {
  const auto &x = a.arg_as<RangeArg>(), &y = b.arg_as<RangeArg>();
  return std::pair(x.order, x.id) < std::pair(y.order, y.id);
}

void assign(UOps ranges, AxisKind kind, const Target& target, NodeMap<UOp>& map) {
  std::sort(ranges.begin(), ranges.end(), outside);
  uint8_t dim = 0;
  int64_t items = 1;
  for (size_t i = ranges.size(); i-- > 0 && dim < 3;) {
    const UOp& r = ranges[i];
    const int64_t size = constant_size(r);
    const bool fits = kind == AxisKind::local ? items * size <= target.max_group_items : size <= target.max_global[dim];
    // The size of a launch dimension may be an expression of variables, a group's may not.
    if (size == 0 ? kind == AxisKind::local || !ranges_of(r.src(0)).empty() : !fits) continue;
    items *= std::max<int64_t>(size, 1);
    map[r] = UOp(Op::SPECIAL, DType::index, {r.src(0)}, SpecialArg{.kind = kind, .dim = dim++});
  }
}

}  // namespace

UOp assign_launch_dims(const UOp& sink, const Target& target) {
  if (!target.has_groups || sink.src_count() != 1 || !sink.src(0).is(Op::END)) return sink;
  const auto closed = closed_ranges(sink.src(0));
  NodeMap<UOp> map;
  assign(of_kind(closed, AxisKind::loop), AxisKind::global, target, map);
  assign(of_kind(closed, AxisKind::local), AxisKind::local, target, map);
  return rebuild(sink, [&](const UOp& u, const UOps& sources) -> UOp {
    if (const UOp* special = map.find(u)) return *special;
    if (!u.is(Op::END) && !u.is(Op::AFTER)) return u.with_src(sources);
    UOps kept{sources[0]};
    for (size_t i = 1; i < sources.size(); ++i)
      if (!sources[i].is(Op::SPECIAL)) kept.push_back(sources[i]);
    return kept.size() == 1 ? kept[0] : u.with_src(kept);
  });
}

}  // namespace tinygrad::codegen
