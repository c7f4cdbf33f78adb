#include <tinygrad/errors.h>

#include "ops/movement.h"
#include "support.h"

namespace tinygrad::ops {
namespace {

class RearrangeTest : public OpsTest {
 protected:
  UOp apply(const UOp& x, std::string_view formula, std::vector<NamedSize> sizes = {}) { return rearrange(x, formula, sizes); }
  std::string error(const UOp& x, std::string_view formula, std::vector<NamedSize> sizes = {}) {
    return message_of<ValueError>([&] { apply(x, formula, sizes); });
  }
  std::string shape_error(const UOp& x, std::string_view formula, std::vector<NamedSize> sizes = {}) {
    return message_of<ShapeError>([&] { apply(x, formula, sizes); });
  }
};

TEST_F(RearrangeTest, SplitsMovesAndJoins) {
  // x[b][h * 3 + w][c] goes to y[b * 2 + h][c][w].
  constexpr int batch = 2, height = 2, width = 3, channels = 4;
  Values want;
  for (int b = 0; b < batch; ++b)
    for (int h = 0; h < height; ++h)
      for (int c = 0; c < channels; ++c)
        for (int w = 0; w < width; ++w) want.push_back((b * 6 + h * width + w) * channels + c);
  const UOp x = counting({batch, height * width, channels});
  for (const std::vector<NamedSize>& sizes : {std::vector<NamedSize>{{"h", 2}}, {{"w", 3}}, {{"w", 3}, {"h", 2}, {"c", 4}}}) {
    const UOp y = apply(x, "b (h w) c -> (b h) c w", sizes);
    expect_shape(y, "(4, 4, 3)");
    expect_values(y, want);
  }
}

TEST_F(RearrangeTest, Transposes) {
  const UOp x = counting({2, 3});
  EXPECT_EQ(apply(x, "a b -> a b"), x);
  expect_values(apply(x, "row column->column row"), {0, 3, 1, 4, 2, 5});
  expect_values(apply(apply(x, "a b -> b a"), "a b -> (a b)"), {0, 3, 1, 4, 2, 5});
  expect_shape(apply(counting({}), " -> "), "()");
  expect_shape(apply(counting({}), "-> 1 ()"), "(1, 1)");
}

TEST_F(RearrangeTest, AxesOfOne) {
  const UOp x = counting({2, 1, 3});
  expect_shape(apply(x, "a 1 b -> b a"), "(3, 2)");
  expect_shape(apply(x, "a () b -> 1 a 1 b ()"), "(1, 2, 1, 3, 1)");
  expect_shape(apply(x, "a 1 b -> (a 1) (b)"), "(2, 3)");
  EXPECT_EQ(shape_error(x, "1 a b -> a b"),
            "rearrange: \"1 a b -> a b\": axis 0 of (2, 1, 3) is (): the given sizes make 1 elements, not 2");
}

TEST_F(RearrangeTest, Ellipses) {
  const UOp x = counting({2, 3, 4, 5});
  expect_shape(apply(x, "... c -> c ..."), "(5, 2, 3, 4)");
  expect_shape(apply(x, "a \u2026 b -> b \u2026 a"), "(5, 3, 4, 2)");
  expect_shape(apply(x, "a ... -> (a ...)"), "(120,)");
  expect_shape(apply(x, "a ... (h w) -> h (... w) a", {{"h", 5}}), "(5, 12, 2)");
  expect_shape(apply(x, "a b c d ... -> (... a b) c d"), "(6, 4, 5)");
  expect_shape(apply(counting({6}), "(a b) ... -> (...) a b", {{"a", 2}}), "(1, 2, 3)");
  EXPECT_EQ(apply(x, "... -> ..."), x);
  expect_values(apply(counting({1, 2, 2}), "... a b -> ... b a"), {0, 2, 1, 3});
}

TEST_F(RearrangeTest, EmptyAxes) {
  expect_shape(apply(tensor({0, 4}, {}), "a (b c) -> b (a c)", {{"b", 2}}), "(2, 0)");
  expect_shape(apply(tensor({0}, {}), "(a b) -> b a", {{"b", 3}}), "(3, 0)");
  EXPECT_EQ(shape_error(tensor({0}, {}), "(a b) -> b a", {{"b", 0}}),
            "rearrange: \"(a b) -> b a\": axis 0 of (0,) is (a b): 0 elements are no multiple of 0");
}

TEST_F(RearrangeTest, BadFormulas) {
  const UOp x = counting({2, 3});
  EXPECT_EQ(error(x, "a b"), "rearrange: \"a b\": expects exactly one \"->\"");
  EXPECT_EQ(error(x, "a -> b -> a"), "rearrange: \"a -> b -> a\": expects exactly one \"->\"");
  EXPECT_EQ(error(x, "(a b -> a b"), "rearrange: \"(a b -> a b\": \"(\" without \")\"");
  EXPECT_EQ(error(x, "a b) -> a b"), "rearrange: \"a b) -> a b\": \")\" without \"(\"");
  EXPECT_EQ(error(x, "((a) b) -> a b"), "rearrange: \"((a) b) -> a b\": parentheses within parentheses; write one level");
  EXPECT_EQ(error(x, "a a -> a"), "rearrange: \"a a -> a\": a is twice on the left");
  EXPECT_EQ(error(x, "a b -> a b b"), "rearrange: \"a b -> a b b\": b is twice on the right");
  EXPECT_EQ(error(x, "a ... ... -> a ..."), "rearrange: \"a ... ... -> a ...\": ... is twice on the left");
  EXPECT_EQ(error(x, "a b -> a"), "rearrange: \"a b -> a\": b is only on the left");
  EXPECT_EQ(error(x, "a -> a b"), "rearrange: \"a -> a b\": b is only on the right");
  EXPECT_EQ(error(x, "a b -> a b ..."), "rearrange: \"a b -> a b ...\": ... is only on the right");
  EXPECT_EQ(error(x, "(a ...) -> a ..."),
            "rearrange: \"(a ...) -> a ...\": \"...\" in parentheses on the left: its sizes cannot be told apart");
  for (const char* bad : {"a_ b", "_a b", "2 b", "a-b c", "a . b"}) {
    const std::string formula = std::string(bad) + " -> b";
    EXPECT_NE(error(x, formula).find("is no axis name; expects letters, digits and inner underscores"), std::string::npos) << formula;
  }
  EXPECT_EQ(error(x, "a b -> b a", {{"c", 3}}), "rearrange: \"a b -> b a\": a size is given for c, which is not in the formula");
}

TEST_F(RearrangeTest, SizesThatDoNotFit) {
  const UOp x = counting({2, 6});
  EXPECT_EQ(shape_error(x, "a -> a"), "rearrange: \"a -> a\": (2, 6) has 2 axes, expects 1");
  EXPECT_EQ(shape_error(x, "a b c -> a b c"), "rearrange: \"a b c -> a b c\": (2, 6) has 2 axes, expects 3");
  EXPECT_EQ(shape_error(x, "a b c ... -> a b c ..."), "rearrange: \"a b c ... -> a b c ...\": (2, 6) has 2 axes, expects at least 3");
  EXPECT_EQ(shape_error(x, "a (b c) -> a b c"),
            "rearrange: \"a (b c) -> a b c\": axis 1 of (2, 6) is (b c): the sizes of b and c are both open; give one");
  EXPECT_EQ(shape_error(x, "a (b c) -> a b c", {{"b", 4}}),
            "rearrange: \"a (b c) -> a b c\": axis 1 of (2, 6) is (b c): 6 elements are no multiple of 4");
  EXPECT_EQ(shape_error(x, "a (b c) -> a b c", {{"b", 2}, {"c", 2}}),
            "rearrange: \"a (b c) -> a b c\": axis 1 of (2, 6) is (b c): the given sizes make 4 elements, not 6");
  EXPECT_EQ(shape_error(x, "a b -> b a", {{"b", 5}}),
            "rearrange: \"a b -> b a\": axis 1 of (2, 6) is (b): the given sizes make 5 elements, not 6");
  EXPECT_EQ(shape_error(x, "a (b c) -> a b c", {{"b", -2}}),
            "rearrange: \"a (b c) -> a b c\": axis 1 of (2, 6) is (b c): b = -2 is negative");
}

TEST_F(RearrangeTest, SymbolicSizes) {
  const SInt n(variable("n", 1, 8));
  const UOp x = tinygrad::expand(constant(DType::float32, 1), Shape{n, 6});
  const UOp y = apply(x, "n (a b) -> a n b", {{"b", 2}});
  expect_shape(y, "(3, n, 2)");
  EXPECT_TRUE(shape_of(apply(y, "a n b -> (n a) b"))[0] == n * SInt(3));
}

}  // namespace
}  // namespace tinygrad::ops
