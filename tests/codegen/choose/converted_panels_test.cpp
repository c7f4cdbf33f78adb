// Panels and windows hold narrow elements as sums need them, converted once.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "codegen/choose/heuristic_opts.h"
#include "codegen/kernel_axes.h"
#include "program/run_kernel.h"

namespace tinygrad::codegen {
namespace {

using namespace test;

/// out[i, j] = sum over k of float(a[i, k]) * float(b[k, j]) and, if `adds`, b[k, j] once more.
UOp narrow_product(int64_t m, int64_t n, int64_t terms, DType dtype, bool adds = false) {
  const UOp i = loop(m, 0), j = loop(n, 1), k = reduce_loop(terms, 2);
  const UOp a = read(arg(1, m * terms, dtype), i * terms + k), b = read(arg(2, terms * n, dtype), k * n + j);
  UOp product = cast(a, DType::float32) * cast(b, DType::float32);
  if (adds) product = product + cast(b + b, DType::float32);
  return kernel({ended(write(arg(0, m * n), i * n + j, reduce_over(Op::ADD, product, {k})), {i, j})});
}

/// Without chunks, of which the last may compute rows of the one before.
std::vector<Opt> chosen(const UOp& sink) {
  std::vector<Opt> opts = heuristic_opts(simplified_kernel(sink), with_small_caches(cpu_target("x86-64-v3")));
  std::erase_if(opts, [](const Opt& o) { return o.op == OptOp::THREAD; });
  return opts;
}

TEST(ConvertedPanels, AreChosenForNarrowFactors) {
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    const UOp sink = narrow_product(256, 256, 256, dtype);
    const std::string opts = to_string(heuristic_opts(simplified_kernel(sink), cpu_target("x86-64-v3")));
    EXPECT_NE(opts.find(",2,thread,1,computed)"), std::string::npos) << opts;
    EXPECT_NE(opts.find(",1,thread,1,computed)"), std::string::npos) << opts;
  }
}

TEST(ConvertedPanels, ValuesAreTheSame) {
  for (const DType dtype : {DType::bfloat16, DType::float16, DType::int8})
    for (const auto& [m, n, k] : {std::tuple{16, 48, 24}, {13, 35, 11}})
      for (const bool adds : {false, true}) {
        const UOp sink = narrow_product(m, n, k, dtype, adds);
        for (const std::vector<Opt>& opts :
             {chosen(sink), parse_opts("LANE(1,8) UPCAST(0,4) UPCAST(1,3) SWAP(0,1) STAGE(0,2,thread,1,computed) "
                                       "STAGE(1,1,thread,1,computed)")}) {
          SCOPED_TRACE(fmt::format("{}x{}x{} {} {}", m, n, k, repr(dtype), to_string(opts)));
          EXPECT_EQ(difference_on_interp(sink, opts, cpu_target("x86-64-v3")), "");
          EXPECT_EQ(difference_on_cpu(sink, opts), "");
        }
      }
}

}  // namespace
}  // namespace tinygrad::codegen
