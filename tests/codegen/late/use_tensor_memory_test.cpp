#include "codegen/late/use_tensor_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "codegen/opt/parse_opts.h"
#include "spec/verify.h"
#include "target/target.h"
#include "uop/build.h"

namespace tinygrad::codegen {
namespace {

using test::count;

/// out[i, j] = sum over k of a[i, k] * b[k, j], of bfloat16 in float32, by tcgen05 with tiles of 64 columns.
UOp compiled(int64_t m, int64_t n, int64_t depth, std::string_view opts) {
  const Target target = cuda_target("sm_100a");
  const auto core = std::ranges::find(target.tensor_cores, Symbol("tcgen05_m128n64k16_kn_bf16_f32"), &TensorCore::name);
  const UOp kernel = test::narrow_matmul(m, n, depth, DType::bfloat16, DType::bfloat16, DType::float32);
  const std::string all = "TC(0," + std::to_string(core - target.tensor_cores.begin()) + ") " + std::string(opts);
  return full_rewrite(test::with_opts(kernel, parse_opts(all)), target, {.noopt = true, .spec = 1});
}

/// Places of the instructions that access tiles.
std::vector<size_t> accesses(const UOp& linear, Op op) {
  std::vector<size_t> out;
  for (size_t i = 0; i < linear.src_count(); ++i)
    if (const UOp& u = linear.src(i); u.is(op) && is_tensor_memory(u.src(op == Op::WMMA ? 2 : 0))) out.push_back(i);
  return out;
}
size_t first(const UOp& linear, Op op) {
  return size_t(std::ranges::find_if(linear.src(), [&](const UOp& u) { return u.is(op); }) - linear.src().begin());
}
size_t last(const UOp& linear, Op op) {
  size_t at = 0;
  for (size_t i = 0; i < linear.src_count(); ++i)
    if (linear.src(i).is(op)) at = i;
  return at;
}

TEST(UseTensorMemory, AccumulatorsStayThereWhileLoopsRun) {
  const UOp linear = compiled(256, 128, 160, "UPCAST(1,2) UNROLL(2,2)");
  const std::vector<size_t> zeros = accesses(linear, Op::STORE), sums = accesses(linear, Op::LOAD);
  EXPECT_EQ(count(linear, [](const UOp& u) { return u.is(Op::BUFFER) && is_tensor_memory(u); }), 2u);
  ASSERT_EQ(zeros.size(), 2u);
  ASSERT_EQ(sums.size(), 2u) << "each tile is read once";
  EXPECT_LT(zeros[1], first(linear, Op::RANGE));
  EXPECT_GT(sums[0], last(linear, Op::END));
  EXPECT_EQ(accesses(linear, Op::WMMA).size(), count(linear, Op::WMMA)) << "in place";
  EXPECT_EQ(linear.src(sums[0]).dtype(), DType::float32);
  const auto is_private = [](const UOp& u) {
    return (u.is(Op::LOAD) || u.is(Op::STORE)) && u.src(0).src(0).is(Op::BUFFER) && u.src(0).src(0).arg_as<BufferArg>().scope == Scope::reg;
  };
  EXPECT_EQ(count(linear, is_private), 0u);
}

TEST(UseTensorMemory, WithoutALoopProductsAreGivenSums) {
  const UOp linear = compiled(128, 64, 64, "UNROLL(2,4)");
  EXPECT_GT(count(linear, Op::WMMA), 0u);
  EXPECT_EQ(accesses(linear, Op::WMMA).size(), 0u);
}

TEST(UseTensorMemory, OnlyWholeTilesAreAccessed) {
  const UOp linear = compiled(128, 64, 64, "");
  const size_t at = accesses(linear, Op::LOAD).at(0);
  const auto with = [&](const UOp& place) {
    UOps list(linear.src());
    list.resize(at - 1);
    list.push_back(place);
    list.push_back(load(place));
    return linear.with_src(list);
  };
  const UOp& place = linear.src(at).src(0);
  EXPECT_NO_THROW(spec::verify_linear(with(place)));
  IndexArg part = place.arg_as<IndexArg>();
  part.width = 1;
  EXPECT_ANY_THROW(spec::verify_linear(with(place.with_arg(part))));
}

TEST(UseTensorMemory, SumsAreReadWhereProductsWereWaitedFor) {
  const UOp linear = compiled(128, 64, 64, "");
  UOps without;
  for (const UOp& u : linear.src())
    if (!u.is(Op::WMMA_WAIT)) without.push_back(u);
  EXPECT_ANY_THROW(spec::verify_linear(linear.with_src(without)));
}

TEST(UseTensorMemory, OtherProgramsStayAsTheyAre) {
  const UOp linear = full_rewrite(test::matmul(8, 8, 8), cuda_target("sm_90a"), {});
  EXPECT_EQ(use_tensor_memory(linear), linear);
}

}  // namespace
}  // namespace tinygrad::codegen
