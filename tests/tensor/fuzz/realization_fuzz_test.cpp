// Realization is not observable: random programs with views, writes, copies and jitted steps give the same bits wherever realize() is put
// in, and the same gradients or an error. All numbers in them are exact.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <tinygrad/tinygrad.h>

#include "support/test_scale.h"

namespace tinygrad {
namespace {

using Random = std::mt19937_64;

int below(Random& random, size_t n) { return static_cast<int>(random() % n); }

/// What a step does to a tensor x of six elements and a number y of shape (1).
using Make = std::function<Tensor(const Tensor& x, const Tensor& y)>;

const std::vector<Make>& views() {
  static const std::vector<Make> all{
      [](const Tensor& x, const Tensor&) { return x.reshape({6}); },
      [](const Tensor& x, const Tensor&) { return x.reshape({2, 3}); },
      [](const Tensor& x, const Tensor&) { return x.reshape({3, 2}).T(); },
      [](const Tensor& x, const Tensor&) { return x.flatten().flip(0); },
      [](const Tensor& x, const Tensor&) { return x.flatten()[Slice{1, 4}]; },
      [](const Tensor& x, const Tensor&) { return x.flatten()[Slice{{}, {}, 2}]; },
      [](const Tensor& x, const Tensor&) { return x.flatten()[Slice{4, {}, -3}]; },
      [](const Tensor& x, const Tensor&) { return x.reshape({2, 3})[1]; },
      [](const Tensor& x, const Tensor&) { return x.reshape({2, 3}).chunk(3, 1)[2]; },
      [](const Tensor& x, const Tensor&) { return x.reshape({2, 3}).diagonal(); },
      [](const Tensor& x, const Tensor&) { return x.reshape({2, 3}).permute({1, 0}).flatten(); },
  };
  return all;
}

const std::vector<Make>& copies() {
  static const std::vector<Make> all{
      [](const Tensor& x, const Tensor& y) { return x + y; },
      [](const Tensor& x, const Tensor&) { return x * 2; },
      [](const Tensor& x, const Tensor&) { return x + 0; },
      [](const Tensor& x, const Tensor&) { return x.clone(); },
      [](const Tensor& x, const Tensor&) { return x.contiguous(); },
      [](const Tensor& x, const Tensor&) { return x.roll({1}); },
      [](const Tensor& x, const Tensor& y) { return (x > y).where(x, y); },
      [](const Tensor& x, const Tensor&) { return x + x.sum().cast(x.dtype()); },
      [](const Tensor& x, const Tensor& y) { return y.expand({6}) + x.flatten()[Slice{9, {}}].sum().cast(x.dtype()); },
  };
  return all;
}

using Write = std::function<void(Tensor& x, const Tensor& y)>;

const std::vector<Write>& writes() {
  static const std::vector<Write> all{
      [](Tensor& x, const Tensor&) { x.set_item({0}, 3); },
      [](Tensor& x, const Tensor& y) { x.set_item({Slice{0, 1}}, y); },
      [](Tensor& x, const Tensor& y) { x.set_item({Slice{{}, {}, 2}}, y * 2); },
      [](Tensor& x, const Tensor& y) { x.set_item({Tensor({0})}, y + 1); },
      [](Tensor& x, const Tensor&) { x.set_item({x > 4}, 1); },
      [](Tensor& x, const Tensor& y) { x += y; },
      [](Tensor& x, const Tensor&) { x *= 2; },
      [](Tensor& x, const Tensor&) { x.assign(x.flip(0)); },
      [](Tensor& x, const Tensor& y) { x.assign(x * 0 + y); },
      [](Tensor& x, const Tensor&) {
        if (x.dtype() == DType::int32) x.bitcast(DType::uint32).assign(x.bitcast(DType::uint32).rshift(1));
      },
  };
  return all;
}

struct Step {
  int kind, which, x, y;
};

std::vector<Step> draw(Random& random) {
  std::vector<Step> steps;
  std::vector<int> whole{0, 1, 2};
  int count = 3, sums = 0;
  for (int n = 4 + below(random, 9); n > 0; --n) {
    Step s{below(random, 3), 0, whole[size_t(below(random, whole.size()))], whole[size_t(below(random, whole.size()))]};
    if (s.kind != 0) s.x = below(random, size_t(count));
    s.which = below(random, s.kind == 0 ? views().size() : s.kind == 1 ? copies().size() : writes().size());
    if (s.kind == 1 && s.which == 7 && ++sums > 2) s.which = 1;
    steps.push_back(s);
    if (s.kind == 2) continue;
    if (s.kind == 0 ? s.which < 4 || s.which == 10 : std::ranges::find(whole, s.x) != whole.end()) whole.push_back(count);
    ++count;
  }
  return steps;
}

struct Outcome {
  std::vector<std::vector<std::byte>> values;
  std::optional<std::vector<std::vector<std::byte>>> gradients;  // none of integers, and where they need what was overwritten
};

/// Runs a program with realize() behind one step of `every`, and its copies by jitted functions or not.
Outcome run(const std::vector<Step>& steps, const std::array<std::vector<int>, 3>& given, DType dtype, int every, uint64_t seed,
            bool jitted) {
  static std::vector<Jit<Make>>* functions = [] {
    auto* all = new std::vector<Jit<Make>>;
    for (const Make& f : copies()) all->push_back(jit(f, {.captures = 64}));
    return all;
  }();
  Random random(seed);
  std::vector<Tensor> leaves, tensors;
  for (const auto& values : given) leaves.push_back(Tensor(values).cast(dtype).clone());
  for (const Tensor& leaf : leaves) tensors.push_back(leaf * 1);
  for (const Step& s : steps) {
    const Tensor y = tensors[size_t(s.y)].flatten()[Slice{2, 3}];
    if (s.kind == 0) tensors.push_back(views()[size_t(s.which)](tensors[size_t(s.x)], y));
    if (s.kind == 1 && jitted)
      tensors.push_back((*functions)[size_t(s.which)](tensors[size_t(s.x)], y));
    else if (s.kind == 1)
      tensors.push_back(copies()[size_t(s.which)](tensors[size_t(s.x)], y));
    if (s.kind == 2) writes()[size_t(s.which)](tensors[size_t(s.x)], y);
    if (every > 0 && below(random, size_t(every)) == 0) tensors[size_t(below(random, tensors.size()))].realize();
  }
  Outcome out;
  if (is_float(dtype) && !jitted) {
    Tensor loss(0.0);
    for (size_t i = 0; i < tensors.size(); ++i) loss = loss + (tensors[i] * int(i + 1)).sum();
    try {
      out.gradients.emplace();
      for (const Tensor& g : loss.gradient(leaves)) out.gradients->push_back(g.data());
    } catch (const ValueError&) {
      if (every == 0) throw;
      out.gradients.reset();
    }
  }
  for (const Tensor& t : tensors) out.values.push_back(t.data());
  return out;
}

void check(uint64_t seed) {
  Random random(seed);
  const std::vector<Step> steps = draw(random);
  const DType dtype = random() % 2 == 0 ? DType::int32 : DType::float64;
  std::array<std::vector<int>, 3> given;
  for (auto& values : given)
    for (int i = 0; i < 6; ++i) values.push_back(below(random, 14) - 4);
  const Outcome lazy = run(steps, given, dtype, 0, seed, false);
  for (const int every : {3, 1}) {
    const Outcome other = run(steps, given, dtype, every, seed, false);
    ASSERT_EQ(other.values, lazy.values) << "seed " << seed << ", realized every " << every;
    if (!other.gradients) continue;
    ASSERT_EQ(*other.gradients, *lazy.gradients) << "seed " << seed << ", realized every " << every;
  }
  ASSERT_EQ(run(steps, given, dtype, 4, seed, true).values, lazy.values) << "seed " << seed << ", jitted";
}

TEST(RealizationFuzz, ProgramsAreTheSameWhereverTheyAreRealized) {
  const auto count = test::env_number("TG_PROGRAMS", 60 * uint64_t(test::test_scale()));
  for (uint64_t i = 0; i < count && !HasFatalFailure(); ++i) check(test::seed() * 1000003 + i);
}

}  // namespace
}  // namespace tinygrad
