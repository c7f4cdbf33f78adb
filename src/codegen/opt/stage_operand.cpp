#include "codegen/opt/stage_operand.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/core.h>

#include "codegen/opt/kernel_axes.h"
#include "codegen/opt/opt_error.h"
#include "codegen/opt/split_range.h"
#include "codegen/opt/window_axes.h"
#include "codegen/simplify.h"
#include "shape/ranges.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

namespace {

AxisKind kind_of(const UOp& range) { return range.arg_as<RangeArg>().kind; }

class OperandStaging {
 public:
  OperandStaging(const UOp& sink, const UOp& axis, const Opt& opt, const Target& target)
      : sink_(sink), axis_(axis), opt_(opt), stage_(StageOpt::of(opt.arg)), target_(target), next_range_(next_range_id(sink)) {
    const std::vector<UOp> axes = nested_axes(sink);
    for (size_t i = 0; i < axes.size(); ++i) place_[axes[i]] = int(i);
  }

  UOp run() {
    check();
    std::vector<UOp> loads;
    for (const UOp& u : toposort(sink_))
      if (u.is(Op::LOAD) && is_argument(u.src(0).src(0))) loads.push_back(u);
    // Where some of them are made again and again, a copy of the others would be for nothing.
    note_nesting();
    if (std::any_of(loads.begin(), loads.end(), [&](const UOp& u) { return is_repeated(u); }))
      std::erase_if(loads, [&](const UOp& u) { return !is_repeated(u); });
    if (stage_.depth > 1 && std::erase_if(loads, [&](const UOp& u) { return !moves_with_loop(u); }) > 0 && loads.empty())
      opt_error(opt_, "what is loaded does not move with the loop");
    NodeMap<UOp> reads;
    for (const UOp& u : loads)
      if (UOp read = staged(u)) made_.push_back(reads[u] = read);
    if (made_.empty()) opt_error(opt_, fmt::format("nothing that is loaded of argument {} moves inside the axis", stage_.slot));
    return substitute(sink_, reads);
  }

 private:
  bool is_argument(const UOp& memory) const { return memory.is(Op::PARAM) && memory.arg_as<ParamArg>().slot == stage_.slot; }

  void check() const {
    if (stage_.scope == Scope::device) opt_error(opt_, "the scope is reg, thread or group");
    if (stage_.scope == Scope::group && !target_.has_groups) opt_error(opt_, "the target has no work-groups");
    if (stage_.scope == Scope::group && sink_.src_count() != 1) opt_error(opt_, "the kernel has several loop nests");
    if (stage_.depth < 1) opt_error(opt_, "the depth is at least 1");
    if (stage_.depth > 1 && !is_reduced(axis_)) opt_error(opt_, "only the loop of a reduction is run ahead of");
    if (stage_.depth > 1 && constant_size(axis_) < stage_.depth)
      opt_error(opt_, fmt::format("the loop has {} iterations", constant_size(axis_)));
    for (const UOp& u : toposort(sink_)) {
      if (u.is(Op::AFTER)) opt_error(opt_, "a loop nest of the kernel reads what another writes");
      if (u.is(Op::STORE) && is_argument(u.src(0).src(0))) opt_error(opt_, "the kernel stores to the argument");
    }
  }

  /// Which loops each loop is inside of: those that are open where it is closed, unless it goes around them, and those closed with it that
  /// come before.
  void note_nesting() {
    for (const UOp& u : toposort(sink_)) {
      const auto closed = closed_ranges(u);
      for (const UOp& r : closed) {
        for (const UOp& open : ranges_of(u))
          if (kind_of(r) != AxisKind::outer || comes_before(open, r)) around_[r].push_back(open);
        for (const UOp& other : closed)
          if (comes_before(other, r)) around_[r].push_back(other);
      }
    }
  }
  bool comes_before(const UOp& a, const UOp& b) const {
    const int *first = place_.find(a), *second = place_.find(b);
    return first && second && *first < *second;
  }

  /// True if a loop inside of the axis makes the load again for the same elements.
  bool is_repeated(const UOp& load) const {
    UOps around(ranges_of(load));
    const size_t own = around.size();
    for (size_t i = 0; i < around.size(); ++i)
      if (const UOps* more = around_.find(around[i]))
        for (const UOp& r : *more)
          if (std::find(around.begin(), around.end(), r) == around.end()) around.push_back(r);
    return std::any_of(around.begin() + own, around.end(), [&](const UOp& r) { return place_.contains(r) && is_inside(r); });
  }

  /// True for what the tile has a place for each element of, rather than one tile for each.
  bool is_inside(const UOp& range) const {
    switch (kind_of(range)) {
      case AxisKind::upcast:
      case AxisKind::unroll:
      case AxisKind::lane:
      case AxisKind::element: return true;
      case AxisKind::local:
      case AxisKind::group: return stage_.scope == Scope::group;
      case AxisKind::loop:
      case AxisKind::reduce:
      case AxisKind::outer: return *place_.find(range) > *place_.find(axis_);
      default: return false;
    }
  }

  /// The order of a group's tile is that of the argument. A thread's own is in the order of its loops, with copies of an output axis next
  /// to each other in each step. A vector axis is last, but for what each lane holds of a tensor core's operand.
  void sort_tile(std::vector<WindowAxis>& axes) const {
    const auto key = [&](const WindowAxis& a) {
      const UOp& r = a.parts[0].range;
      const int* place = stage_.scope == Scope::group ? nullptr : place_.find(r);
      const bool apart = stage_.scope != Scope::group, row = a.is_window() && a.stride == 1;
      return std::tuple(apart && kind_of(r) == AxisKind::element, row || kind_of(r) == AxisKind::lane,
                        place ? *place - int(place_.size()) : 0, -a.stride, r.arg_as<RangeArg>().id);
    };
    std::sort(axes.begin(), axes.end(), [&](const WindowAxis& a, const WindowAxis& b) { return key(a) < key(b); });
  }

  /// What a lane holds is stored with what its neighbours hold.
  AxisKind kind_in_fill(const UOp& range) const {
    if (kind_of(range) == AxisKind::lane) return AxisKind::lane;
    return kind_of(range) == AxisKind::element && stage_.scope != Scope::group ? AxisKind::upcast : AxisKind::loop;
  }

  /// The load as an element of a tile; null if nothing of it moves inside the axis.
  UOp staged(const UOp& load) {
    UOps inside;
    for (const UOp& r : ranges_of(load))
      if (is_inside(r)) inside.push_back(r);
    if (inside.empty()) return {};
    for (const UOp& u : toposort(load))
      if (u.is(Op::REDUCE)) opt_error(opt_, "where it is loaded from depends on a reduction");
    if (stage_.depth > 1) check_ahead(load);
    NodeMap<UOp> digits;
    const UOp apart = stage_.scope == Scope::group ? in_bits(load, inside, digits) : load;
    std::vector<WindowAxis> axes = axes_of_tile(apart, inside);
    sort_tile(axes);

    NodeMap<UOp> fresh;
    UOps sources{apart};
    UOp at = index_const(0), valid;
    int64_t elements = 1;
    for (const WindowAxis& a : axes) {
      if (a.size == 0) opt_error(opt_, "the size of a loop inside is not known before launch");
      const int64_t size =
          a.is_window() ? add_window(a, vectors_in_fill(a, axes, apart), fresh, sources, valid) : add_loop(a, fresh, sources);
      at = at * size + (a.is_window() ? a.place() : a.parts[0].range);
      elements *= size;
      if (elements > int64_t{1} << 32) break;
    }
    check_size(elements * int64_t(itemsize(load.dtype())) * stage_.depth);
    sources[0] = substitute(apart, fresh);
    if (valid) sources[0] = sources[0].with_src(gated(sources[0].src(), valid));
    const UOp tile(Op::STAGE, load.dtype(), sources, StageArg{.scope = stage_.scope, .depth = uint8_t(stage_.depth)});
    return UOp(Op::INDEX, load.dtype(), {tile, substitute(at, digits)}, IndexArg{});
  }

  /// Loops of which the load's place takes digits, such as those over what the items of a tensor core hold, become loops over their bits,
  /// which move it a way each: so the tile lies as the argument does. `digits` has the bits of the loops.
  UOp in_bits(const UOp& load, UOps& inside, NodeMap<UOp>& digits) {
    UOps apart;
    NodeMap<UOp> sums;
    for (const UOp& r : inside) {
      const int64_t size = constant_size(r);
      if (stride_of(load.src(0).src(1), r) || size < 4 || (size & (size - 1)) != 0) {
        apart.push_back(r);
        continue;
      }
      UOp sum = index_const(0);
      for (int64_t below = 1; below < size; below *= 2) {
        const UOp bit = range(index_const(2), {.id = next_range_++, .order = r.arg_as<RangeArg>().order});
        made_.push_back(bit);
        apart.push_back(bit);
        sum = sum + bit * below;
        digits[bit] = floor_mod(floor_div(r, below), 2);
      }
      sums[r] = sum;
    }
    if (apart.size() == inside.size()) return load;
    const UOp out = simplify(substitute(load, sums));
    made_.push_back(out);
    inside.clear();
    for (const UOp& r : apart)
      if (is_open_over(out, std::span(&r, 1))) inside.push_back(r);
    return out;
  }

  static UOps gated(std::span<const UOp> sources, const UOp& valid) {
    UOps out(sources.begin(), sources.end());
    out[0] = mask_index(out[0], valid);
    return out;
  }

  /// Work-items share the elements of a group's tile as they are.
  std::vector<WindowAxis> axes_of_tile(const UOp& load, const UOps& inside) const {
    if (stage_.scope != Scope::group) return window_axes(load, inside);
    std::vector<WindowAxis> out;
    for (const UOp& r : inside)
      out.push_back({.parts = {{r}}, .stride = std::abs(stride_of(load.src(0).src(1), r).value_or(0)), .size = constant_size(r)});
    return out;
  }

  /// Lanes that fill a window: it is the only vector axis of the load then, and lies in memory as it will in the tile.
  int64_t vectors_in_fill(const WindowAxis& window, const std::vector<WindowAxis>& axes, const UOp& load) const {
    const int64_t lanes = target_.lanes(load.dtype());
    if (target_.has_groups || window.stride != 1 || window.size * 2 <= lanes) return 1;
    for (const WindowAxis& a : axes) {
      const bool has_vectors = a.is_window() ? a.stride == 1 : kind_of(a.parts[0].range) == AxisKind::lane;
      if (&a != &window && has_vectors) return 1;
    }
    return lanes;
  }

  int64_t add_loop(const WindowAxis& a, NodeMap<UOp>& fresh, UOps& sources) {
    const UOp& r = a.parts[0].range;
    sources.push_back(range(r.src(0), {.id = next_range_++, .kind = kind_in_fill(r), .order = r.arg_as<RangeArg>().order}));
    fresh[r] = sources.back();
    return a.size;
  }

  /// The elements that the window takes in the tile, whole vectors.
  int64_t add_window(const WindowAxis& a, int64_t lanes, NodeMap<UOp>& fresh, UOps& sources, UOp& valid) {
    const int64_t rounds = (a.size + lanes - 1) / lanes;
    const int32_t order = a.parts[0].range.arg_as<RangeArg>().order;
    UOp at = range(index_const(rounds), {.id = next_range_++, .order = order});
    sources.push_back(at);
    if (lanes > 1) {
      sources.push_back(range(index_const(lanes), {.id = next_range_++, .kind = AxisKind::lane, .order = order}));
      at = at * lanes + sources.back();
    }
    if (rounds * lanes != a.size) valid = valid ? valid & (at < a.size) : at < a.size;
    for (size_t i = 0; i < a.parts.size(); ++i) fresh[a.parts[i].range] = i == 0 ? (at + a.first) * a.parts[0].ratio : index_const(0);
    return rounds * lanes;
  }

  /// True if each iteration of the axis, the innermost of the loops around the tile, loads something else.
  bool moves_with_loop(const UOp& load) const {
    int innermost = -1;
    for (const UOp& r : ranges_of(load))
      if (const int* p = place_.find(r); p && !is_inside(r)) innermost = std::max(innermost, *p);
    return innermost == *place_.find(axis_);
  }

  /// That an iteration of the loop can load what a later one needs.
  void check_ahead(const UOp& load) const {
    for (const UOp& u : toposort(load))
      if (u.is(Op::LOAD) && u != load) opt_error(opt_, "where it is loaded from depends on other memory");
  }

  void check_size(int64_t bytes) const {
    const int64_t most = stage_.scope == Scope::group ? target_.group_memory_bytes : std::max<int64_t>(target_.l2_bytes, 1 << 14);
    if (bytes > most) opt_error(opt_, fmt::format("a tile has {} bytes, the target takes {}", bytes, most));
  }

  const UOp sink_, axis_;
  const Opt opt_;
  const StageOpt stage_;
  const Target& target_;
  int32_t next_range_;
  NodeMap<int> place_;
  NodeMap<UOps> around_;
  std::vector<UOp> made_;
};

}  // namespace

UOp stage_operand(const UOp& sink, const UOp& axis, const Opt& opt, const Target& target) {
  return OperandStaging(sink, axis, opt, target).run();
}

}  // namespace tinygrad::codegen
