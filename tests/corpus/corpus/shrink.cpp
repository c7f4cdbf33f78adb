#include "corpus/shrink.h"

#include <algorithm>
#include <bit>

#include <tinygrad/errors.h>

#include "codegen/kernel_axes.h"
#include "codegen/opt/apply_opts.h"
#include "codegen/rebuild.h"
#include "shape/ranges.h"
#include "symbolic/bounds.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::test {
namespace {

using codegen::constant_size;
using codegen::kernel_axes;

/// How many iterations of an axis are one of what an opt leaves of it. A tensor core takes powers of two.
int64_t taken_by(const Opt& opt, int64_t before, int64_t after) {
  if (after >= before) return 1;
  const int64_t share = (before + after - 1) / after;
  return opt.op == OptOp::TC ? int64_t(std::bit_ceil(uint64_t(share))) : opt.arg ? opt.arg : before;
}

struct Axis {
  UOp range;
  int64_t taken = 1;   ///< how many of its iterations all opts together make one
  int64_t least = 1;   ///< of those, for tiles that are copied ahead
  int64_t rounds = 1;  ///< of those, as it is now

  int64_t full() const { return constant_size(range); }
  int64_t size() const { return full() == 0 ? 0 : std::min(taken * rounds + full() % taken, full()); }
};

bool numbers_axes_anew(const Opt& opt) { return opt.op == OptOp::SWAP || opt.op == OptOp::BLOCK || opt.op == OptOp::OUTER; }

/// What opts leave of the axes: the outer parts keep their args. A loop of one iteration may be gone, and tiles have loops of their own.
std::vector<int64_t> sizes_of(const std::vector<Axis>& axes, const UOp& kernel) {
  const std::vector<UOp> left = kernel_axes(kernel);
  std::vector<int64_t> out;
  for (const Axis& a : axes) {
    const auto at = std::ranges::find_if(left, [&](const UOp& r) { return r.arg() == a.range.arg(); });
    out.push_back(at == left.end() ? 1 : constant_size(*at));
  }
  return out;
}

std::vector<Axis> axes_of(const UOp& kernel, const std::vector<Opt>& opts, const Target& target) {
  std::vector<Axis> out;
  for (const UOp& r : kernel_axes(kernel)) out.push_back({.range = r});
  std::vector<int64_t> sizes = sizes_of(out, kernel);
  std::vector<Opt> applied;
  for (const Opt& opt : opts) {
    if (opt.op == OptOp::STAGE) {  // takes of no axis, and its own loops have no numbers
      int64_t& least = out[size_t(opt.axis)].least;
      least = std::max<int64_t>(least, StageOpt::of(opt.arg).depth);
      continue;
    }
    applied.push_back(opt);
    if (numbers_axes_anew(opt)) throw ValueError("shrunk: an opt that numbers the axes anew");
    const std::vector<int64_t> left = sizes_of(out, codegen::apply_opts(kernel, applied, target));
    for (size_t i = 0; i < out.size(); ++i) out[i].taken *= taken_by(opt, sizes[i], left[i]);
    sizes = left;
  }
  return out;
}

/// With the sizes of the axes; memory no larger than what is accessed then.
UOp resized(const UOp& kernel, const std::vector<Axis>& axes) {
  NodeMap<UOp> ranges;
  for (const Axis& a : axes)
    if (a.size() != a.full()) ranges[a.range] = UOp(Op::RANGE, DType::index, {index_const(a.size())}, a.range.arg());
  const UOp shorter = substitute(kernel, ranges);
  NodeMap<int64_t> used;
  for (const UOp& u : toposort(shorter)) {
    if (!u.is(Op::INDEX) || u.src(0).dtype() == DType::void_) continue;
    UOp memory = u.src(0);
    while (memory.is(Op::AFTER)) memory = UOp(memory.src(0));
    if (!memory.is(Op::PARAM)) continue;
    const int64_t all = const_value(memory.src(0))->as_int(), last = symbolic::bounds(u.src(1)).max;
    used[memory] = std::max(used[memory], std::clamp<int64_t>(last, 0, all - 1) + 1);
  }
  return codegen::rebuild(shorter, [&](const UOp& u, const UOps& sources) {
    const int64_t* n = u.is(Op::PARAM) ? used.find(u) : nullptr;
    return n ? u.with_src(UOps{index_const(*n)}) : u.with_src(sources);
  });
}

}  // namespace

double operations(const UOp& kernel) {
  const auto is_sum_of_products = [](const UOp& u) {
    return u.is(Op::REDUCE) && !is_general_reduce(u) && u.arg_as<ReduceArg>().op == Op::ADD && u.src(0).is(Op::MUL);
  };
  double total = 0;
  for (const UOp& u : toposort(kernel)) {
    if (u.dtype() == DType::index || is_sum_of_products(u) || !(in_group(u.op(), Group::alu) || u.is(Op::REDUCE))) continue;
    double n = 1;
    for (const UOp& r : ranges_of(u)) n *= double(constant_size(r));
    for (const UOp& r : closed_ranges(u)) n *= double(constant_size(r));
    total += n;
  }
  return total;
}

UOp shrunk(const UOp& kernel, const std::vector<Opt>& opts, const Target& target, double most_operations) {
  std::vector<Axis> axes = axes_of(kernel, opts, target);
  // Enough rounds of a sum that a pipeline of tiles is filled, runs and ends.
  for (Axis& a : axes) a.rounds = codegen::is_reduced(a.range) ? a.least + 3 : 2;
  for (;;) {
    const UOp small = resized(kernel, axes);
    Axis* longest = nullptr;
    for (Axis& a : axes)
      if (a.rounds > a.least && a.size() > a.taken && (!longest || a.rounds > longest->rounds)) longest = &a;
    if (operations(small) <= most_operations || !longest) return small;
    --longest->rounds;
  }
}

}  // namespace tinygrad::test
