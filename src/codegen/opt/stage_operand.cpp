#include "codegen/opt/stage_operand.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>

#include <fmt/core.h>

#include "codegen/kernel_axes.h"
#include "codegen/late/vectorize_lanes.h"
#include "codegen/opt/computed_values.h"
#include "codegen/opt/opt_error.h"
#include "codegen/opt/tensor_core.h"
#include "codegen/opt/window_axes.h"
#include "codegen/rebuild.h"
#include "codegen/simplify.h"
#include "codegen/split_range.h"
#include "shape/ranges.h"
#include "symbolic/gated.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

namespace {

AxisKind kind_of(const UOp& range) { return range.arg_as<RangeArg>().kind; }

bool is_staged(const UOp& value) { return value.is(Op::INDEX) && value.src(0).is(Op::STAGE); }

/// An element's number as digits that are places in a row or a column, the lowest first: how many values each has.
std::vector<int64_t> digits_of(const TensorCore::Layout& layout) {
  std::vector<std::pair<bool, size_t>> places(layout.row.size() + layout.column.size());  // of each bit of the number: column?, bit
  for (size_t i = 0; i < layout.row.size(); ++i) places[layout.row[i].n] = {false, i};
  for (size_t i = 0; i < layout.column.size(); ++i) places[layout.column[i].n] = {true, i};
  std::vector<int64_t> digits;
  for (size_t i = 0; i < places.size(); ++i) {
    const bool goes_on = i > 0 && places[i].first == places[i - 1].first && places[i].second == places[i - 1].second + 1;
    if (!goes_on) digits.push_back(1);
    digits.back() *= 2;
  }
  return digits;
}

/// True if the lanes of a core on a CPU are rows and columns of its sums; those of tiles are columns.
bool has_rows_in_lanes(const TensorCore& core) { return core.m > 1 && !core.a.in_memory; }

class OperandStaging {
 public:
  /// Tiles inside of `axis`; without one, inside of all loops.
  OperandStaging(const UOp& sink, const UOp& axis, const Opt& opt, const StageOpt& stage, const Target& target)
      : sink_(sink), axis_(axis), opt_(opt), stage_(stage), target_(target), next_range_(next_range_id(sink)) {
    const std::vector<UOp> axes = nested_axes(sink);
    for (size_t i = 0; i < axes.size(); ++i) place_[axes[i]] = int(i);
    axis_place_ = axis ? *place_.find(axis) : int(axes.size());
    for (const UOp& u : toposort(sink))
      if (u.is(Op::STORE)) note_store(u.src(0));
    for (const UOp& u : toposort(sink, Scopes::enter))
      if (u.is(Op::WMMA) && !target.has_groups && has_rows_in_lanes(*find_tensor_core(u.arg_as<WmmaArg>().name))) lanes_are_rows_ = true;
  }

  UOp run() {
    check();
    const std::vector<UOp> nodes = toposort(sink_);
    NodeMap<UOp> reads = staged_for_core(memory_operands(sink_));
    std::vector<UOp> loads;
    for (const UOp& u : nodes)
      if (u.is(Op::LOAD) && is_argument(u.src(0).src(0)) && !for_core_.contains(u)) loads.push_back(u);
    // If some loads of the argument are repeated, tiles of the others alone would save nothing.
    note_nesting();
    if (std::any_of(loads.begin(), loads.end(), [&](const UOp& u) { return is_repeated(u); }))
      std::erase_if(loads, [&](const UOp& u) { return !is_repeated(u); });
    if (stage_.depth > 1 && std::erase_if(loads, [&](const UOp& u) { return !moves_with_loop(u); }) > 0 && loads.empty())
      opt_error(opt_, "what is loaded does not move with the loop");
    for (const UOp& load : loads)
      for (const UOp& value : stage_.computed ? computed_of(load, nodes).last : UOps{load})
        if (!reads.contains(value))
          if (UOp read = staged(value, load)) made_.push_back(reads[value] = read);
    if (made_.empty()) opt_error(opt_, fmt::format("nothing that is loaded of argument {} moves inside the axis", stage_.slot));
    return substitute(sink_, reads);
  }

  /// The operands that a tensor core reads from memory and that have no STAGE yet.
  UOp run_for_core() {
    std::vector<MemoryOperand> operands = memory_operands(sink_);
    std::erase_if(operands, [](const MemoryOperand& o) { return is_staged(o.value); });
    if (operands.empty()) return sink_;
    check();
    return substitute(sink_, staged_for_core(operands));
  }

 private:
  /// Without a number, any argument.
  bool is_argument(const UOp& memory) const {
    return memory.is(Op::PARAM) && (stage_.slot < 0 || memory.arg_as<ParamArg>().slot == stage_.slot);
  }

  /// The load of the argument that the value needs; null if it needs none.
  UOp argument_load(const UOp& value) const {
    for (const UOp& u : toposort(value))
      if (u.is(Op::LOAD) && is_argument(u.src(0).src(0))) return u;
    return {};
  }

  /// Factors of products that depend on the argument. They are computed where the tile is filled.
  NodeMap<UOp> staged_for_core(const std::vector<MemoryOperand>& operands) {
    NodeMap<UOp> reads;
    for (const MemoryOperand& o : operands) {
      const UOp load = argument_load(o.value);
      if (!load || is_staged(o.value)) continue;
      for (const UOp& u : toposort(o.value))
        if (u.is(Op::LOAD)) for_core_.insert(u);
      if (stage_.depth > 1 && !moves_with_loop(load)) continue;
      const bool is_near = target_.has_groups ? stage_.scope == Scope::group : stage_.scope == Scope::thread;
      if (!is_near || stage_.computed)
        opt_error(opt_, fmt::format("the tensor core reads it from memory of the {}", target_.has_groups ? "group" : "thread"));
      made_.push_back(reads[o.value] = staged(o.value, load, &o));
    }
    return reads;
  }

  void check() const {
    if (stage_.scope == Scope::device) opt_error(opt_, "the scope is reg, thread or group");
    if (stage_.scope == Scope::group && stage_.computed) opt_error(opt_, "a group does not share what is computed");
    if (stage_.scope == Scope::group && !target_.has_groups) opt_error(opt_, "the target has no work-groups");
    if (stage_.scope == Scope::group && sink_.src_count() != 1) opt_error(opt_, "the kernel has several loop nests");
    if (stage_.depth < 1) opt_error(opt_, "the depth is at least 1");
    if (stage_.depth > 1 && stage_.computed) opt_error(opt_, "what is computed is not copied ahead");
    if (stage_.depth > 1 && !is_reduced(axis_)) opt_error(opt_, "only the loop of a reduction is run ahead of");
    if (stage_.depth > 1 && constant_size(axis_) < stage_.depth)
      opt_error(opt_, fmt::format("the loop has {} iterations", constant_size(axis_)));
    for (const UOp& u : toposort(sink_)) {
      if (u.is(Op::AFTER)) opt_error(opt_, "a loop nest of the kernel reads what another writes");
      if (u.is(Op::STORE) && stage_.slot >= 0 && is_argument(u.src(0).src(0))) opt_error(opt_, "the kernel stores to the argument");
    }
  }

  /// The loops around each loop: those that are open where it is closed, unless it goes around them, and those that are closed with it and
  /// come before it.
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

  /// True if a loop inside of the axis repeats the load of the same elements.
  bool is_repeated(const UOp& load) const {
    UOps around(ranges_of(load));
    const size_t own = around.size();
    for (size_t i = 0; i < around.size(); ++i)
      if (const UOps* more = around_.find(around[i]))
        for (const UOp& r : *more)
          if (std::find(around.begin(), around.end(), r) == around.end()) around.push_back(r);
    return std::any_of(around.begin() + own, around.end(), [&](const UOp& r) { return place_.contains(r) && is_inside(r); });
  }

  /// True for a range along which a tile has elements; along others there is a tile for each iteration.
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
      case AxisKind::outer: return *place_.find(range) > axis_place_;
      default: return false;
    }
  }

  /// A group's tile, or one for a tensor core, has the order of the argument. A thread's tile has the order of its loops, in which the
  /// copies of an output axis in one step are neighbours. A vector axis comes last, except for the elements of a tensor core's operand in a
  /// lane.
  void sort_tile(std::vector<WindowAxis>& axes, bool as_it_lies) const {
    const auto key = [&](const WindowAxis& a) {
      const UOp& r = a.parts[0].range;
      const int* place = as_it_lies ? nullptr : place_.find(r);
      const bool apart = !as_it_lies;
      const int last = kind_of(r) == AxisKind::lane ? 2 : is_row(a) ? 1 : 0;
      return std::tuple(apart && kind_of(r) == AxisKind::element, last, place ? *place - int(place_.size()) : 0, -a.stride,
                        r.arg_as<RangeArg>().id);
    };
    std::sort(axes.begin(), axes.end(), [&](const WindowAxis& a, const WindowAxis& b) { return key(a) < key(b); });
  }

  /// The order keys of the loops that fill a tile. A thread's tile is filled as the argument lies, so that neighbours are loaded one after
  /// another, in whatever order the kernel's loops use them.
  static std::vector<int32_t> orders_in_fill(const std::vector<WindowAxis>& axes, std::span<const UOp> inside, bool is_taken_apart) {
    std::vector<int32_t> orders;
    for (const WindowAxis& a : axes) orders.push_back(a.parts[0].range.arg_as<RangeArg>().order);
    if (is_taken_apart) return orders;
    int32_t innermost = 0;
    for (const UOp& r : inside) innermost = std::max(innermost, r.arg_as<RangeArg>().order);
    for (size_t i = 0; i < axes.size(); ++i)
      orders[i] = innermost + int32_t(std::ranges::count_if(axes, [&](const WindowAxis& a) { return a.stride > axes[i].stride; }));
    return orders;
  }

  /// In a thread's tile, the elements of a lane are stored side by side.
  AxisKind kind_in_fill(const UOp& range) const {
    if (const AxisKind* kind = kinds_in_fill_.find(range)) return *kind;
    if (kind_of(range) == AxisKind::lane) return AxisKind::lane;
    return kind_of(range) == AxisKind::element && stage_.scope != Scope::group ? AxisKind::upcast : AxisKind::loop;
  }

  /// The load, or the value that is computed of it, as an element of a tile; null if nothing inside of the axis moves it. `operand` says
  /// that a tensor core reads it.
  UOp staged(const UOp& value, const UOp& load, const MemoryOperand* operand = nullptr) {
    UOps inside;
    for (const UOp& r : ranges_of(operand ? value : load))
      if (is_inside(r)) inside.push_back(r);
    if (inside.empty()) return {};
    for (const UOp& u : toposort(value)) {
      if (u.is(Op::REDUCE)) opt_error(opt_, "where it is loaded from depends on a reduction");
      if (u.is(Op::LOAD) && std::ranges::find(stored_, u.src(0).src(0)) != stored_.end())
        opt_error(opt_, "the kernel stores to what the value is computed of");
    }
    if (stage_.depth > 1) check_ahead(load);
    NodeMap<UOp> digits;
    NodeMap<int64_t> taken_together;
    const bool is_taken_apart = stage_.scope == Scope::group || operand;
    UOp apart =
        is_taken_apart || (lanes_are_rows_ && !stage_.computed) ? in_digits(value, load, operand, inside, digits, taken_together) : value;
    const UOp& moved = stage_.computed ? load : argument_load(apart);
    std::vector<WindowAxis> axes = is_taken_apart || stage_.computed ? loops_of_tile(moved, inside) : window_axes(moved, inside, masks_);
    if (stage_.computed) join_rows(value, axes);
    sort_tile(axes, is_taken_apart);
    if (operand && stage_.scope != Scope::group) choose_vectors(axes, taken_together);

    const std::vector<UOp> bounds = is_taken_apart || stage_.computed ? std::vector<UOp>(axes.size()) : take_bounds(axes, apart);
    NodeMap<UOp> fresh;
    UOps sources{apart};
    UOp at = index_const(0), valid;
    constexpr int64_t too_many = int64_t{1} << 28;  // for any target; its square, in bytes, does not overflow
    int64_t elements = 1;
    const std::vector<int32_t> orders = orders_in_fill(axes, inside, is_taken_apart);
    for (size_t i = 0; i < axes.size(); ++i) {
      const WindowAxis& a = axes[i];
      if (a.size == 0 || a.size > too_many) opt_error(opt_, "the size of a loop inside is not known before launch");
      const int64_t lanes = vectors_in_fill(a, axes, apart);
      if (a.is_window() || lanes > 1) {
        const int64_t phases = phases_of(a), size = add_row(a, bounds[i], phases, lanes, orders[i], inside, fresh, sources, valid);
        const UOp place = a.is_window() ? a.place() : UOp(a.parts[0].range);
        at = phases == 1 ? at * size + place : (at * phases + floor_mod(place, phases)) * size + floor_div(place, phases);
        elements *= size * phases;
      } else {
        const int64_t size = add_loop(a, orders[i], inside, fresh, sources, valid);
        at = at * size + a.parts[0].range;
        elements *= size;
      }
      if (elements > too_many) break;
    }
    check_size(elements * int64_t(itemsize(value.dtype())) * stage_.depth);
    sources[0] = substitute(apart, fresh);
    if (valid) sources[0] = gated(sources[0], substitute(valid, fresh), std::span(sources).subspan(1));
    StageArg arg{.scope = stage_.scope, .depth = uint8_t(stage_.depth)};
    if (operand) {
      arg.layout = order_for_core(axes, taken_together);
      arg.run = operand->layout->run, arg.gap = operand->layout->gap, arg.swizzle = operand->layout->swizzle;
    }
    const UOp tile(Op::STAGE, value.dtype(), sources, arg);
    return UOp(Op::INDEX, value.dtype(), {tile, substitute(at, digits)}, IndexArg{});
  }

  /// The index of a load may take a loop's number apart by quotients and remainders, as it does for the elements of a tensor core's items.
  /// Such a loop becomes loops over its bits, each of which moves the index by one stride, so that the tile is filled in the order of the
  /// argument. So do lanes that are rows and columns of a tensor core's sums: a thread's tile has what several of them read once. The
  /// number of an operand's element becomes loops over the digits that are parts of a row or a column. `digits` has the loop's number by
  /// these loops, `taken_together` the elements of one step.
  UOp in_digits(const UOp& value, const UOp& load, const MemoryOperand* operand, UOps& inside, NodeMap<UOp>& digits,
                NodeMap<int64_t>& taken_together) {
    UOps apart;
    NodeMap<UOp> sums;
    for (const UOp& r : inside) {
      const bool is_operands = operand && r == operand->element;
      const bool is_whole = !operand && stage_.scope != Scope::group && kind_of(r) != AxisKind::lane;
      const std::vector<int64_t> sizes = is_operands ? digits_of(*operand->layout) : is_whole ? std::vector<int64_t>() : bits_of(load, r);
      if (sizes.empty()) {
        apart.push_back(r);
        continue;
      }
      UOp sum = index_const(0);
      int64_t below = 1;
      for (const int64_t size : sizes) {
        const UOp digit = range(index_const(size), {.id = next_range_++, .order = r.arg_as<RangeArg>().order});
        made_.push_back(digit);
        apart.push_back(digit);
        sum = sum + digit * below;
        digits[digit] = floor_mod(floor_div(r, below), size);
        if (is_operands) taken_together[digit] = below;
        below *= size;
      }
      sums[r] = sum;
    }
    if (apart.size() == inside.size()) return value;
    const UOp out = simplify(substitute(value, sums));
    made_.push_back(out);
    inside.clear();
    for (const UOp& r : apart)
      if (taken_together.contains(r) || is_open_over(out, std::span(&r, 1))) inside.push_back(r);
    return out;
  }

  static std::vector<int64_t> bits_of(const UOp& load, const UOp& range) {
    const int64_t size = constant_size(range);
    if (size < 4 || (size & (size - 1)) != 0 || stride_of(load.src(0).src(1), range)) return {};
    return std::vector<int64_t>(size_t(std::bit_width(uint64_t(size)) - 1), 2);
  }

  /// The elements that a tensor core reads in one step are contiguous in the tile, in the core's order. In a thread's tile those of the
  /// next step, which may be of another copy, follow.
  SmallVector<int32_t, 6> order_for_core(const std::vector<WindowAxis>& axes, const NodeMap<int64_t>& taken_together) const {
    SmallVector<int32_t, 6> order;
    for (size_t i = 0; i < axes.size(); ++i) order.push_back(int32_t(i));
    const auto key = [&](int32_t i) {
      const UOp& r = axes[size_t(i)].parts[0].range;
      const int64_t* below = taken_together.find(r);
      const int* place = stage_.scope == Scope::group ? nullptr : place_.find(r);
      return std::tuple(below ? -*below : std::numeric_limits<int64_t>::min(), place ? *place - int(place_.size()) : 0);
    };
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return key(a) < key(b); });
    return order;
  }

  /// On a CPU such a tile is filled by vectors along what is contiguous in the argument, or else along the longest digit that is nearest in
  /// the tile. The digits between the lanes are written out, so that their stores fill a run.
  void choose_vectors(const std::vector<WindowAxis>& axes, const NodeMap<int64_t>& taken_together) {
    constexpr int64_t least_lanes = 8;
    const WindowAxis* lanes = nullptr;
    const auto below = [&](const WindowAxis& a) { return *taken_together.find(a.parts[0].range); };
    for (const WindowAxis& a : axes) {
      if (!taken_together.contains(a.parts[0].range) || a.size < least_lanes) continue;
      if (!lanes || (a.stride == 1 && lanes->stride != 1) || (lanes->stride != 1 && below(a) < below(*lanes))) lanes = &a;
    }
    if (!lanes) return;
    kinds_in_fill_[lanes->parts[0].range] = AxisKind::lane;
    for (const WindowAxis& a : axes)
      if (taken_together.contains(a.parts[0].range) && below(a) < below(*lanes)) kinds_in_fill_[a.parts[0].range] = AxisKind::upcast;
  }

  /// Loads that the loops of the fill move get `valid` as a gate; others may be in the sizes of these loops.
  static UOp gated(const UOp& value, const UOp& valid, std::span<const UOp> loops) {
    return rebuild(value, [&](const UOp& u, const UOps& sources) -> UOp {
      UOps s = sources;
      if (u.is(Op::LOAD) && is_open_over(u, loops)) s[0] = mask_index(s[0], valid);
      return u.with_src(s);
    });
  }

  /// The work-items of a group share out the elements of its tile in their order.
  std::vector<WindowAxis> loops_of_tile(const UOp& load, const UOps& inside) const {
    std::vector<WindowAxis> out;
    for (const UOp& r : inside) {
      const int64_t stride = stride_of(load.src(0).src(1), r).value_or(0);
      out.push_back({.parts = {{r}}, .stride = std::abs(stride), .size = stage_.computed ? most_iterations(r) : constant_size(r)});
    }
    return out;
  }

  /// True for the axis along which elements are contiguous in the argument, and so in the tile.
  bool is_row(const WindowAxis& a) const { return a.stride == 1 && (stage_.computed || a.is_window()); }

  /// Two loops become one if the stride of one is the length of the other, as with a loop over blocks and the loop inside of a block.
  static void join_rows(const UOp& value, std::vector<WindowAxis>& axes) {
    for (size_t i = 0; i < axes.size(); ++i)
      for (size_t k = 0; k < axes.size(); ++k) {
        const WindowAxis &wide = axes[i], &narrow = axes[k];
        if (i == k || narrow.stride != 1 || wide.stride != narrow.size || !is_fixed(wide) || !is_fixed(narrow)) continue;
        WindowAxis both{.parts = narrow.parts, .stride = 1, .size = narrow.size * wide.size};
        both.parts.push_back({wide.parts[0].range, narrow.size});
        if (wide.parts.size() > 1 || !moves_along(value, both.parts)) continue;
        axes[k] = both;
        axes.erase(axes.begin() + std::ptrdiff_t(i));
        return join_rows(value, axes);
      }
  }
  static bool is_fixed(const WindowAxis& a) {
    return std::ranges::all_of(a.parts, [](const WindowAxis::Part& p) {
      return constant_size(p.range) != 0 && kind_of(p.range) != AxisKind::lane && kind_of(p.range) != AxisKind::element;
    });
  }

  /// The lanes that fill a row. They are the only vector axis then.
  int64_t vectors_in_fill(const WindowAxis& row, const std::vector<WindowAxis>& axes, const UOp& value) const {
    int64_t lanes = target_.lanes(value.dtype());
    if (stage_.computed) lanes = std::min(lanes, int64_t(std::bit_ceil(uint64_t(row.size))));
    if (target_.has_groups || !is_row(row) || row.size * 2 <= lanes) return 1;
    for (const WindowAxis& a : axes)
      if (kind_of(a.parts[0].range) == AxisKind::lane || (&a != &row && is_row(a))) return 1;
    return lanes;
  }

  int64_t add_loop(const WindowAxis& a, int32_t order, std::span<const UOp> inside, NodeMap<UOp>& fresh, UOps& sources, UOp& valid) {
    const UOp &r = a.parts[0].range, n = iterations(r, inside);
    if (n != r.src(0)) require(r < r.src(0), valid);
    sources.push_back(range(n, {.id = next_range_++, .kind = kind_in_fill(r), .order = order}));
    fresh[r] = sources.back();
    return a.size;
  }

  /// The size of a loop, or the most that it may be where loops inside decide it.
  static UOp iterations(const UOp& range, std::span<const UOp> inside) {
    return is_open_over(range.src(0), inside) ? index_const(most_iterations(range)) : UOp(range.src(0));
  }

  /// Memory that is stored to, and the clauses without which nothing is stored.
  void note_store(const UOp& place) {
    const std::vector<UOp> clauses = place.src_count() > 2 ? symbolic::clauses_of(place.src(2)) : std::vector<UOp>();
    if (stored_.empty())
      masks_ = clauses;
    else
      std::erase_if(masks_, [&](const UOp& c) { return std::ranges::find(clauses, c) == clauses.end(); });
    stored_.push_back(place.src(0));
  }

  static void require(const UOp& condition, UOp& valid) { valid = valid ? valid & condition : condition; }

  /// The stride of a vector's lanes along a row. With a stride of n the tile has n rows, in each of which every n-th element is contiguous.
  int64_t phases_of(const WindowAxis& a) const {
    if (!is_row(a) || stage_.scope == Scope::group || stage_.computed) return 1;
    for (const WindowAxis::Part& p : a.parts)
      if (kind_of(p.range) == AxisKind::lane && p.ratio > 1 && p.ratio <= most_apart) return p.ratio;
    return 1;
  }

  /// Masks that bound windows, in the fill, instead of gating the load: the window has elements behind its bound, which no store uses.
  /// Gives the bounds of the axes, null for those without.
  std::vector<UOp> take_bounds(const std::vector<WindowAxis>& axes, UOp& load) const {
    std::vector<UOp> bounds(axes.size());
    const UOp& index = load.src(0);
    if (index.src_count() < 3) return bounds;
    UOp gate;
    for (const UOp& clause : symbolic::clauses_of(index.src(2))) {
      bool is_bound = false;
      for (size_t i = 0; i < axes.size() && std::ranges::find(masks_, clause) != masks_.end(); ++i)
        if (const UOp bound = axes[i].is_window() ? bound_of(clause, axes[i]) : UOp()) {
          bounds[i] = bounds[i] ? min(bounds[i], bound) : bound;
          is_bound = true;
        }
      if (!is_bound) require(clause, gate);
    }
    UOps s(load.src().begin(), load.src().end());
    s[0] = index.with_src(index.src().first(2));
    if (gate) s[0] = mask_index(s[0], gate);
    load = load.with_src(s);
    return bounds;
  }

  /// The elements that a window, or a loop, takes in the tile, in each of its phases: whole vectors.
  int64_t add_row(const WindowAxis& a, const UOp& bound, int64_t phases, int64_t lanes, int32_t order, std::span<const UOp> inside,
                  NodeMap<UOp>& fresh, UOps& sources, UOp& valid) {
    const UOp& loop = a.parts[0].range;
    const UOp n = a.is_window() ? index_const(a.size) : iterations(loop, inside);
    const int64_t each = (a.size + phases - 1) / phases, elements = (each + lanes - 1) / lanes * lanes;
    UOp phase;
    if (phases > 1) {
      phase = range(index_const(phases), {.id = next_range_++, .kind = AxisKind::upcast, .order = order});
      sources.push_back(phase);
    }
    const UOp longest = phases > 1 ? index_const(each) : n;
    UOp at = range(simplify(floor_div(longest + (lanes - 1), lanes)), {.id = next_range_++, .order = order});
    sources.push_back(at);
    if (lanes > 1) {
      sources.push_back(range(index_const(lanes), {.id = next_range_++, .kind = AxisKind::lane, .order = order}));
      at = at * lanes + sources.back();
    }
    if (phases > 1) at = at * phases + phase;
    if (!a.is_window() && n != loop.src(0)) require(loop < loop.src(0), valid);
    if (bound)
      require(at < bound, valid);
    else if (!is_const(n, elements * phases))
      require(at < n, valid);
    for (size_t i = 0; i < a.parts.size(); ++i) fresh[a.parts[i].range] = i == 0 ? (at + a.first) * a.parts[0].ratio : index_const(0);
    return elements;
  }

  /// True if each iteration of the axis, the innermost loop around the tile, loads other elements.
  bool moves_with_loop(const UOp& load) const {
    int innermost = -1;
    for (const UOp& r : ranges_of(load))
      if (const int* p = place_.find(r); p && !is_inside(r)) innermost = std::max(innermost, *p);
    return innermost == axis_place_;
  }

  /// True if an iteration of the loop can load the tile of a later one.
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
  int axis_place_ = 0;
  bool lanes_are_rows_ = false;  // and columns, of a tensor core on a CPU
  NodeSet for_core_;             // LOADs of what a tensor core reads from memory
  NodeMap<UOps> around_;
  NodeMap<AxisKind> kinds_in_fill_;  // of digits
  std::vector<UOp> made_, stored_;   // values of tiles; memories that the kernel stores to
  std::vector<UOp> masks_;           // clauses that all stores have
};

}  // namespace

UOp stage_operand(const UOp& sink, const UOp& axis, const Opt& opt, const Target& target) {
  return OperandStaging(sink, axis, opt, StageOpt::of(opt.arg), target).run();
}

UOp stage_memory_operands(const UOp& sink, std::span<const Opt> opts, const Target& target) {
  const auto core = std::ranges::find(opts, OptOp::TC, &Opt::op);
  if (core == opts.end()) return sink;
  const Scope near = target.has_groups ? Scope::group : Scope::thread;
  return OperandStaging(sink, UOp(), *core, {.slot = -1, .scope = near}, target).run_for_core();
}

}  // namespace tinygrad::codegen
