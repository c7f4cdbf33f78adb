// Symbolic sizes: whatever they are used in gives what plain sizes give, by kernels that are compiled once.
#include <gtest/gtest.h>

#include <cmath>

#include <tinygrad/tinygrad.h>

#include "runtime/every_device.h"

namespace tinygrad {
namespace {

using Floats = std::vector<float>;

class SymbolicOn : public test::EveryDevice {
 protected:
  /// Numbers without a pattern, the same for each call.
  static Tensor numbers(const Sizes& shape) {
    int64_t n = 1;
    for (int64_t s : shape) n *= s;
    Floats values;
    for (int64_t i = 0; i < n; ++i) values.push_back(std::sin(float(i) * 1.7f + float(shape.size())));
    return Tensor(values, shape);
  }
  static void expect_same(const Tensor& got, const Tensor& wanted, double tolerance = 1e-5) {
    ASSERT_EQ(got.shape(), wanted.shape());
    const Floats a = got.tolist(), b = wanted.tolist();
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << "element " << i;
  }

  const Variable n_{"n", 1, 10}, m_{"m", 1, 10};
};
INSTANTIATE_TEST_SUITE_P(All, SymbolicOn, testing::ValuesIn(test::tensor_devices()), test::device_test_name);

TEST_P(SymbolicOn, ShapesAreExpressions) {
  const Variable n = n_.bind(4);
  const Tensor x = numbers({3, 10})[{Slice{}, Slice{.stop = n}}];
  EXPECT_EQ(x.shape(), (Sizes{3, 4}));
  EXPECT_EQ(x.max_shape(), (Sizes{3, 10}));
  EXPECT_EQ(x.max_numel(), 30);
  EXPECT_EQ(x.numel(), 12);
  EXPECT_EQ(x.size(1), 4);
  const Extents sizes = x.symbolic_shape();
  EXPECT_TRUE(sizes[0].known());
  EXPECT_FALSE(sizes[1].known());
  EXPECT_EQ(sizes[1], Extent(n));
  EXPECT_EQ((sizes[1] * 2 + 1).value(), 9);
  EXPECT_EQ(((sizes[1] * 2 + 1) / 2).value(), 4);
  EXPECT_EQ(((sizes[1] * 2 + 1) % 3).value(), 0);
  EXPECT_EQ((sizes[1] - 1).max(), 9);
  EXPECT_EQ(sizes[1] + 1 - sizes[1], Extent(1));
  EXPECT_EQ(x.tolist().size(), 12u);
  EXPECT_FALSE(Extent{n_}.known());
  EXPECT_THROW((numbers({3, 10})[{Slice{}, Slice{.stop = n_}}]).sum().item(), ValueError) << "it has no value when it is computed";
}

TEST_P(SymbolicOn, Elementwise) {
  for (int64_t i : {1, 3, 10}) {
    const Variable n = n_.bind(i);
    const Tensor a = numbers({3, 10}), b = numbers({3, 10}) * 2;
    const Tensor x = a[{Slice{}, Slice{.stop = n}}], y = b[{Slice{}, Slice{.stop = n}}];
    const Tensor p = a.shrink({{0, 3}, {0, i}}), q = b.shrink({{0, 3}, {0, i}});
    expect_same(x + 1, p + 1);
    expect_same(x + y, p + q);
    expect_same((x * y).exp().relu() - y, (p * q).exp().relu() - q);
    expect_same((x > 0).where(x, y), (p > 0).where(p, q));
    expect_same(x.realize() + y, p + q);
  }
}

TEST_P(SymbolicOn, SlicesWithBothBounds) {
  const Tensor a = numbers({10, 6});
  for (int64_t i : {1, 4, 7}) {
    const Variable n = n_.bind(i);
    expect_same(a[{Slice{n, Extent(n) + 2}}], a.shrink({{i, i + 2}, {0, 6}}));
    expect_same(a[{Slice{.start = n}}], a.shrink({{i, 10}, {0, 6}}));
    expect_same(a[{Slice{Extent(n) - 1, n}}], a.shrink({{i - 1, i}, {0, 6}}));
    expect_same(a[{n}], a[{i}]);
    const Variable m = m_.bind(i + 2);
    expect_same(a.shrink({{n, m}, {1, 3}}), a.shrink({{i, i + 2}, {1, 3}}));
    expect_same(a.shrink_to({n, -1}), a.shrink_to({i, -1}));
  }
}

TEST_P(SymbolicOn, Movement) {
  const Tensor a = numbers({10, 6});
  for (int64_t i : {1, 3, 10}) {
    const Variable n = n_.bind(i);
    const Tensor x = a[{Slice{.stop = n}}], p = a.shrink({{0, i}, {0, 6}});
    expect_same(x.reshape({n, 2, 3}) + 1, p.reshape({i, 2, 3}) + 1);
    expect_same(x.reshape({-1}), p.reshape({-1}));
    expect_same(x.flatten().reshape({n, -1}), p);
    expect_same(x.T().contiguous(), p.T());
    expect_same(x.flip(0), p.flip(0));
    expect_same(x.flip(1), p.flip(1));
    expect_same(x.unsqueeze(1).expand({n, 4, 6}), p.unsqueeze(1).expand({i, 4, 6}));
    expect_same(numbers({1, 6}).expand({n, 6}) + x, numbers({1, 6}).expand({i, 6}) + p);
    expect_same(x.pad({{1, 2}, {0, 1}}), p.pad({{1, 2}, {0, 1}}));
    expect_same(a.pad({{n, 0}, {0, n}}, 2.5), a.pad({{i, 0}, {0, i}}, 2.5));
    expect_same(x.pad_to({12, 8}), p.pad_to({12, 8}));
    expect_same(x.pad_to({Extent(n) + 3, 6}), p.pad_to({i + 3, 6}));
    expect_same(x.repeat({2, 1}), p.repeat({2, 1}));
    expect_same(numbers({2, 3}).repeat({n, 2}), numbers({2, 3}).repeat({i, 2}));
    expect_same(x.unflatten(1, {3, 2}).permute({2, 0, 1}), p.unflatten(1, {3, 2}).permute({2, 0, 1}));
    expect_same(x.repeat_interleave(2, 0), p.repeat_interleave(2, 0));
    expect_same(Tensor::stack({x, x * 2}, 1), Tensor::stack({p, p * 2}, 1));
  }
}

TEST_P(SymbolicOn, Reductions) {
  const Tensor a = numbers({10, 6});
  for (int64_t i : {1, 3, 10}) {
    const Variable n = n_.bind(i);
    const Tensor x = a[{Slice{.stop = n}}], p = a.shrink({{0, i}, {0, 6}});
    expect_same(x.sum(), p.sum());
    expect_same(x.sum(0), p.sum(0));
    expect_same(x.sum(1), p.sum(1));
    expect_same(x.mean(), p.mean());
    expect_same(x.mean(0), p.mean(0));
    expect_same(x.max(0), p.max(0));
    expect_same(x.min(0, {.keepdim = true}), p.min(0, {.keepdim = true}));
    expect_same(x.softmax(0), p.softmax(0));
    expect_same(x.softmax(1), p.softmax(1));
    expect_same(x.log_softmax(0), p.log_softmax(0));
    expect_same(x.argmax(0), p.argmax(0));
    expect_same((x.var(0, {.correction = 0})), (p.var(0, {.correction = 0})));
    expect_same(x.cumsum(0), p.cumsum(0));
    expect_same(x.prod(0), p.prod(0));
    expect_same((x > 0).any(0), (p > 0).any(0));
    if (i > 1) expect_same(x.var(0), p.var(0));
    if (i > 1) expect_same(x.std(), p.std());
    expect_same(Tensor::ones({n, 4}).sum(), Tensor::ones({i, 4}).sum());
  }
}

TEST_P(SymbolicOn, TwoVariables) {
  const Tensor a = numbers({10, 10});
  for (int64_t i : {1, 4, 10})
    for (int64_t j : {1, 5, 10}) {
      const Variable n = n_.bind(i), m = m_.bind(j);
      const Tensor x = a.shrink({{0, n}, {0, m}}), p = a.shrink({{0, i}, {0, j}});
      expect_same(x + 1, p + 1);
      expect_same(x.mean(), p.mean());
      expect_same(x.sum(0), p.sum(0));
      expect_same(x.reshape({-1}) * 2, p.reshape({-1}) * 2);
      expect_same(x.reshape({m, n}), p.reshape({j, i}));
      expect_same(Tensor::cat({a.shrink_to({n, 10}), a.shrink_to({m, 10})}), Tensor::cat({a.shrink_to({i, 10}), a.shrink_to({j, 10})}));
    }
}

TEST_P(SymbolicOn, Products) {
  const Tensor a = numbers({4, 10}), b = numbers({10, 5});
  for (int64_t i : {1, 3, 10}) {
    const Variable n = n_.bind(i);
    const Tensor x = a.shrink_to({-1, n}), y = b.shrink_to({n, -1}), p = a.shrink_to({-1, i}), q = b.shrink_to({i, -1});
    expect_same(x.matmul(y), p.matmul(q));
    expect_same(y.matmul(a.shrink_to({-1, 5}).T()), q.matmul(a.shrink_to({-1, 5}).T()));
    expect_same(y.linear(numbers({5, 3}), numbers({3})), q.linear(numbers({5, 3}), numbers({3})));
    expect_same(Tensor::einsum("ij,jk->ik", {x, y}), Tensor::einsum("ij,jk->ik", {p, q}));
    expect_same(y.layernorm(), q.layernorm(), 1e-4);
  }
}

// Large enough that operands are staged where all sizes are known.
TEST_P(SymbolicOn, LargeProducts) {
  const Tensor a = numbers({40, 60}), b = numbers({60, 50});
  for (int which = 0; which < 8; ++which) {
    SCOPED_TRACE(which);
    const auto stop = [&](int bit, const char* name, int64_t size) -> Extent {
      return which >> bit & 1 ? Extent(Variable(name, 1, size).bind(size - 3)) : Extent(size - 3);
    };
    const Extent m = stop(0, "rows", 40), k = stop(1, "inner", 60), n = stop(2, "columns", 50);
    const Tensor x = a[{Slice{.stop = m}, Slice{.stop = k}}], y = b[{Slice{.stop = k}, Slice{.stop = n}}];
    const Tensor wanted = a[{Slice{.stop = 37}, Slice{.stop = 57}}].matmul(b[{Slice{.stop = 57}, Slice{.stop = 47}}]);
    expect_same(x.matmul(y), wanted, 1e-4);
  }
}

TEST_P(SymbolicOn, Cat) {
  const Tensor a = numbers({10, 3}), b = numbers({2, 3});
  for (int64_t i : {1, 3, 10}) {
    const Variable n = n_.bind(i);
    const Tensor x = a.shrink_to({n, -1}), p = a.shrink_to({i, -1});
    expect_same(Tensor::cat({x, b}), Tensor::cat({p, b}));
    expect_same(Tensor::cat({b, x}), Tensor::cat({b, p}));
    expect_same(Tensor::cat({x, x * 2}, 1), Tensor::cat({p, p * 2}, 1));
    expect_same(Tensor::cat({b, x, b}).sum(0), Tensor::cat({b, p, b}).sum(0));
  }
}

TEST_P(SymbolicOn, MasksAndCreation) {
  for (int64_t i : {1, 4, 10}) {
    const Variable n = n_.bind(i);
    expect_same(Tensor::arange(Extent(n)), Tensor::arange(i));
    expect_same(Tensor::ones({n, n}).tril(), Tensor::ones({i, i}).tril());
    expect_same(Tensor::ones({n, n}).triu(1), Tensor::ones({i, i}).triu(1));
    expect_same(Tensor::full({3, n}, 2.5) + Tensor::arange(Extent(n)), Tensor::full({3, i}, 2.5) + Tensor::arange(i));
    const Tensor scores = numbers({10, 10}).shrink_to({n, n}), plain = numbers({10, 10}).shrink_to({i, i});
    const Tensor seen = Tensor::arange(Extent(n)).unsqueeze(1) >= Tensor::arange(Extent(n));
    expect_same(seen.where(scores, -1e9).softmax(), (Tensor::ones({i, i}).tril() != 0).where(plain, -1e9).softmax());
    expect_same(scores.masked_fill(Tensor::ones({n, n}).tril() == 0, 0), plain.tril());
  }
}

TEST_P(SymbolicOn, Attention) {
  const Tensor q = numbers({1, 2, 3, 4}), k = numbers({1, 2, 10, 4}), v = numbers({1, 2, 10, 4}) * 2;
  for (int64_t i : {3, 6, 10}) {
    const Variable n = n_.bind(i);
    const Tensor ks = k.shrink_to({-1, -1, n, -1}), vs = v.shrink_to({-1, -1, n, -1});
    const Tensor kp = k.shrink_to({-1, -1, i, -1}), vp = v.shrink_to({-1, -1, i, -1});
    expect_same(q.scaled_dot_product_attention(ks, vs), q.scaled_dot_product_attention(kp, vp));
    expect_same(ks.scaled_dot_product_attention(ks, vs, {.is_causal = true}), kp.scaled_dot_product_attention(kp, vp, {.is_causal = true}));
    expect_same(q.scaled_dot_product_attention(ks.shrink_to({-1, 1, -1, -1}), vs.shrink_to({-1, 1, -1, -1}), {.enable_gqa = true}),
                q.scaled_dot_product_attention(kp.shrink_to({-1, 1, -1, -1}), vp.shrink_to({-1, 1, -1, -1}), {.enable_gqa = true}));
  }
}

TEST_P(SymbolicOn, Gradients) {
  const Tensor a = numbers({10, 4});
  for (int64_t i : {1, 3, 10}) {
    const Variable n = n_.bind(i);
    const auto loss = [](const Tensor& x) { return (x.softmax(0) * x).sum() + x.mean() + x.matmul(x.T()).max(); };
    const Tensor plain = loss(a.shrink_to({i, -1})).gradient({a})[0];
    expect_same(loss(a.shrink_to({n, -1})).gradient({a})[0], plain, 1e-4);
  }
}

TEST_P(SymbolicOn, GatherAndIndices) {
  const Tensor a = numbers({10, 4});
  const Tensor ids({2, 0, 1});
  for (int64_t i : {3, 10}) {
    const Variable n = n_.bind(i);
    const Tensor x = a.shrink_to({n, -1}), p = a.shrink_to({i, -1});
    expect_same(x[{ids}], p[{ids}]);
    const Tensor places = Tensor({1, 0, 3, 2, 1, 1, 0, 2, 3, 9});
    expect_same(a[{places.shrink_to({n})}], a[{places.shrink_to({i})}]);
    expect_same(places.shrink_to({n}).one_hot(10), places.shrink_to({i}).one_hot(10));
    expect_same(x.sort(0).values, p.sort(0).values);
    expect_same(x.gather(0, Tensor({{2, 1}, {0, 0}})), p.gather(0, Tensor({{2, 1}, {0, 0}})));
  }
}

TEST_P(SymbolicOn, KernelsAreTheSameForAllValues) {
  const Tensor a = numbers({10, 6}).realize(), w = numbers({6, 3}).realize();
  const auto f = jit([&](const Variable& n) {
    const Tensor x = a.shrink_to({n, -1});
    return std::tuple(x.matmul(w).softmax(0), x.mean(0), Tensor::cat({x, x + 1}));
  });
  for (int64_t i : {2, 5, 10, 1, 7}) {
    const auto [product, mean, both] = f(n_.bind(i));
    const Tensor p = a.shrink_to({i, -1});
    expect_same(product, p.matmul(w).softmax(0));
    expect_same(mean, p.mean(0));
    expect_same(both, Tensor::cat({p, p + 1}));
  }
  EXPECT_TRUE(f.captured());
}

TEST_P(SymbolicOn, KeyValueCache) {
  const Variable start("start", 0, 15);
  const int64_t heads = 2, length = 16, width = 4;
  Tensor keys = Tensor::zeros({1, heads, length, width}).contiguous().realize(), values = keys.clone().realize();
  const auto step = jit([&](const Tensor& q, const Tensor& k, const Tensor& v, const Variable& at) {
    keys.shrink({{0, 1}, {0, heads}, {at, Extent(at) + 1}, {0, width}}).assign(k);
    values.shrink({{0, 1}, {0, heads}, {at, Extent(at) + 1}, {0, width}}).assign(v);
    const Tensor ks = keys.shrink_to({-1, -1, Extent(at) + 1, -1}), vs = values.shrink_to({-1, -1, Extent(at) + 1, -1});
    return q.scaled_dot_product_attention(ks, vs);
  });
  std::vector<Tensor> all_keys, all_values;
  for (int64_t t = 0; t < 8; ++t) {
    const Tensor q = (numbers({1, heads, 1, width}) + 0.1 * double(t)).realize(), k = (q * 2 - 0.3).realize(), v = (q.sin() + 1).realize();
    all_keys.push_back(k);
    all_values.push_back(v);
    const Tensor plain = q.scaled_dot_product_attention(Tensor::cat(all_keys, 2), Tensor::cat(all_values, 2));
    expect_same(step(q, k, v, start.bind(t)), plain);
  }
  EXPECT_TRUE(step.captured());
}

TEST_P(SymbolicOn, SizesAreNoNumbersInAJittedFunction) {
  const Tensor a = numbers({10, 6}).realize();
  const auto f = jit([&](const Variable& n) { return a.shrink_to({n, -1}) * double(a.shrink_to({n, -1}).size(0)); });
  f(n_.bind(2));
  EXPECT_THROW(f(n_.bind(3)), JitError);
}

TEST_P(SymbolicOn, Mistakes) {
  const Variable n = n_.bind(3), m = m_.bind(3);
  const Tensor a = numbers({10, 6}), x = a.shrink_to({n, -1});
  EXPECT_THROW(x + a, ShapeError);
  EXPECT_THROW(x + a.shrink_to({m, -1}), ShapeError);
  EXPECT_THROW(x.reshape({n, 7}), ShapeError);
  EXPECT_THROW(x.diagonal(), ValueError);
  EXPECT_THROW(x.split(2), ValueError);
  EXPECT_THROW((x[{Slice{.step = 2}}]), ValueError);
  EXPECT_THROW((void)(x + Tensor::ones({n_.bind(4), 6})).tolist(), Error);
}

}  // namespace
}  // namespace tinygrad
