// Kernels and bytes moved of known programs for fixed Targets. A change of the cost model changes numbers here: judge each.
#include <gtest/gtest.h>

#include <map>

#include "schedule/schedule.h"
#include "schedule/traffic.h"
#include "spec/verify.h"
#include "support/programs.h"
#include "uop/build.h"

namespace tinygrad::schedule {
namespace {

struct Counts {
  size_t kernels = 0;
  int64_t bytes = 0;  ///< distinct elements each kernel reads and writes

  friend bool operator==(const Counts&, const Counts&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Counts& c) { return out << c.kernels << " kernels, " << c.bytes << " bytes"; }
};

struct Expected {
  std::string_view name;
  Counts cpu;     ///< AVX2 and AVX-512
  Counts groups;  ///< GPU-shaped
};

constexpr Expected expected[] = {
    {"relu of a*b+c", {1, 1048576}, {1, 1048576}},
    {"chain of twenty", {1, 524288}, {1, 524288}},
    {"broadcast add", {1, 264192}, {1, 264192}},
    {"diamond of exp", {1, 524288}, {1, 524288}},
    {"two outputs of one exp", {1, 786432}, {1, 786432}},
    {"transposed add", {1, 524288}, {1, 524288}},
    {"cat of three", {1, 49152}, {1, 49152}},
    {"pad and shrink", {1, 32260}, {1, 32260}},
    {"gelu", {1, 524288}, {1, 524288}},
    {"one hot", {1, 66560}, {1, 66560}},
    {"sum of all", {1, 1048580}, {1, 1048580}},
    {"row sums", {1, 263168}, {1, 263168}},
    {"column sums", {1, 263168}, {1, 263168}},
    {"sum of exp with epilogue", {1, 263168}, {1, 263168}},
    {"sum of sums", {2, 1065088}, {1, 1048704}},  // a group-shaped device pays more for a launch than for a few idle groups
    {"row sums then column sums with relu", {1, 2097408}, {1, 2097408}},
    {"row sums and column sums", {1, 264192}, {1, 264192}},       // two loops over the same elements; the second run finds them in cache
    {"rows divided by their sum", {1, 524288}, {2, 788480}},      // groups do not share a row: the sums are stored
    {"all divided by the sum of all", {2, 786440}, {2, 786440}},  // every element needs the whole sum
    {"mean and variance", {1, 264192}, {1, 264192}},              // the mean stays in a register; tinygrad has 2
    {"argmax", {1, 263168}, {1, 263168}},                         // tinygrad has 2
    {"softmax",
     {1, 524288},
     {2, 790528}},  // a row stays in cache between its passes; with groups the maxima and sums are one kernel; tinygrad has 3
    {"log softmax", {1, 524288}, {2, 790528}},
    {"softmax of few long rows", {1, 1048576}, {2, 1572928}},
    {"layer norm", {1, 526336}, {2, 792576}},  // tinygrad has 3
    {"cumulative sum", {1, 131072}, {1, 131072}},
    {"cross entropy", {1, 11268}, {1, 11268}},           // one loop with few classes; tinygrad has 3
    {"cross entropy backward", {4, 49168}, {2, 32780}},  // one counts the targets that are not ignored
    {"matmul", {1, 106496}, {1, 106496}},
    {"matmul of transposed", {1, 106496}, {1, 106496}},
    {"matmul of relu, bias and relu", {1, 106752}, {1, 106752}},
    {"matmul of exp", {2, 204800}, {2, 204800}},  // 64 evaluations an element cost more than a write and a read
    {"three matmuls", {3, 147456}, {3, 147456}},
    {"matrix and vector", {1, 527360}, {1, 527360}},
    {"matmul backward", {3, 319488}, {3, 319488}},
    {"embedding", {1, 16512}, {1, 16512}},  // the rows named, not the table
    {"embedding and linear", {1, 32896}, {1, 32896}},
    {"attention", {1, 131072}, {1, 131072}},  // q, k, v and the result: no scores in memory; tinygrad has 4 kernels
    {"causal attention", {1, 131072}, {1, 131072}},
    {"gelu MLP", {2, 296192}, {2, 296192}},
    {"transformer block", {7, 625920}, {7, 595200}},  // normalized rows, q k v, attention, projection, statistics, rows up, rows down
    {"transformer block backward", {28, 2640132}, {35, 2578436}},
    {"convolution", {1, 53760}, {1, 53760}},
    {"convolution, bias and relu", {1, 53824}, {1, 53824}},
    {"strided convolution", {1, 29184}, {1, 29184}},
    {"grouped convolution", {1, 50304}, {1, 50304}},
    {"two convolutions", {2, 107520}, {2, 107520}},  // 9 evaluations of a sum of 72 cost more than a write
    {"convolution and batch norm, eval", {1, 54016}, {1, 54016}},
    {"batch norm, train", {2, 393856}, {2, 393856}},  // statistics and running averages; the values
    {"convolution and batch norm, train", {3, 595072}, {3, 595072}},
    {"batch norm backward", {2, 394112}, {2, 394240}},  // all sums over a channel; the gradient of x
    {"max pool", {1, 20480}, {1, 20480}},
    {"average pool", {1, 20480}, {1, 20480}},
    {"convolution, relu and max pool", {2, 94784}, {1, 29248}},  // in the loops of the pool it would not be tiled
    {"convolution backward",
     {3, 161280},
     {3, 161280}},  // the output and both gradients; nothing of the size of the windows. tinygrad has 4
    {"MLP", {3, 120360}, {3, 120360}},
    {"MLP step with SGD", {9, 401812}, {10, 405132}},  // forward, the loss, gradients with their updates
    {"MLP step with momentum", {9, 478692}, {10, 482012}},
    {"Adam, six parameters", {7, 602200}, {7, 602200}},  // one a parameter, one for the two powers
    {"conv net step with Adam", {14, 881000}, {18, 968152}},
    {"random numbers", {3, 49184}, {2, 49168}},  // the key; the bits; the numbers, which take a half of each word
    {"normal random numbers", {3, 81952}, {2, 16416}},
    {"dropout", {3, 65568}, {2, 65552}},
    {"in-place add", {1, 32768}, {1, 32768}},
    {"two in-place adds", {1, 32768}, {1, 32768}},
    {"flip in place", {2, 65536}, {2, 65536}},  // a flipped copy first
    {"slice assigned", {1, 4096}, {1, 4096}},
    {"overlapping slice assigned", {2, 8192}, {2, 8192}},  // a copy first
    {"two states of a buffer", {1, 49152}, {1, 49152}},    // one iteration has both at hand
    {"reader of the old state", {1, 49152}, {1, 49152}},
    {"assigned, then summed", {2, 49408}, {2, 49408}},
    {"attention with a boolean mask", {1, 17408}, {1, 17408}},
    {"attention with an additive mask", {1, 20480}, {1, 20480}},
    {"attention of half floats", {1, 8192}, {1, 8192}},                   // half the bytes
    {"attention of few queries to many keys", {3, 197632}, {1, 132096}},  // on a CPU rows would fill half of a vector
    {"attention of wide heads", {1, 262144}, {1, 262144}},
    {"attention of grouped queries", {1, 12288}, {1, 12288}},
    {"attention and projection", {2, 28800}, {2, 28800}},
    {"attention without scale", {1, 16384}, {1, 16384}},
    {"attention and its weights", {3, 49152}, {4, 50432}},  // the weights are asked for: they are stored, then multiplied
    {"attention backward", {8, 141568}, {7, 110592}},
    {"softmax of scores", {2, 65536}, {3, 66816}},  // the scores are read twice: stored once
    {"weighted mean by softmax", {1, 65792}, {1, 65792}},
    {"two products of one softmax",
     {4, 114688},
     {2, 49152}},  // two matrix products never share a kernel; on the CPU the weights are cheaper to keep
    {"softmax of half floats", {1, 65536}, {2, 99328}},  // the maximum of a row is float32
    {"logsumexp", {1, 65792}, {1, 65792}},
    {"cross entropy of many classes", {2, 257028}, {2, 512772}},
    {"mean squared error", {1, 32772}, {1, 32772}},
    {"rms norm", {1, 132096}, {2, 198144}},
    {"rms norm and linear", {2, 81920}, {2, 66048}},
    {"standard deviation", {1, 65792}, {1, 65792}},
    {"clipped by norm", {2, 49160}, {2, 49160}},
    {"layer norm backward", {3, 135680}, {6, 239872}},
    {"embedding backward", {1, 8576}, {1, 8576}},  // each row gathers its gradients
    {"unpadded convolution backward", {3, 138240}, {3, 138240}},
    {"strided convolution backward", {4, 158272}, {4, 158272}},
    {"max pool backward", {2, 65536}, {1, 32768}},
    {"average pool backward", {2, 40960}, {1, 32768}},
    {"relu backward", {1, 49152}, {1, 49152}},
    {"SGD of eight parameters", {1, 6912}, {8, 6912}},  // loop nests of one kernel on the CPU
    {"outer product", {1, 66560}, {1, 66560}},
    {"batched matmul", {1, 98304}, {1, 98304}},
    {"pointwise convolution", {1, 26624}, {1, 26624}},
    {"depthwise convolution", {1, 16960}, {1, 16960}},
    {"flipped and added", {1, 32768}, {1, 32768}},
    {"concatenated, then summed", {1, 33024}, {1, 33024}},
    {"sum of transposed", {1, 33280}, {1, 33280}},
    {"sum of a million", {2, 4196356}, {2, 4196356}},       // 256 chunks, then their sum
    {"sum of a prime number", {2, 4802080}, {2, 4802080}},  // 256 chunks; their sum and that of the rest
    {"sum over two primes", {2, 4088728}, {2, 4088728}},
    {"sum of exponentials over short axes", {2, 3516004}, {2, 3516004}},
    {"maxima of few rows", {2, 8004128}, {2, 8004128}},
    {"product of long vectors", {2, 8390660}, {2, 8390660}},
    {"variance of a million", {4, 8392716}, {3, 8392708}},  // the mean and the squares, each in chunks
};

class KernelCounts : public testing::Test {
 protected:
  static Counts counts(const UOp& program, const Target& target) {
    const Schedule s = make_schedule(program, [t = &target](Symbol) -> const Target& { return *t; }, {.cache = false});
    Counts c;
    for (const UOp& call : s.plan->linear.src()) {
      ++c.kernels;
      c.bytes += traffic_of(call).bytes;
      if (call.src(0).is(Op::SINK)) spec::verify_kernel(call.src(0));
    }
    return c;
  }
};

TEST_F(KernelCounts, OfEveryProgram) {
  const Target avx2 = cpu_target("x86-64-v3"), avx512 = cpu_target("x86-64-v4"), groups = interp_target();
  std::map<std::string_view, Expected> table;
  for (const Expected& e : expected) table[e.name] = e;
  EXPECT_EQ(table.size(), test_programs::all().size());
  for (const auto& program : test_programs::all()) {
    SCOPED_TRACE(program.name);
    const UOp built = sink(program.build());
    const Expected& want = table[program.name];
    EXPECT_EQ(counts(built, avx2), want.cpu) << "AVX2";
    EXPECT_EQ(counts(built, avx512), want.cpu) << "AVX-512";
    EXPECT_EQ(counts(built, groups), want.groups) << "GPU-shaped";
  }
}

/// Each part of the rows that attention takes together would multiply the values by their weights again.
TEST_F(KernelCounts, AttentionDoesNotProjectItsValuesAgain) {
  using namespace test_programs;
  const UOp x = tensor({1, 128, 384});
  const auto projected = [&] { return ops::transpose(ops::reshape(matmul(x, tensor({384, 384})), {1, 128, 12, 32}), 1, 2); };
  const UOp attention = sink(outputs({scaled_dot_product_attention(projected(), projected(), projected())}));
  for (const Target& target : {cpu_target("x86-64-v3"), cpu_target("x86-64-v4"), interp_target()})
    EXPECT_EQ(counts(attention, target).kernels, 4U);
}

}  // namespace
}  // namespace tinygrad::schedule
