// A tensor is a variable and a piece of memory of its own, whatever its value is and whenever that is computed.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include <tinygrad/tinygrad.h>

#include "runtime/every_device.h"
#include "schedule/schedule.h"
#include "uop/uop.h"

namespace tinygrad {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int>;

class VariablesOn : public test::EveryDevice {};
INSTANTIATE_TEST_SUITE_P(All, VariablesOn, testing::ValuesIn(test::tensor_devices()), test::device_test_name);

Floats gradient_of(const Tensor& loss, const Tensor& x) { return loss.sum().gradient({x})[0].tolist(); }

TEST_P(VariablesOn, EqualValuesAreDifferentVariables) {
  const auto check = [](const std::function<Tensor()>& make) {
    const Tensor x = make(), c = make();
    const Tensor loss = (x * c * c).sum();
    EXPECT_EQ(loss.gradient({x})[0].tolist(), (c * c).tolist());
    EXPECT_EQ(loss.gradient({c})[0].tolist(), (x * c * 2).tolist());
    loss.backward();
    EXPECT_EQ(x.grad().tolist(), (c * c).tolist());
    EXPECT_EQ(c.grad().tolist(), (x * c * 2).tolist());
  };
  check([] { return Tensor::ones({3}); });
  check([] { return Tensor::zeros({3}); });
  check([] { return Tensor::full({2, 2}, 3.0); });
  check([] { return Tensor(2.0); });
  check([] { return Tensor::arange(0.0, 4.0); });
  check([] { return Tensor::eye(3); });
  check([] { return Tensor::linspace(0, 1, 5); });
  check([] { return Tensor::ones({3}).contiguous(); });
  check([] { return Tensor::ones({3}).realize(); });
  const Tensor x({1.0, 2.0, 3.0});
  check([&] { return x * 2; });
  check([&] { return x.reshape({3}); });
  check([&] { return x.cast(DType::float32); });
  check([&] { return x[Slice{0, 2}]; });
  check([&] { return x.detach(); });
  check([] { return Tensor({1.0, 2.0, 3.0}).clone(); });
}

TEST_P(VariablesOn, WhatAMethodGaveBackIsAVariableThatDependsOnItsSource) {
  const std::map<std::string, std::function<Tensor(const Tensor&)>> same{
      {"reshape", [](const Tensor& x) { return x.reshape({3}); }},
      {"cast", [](const Tensor& x) { return x.cast(DType::float32); }},
      {"permute", [](const Tensor& x) { return x.permute({0}); }},
      {"expand", [](const Tensor& x) { return x.expand({3}); }},
      {"to", [](const Tensor& x) { return x.to(x.device()); }},
      {"pad", [](const Tensor& x) { return x.pad({{0, 0}}); }},
      {"roll", [](const Tensor& x) { return x.roll({3}); }},
      {"repeat", [](const Tensor& x) { return x.repeat({1}); }},
      {"contiguous", [](const Tensor& x) { return x.contiguous(); }},
      {"clone", [](const Tensor& x) { return x.clone(); }},
      {"cat", [](const Tensor& x) { return Tensor::cat(std::vector{x}); }},
      {"whole slice", [](const Tensor& x) { return x[Slice{}]; }},
  };
  for (const auto& [name, f] : same)
    for (const bool computed : {false, true}) {
      const Tensor source({1.0, 2.0, 3.0}), x = computed ? source * 1 : source, y = f(x);
      EXPECT_EQ(gradient_of(x * y, y), (Floats{1, 2, 3})) << name;
      EXPECT_EQ(gradient_of(x * y, x), (Floats{2, 4, 6})) << name;
      EXPECT_EQ(gradient_of(x * y, source), (Floats{2, 4, 6})) << name;
    }
}

TEST_P(VariablesOn, AGradientStaysTheSameTensor) {
  const Tensor x({1.0, 2.0});
  (x * x).sum().backward();
  const Tensor g = x.grad();
  (x * 3).sum().backward();
  EXPECT_EQ(g.tolist(), (Floats{5, 7}));
  g.realize();
  (x * 3).sum().backward();
  EXPECT_EQ(g.tolist(), (Floats{8, 10}));
  EXPECT_EQ(x.grad().tolist(), (Floats{8, 10}));
}

TEST_P(VariablesOn, LayersWithEqualWeightsHaveTheirOwnGradients) {
  const Tensor a = Tensor::ones({2, 2}), b = Tensor::ones({2, 2}), x({{1.0, 2.0}});
  x.matmul(a).matmul(b).sum().backward();
  EXPECT_EQ(a.grad().tolist(), (Floats{2, 2, 4, 4}));
  EXPECT_EQ(b.grad().tolist(), (Floats{3, 3, 3, 3}));
}

TEST_P(VariablesOn, WhatTellsTensorsApartIsNoPartOfSchedules) {
  const auto step = [] { return (Tensor::ones({4}) * Tensor::ones({4}) + Tensor::full({4}, 2)).sum().item(); };
  EXPECT_EQ(step(), 12);
  const auto made = schedule::schedule_cache_counts().made;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(step(), 12);
  EXPECT_EQ(schedule::schedule_cache_counts().made, made);

  const auto f = jit([](const Tensor& x) { return (x + Tensor::ones({4}) * Tensor::ones({4})).sum(); });
  for (int i = 0; i < 4; ++i) EXPECT_EQ(f(Tensor({1.0, 2.0, 3.0, 4.0})).item(), 14);
  EXPECT_TRUE(f.captured());
}

TEST_P(VariablesOn, AFunctionHasTheGradientsOfConstantsThatItFinds) {
  const Tensor c = Tensor::ones({3}), x({1.0, 2.0, 3.0});
  const auto f = function([&](const Tensor& v) { return v * c; });
  EXPECT_EQ(gradient_of(f(x), c), (Floats{1, 2, 3}));
  EXPECT_EQ(gradient_of(f(x), x), (Floats{1, 1, 1}));
}

// In-place writes.

TEST_P(VariablesOn, WritesAreDifferentiable) {
  const Tensor w = Tensor::ones({4});
  Tensor y = w * 2;
  y.set_item({1}, 0);
  EXPECT_EQ(gradient_of(y, w), (Floats{2, 0, 2, 2}));

  const Tensor x({1.0, 2.0});
  Tensor z = Tensor::ones({4}).contiguous();
  z.set_item({Slice{0, 2}}, x);
  (z * z).sum().backward();
  EXPECT_EQ(x.grad().tolist(), (Floats{2, 4}));
}

/// A write of `x` somewhere into `y`, and the gradients of sum(y * (1, 2, ..., 6)) that then go to x and to what y was.
struct Write {
  std::string name;
  Sizes shape;
  std::function<void(Tensor& y, const Tensor& x)> write;
  Floats to_x, to_y;
};

const std::vector<Write>& writes() {
  static const std::vector<Write> all{
      {"slice", {2}, [](Tensor& y, const Tensor& x) { y.set_item({Slice{1, 3}}, x); }, {2, 3}, {1, 0, 0, 4, 5, 6}},
      {"one", {1}, [](Tensor& y, const Tensor& x) { y.set_item({2}, x); }, {3}, {1, 2, 0, 4, 5, 6}},
      {"every second", {3}, [](Tensor& y, const Tensor& x) { y.set_item({Slice{{}, {}, 2}}, x); }, {1, 3, 5}, {0, 2, 0, 4, 0, 6}},
      {"backwards", {6}, [](Tensor& y, const Tensor& x) { y.flip(0).assign(x); }, {6, 5, 4, 3, 2, 1}, {0, 0, 0, 0, 0, 0}},
      {"assign", {6}, [](Tensor& y, const Tensor& x) { y.assign(x); }, {1, 2, 3, 4, 5, 6}, {0, 0, 0, 0, 0, 0}},
      {"add", {6}, [](Tensor& y, const Tensor& x) { y += x; }, {1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}},
      {"indices", {2}, [](Tensor& y, const Tensor& x) { y.set_item({Tensor({4, 0})}, x); }, {5, 1}, {0, 2, 3, 4, 0, 6}},
      {"mask",
       {},
       [](Tensor& y, const Tensor& x) { y.set_item({Tensor({true, false, false, true, false, false})}, x); },
       {5},
       {0, 2, 3, 0, 5, 6}},
      {"view of a view",
       {2},
       [](Tensor& y, const Tensor& x) { y.reshape({2, 3})[Slice{1, 2}].flatten()[Slice{0, 2}].assign(x); },
       {4, 5},
       {1, 2, 3, 0, 0, 6}},
      {"rows in a loop",
       {2},
       [](Tensor& y, const Tensor& x) {
         for (int i = 0; i < 3; ++i) y.set_item({Slice{i * 2, i * 2 + 2}}, x * (i + 1));
       },
       {1 + 6 + 15, 2 + 8 + 18},
       {0, 0, 0, 0, 0, 0}},
      {"twice",
       {2},
       [](Tensor& y, const Tensor& x) { y.set_item({Slice{0, 2}}, x), y.set_item({Slice{1, 3}}, x); },
       {1 + 2, 3},
       {0, 0, 0, 4, 5, 6}},
      {"scaled by itself",
       {},
       [](Tensor& y, const Tensor& x) {
         Tensor part = y[Slice{0, 2}];
         part *= x;
       },
       {3},
       {2, 4, 3, 4, 5, 6}},
  };
  return all;
}

TEST_P(VariablesOn, GradientsGoToWhatIsWrittenAndToWhatIsLeft) {
  for (const Write& w : writes())
    for (const int form : {0, 1, 2, 3}) {
      const Tensor base = Tensor::ones({6}).clone(), x = Tensor::full(w.shape, 2.0).clone();
      Tensor y = form == 0   ? base * 1
                 : form == 1 ? base.clone()
                 : form == 2 ? Tensor((base * 1).contiguous())
                             : base.reshape({6}).pad({{0, 0}});
      w.write(y, x);
      const Tensor loss = (y * Tensor::arange(1.0, 7.0)).sum();
      EXPECT_EQ(loss.gradient({x})[0].tolist(), w.to_x) << w.name << " " << form;
      EXPECT_EQ(loss.gradient({base})[0].tolist(), w.to_y) << w.name << " " << form;
    }
}

TEST_P(VariablesOn, AWriteThroughADetachedViewHasNoGradient) {
  const Tensor w = Tensor::ones({3}), x({5.0});
  Tensor y = w * 2;
  y.detach().set_item({Slice{1, 2}}, x);
  EXPECT_EQ(y.tolist(), (Floats{2, 5, 2}));
  EXPECT_EQ(gradient_of(y, x), (Floats{0}));
  EXPECT_EQ(gradient_of(y, w), (Floats{2, 0, 2}));
}

TEST_P(VariablesOn, ALossOfBeforeAStepStillReachesTheParameter) {
  Tensor w({1.0, 2.0});
  const Tensor loss = (w * w).sum();
  w.assign((w * 10).detach());
  loss.backward();
  EXPECT_EQ(w.grad().tolist(), (Floats{2, 4}));
  EXPECT_EQ(w.tolist(), (Floats{10, 20}));
}

// Histories of realized values.

TEST_P(VariablesOn, GradientsAreTheSameWhereverRealizeIsPutIn) {
  for (int bits = 0; bits < 16; ++bits) {
    const auto point = [&](int bit, const Tensor& t) {
      if (bits >> bit & 1) t.realize();
    };
    const Tensor x({1.0, 2.0, 3.0});
    const Tensor h = x * 2;
    point(0, h);
    Tensor y = h * h;
    point(1, y);
    y.set_item({1}, x[0] * 5);
    point(2, y);
    const Tensor z = y + h;
    point(3, z);
    EXPECT_EQ(gradient_of(z, x), (Floats{15, 2, 26})) << bits;
    EXPECT_EQ(gradient_of(z, h), (Floats{5, 1, 13})) << bits;
    z.sum().backward();
    EXPECT_EQ(x.grad().tolist(), (Floats{15, 2, 26})) << bits;
  }
}

TEST(Histories, WhatWasOverwrittenIsAnError) {
  Tensor w({1.0, 2.0});
  const Tensor square = (w * w).realize(), twice = (w * 2).realize();
  w.assign(Tensor({5.0, 5.0}).detach()).realize();
  EXPECT_EQ(gradient_of(twice, w), (Floats{2, 2}));
  EXPECT_THROW(gradient_of(square, w), ValueError);
}

TEST(Histories, DoNotGrowWhereTheyLeadToNoLiveTensor) {
  Tensor x({1.0});
  const auto run = [&](int steps) {
    for (int i = 0; i < steps; ++i) x = (x * 0.999).realize();
    return live_node_count();
  };
  const size_t before = run(100);
  EXPECT_LE(run(1000), before + 20);
}

TEST(Histories, AreKeptUpToALimit) {
  const Tensor w({0.5});
  Tensor h({1.0});
  const auto run = [&](int steps) {
    for (int i = 0; i < steps; ++i) h = (h * w).realize();
    return live_node_count();
  };
  run(3);
  EXPECT_EQ(gradient_of(h, w), (Floats{0.75f}));
  const size_t once = run(6000);
  EXPECT_LE(run(12000), once + 200000);
  EXPECT_THROW(h.sum().gradient({w}), ValueError);
  EXPECT_THROW(h.sum().backward(), ValueError);
  (h.detach() * w).sum().backward();
  EXPECT_TRUE(w.grad().defined());
}

// What is a view and what is a copy: the table of docs/tensors.md.

struct Form {
  std::string name;
  std::function<Tensor(const Tensor&)> of;
  bool is_view;
};

const std::vector<Form>& forms() {
  static const std::vector<Form> all{
      {"reshape", [](const Tensor& x) { return x.reshape({2, 3}); }, true},
      {"same reshape", [](const Tensor& x) { return x.reshape({6}); }, true},
      {"permute", [](const Tensor& x) { return x.reshape({2, 3}).permute({1, 0}); }, true},
      {"transpose", [](const Tensor& x) { return x.reshape({2, 3}).T(); }, true},
      {"flip", [](const Tensor& x) { return x.flip(0); }, true},
      {"slice", [](const Tensor& x) { return x[Slice{1, 4}]; }, true},
      {"element", [](const Tensor& x) { return x[1]; }, true},
      {"every second", [](const Tensor& x) { return x[Slice{{}, {}, 2}]; }, true},
      {"every fourth", [](const Tensor& x) { return x[Slice{1, {}, 4}]; }, true},
      {"backwards", [](const Tensor& x) { return x[Slice{{}, {}, -1}]; }, true},
      {"shrink", [](const Tensor& x) { return x.shrink({{0, 2}}); }, true},
      {"squeeze", [](const Tensor& x) { return x.unsqueeze(0).squeeze(); }, true},
      {"flatten", [](const Tensor& x) { return x.reshape({2, 3}).flatten(); }, true},
      {"chunk", [](const Tensor& x) { return x.chunk(2)[1]; }, true},
      {"split", [](const Tensor& x) { return x.split(int64_t{4})[0]; }, true},
      {"diagonal", [](const Tensor& x) { return x.reshape({2, 3}).diagonal(); }, true},
      {"rearrange", [](const Tensor& x) { return x.rearrange("(a b) -> b a", {{"a", 2}}); }, true},
      {"detach", [](const Tensor& x) { return x.detach(); }, true},
      {"bitcast", [](const Tensor& x) { return x.bitcast(x.dtype() == DType::float32 ? DType::uint32 : DType::float32); }, true},
      {"slice of a bitcast", [](const Tensor& x) { return x.bitcast(DType::uint32)[Slice{2, 4}]; }, true},
      {"same cast", [](const Tensor& x) { return x.cast(x.dtype()); }, true},
      {"same device", [](const Tensor& x) { return x.to(x.device()); }, true},
      {"contiguous", [](const Tensor& x) { return x.contiguous(); }, false},
      {"clone", [](const Tensor& x) { return x.clone(); }, false},
      {"cast", [](const Tensor& x) { return x.cast(DType::int64); }, false},
      {"indices", [](const Tensor& x) { return x[Tensor({0, 1, 2})]; }, false},
      {"pad", [](const Tensor& x) { return x.pad({{0, 0}}); }, false},
      {"roll", [](const Tensor& x) { return x.roll({1}); }, false},
      {"repeat", [](const Tensor& x) { return x.repeat({1}); }, false},
      {"unfold", [](const Tensor& x) { return x.unfold(0, 2, 2); }, false},
      {"gather", [](const Tensor& x) { return x.gather(0, Tensor({0, 1})); }, false},
      {"cat", [](const Tensor& x) { return Tensor::cat(std::vector{x}); }, false},
      {"add nothing", [](const Tensor& x) { return x + 0; }, false},
      {"abs", [](const Tensor& x) { return x.abs(); }, false},
      {"sum over no axes", [](const Tensor& x) { return x.sum(std::vector<int>{}); }, false},
  };
  return all;
}

/// The same program with realize() put in wherever a bit is set.
TEST(Views, WritesAreSeenThroughThemWhateverWasComputedWhen) {
  for (const Form& f : forms())
    for (const int base : {0, 1, 2})
      for (int bits = 0; bits < 8; ++bits) {
        const auto name = f.name + " of " + std::to_string(base) + ", realized " + std::to_string(bits);
        const Tensor source = Tensor::arange(6).realize();
        Tensor x = base == 0 ? source.clone() : base == 1 ? source + 0 : Tensor::full({6}, 7);
        if (bits & 1) x.realize();
        Tensor y = f.of(x);
        if (bits & 2) y.realize();
        const auto x_before = x.tolist<int>();
        // From the view to what it is of.
        const Tensor written = Tensor::full(y.shape(), 77);
        y.assign(y.dtype() == DType::int64 ? written.cast(DType::int64) : written.bitcast(y.dtype()));
        if (bits & 4) y.realize();
        EXPECT_EQ(x.tolist<int>() != x_before, f.is_view) << name;
        // And back.
        const auto y_before = y.data();
        x.assign(Tensor::full({6}, 99));
        EXPECT_EQ(y.data() != y_before, f.is_view) << name;
        EXPECT_EQ(source.tolist<int>(), (Ints{0, 1, 2, 3, 4, 5})) << name;
      }
}

TEST_P(VariablesOn, APartOfAComputedTensorIsWrittenInBoth) {
  Tensor y = Tensor::zeros({4}).contiguous();
  Tensor v = y[Slice{1, 3}];
  v += 5;
  EXPECT_EQ(y.tolist(), (Floats{0, 5, 5, 0}));
  EXPECT_EQ(v.tolist(), (Floats{5, 5}));

  Tensor x({1.0, 2.0});
  x.bitcast(DType::uint32).assign(Tensor(std::vector<uint32_t>{0x40400000u, 0x40800000u}));
  EXPECT_EQ(x.tolist(), (Floats{3, 4}));
}

TEST_P(VariablesOn, ExpandedViewsAreNotWritten) {
  for (const bool computed : {false, true})
    for (const bool realized : {false, true}) {
      const Tensor source = Tensor::ones({3, 1}).clone(), x = computed ? source * 2 : source;
      Tensor wide = x.expand({3, 2});
      if (realized) wide.realize();
      EXPECT_THROW(wide.assign(Tensor::zeros({3, 2})), ValueError);
      EXPECT_THROW(wide.set_item({0}, 1), ValueError);
      EXPECT_THROW(wide += 1, ValueError);
      EXPECT_EQ(wide.tolist(), (computed ? Floats(6, 2) : Floats(6, 1)));
    }
}

TEST_P(VariablesOn, ACopyIsOfTheMomentWhenItWasMade) {
  for (const bool computed : {false, true}) {
    const Tensor source({1.0, 2.0, 3.0});
    Tensor x = computed ? source * 1 : source.clone();
    const Tensor copy = x.contiguous(), more = x + 0, cast = x.cast(DType::int32);
    x += 10;
    EXPECT_EQ(copy.tolist(), (Floats{1, 2, 3}));
    EXPECT_EQ(more.tolist(), (Floats{1, 2, 3}));
    EXPECT_EQ(cast.tolist(), (Floats{1, 2, 3}));
    EXPECT_EQ(x.tolist(), (Floats{11, 12, 13}));
  }
}

}  // namespace
}  // namespace tinygrad
