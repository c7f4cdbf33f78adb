// What it takes to compile a program follows its length, and what its steps have in common is compiled once.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tinygrad/compile_report.h>
#include <tinygrad/tinygrad.h>

namespace tinygrad {
namespace {

using Tensors = std::vector<Tensor>;

/// Of this process: what else the machine does must not count.
double processor_seconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

Tensor given(const Sizes& shape) { return Tensor::empty(shape); }

/// The loss and its gradients.
Tensors with_gradients(const Tensor& loss, const Tensors& of) {
  Tensors out = loss.gradient(of);
  out.push_back(loss);
  return out;
}

Tensor unrolled_rnn(int64_t steps) {
  const Tensor w = given({32, 32}), u = given({16, 32}), x = given({steps, 4, 16});
  Tensor h = given({4, 32});
  for (int64_t i = 0; i < steps; ++i) {
    const Tensor now = x.shrink({{i, i + 1}, {0, 4}, {0, 16}}).reshape({4, 16});
    h = (h.matmul(w) + now.matmul(u)).tanh();
  }
  return h;
}

double seconds_to_compile(int64_t steps) {
  const Tensor h = unrolled_rnn(steps);
  const double start = processor_seconds();
  EXPECT_EQ(compile_report(Tensors{h}).kernels, size_t(steps));
  return processor_seconds() - start;
}

/// Both sides do the same work and take turns: the machine's speed changes while they run. Graphs of either size are larger
/// than the second cache.
double growth() {
  const double before = seconds_to_compile(1000) + seconds_to_compile(1000);
  const double many = seconds_to_compile(4000);
  const double after = seconds_to_compile(1000) + seconds_to_compile(1000);
  return 4 * many / (before + after);
}

/// Instructions grow by 4, and seconds, as the larger graph leaves the last cache too, by 4.7 to 5.2. A part whose time
/// is quadratic and that takes a fifth of the shorter program's would be found.
TEST(CompileGrowth, UnrolledRnn) {
  const Context context{{.dev = "NULL", .parallel = 0, .spec = 0}};
  constexpr double kMost = 2.5 * 2.5;
  // The median of three rounds is known as soon as two of them are within the bound.
  std::array<double, 3> rounds = {growth(), growth(), 0};
  rounds[2] = std::ranges::max(rounds[0], rounds[1]) > kMost ? growth() : rounds[0];
  std::ranges::sort(rounds);
  EXPECT_LE(rounds[1], kMost) << "of " << rounds[0] << " to " << rounds[2];
}

/// Each step of `width` columns reads a row of blocks of its own.
Tensor unrolled_scaling(int64_t steps, int64_t width) {
  const Tensor w = given({width, width}), x = given({steps, width, width});
  Tensor h = given({width, width});
  for (int64_t i = 0; i < steps; ++i) {
    const Tensor scale = x.shrink({{i, i + 1}, {0, width}, {0, width}}).reshape({width, width});
    h = (h.matmul(w) * scale).tanh();
  }
  return h;
}

size_t count(std::string_view text, std::string_view word) {
  size_t n = 0;
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

TEST(CompileGrowth, StepsOnAGpuAreOneKernelThatReadsAsWide) {
  const Context context{{.dev = "NULL:PTX:sm_90a"}};
  const CompileReport few = compile_report(Tensors{unrolled_scaling(3, 256)}, {.sources = true});
  const CompileReport many = compile_report(Tensors{unrolled_scaling(8, 256)}, {.sources = true});
  ASSERT_EQ(few.unique_kernels, 3u);
  ASSERT_EQ(many.unique_kernels, 1u);
  EXPECT_EQ(many.kernels, 8u);
  EXPECT_EQ(many.sources[0].opts, few.sources[1].opts);
  EXPECT_GT(count(few.sources[1].source, "ld.global.nc.v4"), 0u);
  for (const char* access : {"ld.global", "ld.global.nc.v4", "st.global.v4"})
    EXPECT_EQ(count(many.sources[0].source, access), count(few.sources[1].source, access)) << access;
  // Rows that begin anywhere would be read one by one.
  EXPECT_EQ(compile_report(Tensors{unrolled_scaling(8, 63)}).unique_kernels, 8u);
}

/// Convolutions of one form, each of the one before.
Tensor layers(int count) {
  Tensor x = given({1, 64, 56, 56});
  for (int i = 0; i < count; ++i) x = x.conv2d(given({64, 64, 3, 3}), {}, {.padding = {1}}).relu();
  return x;
}

TEST(CompileGrowth, LayersOfOneFormAreTheSameKernels) {
  const Context context{{.dev = "NULL"}};
  const CompileReport few = compile_report(Tensors{layers(3)}), many = compile_report(Tensors{layers(9)});
  EXPECT_GT(many.kernels, few.kernels);
  EXPECT_EQ(many.unique_kernels, few.unique_kernels);
}

/// Steps that are realized one by one, whose gradients go back to the first.
double seconds_of_eager_steps(int steps) {
  const Tensor start = Tensor::full({8}, 0.5f).contiguous().realize();
  Tensor y = start;
  const double begin = processor_seconds();
  for (int i = 0; i < steps; ++i) y = (y * 0.5 + 1).realize();
  return processor_seconds() - begin;
}

TEST(EagerGrowth, AStepTakesAsLongHoweverManyWereBefore) {
  seconds_of_eager_steps(100);
  std::array<double, 3> rounds;
  for (double& r : rounds) {
    const double before = seconds_of_eager_steps(1000);
    r = seconds_of_eager_steps(4000) / before;
  }
  std::ranges::sort(rounds);
  EXPECT_LE(rounds[1], 2.3 * 2.3) << "of " << rounds[0] << " to " << rounds[2];
}

// Programs of so many steps.

Tensors tanh_steps(int64_t n) {
  const Tensor w = given({32, 32}), start = given({4, 32});
  Tensor h = start;
  for (int64_t i = 0; i < n; ++i) h = h.matmul(w).tanh();
  return with_gradients(h.sum(), {start, w});
}

Tensors runge_kutta(int64_t n) {
  const Tensor a = given({8, 16}), b = given({16, 8}), start = given({4, 8});
  const auto f = [&](const Tensor& z) { return z.matmul(a).tanh().matmul(b); };
  Tensor z = start;
  for (int64_t i = 0; i < n; ++i) {
    const Tensor k1 = f(z), k2 = f(z + k1 * 0.05), k3 = f(z + k2 * 0.05), k4 = f(z + k3 * 0.1);
    z = z + (k1 + k2 * 2 + k3 * 2 + k4) * (0.1 / 6);
  }
  return with_gradients((z * z).sum(), {a, b, start});
}

Tensors lstm(int64_t n) {
  const Tensor x = given({n, 4, 16}), wi = given({16, 128}), wh = given({32, 128}), bias = given({128});
  Tensor h = given({4, 32}), c = given({4, 32}), loss = given({});
  for (int64_t i = 0; i < n; ++i) {
    const Tensor now = x.shrink({{i, i + 1}, {0, 4}, {0, 16}}).reshape({4, 16});
    const Tensor gates = now.matmul(wi) + h.matmul(wh) + bias;
    const auto gate = [&](int64_t g) { return gates.shrink({{0, 4}, {32 * g, 32 * (g + 1)}}); };
    c = gate(1).sigmoid() * c + gate(0).sigmoid() * gate(2).tanh();
    h = gate(3).sigmoid() * c.tanh();
    loss = loss + h.sum();
  }
  return with_gradients(loss, {wi, wh, bias});
}

Tensors sines(int64_t n) {
  const Tensor x = given({16});
  Tensor y = x;
  for (int64_t i = 0; i < n; ++i) y = y.sin();
  return with_gradients(y.sum(), {x});
}

Tensors hidden_markov(int64_t n) {
  const Tensor transitions = given({5, 5}), emissions = given({n, 5}), start = given({5});
  Tensor alpha = start;
  for (int64_t i = 0; i < n; ++i)
    alpha = (alpha.unsqueeze(-1) + transitions).logsumexp(0) + emissions.shrink({{i, i + 1}, {0, 5}}).reshape({5});
  return with_gradients(alpha.logsumexp(0), {transitions, emissions, start});
}

/// The labels of a sequence in any alignment: three states at most lead to each.
Tensors alignments(int64_t n) {
  const Tensor x = given({n, 9}), scores = x.log_softmax(-1), never = Tensor::full({2}, -1e30);
  const auto row = [&](int64_t i) { return scores.shrink({{i, i + 1}, {0, 9}}).reshape({9}); };
  Tensor alpha = row(0);
  for (int64_t i = 1; i < n; ++i) {
    const Tensor one = Tensor::cat({never.shrink({{0, 1}}), alpha.shrink({{0, 8}})}), two = Tensor::cat({never, alpha.shrink({{0, 7}})});
    alpha = Tensor::stack({alpha, one, two}).logsumexp(0) + row(i);
  }
  return with_gradients(-alpha.shrink({{7, 9}}).logsumexp(0), {x});
}

Tensors sinkhorn(int64_t n) {
  const Tensor cost = given({8, 8}), k = (-cost).exp();
  Tensor u = Tensor::full({8}, 1.0), v = u;
  for (int64_t i = 0; i < n; ++i) {
    u = 1 / k.matmul(v);
    v = 1 / k.T().matmul(u);
  }
  return with_gradients((u.unsqueeze(1) * k * v * cost).sum(), {cost});
}

Tensors pendulum(int64_t n) {
  const Tensor start = given({2}), gravity = given({1});
  Tensor angle = start.shrink({{0, 1}}), speed = start.shrink({{1, 2}});
  for (int64_t i = 0; i < n; ++i) {
    speed = speed - gravity * angle.sin() * 0.01;
    angle = angle + speed * 0.01;
  }
  return with_gradients((angle * angle + speed * speed).sum(), {start, gravity});
}

Tensors stacked(int64_t n) {
  Tensors parts;
  for (int64_t i = 0; i < n; ++i) parts.push_back(given({4}));
  return {Tensor::stack(parts)};
}

Tensors added(int64_t n) {
  Tensor sum = given({4});
  for (int64_t i = 1; i < n; ++i) sum = sum + given({4});
  return {sum};
}

Tensors outputs(int64_t n) {
  const Tensor x = given({16});
  Tensors out;
  for (int64_t i = 0; i < n; ++i) out.push_back(x * (0.5 + double(i)) + 3.5);
  return out;
}

/// Of the different kernels of a program.
struct Code {
  size_t kernels = 0, all_bytes = 0, most_bytes = 0, most_arguments = 0;
};

Code code_of(const Tensors& program) {
  Code code;
  for (const KernelSource& k : compile_report(program, {.sources = true}).sources) {
    ++code.kernels;
    code.all_bytes += k.source.size();
    code.most_bytes = std::max(code.most_bytes, k.source.size());
    code.most_arguments = std::max(code.most_arguments, k.info.params.size());
  }
  return code;
}

struct Row {
  std::string name;
  std::function<Tensors(int64_t)> build;
  int64_t steps;
  size_t most_kernels;  ///< different ones, of twice the steps
};

class GrowthOf : public testing::TestWithParam<Row> {
 protected:
  const Context context_{{.dev = "NULL:LLVM:x86-64-v3", .parallel = 0, .spec = 0}};
};

TEST_P(GrowthOf, TwiceTheStepsIsTwiceTheCodeAtMost) {
  const Row& row = GetParam();
  const Code one = code_of(row.build(row.steps)), two = code_of(row.build(2 * row.steps));
  EXPECT_LE(double(two.all_bytes), 2.3 * double(one.all_bytes));
  EXPECT_LE(two.kernels, row.most_kernels);
  EXPECT_LE(two.most_bytes, size_t(400'000));
  EXPECT_LE(two.most_arguments, size_t(64));
}

INSTANTIATE_TEST_SUITE_P(Programs, GrowthOf,
                         testing::Values(Row{"Tanh", tanh_steps, 50, 30}, Row{"RungeKutta", runge_kutta, 4, 60}, Row{"Lstm", lstm, 25, 40},
                                         Row{"Sines", sines, 100, 20}, Row{"HiddenMarkov", hidden_markov, 20, 32},
                                         Row{"Alignments", alignments, 20, 32}, Row{"Sinkhorn", sinkhorn, 20, 24},
                                         Row{"Pendulum", pendulum, 20, 30}, Row{"Stack", stacked, 500, 10}, Row{"Sum", added, 500, 10},
                                         Row{"Outputs", outputs, 300, 30}),
                         [](const auto& row) { return row.param.name; });

/// What is small and made of many reductions is no single kernel with a loop for each place where one of them is used.
TEST(CompileGrowth, ReductionsOfASmallTensor) {
  const Context context{{.dev = "NULL:LLVM:x86-64-v3", .parallel = 0, .spec = 0}};
  const Tensor x = given({4, 4, 8}), factor = given({4, 4, 8});
  const Tensor both = Tensor::cat({x, x * 2}, 1).reshape({4, 4, 2, 8}).shrink({{0, 4}, {0, 4}, {0, 1}, {0, 8}}).reshape({4, 4, 8});
  const Tensor sorted = both.softmax().layernorm().sort().values;
  const Code code = code_of(with_gradients((sorted * factor).sum(), {x}));
  EXPECT_LE(code.kernels, size_t(12));
  EXPECT_LE(code.most_bytes, size_t(100'000));
}

/// 10 to 60 operations on few numbers, drawn by seed, with gradients.
class DrawnProgram {
 public:
  explicit DrawnProgram(uint32_t seed) : random_(seed) {}

  Tensors results() {
    Tensors values{leaf(drawn_shape())};
    const int64_t operations = 10 + dice(51);
    for (int64_t i = 0; i < operations; ++i) {
      const auto recent = std::min<int64_t>(int64_t(values.size()), 4);
      values.push_back(small(next(values[values.size() - 1 - size_t(dice(recent))])));
    }
    const Tensor last = values.back(), other = values[values.size() - 2];
    return with_gradients((last * last).mean() + (other * other).mean(), leaves_);
  }

 private:
  int64_t dice(int64_t n) { return int64_t(random_() % uint64_t(n)); }
  Tensor leaf(const Sizes& shape) {
    leaves_.push_back(given(shape));
    return leaves_.back();
  }
  Sizes drawn_shape() {
    constexpr std::array<int64_t, 6> sizes = {2, 3, 4, 5, 8, 16};
    Sizes shape;
    for (int64_t i = 1 + dice(3); i > 0; --i) shape.push_back(sizes[size_t(dice(6))]);
    return shape;
  }
  /// A corner of what grew.
  static Tensor small(Tensor x) {
    while (x.numel() > 600) {
      std::vector<std::pair<int64_t, int64_t>> corner;
      for (const int64_t n : x.shape()) corner.emplace_back(0, (n + 1) / 2);
      x = x.shrink(corner);
    }
    return x;
  }
  Tensor next(const Tensor& x) {
    const Sizes shape = x.shape();
    const auto axis = int(dice(int64_t(shape.size())));
    switch (dice(20)) {
      case 0: return x.tanh();
      case 1: return x * leaf(shape);
      case 2: return x + leaf({shape.back()});
      case 3: return (x * 0.3).exp();
      case 4: return x.sin();
      case 5: return x / (x * x + 1.5);
      case 6: return x.softmax(axis);
      case 7: return x - x.mean(axis, {.keepdim = true});
      case 8: return x / ((x * x).sum(axis, {.keepdim = true}) + 1).sqrt();
      case 9: return Tensor::cat({x, x * 2}, axis);
      case 10: return x.flip(axis);
      case 11: return x.sort(axis).values;
      case 12: return (x > 0).where(x, x * 0.1);
      case 13: return x.cumsum(axis);
      case 14: return padded(x, axis);
      case 15: return shape.size() > 1 ? x.matmul(leaf({shape.back(), 2 + dice(7)})) : x.sigmoid();
      case 16: return x.transpose(0, -1);
      case 17: return x.logsumexp(axis, {.keepdim = true}) + x;
      case 18: return x.max(axis, {.keepdim = true}) - x;
      default: return x.cos() * x;
    }
  }
  static Tensor padded(const Tensor& x, int axis) {
    std::vector<std::pair<int64_t, int64_t>> sides(x.shape().size());
    sides[size_t(axis)] = {1, 1};
    return x.pad(sides);
  }

  std::mt19937 random_;
  Tensors leaves_;
};

/// LLVM takes about a second for two megabytes.
TEST(CompileGrowth, OfDrawnPrograms) {
  const Context context{{.dev = "NULL:LLVM:x86-64-v3", .parallel = 0, .spec = 0}};
  for (uint32_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE(seed);
    const Code code = code_of(DrawnProgram(seed).results());
    EXPECT_LE(code.all_bytes, size_t(1'500'000));
    EXPECT_LE(code.most_bytes, size_t(750'000));
    EXPECT_LE(code.most_arguments, size_t(64));
  }
}

}  // namespace
}  // namespace tinygrad
