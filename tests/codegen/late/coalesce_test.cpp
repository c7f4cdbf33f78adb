// Which neighbours are loaded and stored together, on targets where a work-item has vectors in memory alone. That values stay the same is
// tested with all other opts (tests/codegen/opt/opts_test.cpp) and of PTX (tests/runtime/backend/ptx_test.cpp).
#include <gtest/gtest.h>

#include <map>

#include "codegen/choose/heuristic_opts.h"
#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "codegen/opt/parse_opts.h"
#include "symbolic/known_divisors.h"
#include "uop/build.h"

namespace tinygrad::codegen {
namespace {

using Widths = std::map<int32_t, int>;  // how many accesses have each width

struct Accesses {
  Widths loads, stores;
  std::map<int32_t, int> promised;  // alignments, by slot
};

bool is_private(const UOp& memory) { return memory.is(Op::BUFFER) && memory.arg_as<BufferArg>().scope == Scope::reg; }

Accesses accesses(const UOp& kernel, const Target& target = cuda_target("sm_80")) {
  Accesses out;
  const UOp linear = full_rewrite(kernel, target, {.noopt = true, .spec = 1});
  for (const UOp& u : linear.src()) {
    if ((u.is(Op::LOAD) || u.is(Op::STORE)) && is_private(u.src(0).src(0))) continue;
    if (u.is(Op::LOAD)) ++out.loads[u.src(0).arg_as<IndexArg>().width];
    if (u.is(Op::STORE)) ++out.stores[u.src(0).arg_as<IndexArg>().width];
    if (u.is(Op::PARAM) && u.arg_as<ParamArg>().align != 0) out.promised[u.arg_as<ParamArg>().slot] = u.arg_as<ParamArg>().align;
  }
  return out;
}

const std::vector<Opt> by_four{{OptOp::UPCAST, 0, 4}};

/// out[i] = x[i + offset], four elements an iteration
UOp shifted(int64_t n, int64_t offset, DType dtype = DType::float32, std::vector<Opt> opts = by_four, int align = 0) {
  const UOp i = test::loop(n, 0);
  const UOp x = param(dtype, n + 64, ParamArg{.slot = 1, .align = uint16_t(align)});
  return test::kernel({test::ended(test::write(test::arg(0, n, dtype), i, test::read(x, i + offset)), {i})}, std::move(opts));
}

TEST(Coalesce, NeighboursAreOneAccess) {
  const Accesses a = accesses(test::elementwise(64, by_four));
  EXPECT_EQ(a.loads, (Widths{{4, 2}}));
  EXPECT_EQ(a.stores, (Widths{{4, 1}}));
  EXPECT_EQ(a.promised, (Widths{{0, 16}, {1, 16}, {2, 16}}));
}

TEST(Coalesce, AsWideAsTheTargetHas) {
  const std::vector<Opt> by_sixteen{{OptOp::UPCAST, 0, 16}};
  EXPECT_EQ(accesses(shifted(64, 0, DType::float16, by_sixteen)).loads, (Widths{{8, 2}}));
  EXPECT_EQ(accesses(shifted(64, 0, DType::float32, by_sixteen)).loads, (Widths{{4, 4}}));
  EXPECT_EQ(accesses(shifted(64, 0, DType::int8, by_sixteen)).loads, (Widths{{16, 1}}));
  EXPECT_EQ(accesses(shifted(64, 0, DType::bool_, by_sixteen)).loads, (Widths{{1, 16}})) << "a bool may be any byte but 0";
}

TEST(Coalesce, OnlyWhatIsKnownToBeAligned) {
  EXPECT_EQ(accesses(shifted(64, 4)).loads, (Widths{{4, 1}}));
  EXPECT_EQ(accesses(shifted(64, 2)).loads, (Widths{{2, 2}}));
  EXPECT_EQ(accesses(shifted(64, 1)).loads, (Widths{{1, 2}, {2, 1}})) << "the two in the middle are";
  EXPECT_EQ(accesses(shifted(64, 1)).stores, (Widths{{4, 1}}));
}

TEST(Coalesce, WithoutAPromiseOfTheTargetTheArgumentsOwn) {
  Target target = cuda_target("sm_80");
  target.memory_alignment = 0;
  EXPECT_EQ(accesses(shifted(64, 0), target).loads, (Widths{{1, 4}}));
  EXPECT_EQ(accesses(shifted(64, 0, DType::float32, by_four, 8), target).loads, (Widths{{2, 2}}));
  target.unaligned_vectors = true;
  const Accesses a = accesses(shifted(64, 1), target);
  EXPECT_EQ(a.loads, (Widths{{4, 1}}));
  EXPECT_EQ(a.promised, Widths{}) << "none is needed";
}

/// out[i] = x[i] within an image that is `before` elements smaller on the left, else 0
UOp bordered(int64_t before) {
  const UOp i = test::loop(64, 0), x = test::arg(1, 64);
  const UOp inside = load(index_valid(x, i - before, logical_not(i < before)));
  return test::kernel({test::ended(test::write(test::arg(0, 64), i, inside), {i})}, by_four);
}

TEST(Coalesce, NeighboursHaveOneGate) {
  EXPECT_EQ(accesses(bordered(8)).loads, (Widths{{4, 1}}));
  EXPECT_EQ(accesses(bordered(6)).loads, (Widths{{2, 2}})) << "the border is in the middle of the four";
  EXPECT_EQ(accesses(bordered(5)).loads, (Widths{{1, 2}, {2, 1}}));
}

TEST(Coalesce, RowsOfAnOddLengthAreTakenOneByOne) {
  const std::vector<Opt> opts{{OptOp::UNROLL, 1, 4}};
  EXPECT_EQ(accesses(test::row_sums(8, 64, opts)).loads, (Widths{{4, 1}}));
  EXPECT_EQ(accesses(test::row_sums(8, 66, {{OptOp::UNROLL, 1, 2}})).loads, (Widths{{2, 1}}));
  EXPECT_EQ(accesses(test::row_sums(8, 63, {{OptOp::UNROLL, 1, 3}})).loads, (Widths{{1, 3}}));
}

TEST(Coalesce, TilesInMemoryOfTheGroup) {
  const UOp product = test::matmul(64, 64, 64, parse_opts("UPCAST(0,4) UPCAST(1,4) LOCAL(0,4) LOCAL(1,4) UNROLL(2,4) STAGE(2,2,group,1)"));
  Target target = cuda_target("sm_80");
  target.async_copy_bytes = 0;
  const Accesses a = accesses(product, target);
  EXPECT_GT(a.loads.at(4), 4) << "of both factors";
  EXPECT_EQ(a.stores, (Widths{{4, 5}})) << "a fill of one vector, four of results";
}

TEST(Coalesce, ACpuHasVectorsOfItsOwn) {
  const UOp kernel = shifted(64, 0);
  EXPECT_EQ(accesses(kernel, cpu_target("x86-64-v3")).loads, (Widths{{1, 4}}));
}

TEST(Coalesce, HeuristicsGiveEachWorkItemNeighbours) {
  const auto chosen = [](const UOp& kernel) { return to_string(heuristic_opts(kernel, cuda_target("sm_90a"))); };
  EXPECT_EQ(chosen(test::elementwise(1 << 20)).substr(0, 11), "UPCAST(0,4)");
  EXPECT_EQ(chosen(test::elementwise(1 << 20, {}, DType::float16)).substr(0, 11), "UPCAST(0,8)");
  EXPECT_EQ(chosen(test::elementwise(256)).find("UPCAST"), std::string::npos) << "all of them are needed as work-items";
  EXPECT_EQ(chosen(test::row_sums(16, 4096)).substr(0, 24), "UNROLL(1,4) GROUP(1,256)");
  EXPECT_EQ(chosen(test::transpose(1024, 1024)).find("UPCAST"), std::string::npos) << "what is loaded does not lie together";
}

TEST(KnownDivisors, ArePowersOfTwo) {
  const UOp x = range(10, 0), y = range(10, 1);
  const auto power = [](const UOp& u) { return symbolic::KnownDivisors().power_of_two(u); };
  EXPECT_EQ(power(x), 0);
  EXPECT_EQ(power(x * 24), 3);
  EXPECT_EQ(power(x * 8 + y * 12), 2);
  EXPECT_EQ(power(x * 8 * (y * 2)), 4);
  EXPECT_EQ(power(floor_div(x * 16, 4)), 2);
  EXPECT_EQ(power(floor_mod(x * 16, 24)), 3);
  EXPECT_EQ(power(where(x < 3, y * 4, index_const(6))), 1);
  EXPECT_EQ(power(index_const(0)), symbolic::KnownDivisors::most_power);
}

}  // namespace
}  // namespace tinygrad::codegen
