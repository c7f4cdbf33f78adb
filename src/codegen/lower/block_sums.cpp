#include "codegen/lower/block_sums.h"

#include <algorithm>
#include <vector>

#include "codegen/kernel_axes.h"
#include "codegen/rebuild.h"
#include "codegen/reduce_op.h"
#include "codegen/split_range.h"
#include "shape/ranges.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

namespace {

/// The iterations of a block, which add to one number, and the length up to which a sum is left as it is.
struct Block {
  int64_t size, most;
};
/// For sums that wait for memory.
constexpr Block streamed{16, 32};
/// For sums that wait for arithmetic. Many steps have errors there, which mostly cancel each other.
constexpr Block computed{128, 4096};

AxisKind kind_of(const UOp& range) { return range.arg_as<RangeArg>().kind; }
bool is_loop(const UOp& range) { return kind_of(range) == AxisKind::reduce; }

bool has(std::span<const UOp> ranges, const UOp& range) { return std::find(ranges.begin(), ranges.end(), range) != ranges.end(); }

/// The loops of a REDUCE that run one iteration after another, the innermost first.
UOps loops_of(const UOp& reduce) {
  UOps out;
  for (const UOp& r : closed_ranges(reduce))
    if (is_loop(r)) out.push_back(r);
  std::stable_sort(out.begin(), out.end(), [](const UOp& a, const UOp& b) {
    const auto &x = a.arg_as<RangeArg>(), &y = b.arg_as<RangeArg>();
    return std::pair(x.order, x.id) > std::pair(y.order, y.id);
  });
  return out;
}

bool is_float_sum(const UOp& reduce) {
  return !is_general_reduce(reduce) && reduce.arg_as<ReduceArg>().op == Op::ADD && is_float(reduce.dtype()) &&
         reduce.dtype() != DType::float64;
}

/// Whether each term of each result loads an element of its own, so that loading outweighs the additions. False for sums of exponentials:
/// they outweigh loading, and the loop over a softmax's results must have the steps of its sum to read the terms (`keep_terms`). Equal
/// terms, which no load tells apart, have errors that do not cancel each other, and are taken as such, too.
bool streams(const UOp& reduce) {
  UOps all(ranges_of(reduce));
  const auto closed = closed_ranges(reduce);
  all.append(closed.begin(), closed.end());
  bool loads = false, every = false;
  std::vector<UOp> equal(closed.begin(), closed.end());
  for (const UOp& u : toposort_where(std::span(&reduce, 1), [&](const UOp& v) { return v == reduce || !v.is(Op::REDUCE); })) {
    if (u.is(Op::EXP2)) return false;
    if (!u.is(Op::LOAD)) continue;
    loads = true;
    const OpenRanges open = ranges_of(u);
    const auto moves = [&](const UOp& r) { return std::find(open.begin(), open.end(), r) != open.end(); };
    every = every || std::ranges::all_of(all, moves);
    std::erase_if(equal, moves);
  }
  return every || !loads || std::ranges::any_of(equal, is_loop);
}

double iterations_of(const UOps& loops) {
  double n = 1;
  for (const UOp& r : loops) n *= double(most_iterations(r));
  return n;
}

/// A factor of n near `wanted`, or 0.
int64_t divisor_near(int64_t n, int64_t wanted) {
  for (int64_t d = 0; d <= wanted / 2; ++d)
    for (int64_t f : {wanted + d, wanted - d})
      if (f > 1 && n % f == 0) return f;
  return 0;
}

class BlockSums {
 public:
  explicit BlockSums(const UOp& sink) : next_range_(next_range_id(sink)) {}

  UOp run(const UOp& sink) {
    for (const UOp& u : toposort(sink))
      if (u.is(Op::REDUCE)) (is_general_reduce(u) ? general_ : reduces_).push_back(u);
    for (const UOp& u : reduces_)
      if (is_float_sum(u)) plan(u);
    if (around_.empty()) return sink;
    UOp out = sink;
    for (const Split& s : splits_) out = apply_split(out, s);
    return rebuild(out, [&](const UOp& u, const UOps& sources) { return nested(u.with_src(sources)); });
  }

 private:
  void plan(const UOp& sum) {
    const UOps loops = loops_of(sum);
    const Block block = streams(sum) ? streamed : computed;
    if (iterations_of(loops) <= double(block.most)) return;
    // A loop that is split for one sum is split for all sums that run over it.
    for (const UOp& r : loops)
      if (has(known_, r) || is_generally_reduced(r)) return;
    int64_t inside = 1;
    for (const UOp& r : loops) {
      const int64_t n = most_iterations(r);
      known_.push_back(r);
      if (inside * n <= block.size) {
        inside *= n;
      } else if (inside * 2 <= block.size) {
        split(r, block.size / inside);
        inside = block.size;
      } else {
        around_.push_back(r);
      }
    }
  }

  /// A loop over blocks of `size`, the last of which may be shorter, around one over a block.
  void split(const UOp& r, int64_t size) {
    const int64_t whole = constant_size(r), factor = whole ? divisor_near(whole, size) : 0;
    if (factor) size = factor;
    RangeArg arg = r.arg_as<RangeArg>();
    arg.id = next_range_++;
    const UOp outer = range(rounds_of(r, size), arg);
    arg.id = next_range_++;
    const UOp first = outer * size;
    const UOp inner = range(factor ? index_const(size) : min(index_const(size), r.src(0) - first), arg);
    splits_.push_back({.range = r, .parts = {outer, inner}, .value = first + inner, .valid = {}});
    around_.push_back(outer);
  }

  bool is_generally_reduced(const UOp& r) const {
    return std::ranges::any_of(general_, [&](const UOp& u) { return has(closed_ranges(u), r); });
  }

  /// A REDUCE over blocks of what a REDUCE over each block gives.
  UOp nested(const UOp& u) const {
    if (!u.is(Op::REDUCE) || is_general_reduce(u)) return u;
    UOps inside, blocks, side_by_side;  // lanes and items join in the end
    for (const UOp& r : closed_ranges(u)) {
      const AxisKind kind = kind_of(r);
      (has(around_, r) ? blocks : kind == AxisKind::lane || kind == AxisKind::group ? side_by_side : inside).push_back(r);
    }
    if (blocks.empty()) return u;
    const UOp value = reduced_values(u)[0];
    const UOp part = inside.empty() ? value : make_reduce(u, std::span(&value, 1), inside);
    const UOp total = is_float_sum(u) ? compensated(part, blocks) : make_reduce(u, std::span(&part, 1), blocks);
    return side_by_side.empty() ? total : make_reduce(u, std::span(&total, 1), side_by_side);
  }

  static UOp slot(DType dtype, int32_t number) { return UOp(Op::PARAM, dtype, {}, ParamArg{.slot = number}); }

  /// The sum and its rounding errors after x is added; `lost` has the errors so far.
  static UOps two_sum(const UOp& sum, const UOp& lost, const UOp& x) {
    const UOp total = sum + x, part = total - sum;
    return {total, lost + ((sum - (total - part)) + (x - part))};
  }

  static UOp function(const UOps& values) {
    return UOp(Op::FUNCTION, DType::void_, {UOp(Op::TUPLE, DType::void_, values)}, FunctionArg{"sum"});
  }

  static UOp compensated(const UOp& part, const UOps& blocks) {
    const DType d = part.dtype();
    const UOp zero = constant(d, 0), sum = slot(d, 0), lost = slot(d, 1);
    UOps sources{UOp(Op::TUPLE, DType::void_, {part}), UOp(Op::TUPLE, DType::void_, {zero, zero}), function(two_sum(sum, lost, slot(d, 2))),
                 function(two_sum(sum, lost + slot(d, 3), slot(d, 2)))};
    sources.append(blocks.begin(), blocks.end());
    const UOp reduce(Op::REDUCE, DType::void_, sources, ReduceArg{Op::FUNCTION, {}});
    const UOp total(Op::GETTUPLE, d, {reduce}, TupleArg{0}), rest(Op::GETTUPLE, d, {reduce}, TupleArg{1});
    // The rounding error of an infinite sum would be NaN, so it is taken as 0.
    return where(eq(rest, rest), total + rest, total);
  }

  int32_t next_range_;
  std::vector<UOp> reduces_, general_;
  UOps known_, around_;
  std::vector<Split> splits_;
};

}  // namespace

UOp block_sums(const UOp& sink) { return BlockSums(sink).run(sink); }

}  // namespace tinygrad::codegen
