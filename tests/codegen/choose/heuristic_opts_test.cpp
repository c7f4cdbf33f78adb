// What the heuristics choose, and what they rank next, fits the kernel and the caches that they choose it for: a tile is as large as it was
// thought to be.
#include "codegen/choose/heuristic_opts.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <random>

#include <tinygrad/errors.h>

#include "codegen/choose/nest.h"
#include "codegen/codegen.h"
#include "codegen/kernel_axes.h"
#include "codegen/kernels.h"
#include "codegen/opt/apply_opts.h"
#include "codegen/opt/parse_opts.h"
#include "schedule/schedule.h"
#include "support/programs.h"
#include "support/repeated_programs.h"
#include "support/test_scale.h"
#include "uop/graph.h"

namespace tinygrad::codegen {
namespace {

using namespace test_programs;

const char* const kArchs[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4", "znver3", "znver4"};

/// Why opts are refused; empty if they are not.
std::string refusal(const UOp& kernel, std::span<const Opt> opts, const Target& target) {
  try {
    apply_opts(kernel, opts, target);
    return {};
  } catch (const ValueError& e) {
    return fmt::format("{}: {}", to_string(opts), e.what());
  }
}

void expect_choices_fit(const UOp& sink, const Target& target) {
  const UOp kernel = simplified_kernel(sink);
  EXPECT_EQ(refusal(kernel, heuristic_opts(kernel, target), target), "");
  for (const auto& opts : ranked_opts(kernel, target, 16)) EXPECT_EQ(refusal(kernel, opts, target), "");
}

std::vector<UOp> kernels_of(const std::vector<UOp>& stores, const Target& target) {
  const auto target_of = [known = &target](Symbol) -> const Target& { return *known; };
  const schedule::Schedule s = schedule::make_schedule(sink(stores), target_of, {.cache = false});
  std::vector<UOp> kernels;
  for (const UOp& call : s.plan->linear.src())
    if (call.src(0).is(Op::SINK)) kernels.push_back(call.src(0));
  return kernels;
}

class Dice {
 public:
  int64_t below(int64_t n) { return int64_t(random_() % uint64_t(n)); }
  int64_t one_of(std::initializer_list<int64_t> values) { return values.begin()[below(int64_t(values.size()))]; }

 private:
  std::mt19937_64 random_{tinygrad::test::seed()};
};

TEST(HeuristicOpts, FitConvolutionsAndTheirGradients) {
  Dice dice;
  for (int i = 0; i < 60 * tinygrad::test::test_scale(); ++i) {
    const int64_t batch = dice.one_of({1, 1, 2, 8}), in = dice.one_of({1, 3, 16, 24, 32, 64}), out = dice.one_of({16, 32, 64, 256}),
                  image = 7 + dice.below(62), taps = dice.one_of({1, 3, 3, 5, 7}), stride = dice.one_of({1, 1, 1, 2});
    const auto padding = int(dice.one_of({0, taps / 2}));
    const Target target = cpu_target(kArchs[dice.below(int64_t(std::size(kArchs)))]);
    SCOPED_TRACE(fmt::format("{}x{}x{}x{} to {} by {}x{}, stride {}, padding {} for {}", batch, in, image, image, out, taps, taps, stride,
                             padding, target.arch.str()));
    const UOp x = tensor({batch, in, image, image}), w = tensor({out, in, taps, taps});
    const UOp y = conv2d(x, w, {}, {.stride = int(stride), .padding = padding});
    std::vector<UOp> stores = outputs({y});
    if (i % 4 == 0)
      for (const UOp& g : gradients(sum(square(y)), {x, w})) stores.push_back(output(g));
    for (const UOp& kernel : kernels_of(stores, target)) expect_choices_fit(kernel, target);
  }
}

TEST(HeuristicOpts, FitMatrixProducts) {
  Dice dice;
  const auto size = [&] { return dice.one_of({1 + dice.below(300), 64 << dice.below(7), 1 + dice.below(40000)}); };
  for (int i = 0; i < 100 * tinygrad::test::test_scale(); ++i) {
    const int64_t m = size(), n = size(), k = size();
    const Target target = cpu_target(kArchs[dice.below(int64_t(std::size(kArchs)))]);
    SCOPED_TRACE(fmt::format("{}x{}x{} for {}", m, n, k, target.arch.str()));
    expect_choices_fit(test::matmul(m, n, k), target);
    expect_choices_fit(test::narrow_matmul(m, n, k, DType::uint8, DType::int8, DType::int32), target);
    expect_choices_fit(test::narrow_matmul(m, n, k, DType::bfloat16, DType::bfloat16, DType::float32), target);
  }
}

// Results of the first wait in memory while the second has the registers.
TEST(HeuristicOpts, ReductionsOneAfterAnotherHaveTheTileOfOne) {
  const auto copies = [](const UOp& kernel, const char* arch) {
    int64_t n = 1;
    for (const Opt& o : heuristic_opts(kernel, cpu_target(arch)))
      if (o.op == OptOp::UPCAST) n *= o.arg;
    return n;
  };
  for (const char* arch : kArchs) {
    EXPECT_EQ(copies(test::two_products(240, 192, 200, 96), arch), copies(test::matmul(240, 192, 200), arch)) << arch;
    expect_choices_fit(test::two_products(240, 192, 200, 96), cpu_target(arch));
  }
}

// Each copy computes its part alone; without them all parts would be computed for each element.
TEST(HeuristicOpts, WhatIsJoinedAlongAShortAxisHasACopyForEachPart) {
  for (const int64_t parts : {3, 6, 8}) {
    const UOp x = tensor({parts, 1 << 14});
    std::vector<UOp> values;
    for (int64_t i = 0; i < parts; ++i) {
      const UOp row = ops::reshape(shrink_axis(x, 0, i, i + 1), Shape{1 << 14});
      values.push_back(mul(row, double(i + 2)));
    }
    for (const char* arch : kArchs) {
      const Target target = cpu_target(arch);
      const std::vector<UOp> kernels = kernels_of(outputs({ops::stack(values, 0)}), target);
      ASSERT_EQ(kernels.size(), 1u);
      const UOp kernel = simplified_kernel(kernels[0]);
      const std::vector<Opt> opts = heuristic_opts(kernel, target);
      EXPECT_TRUE(std::ranges::find(opts, Opt{OptOp::UPCAST, 0, int32_t(parts)}) != opts.end()) << arch << ": " << to_string(opts);
      expect_choices_fit(kernels[0], target);
    }
  }
}

TEST(HeuristicOpts, ANormalizationHasVectorsInEachOfItsLoops) {
  const UOp x = tensor({256, 4096});
  const auto mean = [](const UOp& y) { return mul(sum(y, Axes{1}, true), 1.0 / 4096); };
  const UOp centred = sub(x, mean(x)), y = mul(centred, ops::reciprocal(ops::sqrt(add(mean(square(centred)), 1e-5))));
  const Target target = cpu_target("znver4");
  const std::vector<UOp> kernels = kernels_of(outputs({y}), target);
  ASSERT_EQ(kernels.size(), 1u);
  const std::vector<Opt> opts = heuristic_opts(simplified_kernel(kernels[0]), target);
  EXPECT_EQ(std::ranges::count(opts, OptOp::LANE, &Opt::op), 3) << to_string(opts);
}

// A line here and a line there would be waited for each.
TEST(HeuristicOpts, WhatIsJoinedWithAShortSumIsTakenByWholeLines) {
  const UOp x = tensor({8, 64, 56, 56}), w = tensor({256, 64, 1, 1}), r = tensor({8, 256, 56, 56});
  const Target target = cpu_target("znver4");
  const std::vector<UOp> kernels = kernels_of(outputs({add(conv2d(x, w, {}, {}), r)}), target);
  ASSERT_EQ(kernels.size(), 1u);
  const std::vector<Opt> opts = heuristic_opts(simplified_kernel(kernels[0]), target);
  const auto lane = std::ranges::find(opts, OptOp::LANE, &Opt::op);
  ASSERT_TRUE(lane != opts.end()) << to_string(opts);
  const auto along = std::ranges::find_if(opts, [&](const Opt& o) { return o.op == OptOp::UPCAST && o.axis == lane->axis; });
  ASSERT_TRUE(along != opts.end()) << to_string(opts);
  EXPECT_GE(along->arg, 4) << to_string(opts);
}

// Vectors along the rows, of every second element: those lie together in a copy of the window.
TEST(HeuristicOpts, StridedConvolutionsOfFewChannelsHaveVectorsAlongRows) {
  const UOp x = tensor({16, 3, 224, 224}), w = tensor({64, 3, 7, 7});
  const Target target = cpu_target("znver4");
  const std::vector<UOp> kernels = kernels_of(outputs({conv2d(x, w, {}, {.stride = 2, .padding = 3})}), target);
  ASSERT_EQ(kernels.size(), 1u);
  const UOp kernel = simplified_kernel(kernels[0]);
  const std::vector<Opt> opts = heuristic_opts(kernel, target);
  ASSERT_EQ(opts.at(0).op, OptOp::LANE);
  const UOp row = kernel_axes(kernel).at(size_t(opts[0].axis)), stored = kernel.src(0).src(0);
  EXPECT_EQ(stride_of(stored.src(0).src(1), row), 1) << to_string(opts);
  EXPECT_TRUE(std::ranges::find(opts, OptOp::STAGE, &Opt::op) != opts.end()) << to_string(opts);
}

// Of an element at the border, few taps see the result: loops over taps end there, unless copies of one step have neighbours far away.
TEST(HeuristicOpts, CopiesAreNotAlongAxesThatBoundALoop) {
  const UOp x = tensor({512, 32, 24, 24}), w = tensor({32, 32, 5, 5});
  const Target target = cpu_target("znver4");
  int found = 0;
  for (const UOp& sink : kernels_of({output(gradients(sum(square(conv2d(x, w, {}, {}))), {x})[0])}, target)) {
    const UOp kernel = simplified_kernel(sink);
    const Nest nest = analyze_nest(kernel, kernel.src(0));
    for (const NestAxis& taps : nest.axes) {
      if (taps.bounds.empty()) continue;
      ++found;
      EXPECT_EQ(taps.size, 5);
      const NestAxis& along = nest.axes[size_t(taps.bounds[0].along)];
      EXPECT_EQ(along.size, 24);
      const std::vector<Opt> opts = heuristic_opts(kernel, target);
      for (const Opt& o : opts) EXPECT_FALSE((o.op == OptOp::UPCAST || o.op == OptOp::LANE) && o.axis == along.number) << to_string(opts);
    }
  }
  EXPECT_EQ(found, 2);
}

// The weights' tiles move with 3 taps alone; of 3 chunks, one of two threads would wait for the other.
TEST(HeuristicOpts, ThreadsEndTogether) {
  const UOp x = tensor({512, 64, 8, 8}), w = tensor({64, 64, 3, 3});
  const Target target = cpu_target("znver4");
  int shared = 0;
  for (const UOp& sink : kernels_of({output(gradients(sum(square(conv2d(x, w, {}, {}))), {x})[0])}, target)) {
    const std::vector<Opt> opts = heuristic_opts(simplified_kernel(sink), target);
    for (const Opt& o : opts) {
      if (o.op != OptOp::THREAD) continue;
      ++shared;
      EXPECT_TRUE(o.arg >= 8 || o.arg % 2 == 0) << to_string(opts);
    }
  }
  EXPECT_GT(shared, 0);
}

// Stores along several rows at once are slow where the results are large; the reductions of a row have their accumulators by steps.
struct Chosen {
  UOp kernel;
  std::vector<Opt> opts;
};

/// The kernels that make the gradients of one head and get a tile of computed values.
std::vector<Chosen> with_computed_tiles(int64_t tokens, const Target& target) {
  const auto is_computed = [](const Opt& o) { return o.op == OptOp::STAGE && StageOpt::of(o.arg).computed; };
  std::vector<Chosen> out;
  for (const UOp& sink : kernels_of(attention_gradients({1, 1, tokens, 64}), target)) {
    const UOp kernel = simplified_kernel(sink);
    const std::vector<Opt> opts = heuristic_opts(kernel, target);
    if (std::ranges::any_of(opts, is_computed)) out.push_back({kernel, opts});
  }
  EXPECT_FALSE(out.empty());
  return out;
}

// Where threads share out an axis that what is near does not move with, each chunk needs it anew: 171 steps of six rows are not 171 chunks.
TEST(HeuristicOpts, ChunksThatNeedTilesAnewAreFew) {
  for (const Chosen& c : with_computed_tiles(1024, cpu_target("znver4")))
    for (const Opt& o : c.opts) EXPECT_FALSE(o.op == OptOp::THREAD && o.arg > 64) << to_string(c.opts);
}

// Of a tile of another argument nothing more is computed in the fill, but for each column of the result.
TEST(HeuristicOpts, ComputedTilesAreNotOfOtherTiles) {
  const Target target = cpu_target("znver4");
  const auto is_computed = [](const UOp& u) { return u.is(Op::STAGE) && !u.src(0).is(Op::LOAD); };
  for (const int64_t tokens : {512, 944, 1024, 1888})
    for (const Chosen& c : with_computed_tiles(tokens, target))
      EXPECT_TRUE(std::ranges::any_of(toposort(apply_opts(c.kernel, c.opts, target)), is_computed)) << to_string(c.opts);
}

TEST(HeuristicOpts, RowsOneAfterAnother) {
  const Target target = cpu_target("znver4");
  const UOp x = tensor({4096, 1040});
  for (const UOp& result : {softmax(x, -1), layernorm(x)})
    for (const UOp& sink : kernels_of({output(result)}, target)) {
      const std::vector<Opt> opts = heuristic_opts(simplified_kernel(sink), target);
      int accumulated = 0;
      for (const Opt& o : opts) {
        EXPECT_FALSE(o.op == OptOp::UPCAST && o.axis == 0) << to_string(opts);
        accumulated += o.op == OptOp::UNROLL;
      }
      EXPECT_EQ(accumulated, 2) << to_string(opts);
    }
}

/// What is chosen for the first kernel of a result on a GPU, and how many work-items a group has then.
std::pair<std::vector<Opt>, int64_t> on_a_gpu(const UOp& result, const Target& target = cuda_target("sm_90a")) {
  const UOp kernel = simplified_kernel(kernels_of({output(result)}, target).front());
  const std::vector<Opt> opts = heuristic_opts(kernel, target);
  int64_t items = 1;
  for (const UOp& r : item_ranges(apply_opts(kernel, opts, target))) items *= constant_size(r);
  return {opts, items};
}
int64_t count_of(OptOp op, const std::vector<Opt>& opts) { return std::ranges::count(opts, op, &Opt::op); }

// Neighbouring items read what lies together, and the same ones share both sums of a softmax.
TEST(HeuristicOpts, ItemsShareRows) {
  for (const auto& [rows, columns] : {std::pair{4096, 4096}, {4096, 1000}, {4096, 777}, {333, 777}, {100, 4096}}) {
    const UOp x = tensor({rows, columns});
    for (const UOp& result : {softmax(x, -1), layernorm(x)}) {
      const auto& [opts, items] = on_a_gpu(result);
      EXPECT_EQ(count_of(OptOp::GROUP, opts), 2) << to_string(opts);
      EXPECT_EQ(items, 256) << to_string(opts);
    }
  }
  const auto& [opts, items] = on_a_gpu(softmax(tensor({4096, 4096}), 0));
  EXPECT_EQ(count_of(OptOp::GROUP, opts), 0) << to_string(opts) << ": neighbouring rows lie together";
}

// A sum over rows of sums over columns: items for both would be as many as the product.
TEST(HeuristicOpts, ReductionsInsideOfEachOtherDoNotShareItems) {
  const auto& [opts, items] = on_a_gpu(sum(relu(sum(tensor({128, 64, 64}), 2)), 0), interp_target());
  EXPECT_EQ(count_of(OptOp::GROUP, opts), 1) << to_string(opts);
  EXPECT_LE(items, interp_target().max_group_items) << to_string(opts);
}

// Sizes without powers of two have groups as well.
TEST(HeuristicOpts, GroupsOfOddSizes) {
  for (const Shape& shape : {Shape{258741}, Shape{333, 777}, Shape{777, 331}}) {
    const auto& [opts, items] = on_a_gpu(relu(tensor(shape)));
    EXPECT_GE(items, 32) << to_string(opts);
  }
  const auto& [opts, items] = on_a_gpu(matmul(tensor({1000, 1000}), tensor({1000, 1000})));
  EXPECT_GE(items, 64) << to_string(opts);
}

// The terms are two times an odd number: of a block that is one of the two, no tensor core takes pairs.
TEST(HeuristicOpts, BlocksOfATensorCoreAreWholeSteps) {
  expect_choices_fit(test::narrow_matmul(19, 4888, 38262, DType::bfloat16, DType::bfloat16, DType::float32), cpu_target("znver4"));
}

/// The name of the core that a product of halves uses; empty for none.
std::string core_used(const CodegenOptions& options) {
  const UOp sink = full_rewrite_to_sink(test::half_matmul(64, 64, 64), interp_target(), options);
  for (const UOp& u : toposort(sink, Scopes::enter))
    if (u.is(Op::WMMA)) return std::string(u.arg_as<WmmaArg>().name.str());
  return {};
}

int tiles_of(const UOp& kernel, int products) {
  return int(std::ranges::count_if(toposort(full_rewrite_to_sink(kernel, interp_target(), {.products = products}), Scopes::enter),
                                   [](const UOp& u) { return u.is(Op::WMMA); }));
}

TEST(Choices, TheProductsOfTensorCores) {
  const UOp plain = test::half_matmul(64, 64, 64), odd = test::half_matmul(60, 63, 61);
  const auto only = [](const std::vector<UOp>& kernels) {
    EXPECT_EQ(kernels.size(), 1u);
    return kernels[0];
  };
  const UOp a = tensor({64, 64}, DType::float16), b = tensor({64, 64}, DType::float16);
  const UOp computed = only(kernels_of({output(ops::matmul(ops::add(a, 1), b, DType::float32))}, interp_target()));
  for (const int products : {0, 1, 2}) EXPECT_GT(tiles_of(plain, products), 0) << products;
  for (const int products : {0, 1, 2}) EXPECT_EQ(tiles_of(computed, products) > 0, products >= 1) << products;
  for (const int products : {0, 1, 2}) EXPECT_EQ(tiles_of(odd, products) > 0, products == 2) << products;
}

TEST(Choices, ATensorCoreByItsPlace) {
  const std::vector<TensorCore> cores = interp_target().tensor_cores;
  EXPECT_EQ(core_used({}), cores[0].name.str()) << "the first that fits";
  for (const char* name : {"mma_m16n8k16_f16_f32", "mfma_f32_16x16x16_f16", "dpas_8x8x16_f16_f32"}) {
    const auto place = std::ranges::find(cores, Symbol(name), &TensorCore::name) - cores.begin();
    EXPECT_EQ(core_used({.tensor_core = int(place)}), name) << place;
    EXPECT_EQ(core_used({.tensor_cores = false, .tensor_core = int(place)}), "") << "TC=0";
  }
  const auto of_bfloats = std::ranges::find(cores, Symbol("mma_m16n8k16_bf16_f32"), &TensorCore::name) - cores.begin();
  const auto rounding = std::ranges::find(cores, Symbol("mma_m16n8k8_tf32_f32"), &TensorCore::name) - cores.begin();
  for (const auto other : {of_bfloats, rounding, std::ptrdiff_t(cores.size())})
    EXPECT_EQ(core_used({.tensor_core = int(other)}), "") << other;
  EXPECT_TRUE(choices(interp_target(), {.tensor_core = int(rounding)}).tensor_cores.empty()) << "without ALLOW_TF32";
  EXPECT_EQ(choices(interp_target(), {.tensor_core = int(rounding), .allow_tf32 = true}).tensor_cores.size(), 1u);
}

}  // namespace
}  // namespace tinygrad::codegen
