#include "rewrite/rewrite.h"

#include <gtest/gtest.h>

#include <tinygrad/errors.h>

#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::rewrite {
namespace {

constexpr Capture x{0}, y{1}, c{2}, d{3}, root{4};

UOp var(const char* name) { return variable(name, 0, 100); }

const Rules<>& algebra() {
  static const Rules<> rules{
      {x + 0, x, "x+0"},
      {x * 1, [](const Match& m) { return m[x]; }, "x*1"},
      {(x + any_const(c)) + any_const(d), [](const Match& m) { return m[x] + (m.int_value(c) + m.int_value(d)); }, "fold"},
      {any_const(c) + any_const(d), [](const Match& m) { return index_const(m.int_value(c) + m.int_value(d)); }, "const"},
  };
  return rules;
}

TEST(Rewrite, AppliesToAFixedPoint) {
  const UOp a = var("a");
  EXPECT_EQ(graph_rewrite((((a + 1) + 2) + -3) * 1, algebra()), a);
  EXPECT_EQ(graph_rewrite((((a + 1) + 2) + -3) * 1, algebra(), {.order = Order::top_down}), a);
}

TEST(Rewrite, SamePointerWhenNothingChanged) {
  const UOp g = (var("a") + var("b")) * var("c");
  EXPECT_EQ(graph_rewrite(g, algebra()).get(), g.get());
  EXPECT_EQ(graph_rewrite(g, algebra(), {.order = Order::top_down}).get(), g.get());
}

TEST(Rewrite, CommutativeOpsMatchInBothOrders) {
  const UOp a = var("a");
  EXPECT_EQ(graph_rewrite(index_const(0) + a, algebra()), a);
  EXPECT_EQ(graph_rewrite(index_const(4) + (index_const(3) + a), algebra()), a + 7);
}

TEST(Rewrite, FindsRulesThatUndoEachOther) {
  const Rules<> rules{{x * 2, [](const Match& m) { return m[x] + m[x]; }, "spread"}, {x + x, [](const Match& m) { return m[x] * 2; }, "join"}};
  for (Order order : {Order::bottom_up, Order::top_down}) try {
      graph_rewrite(var("a") * 2 + 1, rules, {.order = order});
      FAIL();
    } catch (const InternalError& e) {
      EXPECT_NE(std::string(e.what()).find("spread, join"), std::string::npos) << e.what();
    }
}

TEST(Rewrite, AMillionNodes) {
  UOp u = var("a");
  for (int i = 0; i < 1'000'000; ++i) u = (u + 1);
  EXPECT_EQ(graph_rewrite(u, algebra()), var("a") + 1'000'000);
}

}  // namespace
}  // namespace tinygrad::rewrite
