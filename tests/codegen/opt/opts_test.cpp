// Every opt on kernels of every kind: SPEC=3 compares each step of code generation with the evaluator, the interpreted device runs the
// program with its checks of races and bounds.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <tuple>

#include <tinygrad/errors.h>

#include "compiler/clang/clang.h"
#include "compiler/llvm/llvm.h"
#include "kernel/describe_kernel.h"
#include "program/run_kernel.h"
#include "renderer/cstyle/cstyle.h"
#include "renderer/llvmir/llvmir.h"
#include "support/test_scale.h"

namespace tinygrad::codegen {
namespace {

using test::count;

struct Case {
  const char* name;
  UOp kernel;
  const char* opts;
};

void expect_right(const Case& c, const Target& target) {
  SCOPED_TRACE(std::string(c.name) + ": " + c.opts);
  const std::string difference = test::difference_on_interp(c.kernel, parse_opts(c.opts), target);
  EXPECT_EQ(difference, "");
}

void expect_right_on_cpu(const Case& c) {
  SCOPED_TRACE(std::string(c.name) + ": " + c.opts);
  EXPECT_EQ(test::difference_on_cpu(c.kernel, parse_opts(c.opts)), "");
  EXPECT_EQ(test::difference_on_cpu(c.kernel, parse_opts(c.opts), "CPU:LLVM", test::Caches::small), "");
}

const UOp matmul = test::matmul(20, 24, 19), even_matmul = test::matmul(16, 32, 16), rows = test::row_sums(5, 70),
          softmax = test::softmax(6, 37), argmax = test::argmax(5, 50), nested = test::nested_sums(6, 10), one_sum = test::row_sums(1, 100);

TEST(Opts, OfWorkItemsGiveTheSame) {
  const Case cases[] = {
      {"matmul", matmul, ""},
      {"matmul", matmul, "LOCAL(0,4)"},
      {"matmul", matmul, "LOCAL(0,4) LOCAL(1,8)"},
      {"matmul", matmul, "LOCAL(0,3) LOCAL(1,7) UPCAST(0,2) UNROLL(2,4)"},
      {"matmul", matmul, "GROUP(2,4)"},
      {"matmul", matmul, "GROUP(2,0)"},
      {"matmul", matmul, "GROUPTOP(2,4)"},
      {"matmul", matmul, "LOCAL(0,4) LOCAL(1,2) GROUP(2,4) UNROLL(2,2) UPCAST(1,2)"},
      {"matmul", matmul, "GROUP(2,2) GROUPTOP(2,2) LOCAL(0,2) LOCAL(1,2)"},
      {"matmul", matmul, "LANE(1,4) GROUP(2,3) LOCAL(0,2)"},
      {"matmul", matmul, "LANE(2,4) GROUP(2,3)"},
      {"matmul", matmul, "PADTO(0,32) PADTO(1,32) PADTO(2,32) LOCAL(0,16) LOCAL(1,16)"},
      {"matmul", matmul, "SWAP(0,1) LOCAL(0,8)"},
      {"matmul", matmul, "NOLOCALS(0,0) UPCAST(0,4)"},
      {"row sums", rows, "LOCAL(0,2) GROUP(1,8)"},
      {"row sums", rows, "GROUPTOP(1,16) UNROLL(1,2)"},
      {"row sums", rows, "PADTO(1,64) GROUP(1,32) UPCAST(0,0)"},
      {"row sums", rows, "LANE(1,4) GROUP(1,4)"},
      {"one sum", one_sum, "GROUP(0,32)"},
      {"largest of rows", test::row_sums(5, 70, {}, Op::MAX), "GROUP(1,32)"},
      {"product of rows", test::row_sums(5, 6, {}, Op::MUL), "PADTO(1,8) GROUP(1,4)"},
      {"softmax", softmax, "LOCAL(0,4) LOCAL(1,8)"},
      {"softmax", softmax, "GROUP(2,8)"},
      {"softmax", softmax, "LOCAL(0,2) GROUPTOP(2,8) UNROLL(2,2)"},
      {"softmax", softmax, "LOCAL(1,4) GROUP(2,8)"},
      {"argmax", argmax, "GROUP(1,16)"},
      {"argmax", argmax, "LOCAL(0,5) GROUPTOP(1,7) UNROLL(1,2)"},
      {"argmax", argmax, "PADTO(1,32) GROUP(1,0)"},
      {"nested sums", nested, "GROUP(2,5)"},
      {"nested sums", nested, "GROUP(1,3)"},
      {"nested sums", nested, "GROUP(1,2) GROUP(2,2) LOCAL(0,2)"},
      {"nested sums", nested, "UNROLL(1,2) GROUP(2,2)"},
      {"nested sums", nested, "UNROLL(1,2) UNROLL(2,2)"},
      {"nested sums", nested, "UNROLL(1,3) UPCAST(0,2)"},
      {"transpose", test::transpose(30, 17), "LOCAL(0,8) LOCAL(1,8)"},
      {"convolution", test::convolution(3, 9, 4, 3), "LOCAL(0,3) LOCAL(1,4) GROUP(2,2) UNROLL(3,0)"},
      {"padded", test::padded(8, 1, 2), "LOCAL(0,4)"},
      {"gather", test::gather(16, 5), "LOCAL(0,5)"},
  };
  for (const Case& c : cases) expect_right(c, interp_target());
}

TEST(Opts, OfSizesKnownAtLaunchGiveTheSame) {
  const Case cases[] = {
      {"symbolic row sums", test::symbolic_row_sums(9, 40), ""},
      {"symbolic row sums", test::symbolic_row_sums(9, 40), "UPCAST(0,2) UNROLL(1,4)"},
      {"symbolic row sums", test::symbolic_row_sums(9, 40), "LOCAL(0,4) GROUP(1,8)"},
      {"symbolic row sums", test::symbolic_row_sums(9, 40), "LANE(1,4)"},
      {"symbolic row sums", test::symbolic_row_sums(9, 40), "LANE(0,4)"},
      {"symbolic row sums", test::symbolic_row_sums(9, 40), "PADTO(1,16) PADTO(0,4) GROUPTOP(1,8) LOCAL(0,0)"},
  };
  for (const Case& c : cases) expect_right(c, interp_target());
}

TEST(Opts, StagesGiveTheSame) {
  const Case cases[] = {
      {"matmul", matmul, "LOCAL(0,4) LOCAL(1,4) UNROLL(2,4) STAGE(2,1,group,1)"},
      {"matmul", matmul, "LOCAL(0,4) LOCAL(1,4) UNROLL(2,4) STAGE(2,1,group,1) STAGE(2,2,group,1)"},
      {"matmul", even_matmul, "LOCAL(0,4) LOCAL(1,4) UNROLL(2,4) STAGE(2,1,group,1) STAGE(2,2,group,1)"},
      {"matmul", matmul, "LOCAL(0,4) LOCAL(1,4) UNROLL(2,4) STAGE(2,1,group,2) STAGE(2,2,group,2)"},
      {"matmul", even_matmul, "LOCAL(0,4) LOCAL(1,4) UPCAST(0,2) UPCAST(1,2) UNROLL(2,2) STAGE(2,1,group,3) STAGE(2,2,group,3)"},
      {"matmul", even_matmul, "LANE(1,4) LOCAL(0,4) UNROLL(2,4) STAGE(2,2,group,2)"},
      {"matmul", matmul, "LOCAL(0,4) STAGE(0,1,group,1)"},
      {"matmul", matmul, "LOCAL(0,4) STAGE(0,1,reg,1)"},
      {"matmul", matmul, "LOCAL(1,4) UNROLL(2,2) STAGE(2,2,thread,2)"},
      {"matmul", matmul, "GROUP(2,4) STAGE(0,1,group,1)"},
      {"softmax", softmax, "STAGE(0,1,group,1) LOCAL(1,4)"},
      {"softmax", softmax, "GROUP(2,8) STAGE(0,1,group,1)"},
      {"transpose", test::transpose(30, 17), "LOCAL(0,8) LOCAL(1,8) STAGE(1,1,group,1)"},
      {"convolution", test::convolution(3, 9, 4, 3), "LOCAL(0,3) LOCAL(1,4) STAGE(2,2,group,1)"},
      {"convolution", test::convolution(3, 9, 4, 3), "LOCAL(0,3) LOCAL(1,4) STAGE(2,1,group,2) STAGE(2,2,group,2)"},
      {"convolution", test::convolution(3, 9, 4, 3), "LOCAL(0,3) LOCAL(1,4) STAGE(3,1,group,2)"},
      {"nested sums", nested, "LOCAL(0,2) STAGE(1,1,group,1)"},
      {"nested sums", nested, "LOCAL(0,2) STAGE(1,1,group,2)"},
      {"gather", test::gather(16, 5), "LOCAL(0,4) STAGE(0,2,group,1)"},
      {"gather", test::gather(16, 5), "LOCAL(0,4) STAGE(0,1,group,1)"},
  };
  for (const Case& c : cases) expect_right(c, interp_target());
}

// The last iterations of a loop that is run ahead have loops of their own, and so have these whatever is inside of them.
TEST(Opts, StagesAheadOfLoopsInLoopsGiveTheSame) {
  const UOp i = test::loop(3, 0), j = test::reduce_loop(7, 1), k = test::reduce_loop(7, 2), x = test::arg(1, 21);
  const UOp at = test::read(x, j * 3 + i), top = test::reduce_over(Op::MAX, test::read(x, k * 3 + i), {k});
  const UOp sum = test::reduce_over(Op::ADD, where(eq(at, top), test::read(test::arg(2, 21), j * 3 + i), constant(DType::float32, 0)), {j});
  const UOp kernel = test::kernel({test::ended(test::write(test::arg(0, 3), i, sum), {i})});
  for (const char* opts : {"OUTER(1,0)", "OUTER(1,0) STAGE(1,1,thread,2)", "OUTER(1,0) STAGE(1,1,thread,2) STAGE(1,2,thread,2)",
                           "OUTER(1,0) STAGE(1,2,thread,3)"})
    expect_right_on_cpu({"sums of what is greatest", kernel, opts});
}

TEST(Opts, TensorCoresGiveTheSame) {
  const UOp half = test::half_matmul(32, 16, 32), odd = test::half_matmul(21, 13, 35), single = test::matmul(16, 24, 32);
  const Case cases[] = {
      {"half matmul", half, "TC(0,0)"},
      {"half matmul", half, "TC(0,-1) UPCAST(0,2) UPCAST(1,2)"},
      {"half matmul", half, "TC(0,0) LOCAL(0,2) UNROLL(2,2)"},
      {"half matmul", half, "TC(0,0) GROUP(2,2)"},
      {"half matmul", half, "TC(0,0) LOCAL(0,2) LOCAL(1,2) STAGE(2,1,group,1) STAGE(2,2,group,1)"},
      {"half matmul", half, "TC(0,0) LOCAL(0,2) LOCAL(1,2) STAGE(2,1,group,2) STAGE(2,2,group,2)"},
      {"half matmul", half, "TC(0,4)"},
      {"odd half matmul", odd, "TC(0,0)"},
      {"odd half matmul", odd, "TC(0,4) UPCAST(0,2)"},
      {"matmul", single, "TC(0,3) LOCAL(0,2)"},
      {"symbolic half matmul", test::half_matmul(32, 16, 32, true), "TC(0,0)"},
  };
  for (const Case& c : cases) expect_right(c, interp_target());
}

TEST(Opts, TensorCoresLeaveAxesThatAreUnrolledAsAWhole) {
  const UOp kernel = test::narrow_matmul(9, 8, 4, DType::float64, DType::float64, DType::float64);
  for (const char* opts : {"UPCAST(1,0) TC(0,-1)", "UPCAST(0,0) TC(0,-1)"})
    EXPECT_TRUE(test::difference_on_interp(kernel, parse_opts(opts), interp_target()).find("no sum of products") != std::string::npos)
        << opts;
  expect_right({"matmul", kernel, "UPCAST(1,4) TC(0,-1)"}, interp_target());
}

/// How far a core's rounding is from the evaluator's, which rounds each sum to the result's dtype.
double bound_of(const TensorCore& core) { return core.out == DType::float16 ? 2e-2 : core.kept_bits != 0 ? 2e-3 : 1e-5; }

TEST(Opts, EveryTensorCoreGivesTheSame) {
  const Target all = interp_target();
  for (const TensorCore& core : tinygrad::test::sampled(all.tensor_cores)) {
    if (core.m == 1) continue;                                                                                       // lanes of a CPU
    if (core.b.in_memory && core.n > 64 && (core.a_type != DType::float16 || core.out != DType::float32)) continue;  // only wider
    Target one = all;
    one.tensor_cores = {core};
    for (const auto& [m, n, k] :
         {std::tuple(core.m, core.n, core.k), {core.m, 2 * core.n, 3 * core.k}, {core.m + 3, core.n + 5, core.k + 1}}) {
      SCOPED_TRACE(fmt::format("{} {}x{}x{}", core.name.str(), m, n, k));
      const UOp kernel = test::narrow_matmul(m, n, k, core.a_type, core.b_type, core.out);
      EXPECT_EQ(test::difference_on_interp(kernel, parse_opts("TC(0,0)"), one, bound_of(core)), "");
    }
  }
}

/// As its own target has it: with the dtypes that it lacks as bits.
TEST(Opts, EveryTensorCoreOfAGpuGivesTheSame) {
  for (const Target& gpu : {amd_target("gfx90a"), amd_target("gfx942"), amd_target("gfx1100"), amd_target("gfx1201"), metal_target()})
    for (size_t i = 0; i < gpu.tensor_cores.size(); ++i) {
      const TensorCore& core = gpu.tensor_cores[i];
      SCOPED_TRACE(fmt::format("{} {}", gpu.name(), core.name.str()));
      const UOp kernel = test::narrow_matmul(core.m + 1, 2 * core.n, 2 * core.k, core.a_type, core.b_type, core.out);
      const std::vector<Opt> opts{{OptOp::TC, 0, int32_t(i)}};
      EXPECT_EQ(test::difference_on_interp(kernel, opts, gpu, bound_of(core)), "");
    }
}

/// A GPU's: vectors are only loaded and stored. Memory is aligned to 0 bytes where vectors may begin anywhere.
Target scalar_target(int alignment) {
  Target t = interp_target();
  t.vector_math = false;
  t.unaligned_vectors = alignment == 0;
  t.memory_alignment = alignment;
  return t;
}

TEST(Opts, VectorsThatAreOnlyLoadedAndStoredGiveTheSame) {
  const Case cases[] = {
      {"elementwise", test::elementwise(64), "LANE(0,4)"},
      {"elementwise", test::elementwise(64), "LANE(0,16)"},
      {"bools", test::elementwise(64, {}, DType::bool_), "LANE(0,4)"},
      {"row sums", test::row_sums(5, 70), "LANE(1,8) UNROLL(1,2)"},
      {"row sums", test::row_sums(4, 64), "LANE(0,4)"},
      {"matmul", even_matmul, "LANE(1,4) LOCAL(0,4) UNROLL(2,4) STAGE(2,2,group,2)"},
      {"matmul", matmul, "LANE(1,4) LOCAL(0,4)"},
      {"softmax", softmax, "LANE(2,4)"},
      {"argmax", argmax, "LANE(1,8) UNROLL(1,2)"},
      {"symbolic row sums", test::symbolic_row_sums(9, 40), "LANE(1,4)"},
      {"symbolic row sums", test::symbolic_row_sums(9, 40), "LANE(0,4)"},
      {"padded", test::padded(8, 1, 2), "LANE(0,4)"},
      {"gather", test::gather(16, 5), "LANE(0,8)"},
      {"transpose", test::transpose(30, 17), "LANE(0,2) LOCAL(1,8)"},
      {"half matmul", test::half_matmul(32, 16, 32), "TC(0,0) LOCAL(0,2) LOCAL(1,2) STAGE(2,1,group,1) STAGE(2,2,group,1)"},
      {"half matmul", test::half_matmul(32, 16, 32), "TC(0,-1) UPCAST(0,2) UPCAST(1,2)"},
      {"elementwise", test::elementwise(64), "UPCAST(0,8) LOCAL(0,4)"},
      {"halves", test::elementwise(64, {}, DType::float16), "UPCAST(0,16)"},
      {"matmul", even_matmul, "UPCAST(0,4) UPCAST(1,4) LOCAL(0,2) LOCAL(1,4) UNROLL(2,4)"},
      {"row sums", test::row_sums(4, 64), "UNROLL(1,4) GROUP(1,8)"},
      {"padded", test::padded(8, 1, 2), "UPCAST(0,4)"},
      {"gather", test::gather(16, 5), "UPCAST(0,4)"},
      {"in place", test::gated_update(8, 8, 8), "UPCAST(0,2) UPCAST(1,4)"},
  };
  for (const int alignment : {0, 1, 16})
    for (const Case& c : cases) expect_right(c, scalar_target(alignment));
}

/// The interpreted device, if it had at most 10 groups in a dimension.
Target small_grid() {
  Target target = interp_target();
  for (int64_t& n : target.max_global) n = 10;
  return target;
}

/// Of CUDA and HIP, the second and third dimension have at most 65535 groups.
TEST(Opts, GridsOfGpusKeepToTheirLimits) {
  for (const Target& target : {cuda_target("sm_80"), amd_target("gfx942")}) {
    for (const int64_t n : {65535, 65536, 70001, 1 << 20}) {
      const UOp linear = full_rewrite(test::transpose(n, 3), target, {.noopt = true});
      const LaunchDims d = describe_kernel(linear, "k").launch_dims({});
      EXPECT_EQ(d.global[0], 3);
      EXPECT_LE(std::max(d.global[1], d.global[2]), 65535) << n;
      EXPECT_GE(d.global[1] * d.global[2], n) << "no loop is left";
      EXPECT_LT(d.global[1] * d.global[2], n + d.global[2]) << n;
    }
  }
}

TEST(Opts, GroupsThatAreTooManyForADimensionAreInTwo) {
  const auto dims_of = [](const UOp& kernel, const std::vector<int64_t>& variables = {}) {
    const LaunchDims d = describe_kernel(full_rewrite(kernel, small_grid(), {.noopt = true}), "k").launch_dims(variables);
    return std::array{d.global[0], d.global[1], d.global[2]};
  };
  using Dims = std::array<int64_t, 3>;
  EXPECT_EQ(dims_of(test::elementwise(10)), (Dims{10, 1, 1}));
  EXPECT_EQ(dims_of(test::elementwise(12)), (Dims{6, 2, 1}));
  EXPECT_EQ(dims_of(test::elementwise(13)), (Dims{7, 2, 1})) << "one place too many";
  EXPECT_EQ(dims_of(test::elementwise(97)), (Dims{10, 10, 1}));
  EXPECT_EQ(dims_of(test::elementwise(101)), (Dims{1, 1, 1})) << "it stays a loop";
  EXPECT_EQ(dims_of(test::transpose(3, 13)), (Dims{7, 2, 3})) << "as long as there are dimensions";
  const UOp symbolic = test::symbolic_row_sums(23, 40);
  EXPECT_EQ(dims_of(symbolic, {23, 40}), (Dims{8, 3, 1}));
  EXPECT_EQ(dims_of(symbolic, {9, 40}), (Dims{8, 2, 1}));
  EXPECT_EQ(dims_of(symbolic, {5, 40}), (Dims{5, 1, 1}));
  const Case cases[] = {
      {"elementwise", test::elementwise(12), ""},
      {"elementwise", test::elementwise(13), ""},
      {"elementwise", test::elementwise(101), ""},
      {"bytes", test::elementwise(97, {}, DType::uint8), "LOCAL(0,4)"},
      {"transpose", test::transpose(3, 13), ""},
      {"transpose", test::transpose(13, 11), "LOCAL(0,2)"},
      {"transpose", test::transpose(37, 41), ""},
      {"row sums", test::row_sums(37, 20), "GROUP(1,4)"},
      {"matmul", test::matmul(23, 19, 8), "LOCAL(0,2) UNROLL(2,4) STAGE(2,1,group,1)"},
      {"softmax", test::softmax(17, 8), "GROUP(2,4)"},
      {"gather", test::gather(13, 5), ""},
      {"argmax", test::argmax(17, 20), ""},
      {"symbolic row sums", test::symbolic_row_sums(23, 40), ""},
      {"symbolic row sums", test::symbolic_row_sums(97, 12), "LOCAL(0,4)"},
      {"symbolic row sums", test::symbolic_row_sums(250, 12), ""},
  };
  for (const Case& c : cases) expect_right(c, small_grid());
}

UOp compiled(const UOp& kernel, const char* opts, const Target& target = interp_target()) {
  return full_rewrite(test::with_opts(kernel, parse_opts(opts)), target, {.noopt = true, .spec = 1});
}

/// Dtypes of products, and a processor that has an instruction for their sums.
struct DotProduct {
  const char* arch;
  DType a, b, out;

  Target target() const { return cpu_target(arch); }
  bool is_of_host() const { return host_cpu_target().tensor_cores == target().tensor_cores; }
  std::string name() const { return fmt::format("{} {} {}", arch, repr(a), repr(b)); }
};
constexpr DotProduct dot_products[] = {
    {"znver4", DType::bfloat16, DType::bfloat16, DType::float32}, {"znver4", DType::uint8, DType::int8, DType::int32},
    {"znver4", DType::int8, DType::uint8, DType::int32},          {"znver4", DType::int16, DType::int16, DType::int32},
    {"x86-64-v3", DType::int16, DType::int16, DType::int32},      {"x86-64-v3", DType::uint8, DType::int8, DType::int32},
    {"x86-64-v4", DType::int16, DType::uint8, DType::int32},
};

TEST(Opts, DotProductsGiveTheSame) {
  const char* opts[] = {"TC(0,-1)",
                        "TC(0,-1) UPCAST(0,4) UPCAST(1,2)",
                        "TC(0,-1) UPCAST(0,3) UPCAST(1,2) SWAP(0,1) STAGE(0,2,thread,1)",
                        "TC(0,-1) UPCAST(1,2) UNROLL(2,2) STAGE(0,1,thread,1)",
                        "TC(0,-1) THREAD(0,2) STAGE(2,2,reg,2) STAGE(2,1,reg,2)",
                        "BLOCK(2,16) TC(0,-1) UPCAST(0,4) UPCAST(1,2) OUTER(2,0) STAGE(2,2,thread,1)"};
  for (const auto& [m, n, k] : {std::tuple(8, 32, 32), {16, 96, 64}, {5, 37, 35}, {9, 33, 14}})
    for (const DotProduct& d : dot_products)
      for (const char* o : opts) {
        const UOp kernel = test::narrow_matmul(m, n, k, d.a, d.b, d.out);
        if (k % 16 != 0 && std::string_view(o).starts_with("BLOCK")) continue;
        SCOPED_TRACE(fmt::format("{}x{}x{} {}: {}", m, n, k, d.name(), o));
        EXPECT_GT(count(compiled(kernel, o, d.target()), Op::WMMA), 0u);
        EXPECT_EQ(test::difference_on_interp(kernel, parse_opts(o), d.target()), "");
        if (d.is_of_host()) {
          EXPECT_EQ(test::difference_on_cpu(kernel, parse_opts(o)), "");
        }
      }
}

TEST(Opts, DotProductsOfFewOrMaskedTermsGiveTheSame) {
  for (const auto& [k, l] : {std::pair(2, 6), {3, 3}, {6, 2}, {8, 4}})
    for (const DotProduct& d : dot_products) {
      const UOp kernel = test::narrow_triangle(5, 11, k, l, d.a, d.b, d.out);
      SCOPED_TRACE(fmt::format("{}x{} {}", k, l, d.name()));
      const Target target = d.target();
      const auto chosen = heuristic_opts(kernel, target);
      for (const auto& opts : {parse_opts("TC(0,-1)"), parse_opts("TC(0,-1) UNROLL(2,0) UNROLL(3,0)"),
                               parse_opts("TC(0,-1) UPCAST(0,5) STAGE(0,2,thread,1)"), chosen}) {
        SCOPED_TRACE(to_string(opts));
        // For so few terms and columns, other opts may be chosen.
        if (opts != chosen) {
          EXPECT_GT(count(full_rewrite(test::with_opts(kernel, opts), target, {.noopt = true, .spec = 1}), Op::WMMA), 0u);
        }
        EXPECT_EQ(test::difference_on_interp(kernel, opts, target), "");
        if (!d.is_of_host()) continue;
        for (const char* device : {"CPU:LLVM", "CPU:CLANG"}) EXPECT_EQ(test::difference_on_cpu(kernel, opts, device), "") << device;
      }
    }
}

TEST(Opts, DotProductsCompileOnAnyProcessor) {
  for (const DotProduct& d : dot_products) {
    SCOPED_TRACE(d.name());
    const UOp linear = compiled(test::narrow_matmul(5, 37, 14, d.a, d.b, d.out), "TC(0,-1) UPCAST(0,3)", d.target());
    const KernelInfo info = describe_kernel(linear, "k");
    EXPECT_FALSE(compiler::compile_llvmir(renderer::render_llvmir(d.target(), linear, info), d.arch).empty());
    EXPECT_FALSE(compiler::compile_c(renderer::render_c(d.target(), linear, info), d.target()).empty());
  }
}

/// Iterations of the loops of a program, sorted.
std::vector<int64_t> loops(const UOp& linear) {
  std::vector<int64_t> out;
  for (const UOp& u : linear.src())
    if (u.is(Op::RANGE)) out.push_back(const_value(u.src(0))->as_int());
  std::sort(out.begin(), out.end());
  return out;
}

TEST(Opts, DepthMakesPrologueSteadyStateAndEpilogue) {
  const std::string opts = "LOCAL(0,4) LOCAL(1,4) UNROLL(2,2) ";
  const UOp one = compiled(even_matmul, (opts + "STAGE(2,1,group,1) STAGE(2,2,group,1)").c_str());
  const UOp two = compiled(even_matmul, (opts + "STAGE(2,1,group,2) STAGE(2,2,group,2)").c_str());
  EXPECT_EQ(loops(one), (std::vector<int64_t>{8}));
  EXPECT_EQ(loops(two), (std::vector<int64_t>{7}));
  EXPECT_EQ(count(two, Op::LOAD) > count(one, Op::LOAD), true);
  const auto bytes = [](const UOp& linear) {
    int64_t n = 0;
    for (const UOp& u : linear.src())
      if (u.is(Op::BUFFER) && u.arg_as<BufferArg>().scope == Scope::group) n += u.arg_as<BufferArg>().size;
    return n;
  };
  EXPECT_EQ(bytes(one), 4 * 2 + 4 * 2);
  EXPECT_EQ(bytes(two), 2 * bytes(one));
}

TEST(Opts, ARemovedBarrierIsARace) {
  for (const char* opts :
       {"GROUP(2,4)", "LOCAL(0,4) LOCAL(1,4) UNROLL(2,4) STAGE(2,1,group,1)", "LOCAL(0,4) LOCAL(1,4) UNROLL(2,4) STAGE(2,1,group,2)"}) {
    const UOp linear = compiled(even_matmul, opts);
    const auto barriers = count(linear, Op::BARRIER);
    ASSERT_GT(barriers, 0u) << opts;
    size_t found = 0;
    for (size_t without = 0; without < barriers; ++without) {
      UOps kept;
      size_t number = 0;
      for (const UOp& u : linear.src())
        if (!u.is(Op::BARRIER) || number++ != without) kept.push_back(u);
      try {
        test::run_on_interp(linear.with_src(kept), test::some_inputs(even_matmul));
      } catch (const InternalError& e) {
        found += std::string(e.what()).find("race") != std::string::npos ||
                 std::string(e.what()).find("before it is written") != std::string::npos;
      }
    }
    // The barrier in front of the first iteration of a loop that is run ahead of stands for two.
    EXPECT_GE(found, barriers - (std::string(opts).find(",2)") != std::string::npos)) << opts;
  }
}

TEST(Opts, TensorCoresGoWithTheirDtype) {
  const UOp kernel = test::with_opts(test::half_matmul(16, 8, 16), parse_opts("TC(0,0)"));
  EXPECT_EQ(count(full_rewrite(kernel, interp_target(), {}), Op::WMMA), 1u);
  EXPECT_THROW(full_rewrite(kernel, interp_target(), {.emulated_dtypes = "float16"}), ValueError);
}

TEST(Opts, TensorCoresMultiply) {
  EXPECT_EQ(count(compiled(test::half_matmul(32, 16, 32), "TC(0,0)"), Op::WMMA), 1u);
  EXPECT_EQ(count(compiled(test::half_matmul(32, 16, 32), "TC(0,0) UPCAST(0,2) UPCAST(1,2)"), Op::WMMA), 4u);
}

TEST(Opts, TensorCoresArePaddedTo) {
  for (const UOp& kernel : {test::half_matmul(60, 63, 61), test::half_matmul(33, 12, 9), test::half_matmul(16, 8, 17)}) {
    const auto opts = heuristic_opts(kernel, choices(interp_target(), {}), true);
    EXPECT_EQ(opts.at(0).op, OptOp::TC) << to_string(opts);
    EXPECT_EQ(test::difference_on_interp(kernel, opts, interp_target()), "") << to_string(opts);
  }
}

TEST(Opts, HeuristicsOfGroupsChooseByKernel) {
  const auto chosen = [](const UOp& kernel) { return to_string(heuristic_opts(kernel, choices(interp_target(), {}))); };
  EXPECT_EQ(chosen(test::half_matmul(64, 64, 64)).substr(0, 7), "TC(0,0)");
  EXPECT_EQ(chosen(test::row_sums(4, 4096)).substr(0, 12), "GROUP(1,256)");
  const std::string large = chosen(test::matmul(96, 192, 99));
  EXPECT_NE(large.find("UPCAST"), std::string::npos) << large;
  EXPECT_NE(large.find("LOCAL"), std::string::npos) << large;
  Target alone = interp_target();
  alone.max_group_items = 1;
  EXPECT_EQ(to_string(heuristic_opts(test::row_sums(4, 4096), alone)).find("GROUP"), std::string::npos);
  for (const UOp& kernel : {test::half_matmul(64, 64, 64), test::row_sums(4, 4096), test::matmul(40, 32, 24), test::softmax(40, 64)})
    EXPECT_EQ(test::difference_on_interp(kernel, heuristic_opts(kernel, choices(interp_target(), {})), interp_target()), "")
        << chosen(kernel);
}

TEST(Opts, AttentionOnTheCpuHasVectorsAlongRows) {
  const auto chosen = [](int64_t width, const char* arch) {
    return to_string(heuristic_opts(test::attention(512, 512, width), cpu_target(arch)));
  };
  // What registers hold of a narrow head is a tile; else the loop over keys goes around it.
  EXPECT_EQ(chosen(8, "x86-64-v3"), "LANE(0,8) UPCAST(0,2) UPCAST(1,8) UNROLL(3,8) THREAD(0,32)");
  EXPECT_EQ(chosen(64, "x86-64-v3"), "LANE(0,8) UPCAST(0,2) UPCAST(1,2) UNROLL(2,4) OUTER(2,1) THREAD(0,32) STAGE(0,1,thread,1)");
  EXPECT_EQ(chosen(256, "x86-64-v4"), "LANE(0,16) UPCAST(0,2) UPCAST(1,2) UNROLL(2,8) OUTER(2,1) THREAD(0,16) STAGE(0,1,thread,1)");
  for (const char* opts : {"", "LANE(0,8) UPCAST(1,12) UNROLL(3,12)", "LANE(0,4) UPCAST(0,2) UPCAST(1,12) UNROLL(2,2)",
                           "LANE(1,4) LANE(3,4)"}) {  // vectors along two axes: of the sum, and of the product inside
    SCOPED_TRACE(opts);
    EXPECT_EQ(test::difference_on_cpu(test::attention(17, 21, 12), parse_opts(opts)), "");
  }
  for (const char* opts : {"LOCAL(0,4) UPCAST(1,4)", "GROUP(2,4) UNROLL(3,3)"}) {
    SCOPED_TRACE(opts);
    EXPECT_EQ(test::difference_on_interp(test::attention(8, 12, 12), parse_opts(opts), interp_target()), "");
  }
}

TEST(Opts, NestsThatShareALoopAreChosenForTogether) {
  for (int64_t n : {6, 40}) {
    const UOp kernel = test::nests_of_one_sum(64, n);
    const std::vector<Opt> opts = heuristic_opts(kernel, cpu_target("x86-64-v3"));
    EXPECT_FALSE(opts.empty());
    EXPECT_EQ(test::difference_on_cpu(kernel, opts), "") << to_string(opts);
  }
}

TEST(Opts, TilesOnTheCpuGiveTheSame) {
  const Case cases[] = {
      {"matmul", matmul, "LANE(1,8) UPCAST(0,4)"},
      {"matmul", matmul, "LANE(1,8) UPCAST(0,4) SWAP(0,1) STAGE(0,2,thread,1)"},  // a packed panel of the second operand for all rows
      {"matmul", matmul, "LANE(1,8) UPCAST(0,4) STAGE(0,1,thread,1) THREAD(0,2)"},
      {"matmul", matmul, "LANE(1,8) BLOCK(0,6) UPCAST(1,0) UPCAST(2,2) SWAP(0,2) STAGE(0,2,thread,1)"},  // the last rows overlap
      {"matmul", matmul, "BLOCK(0,7) BLOCK(2,9) LANE(3,8) SWAP(1,2) THREAD(0,2)"},
      {"matmul", even_matmul, "BLOCK(2,4) BLOCK(0,16) STAGE(1,1,thread,1)"},
      {"two products", test::two_products(20, 35, 19, 7), "LANE(1,16) UPCAST(0,6) UPCAST(1,3)"},
      {"two products", test::two_products(20, 35, 19, 7), "LANE(1,8) UPCAST(0,8) STAGE(1,2,thread,1) STAGE(1,4,thread,1)"},
      {"convolution", test::convolution(3, 9, 4, 3), "BLOCK(1,4) LANE(2,4) BLOCK(0,2) UPCAST(1,0)"},
      {"matmul", even_matmul, "LANE(1,16) UPCAST(0,4) UNROLL(2,4) STAGE(2,2,thread,1)"},
      {"matmul", even_matmul, "LANE(1,16) UPCAST(0,4) UNROLL(2,4) STAGE(2,2,reg,2) STAGE(2,1,reg,2)"},
      {"softmax", softmax, "STAGE(0,1,thread,1)"},
      {"softmax", softmax, "STAGE(0,1,thread,1) LANE(2,8)"},
      {"convolution", test::convolution(3, 9, 4, 3), "STAGE(2,1,thread,2) UPCAST(0,3)"},
      {"transpose", test::transpose(30, 17), "UPCAST(0,4) LANE(1,4) STAGE(0,1,thread,1)"},
      {"symbolic row sums", test::symbolic_row_sums(9, 40), "PADTO(1,8) LANE(1,8) UPCAST(0,2)"},
      {"argmax", argmax, "STAGE(0,2,thread,1)"},
      {"shifted by a sum", test::shifted_by_a_sum(8, 6), "LANE(0,8)"},
      {"narrow rows", test::narrow_rows(40, 2), "LANE(1,16)"},  // twice AVX2's width: of the second half no lane is loaded
      {"narrow rows", test::narrow_rows(4, 11), "LANE(1,16)"},
      {"nested sums", test::nested_sums(2, 16), "STAGE(1,1,thread,2)"},  // as deep as there are steps
      {"nested sums", test::nested_sums(4, 16), "STAGE(1,1,thread,3)"},  // each step at the end sums into the same accumulator
  };
  for (const Case& c : tinygrad::test::sampled(std::vector(std::begin(cases), std::end(cases)))) expect_right_on_cpu(c);
}

TEST(Opts, ReductionsAroundOutputLoopsGiveTheSame) {
  const UOp attention = test::attention(9, 10, 6), joined = test::joined_attention(9, 12, 6);
  const Case cases[] = {
      {"matmul", matmul, "OUTER(2,0)"},
      {"matmul", matmul, "OUTER(2,1)"},
      {"matmul", matmul, "OUTER(2,1) LANE(1,8) UPCAST(0,2) UNROLL(2,4)"},
      {"matmul", matmul, "LANE(2,4) OUTER(2,1)"},
      {"matmul", matmul, "SWAP(0,1) OUTER(2,0) THREAD(0,4)"},
      {"matmul", matmul, "OUTER(2,1) OUTER(2,0)"},
      {"matmul", even_matmul, "BLOCK(2,4) OUTER(2,1) LANE(1,8)"},  // blocks of the reduction, summed up in registers
      {"matmul", even_matmul, "BLOCK(2,4) OUTER(2,0) LANE(1,8) UPCAST(0,2) STAGE(2,2,thread,1) STAGE(0,1,thread,1)"},
      {"matmul", even_matmul, "BLOCK(2,8) OUTER(2,0) BLOCK(0,4) LANE(2,8) UNROLL(4,2)"},
      {"matmul", even_matmul, "BLOCK(2,4) OUTER(3,1)"},
      {"matmul", even_matmul, "BLOCK(2,4) LANE(0,8) UPCAST(0,2) UPCAST(1,4) OUTER(2,1) THREAD(1,2) STAGE(2,2,thread,1)"},
      {"matmul", matmul, "LANE(1,8) UPCAST(0,3) UPCAST(1,2) UNROLL(2,2) OUTER(2,0)"},  // a tile with masks at its ends
      {"nested sums", nested, "UPCAST(0,2) OUTER(1,0)"},
      {"nested sums", nested, "UPCAST(0,2) OUTER(2,0)"},
      {"convolution", test::convolution(3, 9, 4, 3), "UPCAST(0,3) UPCAST(1,2) OUTER(3,1) OUTER(2,0)"},
      {"softmax", softmax, "UPCAST(1,2) OUTER(2,1)"},
      {"softmax", softmax, "UPCAST(0,2) UPCAST(1,2) OUTER(2,0)"},
      {"row sums", rows, "OUTER(1,0) LANE(1,4)"},
      {"argmax", argmax, "OUTER(1,0)"},
      {"argmax", argmax, "LANE(0,4) OUTER(1,0) UNROLL(1,2)"},
      {"softmax", softmax, "OUTER(2,0)"},
      {"nested sums", nested, "OUTER(1,0)"},
      {"nested sums", nested, "OUTER(2,0)"},
      {"convolution", test::convolution(3, 9, 4, 3), "OUTER(2,0) LANE(1,4)"},
      {"convolution", test::convolution(3, 9, 4, 3), "OUTER(3,1) OUTER(2,0)"},
      {"attention", attention, "OUTER(2,1)"},
      {"attention", attention, "OUTER(2,0)"},
      {"attention", attention, "LANE(0,4) UPCAST(0,2) UPCAST(1,2) UNROLL(2,4) OUTER(2,1) STAGE(0,1,thread,1)"},
      {"attention", attention, "LANE(1,4) OUTER(2,1) UNROLL(3,4)"},
      {"attention", attention, "SWAP(0,1) OUTER(2,1) THREAD(0,3)"},
      {"joined attention", joined, "UNROLL(3,4)"},
      {"joined attention", joined, "UNROLL(3,5) UPCAST(1,4)"},
      {"joined attention", joined, "UNROLL(3,0)"},
      {"joined attention", joined, "LANE(3,8) UNROLL(3,2)"},
      {"joined attention", joined, "LANE(0,4) UPCAST(0,2) UPCAST(1,2) UNROLL(3,4) OUTER(3,1) STAGE(0,1,thread,1)"},
      {"joined attention", joined, "LANE(1,4) UPCAST(0,3) UNROLL(3,8) OUTER(3,1)"},
      {"joined attention", joined, "OUTER(3,0) UNROLL(3,5) LANE(0,8)"},
  };
  for (const Case& c : tinygrad::test::sampled(std::vector(std::begin(cases), std::end(cases)))) expect_right_on_cpu(c);
}

TEST(Opts, LoopsThatMasksBoundGiveTheSame) {
  const UOp triangles = test::triangles(20, 0), attention = test::joined_attention(24, 24, 6, {}, true),
            adjoint = test::convolution_adjoint(6, 3, 4), products = test::masked_products(18, 20, 12);
  const Case cases[] = {
      {"triangles", triangles, ""},
      {"triangles", triangles, "LANE(1,8) UPCAST(0,4)"},
      {"triangles", triangles, "UPCAST(0,3) LANE(2,4)"},
      {"triangles", triangles, "UNROLL(2,4) THREAD(0,3)"},
      {"triangles", triangles, "BLOCK(2,5) OUTER(2,1) LANE(1,8) STAGE(0,1,thread,1)"},
      {"triangles", triangles, "OUTER(2,0) UPCAST(1,2)"},
      {"triangles", triangles, "BLOCK(0,6) UPCAST(1,0) LANE(2,8) SWAP(0,2) STAGE(0,2,thread,1)"},
      {"more than a triangle", test::triangles(20, 3), "UPCAST(0,2) UNROLL(2,3)"},
      {"less than a triangle", test::triangles(20, -3), "UPCAST(0,2) UNROLL(2,3)"},  // no term for the first rows
      {"convolution's adjoint", adjoint, "OUTER(4,0)"},
      {"convolution's adjoint", adjoint, "OUTER(3,0) LANE(0,4) UNROLL(4,2)"},
      {"convolution's adjoint", adjoint, "UPCAST(1,3) STAGE(0,1,thread,1) OUTER(3,0)"},
      {"convolution's adjoint", adjoint, "OUTER(4,1) OUTER(2,1) STAGE(0,1,thread,1)"},
      {"convolution's adjoint", adjoint, "OUTER(4,0) UPCAST(1,3) BLOCK(2,3)"},
      {"convolution's adjoint", adjoint, "OUTER(4,0) LANE(1,2) OUTER(3,1)"},
      {"masked products", products, "LANE(1,8) UPCAST(0,3)"},
      {"masked products", products, "LANE(0,8) BLOCK(1,6) UPCAST(2,6) STAGE(0,2,thread,1)"},
      {"masked products", products, "BLOCK(2,4) OUTER(2,1) LANE(1,8)"},
      {"masked products", products, "LANE(2,4) UPCAST(0,2) UPCAST(1,2) THREAD(0,3)"},
      {"masked attention", attention, ""},
      {"masked attention", attention, "UNROLL(3,4) UPCAST(0,3)"},
      {"masked attention", attention, "UNROLL(3,5) LANE(0,8) OUTER(3,1)"},
      {"masked attention", attention, "LANE(0,4) UPCAST(0,2) UPCAST(1,2) UNROLL(3,4) OUTER(3,1) THREAD(0,3) STAGE(0,1,thread,1)"},
      {"masked attention", attention, "LANE(3,8) OUTER(3,0)"},
  };
  for (const Case& c : tinygrad::test::sampled(std::vector(std::begin(cases), std::end(cases)))) expect_right_on_cpu(c);
  const Case of_groups[] = {
      {"triangles", triangles, "LOCAL(0,4) LOCAL(1,4) UNROLL(2,2)"},
      {"triangles", triangles, "LOCAL(0,4) GROUP(2,4)"},
      {"triangles", triangles, "LOCAL(0,4) LOCAL(1,4) STAGE(2,1,group,1) STAGE(2,2,group,1)"},
      {"triangles", triangles, "LOCAL(0,4) LOCAL(1,4) STAGE(2,1,group,2) STAGE(2,2,group,2)"},  // copied ahead: all steps are made
      {"masked attention", attention, "LOCAL(0,8) LOCAL(1,2) UNROLL(3,2)"},
      {"masked products", products, "LOCAL(0,3) LOCAL(1,4) STAGE(2,1,group,1)"},
  };
  for (const Case& c : tinygrad::test::sampled(std::vector(std::begin(of_groups), std::end(of_groups)))) expect_right(c, interp_target());
}

TEST(Opts, HeuristicsOnTheCpuStageWhatIsUsedAgain) {
  for (const char* arch : {"x86-64-v3", "x86-64-v4"})
    for (const auto& [m, n, k] : {std::array{200, 192, 80}, std::array{205, 187, 57}}) {  // the second's rows are blocks that overlap
      const UOp kernel = test::matmul(m, n, k);
      const std::vector<Opt> opts = heuristic_opts(kernel, cpu_target(arch));
      SCOPED_TRACE(to_string(opts));
      EXPECT_NE(to_string(opts).find("STAGE"), std::string::npos);
      EXPECT_EQ(to_string(opts).find("BLOCK") != std::string::npos, m == 205);
      EXPECT_EQ(test::difference_on_cpu(kernel, opts), "");
    }
}

TEST(Opts, HeuristicsOnTheCpuMultiplyAMatrixByItself) {
  const UOp i = test::loop(512, 0), j = test::loop(512, 1), k = test::reduce_loop(512, 2), a = test::arg(1, 512 * 512);
  const UOp product = test::read(a, i * 512 + k) * test::read(a, k * 512 + j);
  const UOp kernel =
      test::kernel({test::ended(test::write(test::arg(0, 512 * 512), i * 512 + j, test::reduce_over(Op::ADD, product, {k})), {i, j})});
  for (const char* arch : {"x86-64-v3", "x86-64-v4"})
    for (const std::vector<Opt>& opts : {heuristic_opts(kernel, cpu_target(arch)), ranked_opts(kernel, cpu_target(arch), 1)[0]})
      EXPECT_NO_THROW(full_rewrite(test::with_opts(kernel, opts), cpu_target(arch), {.noopt = true})) << to_string(opts);
}

TEST(Opts, LanesOfBytesAreSummedUp) {
  for (int64_t lanes : {4, 8, 16, 32, 64})
    for (const auto& [a, b] : {std::pair(DType::uint8, DType::int8), {DType::uint8, DType::uint8}, {DType::int8, DType::int8}})
      EXPECT_EQ(test::difference_on_cpu(test::narrow_matmul(5, 3, lanes, a, b, DType::int32), {{OptOp::LANE, 2, int32_t(lanes)}}), "")
          << lanes;
}

// Pieces of 16 bytes of at most 16 rows, and on along these rows; where there are few such blocks, threads share out the rows of the
// result.
TEST(Opts, HeuristicsOnTheCpuTransposeAlongRows) {
  const auto transpose = [](int64_t m, int64_t n, DType dtype) {
    const UOp j = test::loop(n, 0), i = test::loop(m, 1);  // as a result of n rows has them
    return test::kernel(
        {test::ended(test::write(test::arg(0, m * n, dtype), j * m + i, test::read(test::arg(1, m * n, dtype), i * n + j)), {j, i})});
  };
  const auto chosen = [&](int64_t m, int64_t n, DType dtype, const char* arch) {
    return to_string(heuristic_opts(transpose(m, n, dtype), cpu_target(arch)));
  };
  EXPECT_EQ(chosen(512, 512, DType::float32, "x86-64-v4"), "LANE(1,16) UPCAST(0,4) SWAP(0,1) THREAD(0,32)");
  EXPECT_EQ(chosen(512, 512, DType::float32, "x86-64-v3"), "LANE(1,8) UPCAST(0,4) SWAP(0,1) THREAD(0,32)");
  EXPECT_EQ(chosen(512, 512, DType::int8, "x86-64-v4"), "LANE(1,16) UPCAST(0,16) SWAP(0,1) THREAD(0,32)");
  EXPECT_EQ(chosen(40, 8192, DType::float32, "x86-64-v4"), "BLOCK(1,16) LANE(2,16) UPCAST(0,4) SWAP(0,1) THREAD(1,32)");
  // A kernel that has the loops so already.
  EXPECT_EQ(to_string(heuristic_opts(test::transpose(251, 197), cpu_target("x86-64-v4"))),
            "BLOCK(0,16) LANE(1,16) BLOCK(2,4) UPCAST(3,4) THREAD(0,4)");
  EXPECT_EQ(test::difference_on_cpu(test::transpose(251, 197), heuristic_opts(test::transpose(251, 197), cpu_target("x86-64-v4"))), "");
  // The last blocks of two sizes overlap those before.
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{160, 256}, {163, 301}, {13, 4001}})
    for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::uint8}) {
      const UOp kernel = transpose(m, n, dtype);
      for (const char* arch : {"x86-64-v3", "x86-64-v4"}) {
        const std::vector<Opt> opts = heuristic_opts(kernel, cpu_target(arch));
        EXPECT_EQ(test::difference_on_cpu(kernel, opts), "") << m << " " << n << " " << repr(dtype) << " " << to_string(opts);
      }
    }
}

TEST(Opts, HeuristicsOnTheCpuKeepNearWhatIsUsedAFewTimes) {
  const auto chosen = [](const UOp& kernel) { return to_string(heuristic_opts(kernel, cpu_target("x86-64-v4"))); };
  EXPECT_EQ(chosen(test::matmul(64, 4096, 4096)),
            "BLOCK(2,32) LANE(1,16) UPCAST(0,4) BLOCK(1,6) UPCAST(2,6) SWAP(0,1) OUTER(3,1) THREAD(0,43)");
  const UOp few = test::matmul(8, 24, 100);
  Target target = cpu_target("x86-64-v3");
  target.l2_bytes = 1 << 12;
  const std::vector<Opt> opts = heuristic_opts(few, target);
  EXPECT_NE(to_string(opts).find("OUTER"), std::string::npos) << to_string(opts);
  EXPECT_EQ(to_string(opts).find("STAGE"), std::string::npos) << to_string(opts);
  EXPECT_EQ(test::difference_on_cpu(few, opts), "");
}

TEST(Opts, UpdatesInPlaceMayBeStagedAndBlocked) {
  const UOp kernel = test::gated_update(8, 40, 32);
  for (const char* opts : {"LANE(1,8) UPCAST(0,4) SWAP(0,1) STAGE(0,2,thread,1) STAGE(0,3,thread,1)",
                           "BLOCK(2,16) LANE(1,8) UPCAST(0,4) SWAP(0,1) OUTER(2,1) THREAD(0,5) STAGE(2,2,thread,1) STAGE(2,3,thread,1)",
                           "LANE(0,8) OUTER(2,1) STAGE(2,1,thread,1)", "OUTER(2,0) LANE(1,16) UPCAST(0,5)"}) {
    SCOPED_TRACE(opts);
    EXPECT_EQ(test::difference_on_cpu(kernel, parse_opts(opts)), "");
  }
  std::vector<std::tuple<const char*, UOp, bool>> cases;
  for (const char* arch : {"x86-64-v3", "x86-64-v4"})
    for (const UOp& k : {test::gated_update(64, 96, 80), test::gated_update(96, 16, 210)})
      for (const bool small_cache : {false, true}) cases.emplace_back(arch, k, small_cache);
  for (const auto& [arch, k, small_cache] : tinygrad::test::sampled(cases)) {
    Target target = cpu_target(arch);
    if (small_cache) target.l2_bytes = 4096;
    const std::vector<Opt> opts = heuristic_opts(k, target);
    SCOPED_TRACE(to_string(opts));
    EXPECT_EQ(test::difference_on_cpu(k, opts), "");
  }
}

TEST(Opts, HeuristicsOnTheCpuPutLongReductionsAroundTiles) {
  Target target = cpu_target("x86-64-v3");
  target.l2_bytes = 32768;  // that few steps are too many for a panel
  for (const UOp& kernel : {test::matmul(96, 96, 512), test::matmul(64, 128, 507)}) {
    const std::vector<Opt> opts = heuristic_opts(kernel, target);
    SCOPED_TRACE(to_string(opts));
    EXPECT_NE(to_string(opts).find("OUTER"), std::string::npos);
    EXPECT_EQ(test::difference_on_cpu(kernel, opts), "");
  }
}

TEST(Opts, ThatDoNotFitAreNamed) {
  const UOp i = test::loop(16, 0), k = test::reduce_loop(8, 1), sum = test::reduce_over(Op::ADD, test::read(test::arg(1, 16), i), {k});
  const UOp repeated = test::kernel({test::ended(test::write(test::arg(0, 16), i, sum), {i})});
  const auto rejects = [](const UOp& kernel, const char* opts, const char* part, const Target& target = interp_target()) {
    try {
      compiled(kernel, opts, target);
      ADD_FAILURE() << "no error: " << opts;
    } catch (const ValueError& e) {
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
  };
  rejects(matmul, "GROUP(0,4)", "use LOCAL");
  rejects(matmul, "LOCAL(2,4)", "use GROUP");
  rejects(matmul, "LOCAL(5,4)", "the kernel has 3 axes");
  rejects(matmul, "LOCAL(0,20) LOCAL(1,20)", "400 work-items, the target takes 256");
  rejects(matmul, "NOLOCALS(0,0) LOCAL(0,4)", "NOLOCALS");
  rejects(matmul, "LOCAL(0,4) NOLOCALS(0,0)", "work-items already");
  rejects(matmul, "GROUP(2,4)", "no work-groups", cpu_target("x86-64-v3"));
  rejects(matmul, "PADTO(0,0)", "multiple");
  rejects(matmul, "OUTER(2,0)", "work-groups");
  rejects(matmul, "OUTER(0,1)", "the loop of a reduction and one over outputs", cpu_target("x86-64-v3"));
  rejects(test::symbolic_row_sums(9, 40), "OUTER(1,0)", "not known before launch", cpu_target("x86-64-v3"));
  rejects(matmul, "OUTER(2,2)", "the loop of a reduction and one over outputs", cpu_target("x86-64-v3"));
  rejects(matmul, "LANE(1,4) PADTO(1,32)", "before");
  rejects(matmul, "LANE(1,4) LANE(2,4)", "two vector axes");
  rejects(repeated, "LANE(0,4) LANE(1,4)", "two vector axes");
  rejects(matmul, "SWAP(0,2)", "one nest");
  rejects(matmul, "SWAP(0,0)", "one nest");
  rejects(matmul, "SWAP(0,9)", "3 axes");
  rejects(matmul, "TC(0,0)", "no sum of products");
  rejects(matmul, "TC(0,9999)", "tensor cores");
  rejects(test::half_matmul(16, 8, 16), "TC(0,0) TC(0,0)", "already");
  rejects(test::half_matmul(16, 8, 16), "LANE(1,4) TC(0,0)", "vector axis");
  rejects(test::half_matmul(16, 8, 16), "TC(0,0) LANE(1,1)", "tensor cores");
  rejects(matmul, "STAGE(2,0,group,1)", "stores to the argument");
  rejects(matmul, "STAGE(2,1,device,1)", "scope");
  rejects(matmul, "STAGE(2,1,thread,2,computed)", "not copied ahead");
  rejects(test::weighted_sums(20, 24, 44, false, true), "LOCAL(0,4) STAGE(0,1,group,1,computed)", "a group does not share");
  rejects(test::gather_of_sums(4, 6), "UPCAST(0,2) STAGE(0,2,group,1)", "depends on a reduction");
  rejects(test::running_sums(4, 6), "GROUP(1,2)", "stores to an argument that it loads from");
  rejects(matmul, "BLOCK(2,4)", "does not divide");
  rejects(matmul, "BLOCK(0,21)", "the axis has size 20");
  rejects(matmul, "STAGE(2,1,group,0)", "depth");
  rejects(matmul, "STAGE(0,1,group,2)", "only the loop of a reduction");
  rejects(matmul, "UNROLL(2,2) STAGE(2,1,group,20)", "iterations");
  rejects(matmul, "STAGE(2,1,group,1)", "nothing that is loaded");
  rejects(test::matmul(64, 64, 4096), "STAGE(0,1,group,1) LOCAL(0,16)", "bytes");
  rejects(test::row_sums(300, 4096), "UPCAST(0,300) GROUP(1,256)", "group's memory");
  rejects(test::symbolic_row_sums(9, 40), "GROUPTOP(1,4)", "not known before launch");
  rejects(test::symbolic_row_sums(9, 40), "UPCAST(0,0)", "not known before launch");
}

TEST(Opts, AsTextAndBack) {
  const char* text =
      "UPCAST(0,4) UNROLL(2,0) LOCAL(1,16) THREAD(0,2) GROUP(2,8) GROUPTOP(2,4) NOLOCALS(0,0) PADTO(1,32) SWAP(0,1) TC(0,-1) "
      "LANE(1,8) BLOCK(0,6) STAGE(0,4,thread,1,computed) STAGE(2,1,group,3)";
  const std::vector<Opt> opts = parse_opts(text);
  EXPECT_EQ(to_string(opts), text);
  EXPECT_EQ(opts.back(), (Opt{OptOp::STAGE, 2, StageOpt{.slot = 1, .scope = Scope::group, .depth = 3}.arg()}));
  EXPECT_TRUE(parse_opts("  ").empty());
  for (const char* wrong :
       {"UPCAST", "UPCAST(0)", "UPCAST(0,4", "upcast(0,4)", "STAGE(0,1,2,3)", "STAGE(0,1,group,32)", "STAGE(0,1,group,1,x)", "LOCAL(a,4)"})
    EXPECT_THROW(parse_opts(wrong), ValueError) << wrong;
}

}  // namespace
}  // namespace tinygrad::codegen
