// Captured calls: several side by side, pruned ones, and those in files.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include <tinygrad/tinygrad.h>

#include "base/hash.h"

namespace tinygrad {
namespace {

using Floats = std::vector<float>;

class JitFiles : public testing::Test {
 protected:
  explicit JitFiles(const char* device)
      : on_device_({.dev = device}),
        path_((std::filesystem::temp_directory_path() / ("tg_jit_" + std::to_string(std::random_device()()))).string()) {}
  ~JitFiles() override { std::remove(path_.c_str()); }
  std::string read() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

  /// How many files are refused of which some bytes were changed and the hash made to fit.
  int refused_forgeries(const std::string& good, int files) const {
    constexpr size_t head = 5 + sizeof(uint32_t), start = head + sizeof(uint64_t);
    std::mt19937 generator(11);
    int refused = 0;
    for (int i = 0; i < files; ++i) {
      std::string bad = good;
      for (int changes = 1 + i % 3; changes > 0; --changes)
        bad[std::uniform_int_distribution<size_t>(start, good.size() - 1)(generator)] = char(generator() % (i % 2 ? 256 : 8));
      const uint64_t hash = hash_bytes(bad.data() + start, bad.size() - start);
      std::memcpy(bad.data() + head, &hash, sizeof hash);
      write(bad);
      try {
        const LoadedJit loaded(path_);
      } catch (const FormatError&) {
        ++refused;
      } catch (const DeviceError&) {  // a device of another name
      } catch (const OutOfMemoryError&) {}
    }
    return refused;
  }

  Context on_device_;
  const std::string path_;
};

class JitCapturesOn : public JitFiles, public testing::WithParamInterface<const char*> {
 protected:
  JitCapturesOn() : JitFiles(GetParam()) {}
};
INSTANTIATE_TEST_SUITE_P(All, JitCapturesOn, testing::Values("CPU", "INTERP"), [](const auto& p) { return std::string(p.param); });

TEST_P(JitCapturesOn, OneForEachShapeAndDtype) {
  int runs = 0;
  const auto f = jit([&](const Tensor& x) {
    ++runs;
    return x * 2;
  });
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(f(Tensor({1.0 * i, 2.0})).tolist(), (Floats{2.0f * float(i), 4}));
    EXPECT_EQ(f(Tensor({1.0 * i, 2.0, 3.0})).tolist(), (Floats{2.0f * float(i), 4, 6}));
    EXPECT_EQ(f(Tensor({{1.0 * i}, {2.0}})).shape(), (Sizes{2, 1}));
    EXPECT_EQ(f(Tensor({i, 2})).dtype(), DType::int32);
  }
  EXPECT_EQ(runs, 8);
}

TEST_P(JitCapturesOn, OneForEachDevice) {
  int runs = 0;
  const auto f = jit([&](const Tensor& x) {
    ++runs;
    return x + 1;
  });
  for (int i = 0; i < 4; ++i)
    for (const char* device : {"CPU", "INTERP"}) EXPECT_EQ(f(Tensor({1.0 * i}, {.device = device})).item(), i + 1);
  EXPECT_EQ(runs, 4);
}

TEST_P(JitCapturesOn, TheLeastRecentlyUsedIsDropped) {
  int runs = 0;
  const auto f = jit(
      [&](const Tensor& x) {
        ++runs;
        return x.sum();
      },
      {.captures = 2});
  const auto call = [&](int64_t n) { EXPECT_EQ(f(Tensor::ones({n}).contiguous()).item(), double(n)); };
  for (int64_t n : {1, 1, 2, 2, 1, 2}) call(n);
  EXPECT_EQ(runs, 4);
  for (int64_t n : {3, 3, 2}) call(n);
  EXPECT_EQ(runs, 6);
  call(1);
  EXPECT_EQ(runs, 7);
}

TEST_P(JitCapturesOn, PrunedKernelsRunOnce) {
  const Tensor w = Tensor({1.0, 2.0}).realize();
  Tensor steps = Tensor({0.0}).realize();
  const auto with = [&](bool prune) {
    return jit(
        [&](const Tensor& x) {
          const Tensor prepared = (w * 3).realize();
          steps += 1;
          return ((prepared + 1).realize() * x + steps).realize();
        },
        {.prune = prune});
  };
  const Context all_in_calls{{.pack_memory = 0}};
  const auto all = with(false), pruned = with(true);
  const auto kernels = [](const auto& f, const Tensor& x) {
    GlobalCounters::reset();
    f(x);
    return GlobalCounters::kernel_count.load();
  };
  const Tensor x = Tensor({2.0, 3.0}).realize();
  for (int i = 0; i < 3; ++i) {
    all(x);
    pruned(x);
  }
  EXPECT_EQ(kernels(pruned, x) + 2, kernels(all, x));
  EXPECT_EQ(steps.item(), 8);
  EXPECT_EQ(pruned(x).tolist(), (Floats{4 * 2 + 9, 7 * 3 + 9}));
}

TEST_P(JitCapturesOn, PruningLeavesWhatIsReadBetweenStores) {
  const auto f = jit(
      [](const Tensor& x) {
        Tensor counter = Tensor::ones({2}).contiguous().realize();
        const Tensor first = (x + counter).realize();
        counter.assign(counter + 1).realize();
        return std::pair(first, (x * counter).realize());
      },
      {.prune = true});
  for (float i = 0; i < 5; ++i) {
    const auto [sum, product] = f(Tensor({i, 10.f}).realize());
    EXPECT_EQ(sum.tolist(), (Floats{i + 1, 11})) << i;
    EXPECT_EQ(product.tolist(), (Floats{i * 2, 20})) << i;
  }
}

TEST_P(JitCapturesOn, FreedIntermediatesComeBack) {
  const auto f = jit([](const Tensor& x) { return ((x + 1).realize() * 2).realize() * x.sum().realize(); });
  const Tensor x = Tensor({1.0, 2.0}).realize();
  for (int i = 0; i < 3; ++i) f(x);
  const int64_t before = GlobalCounters::mem_used;
  f.free_intermediates();
  EXPECT_LT(GlobalCounters::mem_used, before);
  EXPECT_EQ(f(x).tolist(), (Floats{12, 18}));
}

TEST_P(JitCapturesOn, AFileRunsTheSame) {
  const Tensor w = Tensor({{1.0, 2.0}, {3.0, 4.0}}).realize();
  Tensor state = Tensor({0.0, 0.0}).realize();
  const auto f = jit([&](const Tensor& x, const Tensor& y) {
    state.assign(state + x);
    const Tensor at = y.cast(DType::int32);
    return std::pair((x.matmul(w) + state).softmax(), w[at] * 2);
  });
  const auto x = [](int i) { return Tensor({1.0 * i, 0.5}).realize(); };
  const Tensor y = Tensor({1.0, 0.0, 1.0}).realize();
  for (int i = 0; i < 3; ++i) f(x(i), y);
  f.save(path_);
  const LoadedJit loaded(path_);
  for (int i = 3; i < 6; ++i) {
    const auto [a, b] = f(x(i), y);
    const std::vector<Tensor> got = loaded({x(i), y});
    ASSERT_EQ(got.size(), 2u);
    EXPECT_EQ(got[0].tolist(), a.tolist());
    EXPECT_EQ(got[1].tolist(), b.tolist());
    EXPECT_EQ(got[1].shape(), (Sizes{3, 2}));
  }
  EXPECT_THROW(loaded({x(1)}), JitError);
  EXPECT_THROW(loaded({x(1), Tensor({1, 0, 1})}), JitError);
  EXPECT_THROW(loaded({Tensor({1.0}), y}), JitError);
}

TEST_P(JitCapturesOn, AFileWithVariablesAndRandomNumbers) {
  const Variable n("n", 1, 4);
  const Tensor all = Tensor({1.0, 2.0, 3.0, 4.0}).realize();
  const auto f =
      jit([&](const Tensor& part, const Variable& count) { return part.sum() + all.shrink_to({count}).sum() + Tensor::rand({2}); });
  for (int i = 1; i < 4; ++i) f(all.shrink_to({n.bind(i)}), n.bind(i));
  f.save(path_);
  const LoadedJit loaded(path_);
  Tensor::manual_seed(5);
  const Floats wanted = f(all.shrink_to({n.bind(3)}), n.bind(3)).tolist();
  Tensor::manual_seed(5);
  EXPECT_EQ(loaded({all.shrink_to({n.bind(3)})}, {n.bind(3)})[0].tolist(), wanted);
  EXPECT_THROW(loaded({all.shrink_to({n.bind(3)})}, {Variable("m", 1, 4).bind(2)}), JitError);
}

TEST_P(JitCapturesOn, AFileChecksVariablesAsTheFunctionDoes) {
  const Variable n("n", 0, 8), m("m", 1, 8);
  const Tensor all = Tensor::arange(8).realize();
  const auto f = jit([&](const Variable& at, const Variable& count) { return all.shrink({{at, Extent(at) + count}}).sum(); });
  for (int i = 1; i < 4; ++i) f(n.bind(i), m.bind(i));
  f.save(path_);
  const LoadedJit loaded(path_);
  EXPECT_EQ(loaded({}, {n.bind(3), m.bind(5)})[0].item(), 25);
  for (const auto& [at, count] : {std::pair(4, 5), std::pair(8, 1), std::pair(1, 8)}) {
    EXPECT_THROW(f(n.bind(at), m.bind(count)), Error);
    EXPECT_THROW(loaded({}, {n.bind(at), m.bind(count)}), JitError) << at;
  }
  EXPECT_THROW(loaded({}, {Variable("n", 0, 20).bind(12), m.bind(1)}), JitError);
}

TEST_P(JitCapturesOn, NothingToSave) {
  EXPECT_THROW(jit([](const Tensor& x) { return x + 1; }).save(path_), JitError);
}

TEST_P(JitCapturesOn, DamagedFiles) {
  const auto f = jit([](const Tensor& x) { return x.softmax() + 1; });
  for (int i = 0; i < 3; ++i) f(Tensor({1.0, 2.0, 3.0}).realize());
  f.save(path_);
  const std::string good = read();
  for (const std::string& bad : {std::string(), std::string("TGJIT"), good.substr(0, good.size() / 2), "x" + good, good + "x"}) {
    write(bad);
    EXPECT_THROW(LoadedJit{path_}, FormatError);
  }
  std::string other_version = good;
  other_version[5] = 9;
  write(other_version);
  EXPECT_THROW(LoadedJit{path_}, FormatError);
  EXPECT_THROW(LoadedJit{path_ + ".missing"}, IoError);
}

/// Whoever makes a file can make its hash fit: what is in it is not trusted.
TEST_P(JitCapturesOn, ForgedFiles) {
  const Tensor w = Tensor({{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}}).realize();
  const auto f = jit([&](const Tensor& x) { return w[x.cast(DType::int32)].softmax() + 1; });
  for (int i = 0; i < 3; ++i) f(Tensor({1.0, 2.0, 0.0}).realize());
  f.save(path_);
  const std::string good = read();
  EXPECT_GT(refused_forgeries(good, 150), 50);
}

#ifdef __x86_64__
/// With caches so small that kernels have loops around them, heads after heads.
class RepeatedJit : public JitFiles {
 protected:
  RepeatedJit() : JitFiles("CPU:LLVM:x86-64-v2") {}
};

TEST_F(RepeatedJit, RunsFromACaptureAndFromAFile) {
  const auto gradients = [](const Tensor& x, const Tensor& g) {
    return (x.scaled_dot_product_attention(x, x, {.is_causal = true}) * g).sum().gradient({x})[0];
  };
  const auto some = [](double scale) { return ((Tensor::arange(8 * 400 * 16).reshape({8, 400, 16}) * scale).sin() * 0.5).realize(); };
  const auto f = jit(gradients);
  for (int i = 0; i < 3; ++i) f(some(0.01 + i), some(0.02));
  GlobalCounters::reset();
  f(some(0.3), some(0.2));
  EXPECT_GT(GlobalCounters::kernel_count, 16u);  // without loops there are half as many
  f.save(path_);
  const LoadedJit loaded(path_);
  const Tensor x = some(0.7), g = some(0.9);
  const Floats got = f(x, g).tolist();
  EXPECT_EQ(loaded({x, g})[0].tolist(), got);
  EXPECT_EQ(gradients(x, g).tolist(), got);
  const Context others{{.dev = "CPU:LLVM:x86-64-v3", .no_memory_planner = true}};
  const Floats wanted = gradients(x, g).tolist();
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 1e-4) << i;
  EXPECT_GT(refused_forgeries(read(), 40), 10);
}
#endif

}  // namespace
}  // namespace tinygrad
