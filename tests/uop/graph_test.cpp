#include "uop/graph.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include <tinygrad/errors.h>

#include "support/test_scale.h"
#include "uop/build.h"

namespace tinygrad {
namespace {

UOp var(const char* name) { return variable(name, 0, 100); }

UOp parameter(int slot) { return UOp(Op::PARAM, DType::index, {}, ParamArg{.slot = slot}); }
UOp function(const UOp& body) { return UOp(Op::FUNCTION, body.dtype(), {body}, FunctionArg{"f"}); }

/// Nodes of every kind of arg, for orders and keys.
std::vector<UOp> zoo() {
  const UOp a = var("a"), b = var("b"), x = parameter(0), r = range(4, 0);
  const UOp buf = param(DType::float32, 16, {.slot = 1, .align = 64, .device = "CPU"});
  return {a,
          b,
          a + b,
          b + a,
          a * b,
          index_const(3),
          constant(DType::float32, 3),
          constant(DType::float32, -0.0),
          constant(DType::float32, 0.0),
          r,
          range(4, 1),
          range(4, 0, AxisKind::reduce),
          buf,
          index(buf, r),
          index(buf, r, 4),
          load(index(buf, r)),
          reshape(buf, {4, 4}),
          permute(reshape(buf, {4, 4}), {1, 0}),
          flip(buf, {0}),
          reduce(Op::ADD, reshape(buf, {4, 4}), {1}),
          reduce(Op::MAX, reshape(buf, {4, 4}), {1}),
          function(x + 1),
          UOp(Op::KNOWN, DType::float32, {constant(DType::float32, 3), constant(DType::float32, 9)}, TextArg{"text"}),
          sink(UOps{}, KernelArg{"k", {{OptOp::UPCAST, 0, 4}}, false})};
}

TEST(Graph, ToposortHasSourcesBeforeUsers) {
  const UOp a = var("a"), b = var("b"), root = (a + b) * (a - b) + a;
  const auto order = toposort(root);
  EXPECT_EQ(order.size(), 6u);
  EXPECT_EQ(order.back(), root);
  for (size_t i = 0; i < order.size(); ++i)
    for (const UOp& s : order[i].src()) EXPECT_LT(std::ranges::find(order, s) - order.begin(), std::ptrdiff_t(i));
}

TEST(Graph, WalksStopAtClosedBodies) {
  const UOp inner = parameter(0) + 1, f = function(inner), arg = var("a");
  const UOp call = UOp(Op::CALL, DType::void_, {f, arg});
  EXPECT_EQ(toposort(call), (std::vector<UOp>{arg, call}));
  EXPECT_EQ(toposort(f), std::vector<UOp>{f});
  EXPECT_EQ(toposort(call, Scopes::enter).size(), 6u);
  EXPECT_FALSE(reaches(call, inner));
  EXPECT_EQ(toposort_where(std::span(&call, 1), [](const UOp& u) { return !u.is(Op::CALL); }), std::vector<UOp>{call});
}

TEST(Graph, Substitute) {
  const UOp a = var("a"), b = var("b"), c = var("c");
  NodeMap<UOp> map;
  map[a] = b;
  map[b] = c;
  EXPECT_EQ(substitute(a + b * 2, map), b + c * 2) << "values are not searched again";
  const UOp untouched = c * 2 + 1;
  EXPECT_EQ(substitute(untouched, map).get(), untouched.get());

  const UOp call = UOp(Op::CALL, DType::void_, {function(a + 1), a});
  EXPECT_EQ(substitute(call, map), UOp(Op::CALL, DType::void_, {function(a + 1), b})) << "bodies are closed";
  const UOp roots[] = {a + 1, a + 2};
  EXPECT_EQ(substitute(std::span(roots), map), (std::vector<UOp>{b + 1, b + 2}));
}

TEST(Graph, ContentKeysAreOfStructureAlone) {
  std::vector<ContentKey> keys;
  for (const UOp& u : zoo()) keys.push_back(content_key(u));
  // Made in another order, after the first ones died.
  std::vector<ContentKey> again(keys.size());
  for (size_t i = keys.size(); i-- > 0;) again[i] = content_key(zoo()[i]);
  EXPECT_EQ(keys, again);
  std::ranges::sort(keys);
  EXPECT_EQ(std::ranges::adjacent_find(keys), keys.end());
  // The same in every process.
  EXPECT_EQ(content_key(var("a") + 1), content_key(var("a") + 1));
}

TEST(Graph, BodiesArePartOfTheKey) { EXPECT_NE(content_key(function(parameter(0) + 1)), content_key(function(parameter(0) + 2))); }

TEST(Graph, CompareIsATotalOrder) {
  const auto nodes = zoo();
  for (const UOp& a : nodes)
    for (const UOp& b : nodes) {
      EXPECT_EQ(compare(a, b) == 0, a == b);
      EXPECT_EQ(compare(a, b) < 0, compare(b, a) > 0);
      for (const UOp& c : nodes) EXPECT_TRUE(compare(a, b) >= 0 || compare(b, c) >= 0 || compare(a, c) < 0);
    }
  auto sorted = nodes, shuffled = nodes;
  std::ranges::sort(sorted, StructuralLess{});
  std::mt19937_64 random(test::seed());
  for (int i = 0; i < 10; ++i) {
    std::ranges::shuffle(shuffled, random);
    auto copy = shuffled;
    std::ranges::sort(copy, StructuralLess{});
    EXPECT_EQ(copy, sorted);
  }
}

TEST(Graph, Printing) {
  const UOp u = where(range(4, 0) < var("n"), load(index(param(DType::float32, 4, {.slot = 2}), range(4, 0))), constant(DType::float32, 0));
  EXPECT_EQ(print_expr(u), "WHERE((r0<n), LOAD(INDEX(p2, r0)), 0)");
  const std::string text = print_graph(u);
  EXPECT_NE(text.find("RANGE"), std::string::npos);
  EXPECT_EQ(std::ranges::count(text, '\n'), 9);
}

TEST(Graph, ArgOfAnotherOpIsAnInternalError) { EXPECT_THROW(var("a").arg_as<ConstArg>(), InternalError); }

TEST(NodeMap, FindsWhatWasInserted) {
  NodeMap<int> map;
  std::vector<UOp> keys;
  for (int i = 0; i < 10'000; ++i) {
    keys.push_back(index_const(i));
    EXPECT_TRUE(map.insert(keys.back(), i).second);
  }
  EXPECT_EQ(map.size(), 10'000u);
  for (int i = 0; i < 10'000; ++i) EXPECT_EQ(*map.find(keys[size_t(i)]), i);
  EXPECT_EQ(map.find(var("not there")), nullptr);
  EXPECT_FALSE(map.insert(keys[5], 7).second);
  EXPECT_EQ(map[keys[5]], 5);
}

}  // namespace
}  // namespace tinygrad
