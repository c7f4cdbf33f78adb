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
  const Rules<> rules{{x * 2, [](const Match& m) { return m[x] + m[x]; }, "spread"},
                      {x + x, [](const Match& m) { return m[x] * 2; }, "join"}};
  for (Order order : {Order::bottom_up, Order::top_down}) try {
      graph_rewrite(var("a") * 2 + 1, rules, {.order = order});
      FAIL();
    } catch (const InternalError& e) {
      EXPECT_NE(std::string(e.what()).find("spread, join"), std::string::npos) << e.what();
    }
}

TEST(Rewrite, FindsRulesThatGrowANodeForEver) {
  const Rules<> grows{{x * y, [](const Match& m) { return (m[x] * m[y]) + 1; }, "wrap"}};
  EXPECT_THROW(graph_rewrite(var("a") * var("b"), grows), InternalError);
  const Rules<> counts{{x + any_const(c), [](const Match& m) { return m[x] + (m.int_value(c) + 1); }, "count"}};
  EXPECT_THROW(graph_rewrite(var("a") + 1, counts), InternalError);
}

TEST(Rewrite, ResultsAreRewrittenToo) {
  const Rules<> rules{
      {-x, [](const Match& m) { return (m[x] * -1) + 0; }},
      {x * -1, [](const Match& m) { return m[x] * m[x]; }},
      {x + 0, x},
  };
  for (Order order : {Order::bottom_up, Order::top_down})
    EXPECT_EQ(graph_rewrite(-(-var("a")), rules, {.order = order}), (var("a") * var("a")) * (var("a") * var("a")));
}

TEST(Rewrite, OrderDecidesWhichRuleSeesANodeFirst) {
  // A sum of a negated value: bottom-up the inner rule wins, top-down the outer one.
  const Rules<> rules{{-x, x, "inner"}, {x + -y, [](const Match& m) { return m[x] - m[y]; }, "outer"}};
  const UOp a = var("a"), b = var("b");
  EXPECT_EQ(graph_rewrite(a + -b, rules), a + b);
  EXPECT_EQ(graph_rewrite(a + -b, rules, {.order = Order::top_down}), a - b);
}

TEST(Rewrite, SingleWalkTakesResultsAsTheyAre) {
  const Rules<> wrap{{pat(Op::NEG).named(root), [](const Match& m) { return m[root] + 1; }}};
  const UOp a = var("a");
  EXPECT_EQ(graph_rewrite(-(-a), wrap, {.single_walk = true}), -(-a + 1) + 1);
  EXPECT_EQ(graph_rewrite(-(-a), wrap, {.order = Order::top_down, .single_walk = true}), -(-a) + 1);
}

TEST(Rewrite, ClosedBodiesAreLeftAloneUnlessAsked) {
  const UOp p = UOp(Op::PARAM, DType::index, {}, ParamArg{.slot = 0});
  const UOp f = UOp(Op::FUNCTION, DType::index, {p + 0}, FunctionArg{"f"});
  const UOp plain = UOp(Op::FUNCTION, DType::index, {p}, FunctionArg{"f"});
  const UOp call = UOp(Op::CALL, DType::void_, {f, var("a") + 0});
  EXPECT_EQ(graph_rewrite(call, algebra()), UOp(Op::CALL, DType::void_, {f, var("a")}));
  EXPECT_EQ(graph_rewrite(call, algebra(), {.enter_bodies = true}), UOp(Op::CALL, DType::void_, {plain, var("a")}));
}

TEST(Rewrite, ContextAndComposition) {
  struct Names {
    std::vector<std::string> seen;
  };
  const Rules<Names> own{{pat(Op::VAR).named(x),
                          [](const Match& m, Names& n) {
                            n.seen.push_back(std::string(m[x].arg_as<VarArg>().name.str()));
                            return UOp();
                          },
                          "collect"}};
  const Rules<Names> both = own + algebra();
  Names names;
  const UOp roots[] = {(var("a") + 0) * var("b"), var("a") + 0};
  const auto out = graph_rewrite(std::span(roots), both, names);
  EXPECT_EQ(out[0], var("a") * var("b"));
  EXPECT_EQ(out[1], var("a"));
  EXPECT_EQ(names.seen, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ((algebra() + own).size(), algebra().size() + 1);
}

std::string number_name(const Match& m) { return "number " + m.value(c).to_string(); }

TEST(Rewrite, TablesOfOtherResultsDispatch) {
  const Rules<void, std::string> names{
      {any_const(c), number_name},
      {x + y, [](const Match&) { return "sum"; }},
      {x * y, [](const Match& m) { return m[x] == m[y] ? std::optional<std::string>("square") : std::nullopt; }},
  };
  EXPECT_EQ(names.apply(index_const(3)), "number 3");
  EXPECT_EQ(names.apply(var("a") + 1), "sum");
  EXPECT_EQ(names.apply(var("a") * var("a")), "square");
  EXPECT_EQ(names.apply(var("a") * var("b")), std::nullopt);
}

TEST(Rewrite, CountsTriesAndHits) {
  const Rules<> rules{{x - 0, x, "count me"}, {Pat(x) - y, [](const Match&) { return UOp(); }}};
  graph_rewrite((var("a") - 0) - 1, rules);
  const auto statistics = rule_statistics();
  const auto first = std::find_if(statistics.begin(), statistics.end(), [](const RuleStatistics& s) { return s.name == "count me"; });
  ASSERT_NE(first, statistics.end());
  EXPECT_EQ(first->hits, 1u);
  EXPECT_EQ(first->tries, 2u);
  EXPECT_EQ(first->location.find("rewrite_test.cpp:"), 0u);
  const auto second = first + 1;
  EXPECT_EQ(second->name, second->location);
  EXPECT_EQ(second->hits, 0u);
  EXPECT_EQ(second->tries, 1u);
}

TEST(Rewrite, ObserverSeesEachStep) {
  struct Recorder : RewriteObserver {
    std::vector<std::string> lines;
    void begin(const char* name, std::span<const UOp>) override { lines.push_back(std::string("begin ") + name); }
    void step(const RuleInfo& rule, const UOp& before, const UOp& after) override {
      lines.push_back(rule.name + ": " + print_expr(before) + " -> " + print_expr(after));
    }
    void end(const char*, std::span<const UOp>, std::span<const UOp> after) override { lines.push_back("end " + print_expr(after[0])); }
  } recorder;
  RewriteObserver* previous = set_rewrite_observer(&recorder);
  graph_rewrite((var("a") + 0) * 1, algebra(), {.name = "test"});
  set_rewrite_observer(previous);
  EXPECT_EQ(recorder.lines, (std::vector<std::string>{"begin test", "x+0: (a+0) -> a", "x*1: (a*1) -> a", "end a"}));
}

TEST(Rewrite, AMillionNodes) {
  UOp u = var("a");
  for (int i = 0; i < 1'000'000; ++i) u = i % 2 ? u * 1 : u + 1;
  EXPECT_EQ(graph_rewrite(u, algebra()), var("a") + 500'000);
}

}  // namespace
}  // namespace tinygrad::rewrite
