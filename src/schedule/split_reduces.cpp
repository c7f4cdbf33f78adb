#include "schedule/split_reduces.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "schedule/cost.h"
#include "schedule/select.h"
#include "shape/device.h"
#include "shape/ranges.h"
#include "shape/shape.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::schedule {

namespace {

constexpr int64_t most_chunks = 256, fewest_chunks = 16;
constexpr int64_t line_elements = 16;
constexpr double enough_results = 16;  ///< that keep the machine busy as they are
constexpr double launches = 200;       ///< that the work for one result must be worth: results run side by side anyway

/// Of an axis: so many chunks of this length, and what is left of it behind them.
struct Cut {
  int axis = -1;
  int64_t chunks = 0, length = 0;
};

Cut even_cut(int axis, int64_t size) {
  for (int64_t n = std::min(most_chunks, size / 2); n >= fewest_chunks; --n)
    if (size % n == 0) return {axis, n, size / n};
  return {};
}

/// Chunks of whole lines of memory along the innermost axis; the rest is little beside them.
Cut uneven_cut(int axis, int64_t size, int64_t line) {
  for (int64_t n = most_chunks; n >= fewest_chunks; n /= 2)
    if (const int64_t length = size / n / line * line; length >= 16 * line) return {axis, n, length};
  return {};
}

/// The outermost of the reduced axes that has enough chunks of one size, of whole lines; else the outermost with a rest; else, where axes
/// are too short for that, the outermost with chunks of one size.
Cut cut_of(const UOp& reduce) {
  const Shape& shape = shape_of(reduce.src(0));
  const auto line = [&](int axis) { return axis + 1 == int(shape.size()) ? line_elements : 1; };
  const Axes& axes = reduce.arg_as<ReduceArg>().axes;
  for (int axis : axes)
    if (const Cut c = even_cut(axis, shape[size_t(axis)].value()); c.chunks && c.length % line(axis) == 0) return c;
  for (int axis : axes)
    if (const Cut c = uneven_cut(axis, shape[size_t(axis)].value(), line(axis)); c.chunks) return c;
  for (int axis : axes)
    if (const Cut c = even_cut(axis, shape[size_t(axis)].value()); c.chunks) return c;
  return {};
}

bool sizes_are_known(const Shape& shape) {
  return std::ranges::all_of(shape, [](const SInt& s) { return s.known(); });
}

bool is_worth_cutting(const UOp& u, const TargetOf& target_of) {
  if (is_general_reduce(u) || is_selection(u) || !sizes_are_known(shape_of(u.src(0)))) return false;
  const double results = most_elements(u);
  if (results >= enough_results || most_elements(u.src(0)) < launches * most_chunks) return false;
  const Symbol device = devices_of(u).first();
  if (device.empty()) return false;
  const Target& target = target_of(device);
  if (!target.has_threads && !target.has_groups) return false;
  const auto is_reduced = [](const UOp& s) { return s.is(Op::REDUCE); };  // those are cut or not by themselves
  const double cost = inline_cost(u, target, is_reduced).cost;
  return cost > launches * general_costs().memory.launch;
}

UOp part(const UOp& x, int axis, int64_t begin, int64_t end) {
  std::vector<std::pair<SInt, SInt>> bounds;
  for (const SInt& size : shape_of(x)) bounds.emplace_back(0, size);
  bounds[size_t(axis)] = {begin, end};
  return shrink(x, bounds);
}

/// REDUCE(x[.., n*k, ..]) as REDUCE over n of what REDUCE over k and the other axes gives; with what is left of x.
UOp cut(const UOp& u, const Cut& c, std::vector<UOp>* cuts) {
  const auto& arg = u.arg_as<ReduceArg>();
  const int64_t size = shape_of(u.src(0))[size_t(c.axis)].value(), whole = c.chunks * c.length;
  const UOp x = whole < size ? part(u.src(0), c.axis, 0, whole) : u.src(0);
  UOps dims;
  Axes inner;
  int place = 0;  // of the chunks, among what is left
  const Shape& shape = shape_of(x);
  for (int i = 0; i < int(shape.size()); ++i) {
    const bool reduced = std::find(arg.axes.begin(), arg.axes.end(), i) != arg.axes.end();
    if (i == c.axis) dims.push_back(index_const(c.chunks));
    if (reduced) inner.push_back(int(dims.size()));
    if (!reduced && i < c.axis) ++place;
    dims.push_back(i == c.axis ? index_const(c.length) : shape[size_t(i)].uop());
  }
  const UOp partial(Op::REDUCE, u.dtype(), {reshape(x, dims)}, ReduceArg{arg.op, inner});
  const UOp chunks(Op::CONTIGUOUS, u.dtype(), {partial});
  if (cuts) cuts->push_back(chunks);
  UOp total(Op::REDUCE, u.dtype(), {chunks}, ReduceArg{arg.op, {place}});
  if (whole == size) return total;
  return UOp(arg.op, u.dtype(), {total, UOp(Op::REDUCE, u.dtype(), {part(u.src(0), c.axis, whole, size)}, arg)});
}

}  // namespace

UOp split_reduces(const UOp& sink, const TargetOf& target_of, std::vector<UOp>* cuts) {
  NodeMap<UOp> done;
  bool changed = false;
  for (const UOp& u : toposort(sink)) {
    UOps sources(u.src());
    if (changed)
      for (UOp& s : sources)
        if (const UOp* d = done.find(s)) s = *d;
    UOp& now = done[u] = changed ? u.with_src(sources) : u;
    if (!u.is(Op::REDUCE) || u.src_count() != 1 || !is_worth_cutting(u, target_of)) continue;
    if (const Cut c = cut_of(u); c.chunks) {
      now = cut(UOp(now), c, cuts);
      changed = true;
    }
  }
  return done[sink];
}

}  // namespace tinygrad::schedule
