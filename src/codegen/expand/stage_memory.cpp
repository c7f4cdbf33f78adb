#include "codegen/expand/stage_memory.h"

#include <algorithm>

#include "codegen/expand/expand_unrolled.h"
#include "codegen/opt/kernel_axes.h"
#include "codegen/opt/split_range.h"
#include "shape/ranges.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

namespace {

bool is_lane(const UOp& r) { return r.arg_as<RangeArg>().kind == AxisKind::lane; }
bool contains(std::span<const UOp> list, const UOp& u) { return std::find(list.begin(), list.end(), u) != list.end(); }

int64_t count_of(std::span<const UOp> ranges) {
  int64_t n = 1;
  for (const UOp& r : ranges) n *= constant_size(r);
  return n;
}

/// Row-major.
UOp flat(std::span<const UOp> ranges) {
  UOp at = index_const(0);
  for (const UOp& r : ranges) at = at * constant_size(r) + r;
  return at;
}

}  // namespace

StageMemory::StageMemory(const UOp& stage, std::span<const UOp> items, uint64_t id, int64_t copies) : stage_(stage) {
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
  elements_ = count_of(closed_ranges(stage));
  lane_count_ = count_of(lanes_);
  copy_size_ = count_of(own_items_) * elements_ * lane_count_;
  memory_ = buffer(stage.dtype(), {.id = id, .size = copy_size_ * copies, .scope = shared ? Scope::group : Scope::reg});
}

UOp StageMemory::after(std::span<const UOp> effects, std::span<const UOp> loops) const {
  UOps waits;
  if (memory_.arg_as<BufferArg>().scope == Scope::group) {
    // Apart: an iteration waits for those before it, and once for what was done before the loop.
    if (!effects.empty()) waits.push_back(UOp(Op::BARRIER, DType::void_, effects));
    if (!loops.empty()) waits.push_back(UOp(Op::BARRIER, DType::void_, loops));
  } else {
    waits = UOps(effects.begin(), effects.end());
  }
  waits.append(loops.begin(), loops.end());
  return waits.empty() ? memory_ : tinygrad::after(memory_, waits);
}

UOp StageMemory::place(const UOp& copy, const UOp& element) const {
  return copy * copy_size_ + ((flat(own_items_) * elements_ + element) * lane_count_ + flat(lanes_));
}

UOp StageMemory::read(const UOp& state, const UOp& copy, const UOp& element) const { return load(index(state, place(copy, element))); }

/// Element number n of the loops is that of item n, n + items, ...; `closed` becomes the loop over these rounds, if there are several.
void StageMemory::split_over_items(UOp& value, UOp& element, UOp& valid, UOps& closed, int32_t& next_range) const {
  UOps loops;
  UOps rest;
  for (const UOp& r : closed) (is_lane(r) || contains(items_, r) ? rest : loops).push_back(r);
  const int64_t count = count_of(loops), items = count_of(free_items_), rounds = (count + items - 1) / items;
  UOp number = flat(free_items_);
  if (rounds > 1) {
    const UOp round = range(rounds, next_range++);
    number = round * items + number;
    rest.push_back(round);
  }
  if (count % items != 0) valid = number < count;
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

UOp StageMemory::fill(const UOp& value, const UOp& copy, const UOp& state, int32_t& next_range) const {
  UOps closed;
  NodeMap<UOp> fresh;
  for (const UOp& r : closed_ranges(stage_)) {
    closed.push_back(r);
    if (contains(items_, r)) continue;
    RangeArg arg = r.arg_as<RangeArg>();
    arg.id = next_range++;
    fresh[r] = closed.back() = range(r.src(0), arg);
  }
  UOp x = substitute(value, fresh), element = flat(closed), valid;
  if (!free_items_.empty()) split_over_items(x, element, valid, closed, next_range);
  UOp at = index(state, place(copy, element));
  if (valid) at = mask_index(at, valid);
  for (const UOp& r : items_)
    if (!contains(closed, r)) closed.push_back(r);
  const UOp effect = store(at, x);
  return closed.empty() ? effect : expand_end(end(effect, closed));
}

}  // namespace tinygrad::codegen
