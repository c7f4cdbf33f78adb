// Kernels as PTX, run by the machine of the tests, beside the evaluator: work-items, group memory, tensor cores, narrow floats, variables.
#include <gtest/gtest.h>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "kernel/describe_kernel.h"
#include "program/run_kernel.h"
#include "runtime/backend/ptx_device.h"
#include "support/programs.h"
#include "support/test_scale.h"

namespace tinygrad {
namespace {

using namespace codegen::test;
using codegen::parse_opts;

std::map<int32_t, spec::Array> run_as_ptx(const UOp& linear, const spec::EvalInputs& inputs, const Target& target) {
  const KernelInfo info = describe_kernel(linear, "k");
  tinygrad::test::PtxKernel kernel(target, info, renderer::render_ptx(target, linear, info));
  return run_on_host(kernel, info, inputs);
}

struct Case {
  const char* name;
  UOp kernel;
  const char* opts;
};

void expect_right(const Case& c, const char* arch = "sm_90a") {
  SCOPED_TRACE(fmt::format("{}: {} on {}", c.name, c.opts, arch));
  const Target target = cuda_target(arch);
  const auto run = [&](const UOp& linear, const spec::EvalInputs& inputs) { return run_as_ptx(linear, inputs, target); };
  EXPECT_EQ(difference_on(c.kernel, parse_opts(c.opts), target, run), "");
}

const UOp product = matmul(20, 24, 19), even_product = matmul(16, 32, 16), rows = row_sums(5, 70);

TEST(Ptx, LoopsAndWorkItems) {
  for (const Case& c : {Case{"elementwise", elementwise(10), ""},
                        {"elementwise", elementwise(64), "LOCAL(0,8) UPCAST(0,4)"},
                        {"elementwise", elementwise(64), "LANE(0,4)"},
                        {"matmul", product, ""},
                        {"matmul", product, "LOCAL(0,4) LOCAL(1,8) UPCAST(0,2) UNROLL(2,4)"},
                        {"matmul", product, "PADTO(0,32) PADTO(1,32) PADTO(2,32) LOCAL(0,16) LOCAL(1,16)"},
                        {"softmax", softmax(6, 37), "LOCAL(0,4) LOCAL(1,8)"},
                        {"argmax", argmax(5, 50), ""},
                        {"nested sums", nested_sums(6, 10), "UNROLL(1,3) UPCAST(0,2)"},
                        {"convolution", convolution(3, 9, 4, 3), "LOCAL(0,3) LOCAL(1,4)"},
                        {"padded", padded(8, 1, 2), "LOCAL(0,4)"},
                        {"narrow rows", narrow_rows(6, 13), "LANE(1,4)"},
                        {"gather", gather(16, 5), "LOCAL(0,5)"}})
    expect_right(c);
}

TEST(Ptx, GroupMemoryAndBarriers) {
  for (const Case& c :
       {Case{"matmul", product, "GROUP(2,4)"},
        {"matmul", product, "GROUP(2,2) GROUPTOP(2,2) LOCAL(0,2) LOCAL(1,2)"},
        {"softmax", softmax(6, 37), "GROUP(2,8) LOCAL(0,2)"},
        {"softmax", softmax(6, 64), "UNROLL(2,4) GROUP(2,8)"},
        {"nested sums", nested_sums(6, 12), "GROUP(1,4) GROUP(2,4)"},
        {"argmax", argmax(5, 50), "UNROLL(1,2) GROUP(1,8)"},
        {"matmul", product, "LOCAL(0,4) LOCAL(1,4) UNROLL(2,4) STAGE(2,1,group,1) STAGE(2,2,group,1)"},
        {"matmul", even_product, "LOCAL(0,4) LOCAL(1,4) UPCAST(0,2) UPCAST(1,2) UNROLL(2,2) STAGE(2,1,group,3) STAGE(2,2,group,3)"},
        {"matmul", even_product, "LANE(1,4) LOCAL(0,4) UNROLL(2,4) STAGE(2,2,group,2)"},
        {"matmul", product, "LOCAL(1,4) UNROLL(2,2) STAGE(2,2,thread,2)"},
        {"row sums", rows, "GROUPTOP(1,16) UNROLL(1,2)"},
        {"softmax", softmax(6, 37), "GROUP(2,8)"},
        {"argmax", argmax(5, 50), "GROUP(1,16)"},
        {"transpose", transpose(30, 17), "LOCAL(0,8) LOCAL(1,8) STAGE(1,1,group,1)"},
        {"convolution", convolution(3, 9, 4, 3), "LOCAL(0,3) LOCAL(1,4) STAGE(2,1,group,2) STAGE(2,2,group,2)"}})
    expect_right(c);
}

/// out[i] = sum over k of a[i, k] less the largest a[i, j]
UOp rows_below_their_largest(int64_t m, int64_t n) {
  const UOp i = loop(m, 0), j = reduce_loop(n, 1), k = reduce_loop(n, 2), a = arg(1, m * n);
  const UOp most = reduce_over(Op::MAX, read(a, i * n + j), {j});
  return kernel({ended(write(arg(0, m), i, reduce_over(Op::ADD, read(a, i * n + k) - most, {k})), {i})});
}

TEST(Ptx, ItemsShareSeveralReductions) {
  const Target target = cuda_target("sm_90a");
  for (const auto& [opts, size] : {std::pair("GROUP(1,8) GROUP(2,8)", "8, 1, 1"),
                                   {"UNROLL(1,2) GROUP(1,8) UNROLL(2,4) GROUP(2,8) LOCAL(0,3)", "3, 8, 1"},
                                   {"GROUPTOP(1,8) GROUP(2,8)", "8, 1, 1"},
                                   {"GROUP(1,4) GROUP(2,8)", "8, 4, 1"}}) {
    const UOp sums = rows_below_their_largest(6, 72);
    expect_right({"rows", sums, opts});
    const UOp linear = codegen::full_rewrite(codegen::test::with_opts(sums, parse_opts(opts)), target, {.noopt = true});
    const std::string text = renderer::render_ptx(target, linear, describe_kernel(linear, "k"));
    EXPECT_NE(text.find(fmt::format(".reqntid {}\n", size)), text.npos) << opts << "\n" << text.substr(0, 600);
  }
}

TEST(Ptx, SizesKnownAtLaunch) {
  for (const char* opts : {"", "UPCAST(0,2) UNROLL(1,4)", "LOCAL(0,4) GROUP(1,8)", "LANE(1,4)"})
    expect_right({"symbolic row sums", symbolic_row_sums(9, 40), opts});
}

TEST(Ptx, AsynchronousCopies) {
  const std::string tile = "UPCAST(0,4) UPCAST(1,4) LOCAL(0,4) LOCAL(1,4) UNROLL(2,4) ";
  const UOp large = matmul(64, 64, 64);
  for (const std::string& opts :
       {tile + "STAGE(2,1,group,1) STAGE(2,2,group,1)", tile + "STAGE(2,1,group,2) STAGE(2,2,group,2)",
        tile + "STAGE(2,1,group,4) STAGE(2,2,group,4)",
        std::string("PADTO(0,32) PADTO(1,32) PADTO(2,32) LOCAL(0,8) LOCAL(1,8) UNROLL(2,8) STAGE(2,1,group,3) STAGE(2,2,group,3)")}) {
    expect_right({"matmul", large, opts.c_str()});
    expect_right({"matmul", product, opts.starts_with("PADTO") ? opts.c_str() : ""});
  }
  const Target target = cuda_target("sm_80");
  const UOp linear =
      codegen::full_rewrite(with_opts(large, parse_opts(tile + "STAGE(2,1,group,3) STAGE(2,2,group,3)")), target, {.noopt = true});
  const KernelInfo info = describe_kernel(linear, "k");
  std::string text = renderer::render_ptx(target, linear, info);
  for (const char* part :
       {"cp.async.cg.shared.global", ", 16;", "cp.async.commit_group;", "cp.async.wait_group 1;", "cp.async.wait_group 0;"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;

  // The machine has them arrive when they are waited for.
  const spec::EvalInputs inputs = some_inputs(large);
  const auto run = [&](const std::string& ptx) {
    tinygrad::test::PtxKernel kernel(target, info, ptx);
    return run_on_host(kernel, info, inputs);
  };
  const auto right = run(text);
  for (size_t at = text.find("cp.async.wait_group 1;"); at != std::string::npos; at = text.find("cp.async.wait_group 1;"))
    text.replace(at, 22, "");
  EXPECT_NE(difference(right, run(text), 0), "") << "without waiting";
}

/// Tiles of more than a kernel's text may declare.
TEST(Ptx, GroupMemoryThatTheLaunchGives) {
  const UOp large = matmul(64, 64, 256);
  const std::string opts = "UPCAST(0,4) UPCAST(1,4) LOCAL(0,16) LOCAL(1,16) UNROLL(2,32) STAGE(2,1,group,4) STAGE(2,2,group,4)";
  expect_right({"matmul", large, opts.c_str()});
  expect_right({"matmul", large, opts.c_str()}, "sm_80");
  const Target target = cuda_target("sm_80");
  const UOp linear = codegen::full_rewrite(with_opts(large, parse_opts(opts)), target, {.noopt = true});
  const KernelInfo info = describe_kernel(linear, "k");
  EXPECT_GT(info.group_bytes, 64 << 10);
  EXPECT_EQ(given_group_bytes(target, info), info.group_bytes);
  const std::string text = renderer::render_ptx(target, linear, info);
  EXPECT_NE(text.find(".extern .shared .align 16 .b8 given[];"), text.npos) << text;
  EXPECT_EQ(text.find("  .shared"), text.npos) << text;
  Target small = target;
  small.group_memory_bytes = 64 << 10;
  EXPECT_THROW(codegen::full_rewrite(with_opts(large, parse_opts(opts)), small, {.noopt = true}), ValueError);
}

/// out[i, j] = sum over k of a[i, k] * b[k, j], factors and sum in dtypes of their own
UOp product_of(int64_t m, int64_t n, int64_t k_size, DType a, DType b, DType sum) {
  const UOp i = loop(m, 0), j = loop(n, 1), k = reduce_loop(k_size, 2);
  const UOp x = cast(read(arg(1, m * k_size, a), i * k_size + k), sum) * cast(read(arg(2, k_size * n, b), k * n + j), sum);
  return kernel({ended(write(arg(0, m * n, sum), i * n + j, reduce_over(Op::ADD, x, {k})), {i, j})});
}

TEST(Ptx, EveryTensorCore) {
  for (const char* arch : {"sm_80", "sm_90a", "sm_100a"}) {
    const Target target = cuda_target(arch);
    for (const size_t i : test::sampled_below(target.tensor_cores.size())) {
      const TensorCore& core = target.tensor_cores[i];
      if (core.kept_bits != 0) continue;  // rounds its factors: below
      // Wide ones differ in that alone.
      if (core.b.in_memory && core.n != 64 && (core.a_type != DType::float16 || core.out != DType::float32)) continue;
      const bool is_wide = core.b.in_memory && core.n > 64;
      const UOp kernel = product_of(2 * core.m, (is_wide ? 1 : 3) * core.n, 4 * core.k, core.a_type, core.b_type, core.out);
      const spec::EvalInputs inputs = some_inputs(kernel);
      spec::EvalInputs evaluated = inputs;
      spec::evaluate(std::span(&kernel, 1), evaluated);
      const std::string opts = fmt::format("TC(0,{})", i), tiled = opts + " UPCAST(0,2) LOCAL(1,3)",
                        staged = opts + " LOCAL(0,2) UNROLL(2,2) STAGE(2,1,group,1) STAGE(2,2,group,1)",
                        ahead = opts + " LOCAL(0,2) UPCAST(1,3) STAGE(2,1,group,3) STAGE(2,2,group,3)";
      for (const std::string& o : is_wide ? std::vector{staged} : std::vector{opts, tiled, staged, ahead}) {
        SCOPED_TRACE(core.name.str());
        const double bound = itemsize(core.out) == 2 ? 1e-2 : 1e-5;
        try {
          const UOp linear = codegen::full_rewrite(with_opts(kernel, parse_opts(o)), target, {.noopt = true, .spec = 1});
          const auto got = run_as_ptx(linear, inputs, target);
          EXPECT_EQ(difference(evaluated.params, got, bound), "") << o;
          EXPECT_EQ(difference(run_on_interp(linear, inputs), got, 0), "") << o << ": the interpreter has something else";
          const char* instruction = core.tensor_memory ? "tcgen05.mma" : core.b.in_memory ? "wgmma.mma_async" : "mma.sync";
          EXPECT_NE(renderer::render_ptx(target, linear, describe_kernel(linear, "k")).find(instruction), std::string::npos);
        } catch (const std::exception& e) {
          ADD_FAILURE() << o << ": " << e.what();
        }
      }
    }
  }
}

TEST(Ptx, WarpgroupsSeeWhatIsFenced) {
  const Target target = cuda_target("sm_90a");
  const UOp kernel = product_of(128, 64, 128, DType::float16, DType::float16, DType::float32);
  const auto& cores = target.tensor_cores;
  const auto core = std::ranges::find(cores, Symbol("wgmma_m64n64k16_kn_f16_f32"), &TensorCore::name) - cores.begin();
  const std::string opts = fmt::format("TC(0,{}) LOCAL(0,2) UNROLL(2,2) STAGE(2,1,group,2) STAGE(2,2,group,2)", core);
  const UOp linear = codegen::full_rewrite(with_opts(kernel, parse_opts(opts)), target, {.noopt = true, .spec = 1});
  const KernelInfo info = describe_kernel(linear, "k");
  const std::string text = renderer::render_ptx(target, linear, info);
  const spec::EvalInputs inputs = some_inputs(kernel);
  const auto run = [&](std::string ptx, std::string_view without) {
    for (size_t at = ptx.find(without); !without.empty() && at != ptx.npos; at = ptx.find(without)) ptx.erase(at, without.size());
    tinygrad::test::PtxKernel program(target, info, ptx);
    return run_on_host(program, info, inputs);
  };
  const auto right = run(text, "");
  for (const char* fence : {"fence.proxy.async.shared::cta;", "wgmma.fence.sync.aligned;"})
    EXPECT_THROW(run(text, fence), std::runtime_error) << fence;
  for (const char* wait : {"wgmma.wait_group.sync.aligned 0;", "wgmma.commit_group.sync.aligned;"}) {
    bool differs = true;
    try {
      differs = !difference(right, run(text, wait), 0).empty();
    } catch (const std::runtime_error&) {}
    EXPECT_TRUE(differs) << wait;
  }
}

size_t count_of(const std::string& text, std::string_view part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

/// A product by a tcgen05, in PTX; which of the opts it has besides.
struct InTensorMemory {
  const Target target = cuda_target("sm_100a");
  UOp kernel, linear;
  KernelInfo info;
  std::string text;

  InTensorMemory(const UOp& of, std::string_view name, const std::string& opts) : kernel(of) {
    const auto& cores = target.tensor_cores;
    const auto core = std::ranges::find(cores, Symbol(name), &TensorCore::name) - cores.begin();
    const std::string all = fmt::format("TC(0,{}) {}", core, opts);
    linear = codegen::full_rewrite(with_opts(of, parse_opts(all)), target, {.noopt = true, .spec = 1});
    info = describe_kernel(linear, "k");
    text = renderer::render_ptx(target, linear, info);
  }

  std::map<int32_t, spec::Array> run(std::string ptx, std::string_view without = {}) const {
    for (size_t at = ptx.find(without); !without.empty() && at != ptx.npos; at = ptx.find(without)) ptx.erase(at, without.size());
    tinygrad::test::PtxKernel program(target, info, ptx);
    return run_on_host(program, info, some_inputs(kernel));
  }
  std::string difference_from_interpreter() const { return difference(run_on_interp(linear, some_inputs(kernel)), run(text), 0); }
};

const char* const narrow_core = "tcgen05_m128n64k16_kn_f16_f32";

TEST(Ptx, SumsStayInTensorMemory) {
  const UOp kernel = product_of(256, 128, 160, DType::float16, DType::float16, DType::float32);
  const InTensorMemory one(kernel, narrow_core, "LOCAL(0,2) UNROLL(2,2) STAGE(2,1,group,3) STAGE(2,2,group,3)"),
      two(kernel, narrow_core, "UPCAST(1,2) LOCAL(0,2)");
  EXPECT_EQ(one.difference_from_interpreter(), "");
  EXPECT_EQ(two.difference_from_interpreter(), "");
  for (const auto& [text, tiles] : {std::pair(&one.text, 1u), std::pair(&two.text, 2u)}) {
    EXPECT_EQ(count_of(*text, "tcgen05.ld"), tiles) << *text;
    EXPECT_EQ(count_of(*text, "tcgen05.st"), 0u);
    EXPECT_GT(text->find("tcgen05.ld"), text->rfind("bra $loop")) << "once, behind all loops";
  }
  EXPECT_NE(one.text.find("alloc.cta_group::1.sync.aligned.shared::cta.b32"), std::string::npos);
}

/// What is left over of a sum is added to what items have by then, and a sum that begins anew overwrites the last one.
TEST(Ptx, TensorMemoryIsGivenSums) {
  const auto check = [](const UOp& kernel, const std::string& opts) {
    const InTensorMemory k(kernel, narrow_core, opts);
    EXPECT_EQ(k.difference_from_interpreter(), "") << opts << "\n" << k.text;
    return k.text;
  };
  const UOp uneven = product_of(128, 64, 70, DType::float16, DType::float16, DType::float32);
  check(uneven, "");
  check(product_of(140, 70, 41, DType::float16, DType::float16, DType::float32), "LOCAL(0,2) STAGE(2,1,group,1)");
  check(product_of(512, 128, 64, DType::float16, DType::float16, DType::float32), "BLOCK(0,2)");
  check(product_of(128, 64, 128, DType::float16, DType::float16, DType::float32), "GROUP(2,2) STAGE(2,2,group,1)");
}

TEST(Ptx, TensorMemoryIsFenced) {
  const UOp kernel = product_of(256, 64, 128, DType::float16, DType::float16, DType::float32);
  const InTensorMemory k(kernel, narrow_core, "LOCAL(0,2) UNROLL(2,2) STAGE(2,1,group,2) STAGE(2,2,group,2)");
  const auto right = k.run(k.text);
  for (const char* needed : {"fence.proxy.async.shared::cta;", "tcgen05.fence::after_thread_sync;", "tcgen05.fence::before_thread_sync;",
                             "tcgen05.wait::ld.sync.aligned;"}) {
    bool differs = true;
    try {
      differs = !difference(right, k.run(k.text, needed), 0).empty();
    } catch (const std::runtime_error&) {}
    EXPECT_TRUE(differs) << needed;
  }
  const size_t wait = k.text.find("$wait"), end = k.text.find("tcgen05.fence", wait);
  EXPECT_THROW(k.run(std::string(k.text).erase(wait, end - wait)), std::runtime_error) << "nobody waits";
  const size_t given_back = k.text.rfind("  @", k.text.find("tcgen05.dealloc"));
  EXPECT_THROW(k.run(std::string(k.text).erase(given_back, k.text.find('\n', given_back) - given_back)), std::runtime_error);
}

TEST(Ptx, TensorMemoryHas512Columns) {
  const UOp kernel = product_of(512, 256, 64, DType::float16, DType::float16, DType::float32);
  EXPECT_THROW(InTensorMemory(kernel, "tcgen05_m128n128k16_kn_f16_f32", "UPCAST(0,2) UPCAST(1,2) LOCAL(0,2)"), CompileError);
}

/// The kernel by a core that takes less of its factors than they have: as the interpreter, and that near to what it would be.
void expect_tf32(const UOp& kernel, const std::string& opts, const Target& target, double tolerance) {
  const UOp linear = codegen::full_rewrite(with_opts(kernel, parse_opts(opts)), target, {.noopt = true, .allow_tf32 = true, .spec = 1});
  const spec::EvalInputs inputs = some_inputs(kernel);
  const auto got = run_as_ptx(linear, inputs, target);
  EXPECT_EQ(difference(run_on_interp(linear, inputs), got, 0), "");
  spec::EvalInputs evaluated = inputs;
  spec::evaluate(std::span(&kernel, 1), evaluated);
  EXPECT_EQ(difference(evaluated.params, got, tolerance), "");
  EXPECT_NE(difference(evaluated.params, got, 1e-6), "") << "all of the factors was used";
}

TEST(Ptx, Tf32IsRoundedAsTheUnitRounds) {
  const Target target = cuda_target("sm_80");
  const UOp kernel = matmul(16, 8, 16);
  expect_tf32(kernel, "TC(0,-1)", target, 3e-3);
  EXPECT_THROW(codegen::full_rewrite(with_opts(kernel, parse_opts("TC(0,-1)")), target, {.noopt = true}), ValueError)
      << "without being allowed";
}

/// What cores that read memory take of a float32.
TEST(Ptx, Tf32InMemoryIsCutOff) {
  const UOp i = loop(128, 0), j = loop(64, 1), k = reduce_loop(32, 2);
  const UOp x = read(arg(1, 128 * 32), i * 32 + k) * read(arg(2, 64 * 32), j * 32 + k);
  const UOp sums = kernel({ended(write(arg(0, 128 * 64), i * 64 + j, reduce_over(Op::ADD, x, {k})), {i, j})});
  for (const auto& [arch, name] :
       {std::pair("sm_90a", "wgmma_m64n64k8_kk_tf32_f32"), std::pair("sm_100a", "tcgen05_m128n64k8_kk_tf32_f32")}) {
    SCOPED_TRACE(name);
    const Target target = cuda_target(arch);
    const auto core = std::ranges::find(target.tensor_cores, Symbol(name), &TensorCore::name);
    ASSERT_NE(core, target.tensor_cores.end());
    const std::string opts = fmt::format("TC(0,{}) UNROLL(2,2) STAGE(2,1,group,2) STAGE(2,2,group,2)", core - target.tensor_cores.begin());
    expect_tf32(sums, opts, target, 6e-3);
  }
}

TEST(Ptx, NarrowFloats) {
  for (const DType d : {DType::float16, DType::bfloat16, DType::fp8e4m3, DType::fp8e5m2})
    for (const char* arch : {"sm_80", "sm_89"}) {
      expect_right({"elementwise", elementwise(64, {}, d), "LOCAL(0,8)"}, arch);
      expect_right({"row sums", row_sums(5, 12, {}, Op::ADD, d), "UPCAST(0,5)"}, arch);
      expect_right({"largest", row_sums(5, 12, {}, Op::MAX, d), "LOCAL(0,5)"}, arch);
    }
}

TEST(Ptx, IntegersBecomeNarrowFloats) {
  for (const DType from :
       {DType::int8, DType::uint8, DType::int16, DType::uint16, DType::int32, DType::uint32, DType::int64, DType::uint64})
    for (const DType to : {DType::float16, DType::bfloat16, DType::fp8e4m3, DType::fp8e5m2}) {
      const UOp i = loop(64, 0);
      const UOp k = kernel({ended(write(arg(0, 64, to), i, cast(read(arg(1, 64, from), i), to)), {i})});
      expect_right({"cast", k, "LOCAL(0,8)"});
      expect_right({"cast", k, "LOCAL(0,8)"}, "sm_80");
    }
}

/// Every number that a narrow float has, and what lies between and beyond.
TEST(Ptx, ConversionsOfNarrowFloats) {
  for (const DType d : {DType::bfloat16, DType::fp8e4m3, DType::fp8e5m2}) {
    std::vector<float> x;
    for (uint64_t bits = 0; bits < uint64_t{1} << (8 * itemsize(d)); bits += itemsize(d) == 1 ? 1 : 37) {
      const double v = Scalar::from_storage_bits(bits, d).as_double(), next = Scalar::from_storage_bits(bits + 1, d).as_double();
      for (const double y : {v, (v + next) / 2, v * 1.0001, v * 1e3}) x.push_back(float(y));
    }
    const auto n = int64_t(x.size());
    const UOp i = loop(n, 0), narrow = arg(0, n, d), wide = arg(1, n), value = cast(read(arg(2, n), i), d);
    const UOp both = kernel({ended(group(std::vector<UOp>{write(narrow, i, value), write(wide, i, cast(value, DType::float32))}), {i})});
    const Target target = cuda_target("sm_90a");
    const UOp linear = codegen::full_rewrite(both, target, {.noopt = true});
    spec::EvalInputs inputs = some_inputs(both);
    for (auto& [slot, array] : inputs.params)
      if (slot == 2) std::memcpy(array.bytes.data(), x.data(), x.size() * sizeof(float));
    const auto got = run_as_ptx(linear, inputs, target);
    int wrong = 0;
    for (size_t k = 0; k < x.size() && wrong < 5; ++k) {
      const Scalar want = Scalar::of(x[k]).cast(d);
      if (got.at(0)[k] != want && ++wrong) ADD_FAILURE() << repr(d) << " of " << x[k] << ": " << got.at(0)[k].to_string();
      if (got.at(1)[k] != want.cast(DType::float32) && ++wrong)
        ADD_FAILURE() << repr(d) << " of " << x[k] << " as float32: " << got.at(1)[k].to_string();
    }
  }
}

TEST(Ptx, VectorsAreAccessedAsWideAsTheyAreAligned) {
  const auto text = [](int align) {
    const UOp i = loop(16, 0);
    const auto aligned = [&](int slot) {
      return param(DType::float32, 64, ParamArg{.slot = slot, .align = uint16_t(align), .alias = uint16_t(slot + 1)});
    };
    const UOp j = range(4, 1, AxisKind::lane), at = i * 4 + j;
    const UOp k = kernel({ended(write(aligned(0), at, read(aligned(1), at) + 1), {i, j})});
    Target target = cuda_target("sm_80");
    target.memory_alignment = 0;
    const UOp linear = codegen::full_rewrite(k, target, {.noopt = true});
    return renderer::render_ptx(target, linear, describe_kernel(linear, "k"));
  };
  EXPECT_NE(text(16).find("ld.global.nc.v4.f32"), std::string::npos) << text(16);
  EXPECT_NE(text(16).find("st.global.v4.f32"), std::string::npos);
  EXPECT_NE(text(8).find("ld.global.nc.v2.f32"), std::string::npos);
  EXPECT_EQ(text(0).find(".v2"), std::string::npos) << text(0);
}

/// Eight halves are four words; a gate leaves all of them as they are.
TEST(Ptx, VectorsOfHalves) {
  for (const DType d : {DType::float16, DType::bfloat16, DType::int16, DType::int8}) {
    expect_right({"elementwise", elementwise(64, {}, d), "UPCAST(0,16)"});
    expect_right({"elementwise", elementwise(64, {}, d), "UPCAST(0,8) LOCAL(0,4)"});
  }
  const UOp i = loop(64, 0), x = arg(1, 64, DType::float16), inside = load(index_valid(x, i - 16, logical_not(i < 16)));
  expect_right({"bordered", kernel({ended(write(arg(0, 64, DType::float16), i, inside + 1), {i})}), "UPCAST(0,8) LOCAL(0,4)"});
  const Target target = cuda_target("sm_80");
  const UOp linear =
      codegen::full_rewrite(with_opts(elementwise(64, {}, DType::float16), parse_opts("UPCAST(0,8)")), target, {.noopt = true});
  const std::string text = renderer::render_ptx(target, linear, describe_kernel(linear, "k"));
  EXPECT_NE(text.find(".v4.b32"), std::string::npos) << text;
}

}  // namespace
}  // namespace tinygrad
