#include "codegen/expand/assign_launch_dims.h"

#include <algorithm>

#include "codegen/opt/kernel_axes.h"
#include "codegen/opt/split_range.h"
#include "codegen/rebuild.h"
#include "shape/ranges.h"
#include "uop/build.h"

namespace tinygrad::codegen {

namespace {

bool is_around(const UOp& a, const UOp& b) {
  const auto &x = a.arg_as<RangeArg>(), &y = b.arg_as<RangeArg>();
  return std::pair(x.order, x.id) < std::pair(y.order, y.id);
}

UOp special(const UOp& size, AxisKind kind, uint8_t dim) {
  return UOp(Op::SPECIAL, DType::index, {size}, SpecialArg{.kind = kind, .dim = dim});
}

/// The largest divisor of a size such that neither it nor the quotient is over its limit; 0 if there is none.
int64_t part_within(int64_t size, int64_t most, int64_t most_quotient) {
  for (int64_t n = most; n > 1 && size / n <= most_quotient; --n)
    if (size % n == 0) return n;
  return 0;
}

/// Axes of known sizes as the digits of one dimension, the last the lowest.
void join(std::span<const UOp> axes, AxisKind kind, uint8_t dim, NodeMap<UOp>& map) {
  int64_t count = 1;
  for (const UOp& r : axes) count *= constant_size(r);
  const UOp joined = special(index_const(count), kind, dim);
  int64_t below = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    const UOp digit = floor_div(joined, below);
    map[axes[i]] = i == 0 ? digit : floor_mod(digit, constant_size(axes[i]));
    below *= constant_size(axes[i]);
  }
}

/// Loops become dimensions, the innermost the first; one that is too long for a dimension becomes two where it divides so, and the third
/// dimension is made of all that are left. What is over a limit stays a loop.
void assign_groups(std::span<const UOp> closed, const Target& target, NodeMap<UOp>& map) {
  UOps loops, last;
  for (const UOp& r : closed)
    if (r.arg_as<RangeArg>().kind == AxisKind::loop) loops.push_back(r);
  std::sort(loops.begin(), loops.end(), is_around);
  uint8_t dim = 0;
  int64_t count = 1;
  for (size_t i = loops.size(); i-- > 0 && dim < 3;) {
    const UOp& r = loops[i];
    const int64_t size = constant_size(r);
    // The size of a dimension may be an expression of variables.
    if (size > target.max_global[dim] && dim < 2) {
      if (const int64_t part = part_within(size, target.max_global[dim], target.max_global[dim + 1])) {
        const UOp inner = special(index_const(part), AxisKind::global, dim++);
        map[r] = special(index_const(size / part), AxisKind::global, dim++) * part + inner;
        continue;
      }
    }
    if (size == 0 ? !ranges_of(r.src(0)).empty() : size > target.max_global[dim]) continue;
    if (dim < 2 || (size == 0 && last.empty())) {
      map[r] = special(r.src(0), AxisKind::global, dim++);
    } else if (size != 0 && count * size <= target.max_global[2]) {
      last.insert(last.begin(), r);
      count *= size;
    }
  }
  if (!last.empty()) join(last, AxisKind::global, 2, map);
}

/// All axes of work-items become dimensions; the third is made of those that are left.
void assign_items(std::span<const UOp> items, NodeMap<UOp>& map) {
  const size_t own = std::min<size_t>(items.size(), items.size() > 3 ? 2 : 3);
  for (size_t i = 0; i < own; ++i) {
    const UOp& r = items[items.size() - 1 - i];
    map[r] = special(r.src(0), AxisKind::local, uint8_t(i));
  }
  if (items.size() > own) join(items.first(items.size() - own), AxisKind::local, 2, map);
}

bool is_argument(UOp memory) {
  while (memory.is(Op::AFTER)) memory = UOp(memory.src(0));
  return memory.is(Op::PARAM);
}

/// Of the work-items that compute the same for an argument of the kernel, the first stores it.
UOp store_once(const UOp& sink, std::span<const UOp> items) {
  return rebuild(sink, [&](const UOp& u, const UOps& sources) -> UOp {
    if (!u.is(Op::STORE) || !is_argument(u.src(0).src(0))) return u.with_src(sources);
    UOps s = sources;
    for (const UOp& r : items)
      if (!is_open_over(u.src(0), std::span(&r, 1))) s[0] = mask_index(s[0], eq(r, index_const(0)));
    return u.with_src(s);
  });
}

/// What ends or orders nothing any more is left out.
UOp without_launched(const UOp& u, const UOps& sources, const NodeMap<UOp>& map) {
  const bool may_be_empty = u.is(Op::BARRIER) || u.is(Op::WAIT);
  UOps kept;
  for (size_t i = 0; i < sources.size(); ++i)
    if (i == 0 && !may_be_empty ? true : sources[i] && !map.contains(u.src(i))) kept.push_back(sources[i]);
  if (may_be_empty) return kept.empty() ? UOp() : u.with_src(kept);
  return kept.size() == 1 ? kept[0] : u.with_src(kept);
}

}  // namespace

UOp assign_launch_dims(const UOp& sink, const Target& target) {
  if (!target.has_groups || sink.src_count() != 1) return sink;
  const std::vector<UOp> items = item_ranges(sink);
  NodeMap<UOp> map;
  if (sink.src(0).is(Op::END)) assign_groups(closed_ranges(sink.src(0)), target, map);
  assign_items(items, map);
  return rebuild(store_once(sink, items), [&](const UOp& u, const UOps& sources) -> UOp {
    if (const UOp* dim = map.find(u)) return *dim;
    if (u.is(Op::END) || u.is(Op::AFTER) || u.is(Op::BARRIER) || u.is(Op::WAIT)) return without_launched(u, sources, map);
    return u.with_src(sources);
  });
}

}  // namespace tinygrad::codegen
