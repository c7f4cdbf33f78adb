// Kernels that read packed copies of constant arguments, beside the kernels as they were.
#include "codegen/choose/pack_constants.h"

#include <gtest/gtest.h>

#include "codegen/choose/heuristic_opts.h"
#include "program/run_kernel.h"

namespace tinygrad::codegen {
namespace {

Target avx512() { return cpu_target("x86-64-v4"); }

/// What the packed kernel computes of the copy that the other one makes.
std::map<int32_t, spec::Array> evaluated(const PackedKernel& packed, const spec::EvalInputs& inputs) {
  spec::EvalInputs all = inputs;
  for (const PackedArgument& a : packed.arguments) {
    spec::EvalInputs pack;
    pack.params[0] = spec::Array::of(inputs.params.at(a.slot).dtype, std::vector<double>(size_t(a.size)));
    pack.params[1] = inputs.params.at(a.slot);
    spec::evaluate(std::span(&a.pack, 1), pack);
    all.params[a.slot] = pack.params.at(0);
  }
  spec::evaluate(std::span(&packed.sink, 1), all);
  for (const PackedArgument& a : packed.arguments) all.params[a.slot] = inputs.params.at(a.slot);
  return all.params;
}

struct Case {
  const char* name;
  UOp kernel;
  uint64_t constant;  ///< slots
};

/// out[i, j] = sum over k of a[i, k] * b[j, k], the weight of a linear layer
UOp linear(int64_t m, int64_t n, int64_t k_size, const UOp& first = index_const(0)) {
  const UOp i = test::loop(m, 0), j = test::loop(n, 1), k = test::reduce_loop(k_size, 2);
  const UOp product = test::read(test::arg(1, m * k_size), i * k_size + k) * test::read(test::arg(2, n * k_size), first + j * k_size + k);
  return test::kernel({test::ended(test::write(test::arg(0, m * n), i * n + j, test::reduce_over(Op::ADD, product, {k})), {i, j})});
}

/// out[o, y, x] = sum over c, r and s of a[c, 2 y + r, 2 x + s] * w[o, c, r, s]
UOp convolution(int64_t out_channels, int64_t n, int64_t channels) {
  const UOp o = test::loop(out_channels, 0), y = test::loop(n, 1), x = test::loop(n, 2);
  const UOp c = test::reduce_loop(channels, 3), r = test::reduce_loop(3, 4), s = test::reduce_loop(3, 5);
  const int64_t wide = 2 * n + 1;
  const UOp a = test::read(test::arg(1, channels * wide * wide), (c * wide + y * 2 + r) * wide + x * 2 + s);
  const UOp w = test::read(test::arg(2, out_channels * channels * 9), ((o * channels + c) * 3 + r) * 3 + s);
  const UOp sum = test::reduce_over(Op::ADD, a * w, {c, r, s});
  return test::kernel({test::ended(test::write(test::arg(0, out_channels * n * n), (o * n + y) * n + x, sum), {o, y, x})});
}

/// out[i, j] = the product over g of sum over k of a[i, k] * b[g, j, k], as the gates of a recurrent layer. If `same`,
/// the last gate reads the same places of b for all j
UOp gates(int64_t m, int64_t n, int64_t k_size, int64_t number, bool same = false) {
  const UOp i = test::loop(m, 0), j = test::loop(n, 1);
  UOp value;
  for (int64_t g = 0; g < number; ++g) {
    const UOp k = test::reduce_loop(k_size, int(2 + g)), row = same && g == number - 1 ? index_const(g * n) : j + g * n;
    const UOp product =
        test::read(test::arg(1, m * k_size), i * k_size + k) * test::read(test::arg(2, number * n * k_size), row * k_size + k);
    const UOp sum = test::reduce_over(Op::ADD, product, {k});
    value = value ? value * sum : sum;
  }
  return test::kernel({test::ended(test::write(test::arg(0, m * n), i * n + j, value), {i, j})});
}

TEST(PackConstants, GivesTheSame) {
  const Case cases[] = {{"linear", linear(100, 192, 160), 1 << 2},
                        {"linear, the last block is masked", linear(95, 187, 57), 1 << 2},
                        {"matmul", test::matmul(200, 192, 80), 1 << 2},
                        {"convolution", convolution(96, 7, 64), 1 << 2},
                        {"gates", gates(100, 192, 160, 3), 1 << 2},
                        {"gates, the last block is masked", gates(95, 187, 57, 2), 1 << 2},
                        {"two products", test::two_products(150, 190, 80, 40), 1 << 2 | 1 << 4}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const auto packed = pack_constants(c.kernel, avx512(), {}, c.constant);
    ASSERT_TRUE(packed);
    uint64_t slots = 0;
    for (const PackedArgument& a : packed->arguments) slots |= uint64_t{1} << a.slot;
    EXPECT_EQ(slots, c.constant) << "all of them along the same axis";
    EXPECT_LT(*heuristic_cost(simplified_kernel(packed->sink), avx512()), *heuristic_cost(simplified_kernel(c.kernel), avx512()));
    const spec::EvalInputs inputs = test::some_inputs(c.kernel);
    spec::EvalInputs want = inputs;
    spec::evaluate(std::span(&c.kernel, 1), want);
    EXPECT_EQ(test::difference(want.params, evaluated(*packed, inputs)), "");
    std::vector<UOp> kernels{packed->sink};
    for (const PackedArgument& a : packed->arguments) kernels.push_back(a.pack);
    for (const UOp& kernel : kernels) {
      const UOp simple = simplified_kernel(kernel);
      const std::vector<Opt> opts = heuristic_opts(simple, avx512());
      SCOPED_TRACE(to_string(opts));
      EXPECT_EQ(test::difference_on_cpu(simple, opts), "");
    }
  }
}

TEST(PackConstants, TermsThatATensorCoreAddsAreNeighbours) {
  const Target avx2 = cpu_target("x86-64-v3");
  const int64_t m = 100, n = 192, terms = 160;
  const UOp i = test::loop(m, 0), j = test::loop(n, 1), k = test::reduce_loop(terms, 2);
  const auto wide = [](const UOp& x) { return cast(x, DType::int32); };
  const UOp a = test::read(test::arg(1, m * terms, DType::int16), i * terms + k);
  const UOp b = test::read(test::arg(2, n * terms, DType::int16), k * n + j);
  const UOp sum = test::reduce_over(Op::ADD, wide(a) * wide(b), {k});
  const UOp kernel = test::kernel({test::ended(test::write(test::arg(0, m * n, DType::int32), i * n + j, sum), {i, j})});
  const auto packed = pack_constants(kernel, avx2, {}, 1 << 2);
  ASSERT_TRUE(packed);
  const UOp simple = simplified_kernel(packed->sink);
  const std::vector<Opt> opts = heuristic_opts(simple, avx2);
  EXPECT_TRUE(to_string(opts).starts_with("TC(")) << to_string(opts);
  EXPECT_EQ(to_string(opts).find("STAGE"), std::string::npos) << to_string(opts);
  const spec::EvalInputs inputs = test::some_inputs(kernel);
  spec::EvalInputs want = inputs;
  spec::evaluate(std::span(&kernel, 1), want);
  EXPECT_EQ(test::difference(want.params, evaluated(*packed, inputs)), "");
  EXPECT_EQ(test::difference_on_cpu(simple, heuristic_opts(simple, Device::get("CPU").target())), "");
}

TEST(PackConstants, OnlyWhereItPays) {
  const UOp kernel = test::matmul(200, 192, 80);
  const uint64_t all = ~uint64_t{0};
  EXPECT_TRUE(pack_constants(kernel, avx512(), {}, all));
  EXPECT_TRUE(pack_constants(linear(100, 192, 160), avx512(), {}, 1 << 2));
  EXPECT_FALSE(pack_constants(linear(100, 192, 160, variable("first", 0, 64)), avx512(), {}, 1 << 2)) << "each call has a copy of its own";
  EXPECT_FALSE(pack_constants(gates(100, 192, 160, 3, true), avx512(), {}, 1 << 2)) << "one load needs another order";
  EXPECT_FALSE(pack_constants(kernel, avx512(), {}, 0)) << "no argument is constant";
  EXPECT_FALSE(pack_constants(kernel, avx512(), {.noopt = true}, all));
  EXPECT_FALSE(pack_constants(kernel, interp_target(), {}, all)) << "work-groups";
  EXPECT_FALSE(pack_constants(test::matmul(5000, 192, 80), avx512(), {}, 1 << 2)) << "each element has very many uses";
  EXPECT_FALSE(pack_constants(test::matmul(1, 192, 80), avx512(), {}, all)) << "each element is used once";
  EXPECT_FALSE(pack_constants(test::transpose(64, 64), avx512(), {}, all)) << "there is no reduction";
  EXPECT_FALSE(pack_constants(test::with_opts(kernel, parse_opts("LANE(1,8)")), avx512(), {}, all)) << "opts are given";
}

}  // namespace
}  // namespace tinygrad::codegen
