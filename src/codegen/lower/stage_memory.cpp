#include "codegen/lower/stage_memory.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <numeric>
#include <tuple>

#include "codegen/kernel_axes.h"
#include "codegen/lower/expand_unrolled.h"
#include "codegen/simplify.h"
#include "codegen/split_range.h"
#include "shape/ranges.h"
#include "symbolic/known_divisors.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

namespace {

bool is_lane(const UOp& r) { return r.arg_as<RangeArg>().kind == AxisKind::lane; }
bool contains(std::span<const UOp> list, const UOp& u) { return std::find(list.begin(), list.end(), u) != list.end(); }

int64_t count_of(std::span<const UOp> ranges) {
  int64_t n = 1;
  for (const UOp& r : ranges) n *= most_iterations(r);
  return n;
}

/// Row-major.
UOp flat(std::span<const UOp> ranges) {
  UOp at = index_const(0);
  for (const UOp& r : ranges) at = at * most_iterations(r) + r;
  return at;
}

/// The strides of ranges that nest in an order, outermost first.
std::vector<int64_t> steps_in_order(std::span<const UOp> ranges, std::span<const int32_t> order) {
  std::vector<int64_t> steps(ranges.size());
  int64_t step = 1;
  for (size_t i = order.size(); i-- > 0;) {
    steps[size_t(order[i])] = step;
    step *= most_iterations(ranges[size_t(order[i])]);
  }
  return steps;
}

bool loads_argument(const UOp& value) { return value.is(Op::LOAD) && value.src(0).src(0).is(Op::PARAM); }

}  // namespace

StageMemory::StageMemory(const UOp& stage, std::span<const UOp> items, const Target& target, uint64_t id, int64_t copies)
    : target_(target), stage_(stage) {
  const bool shared = stage.arg_as<StageArg>().scope == Scope::group;
  if (shared) items_ = UOps(items.begin(), items.end());
  for (const UOp& r : ranges_of(stage)) {
    if (is_lane(r))
      lanes_.push_back(r);
    else if (contains(items_, r))
      own_items_.push_back(r);
    else
      loops_.push_back(r);
  }
  for (const UOp& r : items_)
    if (!contains(own_items_, r) && !contains(closed_ranges(stage), r)) free_items_.push_back(r);
  const auto& arg = stage.arg_as<StageArg>();
  ranges_ = UOps(closed_ranges(stage));
  elements_ = count_of(ranges_);
  lane_count_ = count_of(lanes_);
  fetched_ = shared && target.async_copy_bytes != 0 && loads_argument(stage.src(0));
  if (!arg.layout.empty()) {
    steps_ = steps_in_order(ranges_, arg.layout);
    row_ = arg.run, padding_ = arg.gap, swizzle_ = arg.swizzle;
  } else if (fetched_) {
    choose_pitch();
  }
  copy_size_ = count_of(own_items_) * (elements_ + elements_ / row_ * padding_) * lane_count_;
  memory_ = buffer(stage.dtype(), {.id = id, .size = copy_size_ * copies, .scope = shared ? Scope::group : Scope::reg});
}

UOp StageMemory::after(std::span<const UOp> effects, std::span<const UOp> loops) const {
  UOps waits;
  if (memory_.arg_as<BufferArg>().scope == Scope::group) {
    // Two waits: each iteration waits for the iterations before it, and the loop once for the effects before it.
    if (!effects.empty()) waits.push_back(UOp(Op::BARRIER, DType::void_, effects));
    if (!loops.empty()) waits.push_back(UOp(Op::BARRIER, DType::void_, loops));
  } else {
    waits = UOps(effects.begin(), effects.end());
  }
  waits.append(loops.begin(), loops.end());
  return waits.empty() ? memory_ : tinygrad::after(memory_, waits);
}

/// Group memory has 32 banks of 4 bytes. Tensor cores read 16 bytes from each of eight rows at once, which are in different banks if a row
/// is an odd number of such pieces long.
void StageMemory::choose_pitch() {
  constexpr int64_t piece = 16;
  const auto item = int64_t(itemsize(stage_.dtype()));
  row_ = row_length(stage_.src(0));
  if (lane_count_ == 1 && row_ < elements_ && row_ * item % (2 * piece) == 0) padding_ = piece / item;
}

UOp StageMemory::place(const UOp& copy, const UOp& element) const {
  const UOp at = swizzled(flat(own_items_) * elements_ + in_memory_order(element));
  if (padding_ == 0 && swizzle_ == 1) return copy * copy_size_ + (at * lane_count_ + flat(lanes_));
  return simplify(copy * copy_size_ + at + floor_div(at, row_) * padding_);
}

/// Computed bit by bit, so that simplification sees bounds and bits that do not change. A copy of a tile is a whole number of patterns.
UOp StageMemory::swizzled(const UOp& at) const {
  UOp out = at;
  for (int64_t bit = 1; bit < swizzle_; bit *= 2) {
    const int64_t step = bit * row_;
    const UOp piece = floor_mod(floor_div(at, step), 2), eight = floor_mod(floor_div(at, 8 * step), 2);
    out = out + (floor_mod(piece + eight, 2) - piece) * step;
  }
  return out;
}

/// The place in memory of an element that has a number in the order of the ranges.
UOp StageMemory::in_memory_order(const UOp& element) const {
  if (steps_.empty()) return element;
  UOp at = index_const(0);
  int64_t below = 1, size = 1;
  for (size_t i = ranges_.size(); i-- > 0; below *= size) {
    const int64_t step = steps_[i];
    size = most_iterations(ranges_[i]);
    for (; i > 0 && steps_[i - 1] == step * size; --i) size *= most_iterations(ranges_[i - 1]);  // contiguous in both orders
    at = at + floor_mod(floor_div(element, below), size) * step;
  }
  return at;
}

UOp StageMemory::read(const UOp& state, const UOp& copy, const UOp& element) const { return load(index(state, place(copy, element))); }

/// Elements that are contiguous in the tile and in the argument; in `first` the loops over them are at 0.
int64_t StageMemory::row_length(const UOp& value, NodeMap<UOp>* first) const {
  const UOp& at = value.src(0).src(1);
  int64_t row = 1;
  for (size_t i = ranges_.size(); i-- > 0 && !contains(items_, ranges_[i]) && stride_of(at, ranges_[i]) == row;) {
    if (!steps_.empty() && steps_[i] != row) break;
    row *= constant_size(ranges_[i]);
    if (first) (*first)[ranges_[i]] = index_const(0);
  }
  return row;
}

/// The number of these elements, a power of two, that one access may move.
int64_t StageMemory::run_length(const UOp& value) const {
  if (target_.vector_math || lane_count_ != 1 || !loads_argument(value)) return 1;
  const UOp& place = value.src(0);
  NodeMap<UOp> first;
  const int64_t row = row_length(value, &first), item = int64_t(itemsize(stage_.dtype()));
  int64_t most = std::min(row & -row, target_.vector_bits / 8 / item);
  if (!target_.unaligned_vectors) {
    const int64_t aligned = std::max<int64_t>(place.src(0).arg_as<ParamArg>().align, target_.memory_alignment) / item;
    const int power = symbolic::KnownDivisors().power_of_two(substitute(place.src(1), first));
    most = std::min({most, aligned, int64_t{1} << std::min(power, 10)});
  }
  return most < 2 ? 1 : int64_t(std::bit_floor(uint64_t(most)));
}

/// Element number n of the loops is that of item n, n + items, ...; `closed` becomes the loop over these rounds, if there are several. An
/// item takes `run` elements at a time.
void StageMemory::split_over_items(UOp& value, UOp& element, UOp& valid, UOps& closed, int64_t run, int32_t& next_range) const {
  UOps loops;
  UOps rest;
  for (const UOp& r : closed) (is_lane(r) || contains(items_, r) ? rest : loops).push_back(r);
  const int64_t count = count_of(loops) / run, items = count_of(free_items_), rounds = (count + items - 1) / items;
  UOp number = flat(free_items_);
  if (rounds > 1) {
    const UOp round = range(rounds, next_range++);
    number = round * items + number;
    rest.push_back(round);
  }
  if (count % items != 0) valid = number < count;
  if (run > 1) {
    rest.push_back(range(run, next_range++, AxisKind::upcast));
    number = number * run + rest.back();
  }
  int64_t below = 1;
  for (size_t i = loops.size(); i-- > 0;) {
    const int64_t size = constant_size(loops[i]);
    UOp digit = floor_div(number, below);
    if (i > 0) digit = floor_mod(digit, size);
    const Split split{.range = loops[i], .parts = {}, .value = digit, .valid = i == 0 ? valid : UOp()};
    value = apply_split(value, split);
    element = apply_split(element, split);
    below *= size;
  }
  closed = rest;
}

/// The place of each range of a tile of computed values in the nest of its fill. Ranges with the longest strides in an argument are
/// outermost, so that cache lines are used up. Empty for copies of an argument.
std::vector<int32_t> StageMemory::nesting_of(const UOp& value) const {
  constexpr int64_t line_bytes = 64;
  if (!items_.empty() || loads_argument(value)) return {};
  std::vector<int64_t> steps(ranges_.size());  // 0 within a line
  for (const UOp& u : toposort(value)) {
    if (!u.is(Op::LOAD)) continue;
    for (size_t i = 0; i < ranges_.size(); ++i)
      if (const auto step = stride_of(u.src(0).src(1), ranges_[i]); step && std::abs(*step) * int64_t(itemsize(u.dtype())) > line_bytes)
        steps[i] = std::max(steps[i], std::abs(*step));
  }
  std::vector<size_t> order(ranges_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {},
                    [&](size_t i) { return std::tuple(-steps[i], ranges_[i].arg_as<RangeArg>().order, ranges_[i].arg_as<RangeArg>().id); });
  std::vector<int32_t> out(ranges_.size());
  for (size_t i = 0; i < order.size(); ++i) out[order[i]] = int32_t(i);
  return out;
}

UOp StageMemory::fill(const UOp& value, const UOp& copy, const UOp& state, int32_t& next_range) const {
  UOps closed;
  NodeMap<UOp> fresh;
  const std::vector<int32_t> nesting = nesting_of(value);
  for (const UOp& r : closed_ranges(stage_)) {
    closed.push_back(r);
    if (contains(items_, r)) continue;
    RangeArg arg = r.arg_as<RangeArg>();
    arg.id = next_range++;
    if (!nesting.empty()) arg.order = nesting[closed.size() - 1];
    fresh[r] = closed.back() = range(r.src(0), arg);
  }
  UOp x = substitute(value, fresh), element = flat(closed), valid;
  const int64_t run = free_items_.empty() ? 1 : run_length(value);
  if (!free_items_.empty()) split_over_items(x, element, valid, closed, run, next_range);
  // Quotients of the items' numbers, or of places in a core's order, would hide what is contiguous from the steps behind this one.
  const bool is_ordered = !steps_.empty() && stage_.arg_as<StageArg>().scope != Scope::group;
  const bool in_runs = run > 1 || padding_ != 0 || is_ordered;
  UOp at = index(state, in_runs ? simplify(place(copy, element)) : place(copy, element));
  if (in_runs) x = simplify(x);
  if (valid) at = mask_index(at, in_runs ? simplify(valid) : valid);
  for (const UOp& r : items_)
    if (!contains(closed, r)) closed.push_back(r);
  const UOp effect = store(at, x);
  return closed.empty() ? effect : expand_end(end(effect, closed));
}

}  // namespace tinygrad::codegen
