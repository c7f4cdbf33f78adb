// What other JITs get wrong without saying so: here each gives the right answer or a named error.
#include <gtest/gtest.h>

#include <functional>

#include <tinygrad/tinygrad.h>

#include "ops/movement.h"
#include "shape/shape.h"
#include "uop/build.h"

namespace tinygrad {
namespace {

using Floats = std::vector<float>;

class JitMistake : public testing::TestWithParam<const char*> {
 protected:
  Context on_device_{{.dev = GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(All, JitMistake, testing::Values("CPU", "INTERP"), [](const auto& p) { return std::string(p.param); });

template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const JitError& e) {
    return e.what();
  }
  return "";
}
#define EXPECT_JIT_ERROR(call, part) EXPECT_NE(error_of([&] { call; }).find(part), std::string::npos) << error_of([&] { call; })

// Results.

TEST_P(JitMistake, ResultsAreNotOverwrittenByTheNextCall) {
  const auto f = jit([](const Tensor& x) { return x.sum().realize(); });
  std::vector<Tensor> results;
  for (int i = 0; i < 6; ++i) results.push_back(f(Tensor({i, i})));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(results[size_t(i)].item(), 2 * i);
}

TEST_P(JitMistake, AViewOfAResultKeepsIt) {
  const auto f = jit([](const Tensor& x) { return (x + 1).contiguous(); });
  Tensor view;
  for (int i = 0; i < 4; ++i) view = f(Tensor({1.0 * i, 2.0}))[1];
  const Tensor lazy = view * 2;
  for (int i = 0; i < 4; ++i) f(Tensor({1.0, 50.0 + i}));
  EXPECT_EQ(view.item(), 3);
  EXPECT_EQ(lazy.item(), 6);
}

TEST_P(JitMistake, AResultIsTheNextArgument) {
  const auto step = jit([](const Tensor& x) { return ((x + 1).realize() * 2).realize(); });
  step(Tensor({10}).realize());
  Tensor x = step(Tensor({20}).realize());
  for (int i = 0; i < 3; ++i) x = step(x);
  EXPECT_EQ(x.item(), 350);
  Tensor y = Tensor({100}).realize();
  for (int i = 0; i < 3; ++i) y = step(y);
  EXPECT_EQ(y.item(), 814);
}

TEST_P(JitMistake, SeveralResultsOfOneValue) {
  const auto f = jit([](const Tensor& buffer, const Tensor& frame) {
    const Tensor next = Tensor::cat({buffer[{Slice{1}}], frame});
    return std::pair(next.contiguous(), next[{Slice{0, 1}}].contiguous());
  });
  Tensor buffer = Tensor({{0}, {1}, {2}}).realize();
  for (int i = 0; i < 6; ++i) {
    const int expected = buffer[{Slice{1, 2}}].item<int>();
    const auto [next, first] = f(buffer, Tensor({{10 + i}}));
    EXPECT_EQ(first.item<int>(), expected);
    buffer = next;
  }
}

TEST_P(JitMistake, AResultThatSomethingElseKeeps) {
  Tensor saved;
  const auto f = jit([&](const Tensor& x) {
    saved = x * 2;
    return saved;
  });
  std::vector<Tensor> results;
  for (int i = 0; i < 5; ++i) {
    results.push_back(f(Tensor({1.0 * i})));
    EXPECT_EQ(saved.item(), 2 * i);
  }
  EXPECT_TRUE(f.captured());
  for (int i = 2; i < 5; ++i) EXPECT_EQ(results[size_t(i)].item(), 2 * i);
}

// Arguments.

TEST_P(JitMistake, OneTensorAsTwoArguments) {
  const auto f = jit([](const Tensor& a, const Tensor& b) { return a + b * 10; });
  const Tensor x = Tensor({1.0, 2.0}).realize();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(f(x, x).tolist(), (Floats{11, 22}));
  EXPECT_TRUE(f.captured());
  EXPECT_EQ(f(x, Tensor({3.0, 4.0})).tolist(), (Floats{31, 42}));
  EXPECT_EQ(f(Tensor({3.0, 4.0}), x).tolist(), (Floats{13, 24}));
}

TEST_P(JitMistake, APartOfATensorThatIsAssigned) {
  const auto function = [](Tensor a, const Tensor& part) {
    a.assign(a + 1).realize();
    return part.sum();
  };
  const std::function<Tensor(const Tensor&)> views[] = {[](const Tensor& x) { return x.T(); }, [](const Tensor& x) { return x.flip(0); },
                                                        [](const Tensor& x) { return x[{Slice{}, Slice{1}}]; }};
  for (const auto& view : views) {
    const Tensor x = Tensor({{1.0, 2.0}, {3.0, 4.0}}).realize(), other = Tensor({{5.0, 6.0}, {7.0, 8.0}}).realize();
    const auto f = jit(function);
    EXPECT_JIT_ERROR(f(x, view(x)), "two arguments share it");
    for (int i = 0; i < 4; ++i) EXPECT_EQ(f(x, view(other)).item(), view(other).sum().item());
    EXPECT_TRUE(f.captured());
    EXPECT_JIT_ERROR(f(x, view(x)), "arguments 0 and 1 share memory");
  }
}

TEST_P(JitMistake, APartOfATensorThatTheFunctionFindsAndAssigns) {
  const Tensor x = Tensor({{1.0, 2.0}, {3.0, 4.0}}).realize(), other = Tensor({{5.0, 6.0}, {7.0, 8.0}}).realize();
  const auto f = jit([x](const Tensor& part) {
    Tensor(x).assign(x + 1).realize();
    return part.sum();
  });
  EXPECT_JIT_ERROR(f(x[{Slice{}, Slice{1}}]), "it also finds the argument outside");
  for (int i = 0; i < 4; ++i) EXPECT_EQ(f(other[{Slice{}, Slice{1}}]).item(), 14);
  EXPECT_TRUE(f.captured());
  EXPECT_JIT_ERROR(f(x[{Slice{}, Slice{1}}]), "argument 0 shares memory");
}

TEST_P(JitMistake, OneTensorAsTwoArgumentsOneOfWhichIsAssigned) {
  const auto function = [](Tensor a, const Tensor& b) {
    a += b;
    return a.sum() + b.sum();
  };
  const Tensor x = Tensor({1.0, 2.0}).realize();
  const auto f = jit(function);
  EXPECT_JIT_ERROR(f(x, x), "two arguments share it");
  EXPECT_EQ(x.tolist(), (Floats{1, 2}));
  for (int i = 0; i < 3; ++i) f(Tensor({1.0, 2.0}), Tensor({1.0, 2.0}));
  EXPECT_TRUE(f.captured());
  EXPECT_JIT_ERROR(f(x, x), "arguments 0 and 1 share memory");
  EXPECT_EQ(x.tolist(), (Floats{1, 2}));
}

TEST_P(JitMistake, AnArgumentThatTheFunctionAlsoFindsElsewhere) {
  const Tensor w = Tensor({1.0, 2.0}).realize();
  const auto f = jit([&](const Tensor& x) { return x + w * 10; });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(f(w).tolist(), (Floats{11, 22}));
  EXPECT_EQ(f(Tensor({5.0, 6.0})).tolist(), (Floats{15, 26}));  // only the argument is another
  const auto g = jit([&](Tensor x) {
    x += 1;
    return x + w;
  });
  EXPECT_JIT_ERROR(g(w), "two ways");
}

TEST_P(JitMistake, AnAssignmentToAnArgument) {
  const auto f = jit([](Tensor x) {
    x += 1;
    return x;
  });
  Tensor a = Tensor({0}).realize(), b = Tensor({100}).realize();
  const Tensor before = a * 10;  // lazy: the value where it was written
  for (int i = 0; i < 5; ++i) f(a);
  const Tensor between = b * 10;
  f(b);
  EXPECT_EQ(a.item(), 5);
  EXPECT_EQ(b.item(), 101);
  EXPECT_EQ(before.item(), 0);
  EXPECT_EQ(between.item(), 1000);
}

TEST_P(JitMistake, ViewsAtOtherPlaces) {
  const auto f = jit([](const Tensor& x) { return x + 1; });
  const Tensor all = Tensor::arange(40).reshape({4, 10}).clone().realize();
  for (int i = 0; i < 6; ++i) EXPECT_EQ(f(all[{Slice{}, Slice{i, i + 2}}]).tolist()[2], float(10 + i + 1));
  EXPECT_TRUE(f.captured());
  const auto g = jit([](Tensor x) { x += 1; });
  EXPECT_JIT_ERROR(g(all[1]), "argument 0, which is a view");
  for (int i = 0; i < 3; ++i) g(Tensor({1, 2}).realize());
  EXPECT_JIT_ERROR(g(all[{0, Slice{0, 2}}]), "argument 0, which is a view");
}

TEST_P(JitMistake, ArgumentsOfOtherKinds) {
  const auto f = jit([](const Tensor& a, const Tensor& b) { return a + b; });
  const Tensor x({1.0, 2.0});
  for (int i = 0; i < 3; ++i) f(x, x);
  EXPECT_EQ(f(Tensor({1.0, 2.0, 3.0}), Tensor({1.0, 2.0, 3.0})).tolist(), (Floats{2, 4, 6}));  // captured besides
  EXPECT_EQ(f(x, Tensor({1, 2})).tolist(), (Floats{2, 4}));
  EXPECT_JIT_ERROR(f(x, Tensor()), "no Tensor");
  EXPECT_EQ(f(x, x).tolist(), (Floats{2, 4}));
}

TEST_P(JitMistake, ConstantsAreArgumentsLikeOthers) {
  const auto f = jit([](const Tensor& a, const Tensor& b) { return a * b; });
  for (int i = 0; i < 5; ++i) EXPECT_EQ(f(Tensor({1.0, 2.0}), Tensor(1.0 * i)).tolist(), (Floats{float(i), 2 * float(i)}));
  EXPECT_TRUE(f.captured());
}

TEST_P(JitMistake, AnArgumentIsKept) {
  Tensor kept;
  const auto f = jit([&](const Tensor& x) {
    kept = x;
    return x + 1;
  });
  f(Tensor({1.0}));
  EXPECT_JIT_ERROR(f(Tensor({2.0})), "keeps argument 0");
}

TEST_P(JitMistake, NumbersAmongTheArguments) {
  const auto f = jit([](const Tensor& x, bool square, int more) { return (square ? x * x : x * 2) + more; });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(f(Tensor({3.0}), false, 1).item(), 7);
  EXPECT_JIT_ERROR(f(Tensor({3.0}), true, 1), "called with (Tensor, true, 1), captured with (Tensor, false, 1)");
  EXPECT_JIT_ERROR(f(Tensor({3.0}), false, 2), "part of what was captured");
  EXPECT_EQ(f(Tensor({4.0}), false, 1).item(), 9);
}

// What the function finds outside of its arguments.

struct Scaler {
  Tensor scale;
  Tensor operator()(const Tensor& x) const { return x * scale; }
  virtual ~Scaler() = default;
};

TEST_P(JitMistake, OneMethodForTwoObjects) {
  const auto forward = jit([](const Scaler& s, const Tensor& x) { return s(x); });
  Scaler m1, m2;
  m1.scale = Tensor({2.0}).realize();
  m2.scale = Tensor({3.0}).realize();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(forward(m1, Tensor({5.0})).item(), 10);
  EXPECT_JIT_ERROR(forward(m2, Tensor({5.0})), "object at");
  const auto of_m2 = jit([&](const Tensor& x) { return m2(x); });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(of_m2(Tensor({5.0})).item(), 15);
}

TEST_P(JitMistake, StoresThatWaitAreSeen) {
  Tensor x = Tensor({0}).realize();
  const auto f = jit([&] { return x * 2; });
  for (int i = 0; i < 6; ++i) {
    x.assign(Tensor({i}));
    EXPECT_EQ(f().item(), 2 * i);
  }
  EXPECT_TRUE(f.captured());
}

TEST_P(JitMistake, AssignmentsHappenInReplaysToo) {
  Tensor in = Tensor({0.0}).realize(), out = Tensor({0.0}).realize(), count = Tensor({0.0}).realize();
  const auto f = jit([&](const Tensor& x) {
    out.assign(in * 2 + x);
    count += 1;  // nobody realizes them in the function
  });
  for (int i = 0; i < 6; ++i) {
    in.assign(Tensor({1.0 * i}));
    const Tensor before = out * 1;
    const double was = Tensor(out).item();
    f(Tensor({100.0}));
    EXPECT_EQ(out.item(), 2 * i + 100);
    EXPECT_EQ(before.item(), was);
  }
  EXPECT_EQ(count.item(), 6);
  EXPECT_TRUE(f.captured());
}

TEST_P(JitMistake, SliceAssignThenRead) {
  const Variable position("position", 0, 3);
  Tensor cache = Tensor::zeros({4, 4}).clone().realize();
  const auto f = jit([&](const Variable& p) {
    cache[{Slice{p, Extent(p) + 1}}].assign(Tensor::ones({1, 4}));
    return cache.sum();
  });
  for (int i = 0; i < 4; ++i) {
    cache.assign(Tensor::zeros({4, 4}));
    EXPECT_EQ(f(position.bind(i)).item(), 4);
    EXPECT_EQ(cache.sum(1).tolist()[size_t(i)], 4);
  }
  EXPECT_TRUE(f.captured());
}

TEST_P(JitMistake, SymbolicPad) {
  const Variable n("n", 1, 10);
  const Tensor a = Tensor::ones({3, 10}).clone().realize();
  const auto f = jit([](const Tensor& x) {
    const UOp y = (x + 1).uop();
    const std::pair<SInt, SInt> amounts[] = {{0, 0}, {0, SInt(10) - shape_of(y)[1]}};
    return Tensor::from_uop(pad(y, amounts));
  });
  for (int i = 1; i < 7; ++i) {
    const Tensor y = f(a[{Slice{}, Slice{.stop = n.bind(i)}}]);
    EXPECT_EQ((y[0] != 0).to_int().sum().item<int>(), i);
  }
  EXPECT_TRUE(f.captured());
}

TEST_P(JitMistake, ATensorThatIsReplacedOutside) {
  Tensor rate({2.0});
  const auto f = jit([&](const Tensor& x) { return x * rate; });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(f(Tensor({1.0})).item(), 2);
  EXPECT_TRUE(f.captured());
  rate = Tensor({5.0});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(f(Tensor({1.0})).item(), 5);
  EXPECT_TRUE(f.captured());
}

TEST_P(JitMistake, TensorsThatBecomeOthers) {
  Tensor a = Tensor({2.0}).realize(), b = Tensor({3.0}).realize(), lazy = Tensor::full({1}, 4.0);
  const auto f = jit([&](const Tensor& x) { return x * a + lazy; });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(f(Tensor({1.0})).item(), 6);
  EXPECT_TRUE(f.captured());
  const Tensor old = a * 1;
  std::swap(a, b);
  a.replace(Tensor({3.0}));
  b.replace(Tensor({2.0}));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(f(Tensor({1.0})).item(), 7);
  lazy.assign(Tensor::full({1}, 10.0));  // it has no memory: it becomes the other value
  for (int i = 0; i < 4; ++i) EXPECT_EQ(f(Tensor({1.0})).item(), 13);
  EXPECT_TRUE(f.captured());
}

TEST_P(JitMistake, TensorsThatExchangeTheirMemory) {
  Tensor a = Tensor({2.0}).realize(), b = Tensor({3.0}).realize();
  const auto f = jit([&](const Tensor& x) { return x * a; });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(f(Tensor({1.0})).item(), 2);
  const Tensor was = Tensor::from_uop(a.uop());
  a.replace(b);
  b.replace(was);  // the memory that was captured lives on
  for (int i = 0; i < 4; ++i) EXPECT_EQ(f(Tensor({1.0})).item(), 3);
  EXPECT_TRUE(f.captured());
}

TEST_P(JitMistake, ATensorThatIsReplacedByTheFunction) {
  Tensor state({0.0});
  const auto f = jit([&](const Tensor& x) {
    state = state + x;
    return state * 1;
  });
  for (int i = 1; i < 6; ++i) EXPECT_EQ(f(Tensor({1.0})).item(), i);
  EXPECT_FALSE(f.captured());
}

TEST_P(JitMistake, GradientsThatAddUp) {
  const Tensor w = Tensor({2.0}).realize();
  const auto f = jit([&](const Tensor& x) {
    const Tensor loss = (w * x).sum();
    loss.backward();
    return loss;
  });
  for (int i = 1; i < 6; ++i) {
    f(Tensor({3.0}));
    EXPECT_EQ(w.grad().item(), 3 * i);
  }
}

TEST_P(JitMistake, ALazyGradientAfterAReplay) {
  const Tensor w = Tensor({2.0, 3.0}).realize();
  const auto f = jit([&](const Tensor& x) {
    w.set_grad({});
    const Tensor loss = (w * x * x).sum();
    loss.backward();
    return loss;
  });
  for (int i = 0; i < 5; ++i) {
    f(Tensor({1.0 * i, 2.0}));
    const Tensor lazy = w.grad() * 1;
    EXPECT_EQ(w.grad().tolist(), (Floats{float(i * i), 4}));
    f(Tensor({9.0, 9.0}));
    EXPECT_EQ(lazy.tolist(), (Floats{float(i * i), 4}));
  }
  EXPECT_TRUE(f.captured());
}

TEST_P(JitMistake, ValuesFromTheHostThatTheFunctionChanges) {
  const auto f = jit([](const Tensor& x) {
    Tensor sum({0.0, 1.0});
    sum += x;
    sum.realize();
    sum += x;
    return sum;
  });
  for (int i = 0; i < 5; ++i) EXPECT_EQ(f(Tensor({1.0 * i, 1.0})).tolist(), (Floats{2 * float(i), 3}));
  EXPECT_TRUE(f.captured());
}

TEST_P(JitMistake, AnOptionThatGraphsDependOn) {
  const auto f = jit([](const Tensor& x) { return x.dropout(0.5); });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(f(Tensor({1.0, 2.0})).tolist(), (Floats{1, 2}));
  const Context training{{.training = true}};
  EXPECT_JIT_ERROR(f(Tensor({1.0, 2.0})), "TRAINING is not what it was");
}

// Values on the host.

TEST_P(JitMistake, NumbersThatChangeFromCallToCall) {
  double factor = 0;
  const auto f = jit([&](const Tensor& x) { return x * factor; });
  for (int i = 0; i < 5; ++i) {
    factor = i + 1;
    EXPECT_EQ(f(Tensor({10.0})).item(), 10 * (i + 1));  // two calls never agree, so none is captured
  }
  EXPECT_FALSE(f.captured());
}

TEST_P(JitMistake, CheckingModeNamesNumbersThatChangeLater) {
  double factor = 2;
  std::vector<float> values{1, 2};
  Tensor rate({2.0});
  const auto f = jit([&](const Tensor& x) { return x * factor * Tensor(values) * rate; }, {.check = true});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(f(Tensor({1.0 + i, 1.0})).tolist(), (Floats{4.0f * float(i + 1), 8}));
  EXPECT_TRUE(f.captured());
  factor = 3;
  EXPECT_JIT_ERROR(f(Tensor({1.0, 1.0})), "the constant 2 became 3");
  factor = 2;
  values[0] = 7;
  EXPECT_JIT_ERROR(f(Tensor({1.0, 1.0})), "tensor that it makes from host values");
  values[0] = 1;
  const Tensor old = rate;
  rate = Tensor({5.0});
  EXPECT_JIT_ERROR(f(Tensor({1.0, 1.0})), "was replaced by another");
  rate = old;
  EXPECT_EQ(f(Tensor({1.0, 1.0})).tolist(), (Floats{4, 8}));
}

TEST_P(JitMistake, ValuesReadWhileCapturing) {
  const auto item = jit([](const Tensor& x) { return x * x.sum().item(); });
  EXPECT_EQ(item(Tensor({1.0, 2.0})).tolist(), (Floats{3, 6}));
  EXPECT_JIT_ERROR(item(Tensor({1.0, 2.0})), "item()");
  const auto list = jit([](const Tensor& x) { return Tensor(x.tolist()); });
  list(Tensor({1.0, 2.0}));
  EXPECT_JIT_ERROR(list(Tensor({1.0, 2.0})), "item(), tolist() or data()");
  const auto data = jit([](const Tensor& x) { return x + double(x.data().size()); });
  data(Tensor({1.0, 2.0}));
  EXPECT_JIT_ERROR(data(Tensor({1.0, 2.0})), "data()");
  const auto seed = jit([](const Tensor& x) {
    Tensor::manual_seed(1);
    return x + Tensor::rand({2});
  });
  seed(Tensor({1.0, 2.0}));
  EXPECT_JIT_ERROR(seed(Tensor({1.0, 2.0})), "manual_seed()");
}

TEST_P(JitMistake, AFunctionThatComputesNothing) {
  const auto f = jit([](const Tensor&) {});
  f(Tensor({1.0}).realize());
  EXPECT_JIT_ERROR(f(Tensor({1.0}).realize()), "computes nothing");
}

TEST_P(JitMistake, AFunctionThatThrowsLeavesAllAsItWas) {
  Tensor w = Tensor({1.0}).realize();
  bool fails = true;
  const auto f = jit([&](const Tensor& x) {
    w += x;
    if (fails) w.reshape({7});
    return w * 2;
  });
  EXPECT_THROW(f(Tensor({1.0})), ShapeError);
  fails = false;
  w.assign(Tensor({1.0})).realize();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(f(Tensor({1.0})).item(), 2 * (i + 2));
  EXPECT_TRUE(f.captured());
}

static_assert(detail::holds_tensors<std::pair<Tensor, std::vector<Tensor>>>());
static_assert(!detail::holds_tensors<std::pair<Tensor, int>>());  // does not compile as a result

}  // namespace
}  // namespace tinygrad
