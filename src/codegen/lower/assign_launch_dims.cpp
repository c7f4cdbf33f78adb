#include "codegen/lower/assign_launch_dims.h"

#include <algorithm>

#include "codegen/kernel_axes.h"
#include "codegen/rebuild.h"
#include "codegen/split_range.h"
#include "shape/ranges.h"
#include "symbolic/bounds.h"
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

constexpr int64_t most_tried = 1024;  // quotients, before a remainder is masked

/// How many parts a loop of `size` is cut into, so that neither they nor their number are over a limit: a number that divides the size if
/// one of those that were tried does, else the least. 0 if there is none.
int64_t parts_within(int64_t size, int64_t most, int64_t most_parts) {
  const int64_t least = (size - 1) / most + 1;
  if (least > most_parts) return 0;
  for (int64_t n = least; n <= std::min(most_parts, least + most_tried); ++n)
    if (size % n == 0) return n;
  return least;
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

/// A loop in two dimensions from `dim` on. Where it does not divide, some places are behind its end.
UOp in_two_dimensions(const UOp& loop, int64_t most, int64_t parts, uint8_t dim) {
  const UOp& size = loop.src(0);
  const int64_t each = (most - 1) / parts + 1;
  // The size may be an expression of variables, and less than a part.
  const UOp inner = constant_size(loop) ? index_const(each) : min(size, index_const(each));
  const UOp outer = constant_size(loop) ? index_const(parts) : floor_div(size + (each - 1), each);
  return special(outer, AxisKind::global, uint8_t(dim + 1)) * each + special(inner, AxisKind::global, dim);
}

/// Loops become dimensions, the innermost the first; one that may be too long for a dimension becomes two, and the third dimension is made
/// of all that are left. What is over a limit stays a loop. Gives the loops that end before their dimensions do.
UOps assign_groups(std::span<const UOp> closed, const Target& target, NodeMap<UOp>& map) {
  UOps loops, last, shorter;
  for (const UOp& r : closed)
    if (r.arg_as<RangeArg>().kind == AxisKind::loop) loops.push_back(r);
  std::sort(loops.begin(), loops.end(), is_around);
  uint8_t dim = 0;
  int64_t count = 1;
  for (size_t i = loops.size(); i-- > 0 && dim < 3;) {
    const UOp& r = loops[i];
    const int64_t size = constant_size(r), most = symbolic::bounds(r.src(0)).max;  // the size may be an expression of variables
    if (!ranges_of(r.src(0)).empty()) continue;
    if (most > target.max_global[dim] && dim < 2) {
      if (const int64_t parts = parts_within(most, target.max_global[dim], target.max_global[dim + 1])) {
        map[r] = in_two_dimensions(r, most, parts, dim);
        if (size == 0 || size % parts != 0) shorter.push_back(r);
        dim += 2;
        continue;
      }
    }
    if (most > target.max_global[dim]) continue;
    if (dim < 2 || (size == 0 && last.empty())) {
      map[r] = special(r.src(0), AxisKind::global, dim++);
    } else if (size != 0 && count * size <= target.max_global[2]) {
      last.insert(last.begin(), r);
      count *= size;
    }
  }
  if (!last.empty()) join(last, AxisKind::global, 2, map);
  return shorter;
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

/// If several work-items compute the same result for an argument, the first of them stores it.
UOp store_once(const UOp& sink, std::span<const UOp> items) {
  return rebuild(sink, [&](const UOp& u, const UOps& sources) -> UOp {
    if (!u.is(Op::STORE) || !is_argument(u.src(0).src(0))) return u.with_src(sources);
    UOps s = sources;
    for (const UOp& r : items)
      if (!is_open_over(u.src(0), std::span(&r, 1))) s[0] = mask_index(s[0], eq(r, index_const(0)));
    return u.with_src(s);
  });
}

/// Gates accesses behind the end of a loop that its dimensions exceed.
UOp within(const UOp& index, const UOp& place, std::span<const UOp> loops, const NodeMap<UOp>& map) {
  UOp out = place;
  for (const UOp& r : loops)
    if (is_argument(index.src(0)) && is_open_over(index, std::span(&r, 1))) out = mask_index(out, *map.find(r) < r.src(0));
  return out;
}

/// Drops launched loops from ENDs, AFTERs, barriers and waits, and these themselves where nothing is left.
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
  UOps shorter;
  if (sink.src(0).is(Op::END)) shorter = assign_groups(closed_ranges(sink.src(0)), target, map);
  assign_items(items, map);
  return rebuild(store_once(sink, items), [&](const UOp& u, const UOps& sources) -> UOp {
    if (const UOp* dim = map.find(u)) return *dim;
    if (u.is(Op::END) || u.is(Op::AFTER) || u.is(Op::BARRIER) || u.is(Op::WAIT)) return without_launched(u, sources, map);
    return u.is(Op::INDEX) ? within(u, u.with_src(sources), shorter, map) : u.with_src(sources);
  });
}

}  // namespace tinygrad::codegen
