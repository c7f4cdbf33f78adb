// Random kernels whose loads are masked around rows, with random opts: pads, flips, rows put together, windows, pooling.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <tinygrad/errors.h>

#include "codegen/kernel_axes.h"
#include "codegen/opt/apply_opts.h"
#include "codegen/split_range.h"
#include "engine/fuzz/dice.h"
#include "program/run_kernel.h"
#include "shape/ranges.h"
#include "support/test_scale.h"

namespace tinygrad::codegen {
namespace {

using namespace test;
using tinygrad::test::Dice;

/// out[r, i] = the reduction over k of one or two x[r, step * i + k - before], or of the row from its end. Outside of a row a load gives 0,
/// or the kernel chooses another number.
UOp random_rows(Dice& dice) {
  const int64_t rows = dice.pick({1, 1, 2, 3}), results = dice.number(20, 400), window = dice.pick({1, 1, 1, 2, 3, 5});
  const UOp r = loop(rows, 0), i = loop(results, 1), k = reduce_loop(window, 2);
  UOp value;
  int32_t slot = 0;
  for (int64_t terms = dice.number(1, 2); terms > 0; --terms) {
    const int64_t step = dice.pick({1, 1, 2}), before = dice.number(0, 9), behind = dice.number(0, 9);
    const int64_t columns = std::max<int64_t>(1, (results - 1) * step + window - before - behind);
    const UOp at = (dice.chance(30) ? i * -1 + (results - 1) : i) * step + k - before;
    const UOp below = dice.chance(50) ? logical_not(at < index_const(0)) : index_const(-1) < at;
    const UOp valid = below & (at < index_const(columns));
    const UOp row = r * columns + (dice.chance(20) ? at * -1 + (columns - 1) : at);
    UOp x = load(mask_index(index(arg(++slot, rows * columns), row), valid));
    if (dice.chance(50)) x = where(valid, x, constant(DType::float32, dice.number(-2, 2)));
    value = value ? value + x : x;
  }
  NodeMap<UOp> first;
  first[k] = index_const(0);
  const UOp result = window == 1 ? substitute(value, first) : reduce_over(dice.pick({Op::ADD, Op::MAX}), value, {k});
  return kernel({ended(write(arg(0, rows * results), r * results + i, result + 1), {r, i})});
}

std::string random_opts(Dice& dice, const UOp& kernel) {
  std::string out;
  const auto add = [&](const std::string& opt) {
    try {
      apply_opts(simplified_kernel(kernel), parse_opts(out + opt), cpu_target("x86-64-v3"));
      out += opt + " ";
    } catch (const ValueError&) {  // not this one
    }
  };
  const std::vector<UOp> axes = kernel_axes(simplified_kernel(kernel));
  const bool has_rows = axes.size() > 1 && !is_reduced(axes[1]);
  const int64_t along = has_rows ? 1 : 0;
  if (dice.chance(75)) add(fmt::format("LANE({},{})", along, dice.pick({4, 8})));
  if (dice.chance(50)) add(fmt::format("UPCAST({},{})", dice.number(0, along), dice.pick({2, 3, 4})));
  if (dice.chance(30)) add(fmt::format("UNROLL({},{})", along + 1, 0));
  if (dice.chance(20)) add(fmt::format("SWAP({},{})", 0, 1));
  if (dice.chance(80)) add(fmt::format("THREAD({},{})", dice.number(0, along), dice.pick({2, 3, 5, 7, 12})));
  if (dice.chance(40)) add(fmt::format("STAGE({},1,thread,1)", dice.number(0, along)));
  return out;
}

TEST(ChunkMasks, RandomRows) {
  const uint64_t programs = 150 * uint64_t(tinygrad::test::test_scale());
  for (uint64_t n = 0; n < programs; ++n) {
    Dice dice(tinygrad::test::seed() + n);
    const UOp kernel = random_rows(dice);
    const std::string opts = random_opts(dice, kernel);
    SCOPED_TRACE(fmt::format("seed {}: {}", tinygrad::test::seed() + n, opts));
    EXPECT_EQ(difference_on_cpu(kernel, parse_opts(opts)), "");
  }
}

}  // namespace
}  // namespace tinygrad::codegen
