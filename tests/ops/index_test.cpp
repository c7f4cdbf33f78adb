#include "ops/index.h"

#include <tinygrad/errors.h>

#include "ops/elementwise.h"
#include "support.h"

namespace tinygrad::ops {
namespace {

class IndexTest : public OpsTest {
 protected:
  static UOp get(const UOp& x, const std::vector<Index>& indices) { return get_item(x, indices); }
  static UOp set_at(const UOp& x, const std::vector<Index>& indices, const Operand& value) { return set_item(x, indices, value); }
  UOp ints(std::initializer_list<int64_t> shape, const Values& v, DType dtype = DType::int32) { return tensor(shape, v, dtype); }
};

TEST_F(IndexTest, Views) {
  const UOp x = counting({3, 4});
  expect_values(get(x, {SInt(1)}), {4, 5, 6, 7});
  expect_values(get(x, {SInt(-1), SInt(-2)}), {10});
  expect_shape(get(x, {SInt(-1), SInt(-2)}), "()");
  expect_values(get(x, {Slice{.stop = 2}, Slice{.start = -1}}), {3, 7});
  expect_values(get(x, {SInt(0), Slice{.step = 2}}), {0, 2});
  expect_values(get(x, {SInt(0), Slice{.step = -1}}), {3, 2, 1, 0});
  expect_values(get(x, {SInt(0), Slice{.step = -2}}), {3, 1});
  expect_values(get(x, {SInt(0), Slice{.start = 2, .stop = 0, .step = -1}}), {2, 1});
  expect_values(get(x, {SInt(0), Slice{.start = 1, .step = 3}}), {1});
  expect_values(get(x, {SInt(0), Slice{.start = 0, .stop = 100, .step = 3}}), {0, 3});
  expect_shape(get(x, {Slice{.start = 5}}), "(0, 4)");
  expect_shape(get(x, {Slice{.start = 0, .stop = 2, .step = -1}}), "(0, 4)");
  expect_shape(get(x, {NewAxis{}, Ellipsis{}, NewAxis{}}), "(1, 3, 4, 1)");
  expect_shape(get(x, {Ellipsis{}, SInt(0)}), "(3,)");
  EXPECT_EQ(get(x, {Slice{}, Ellipsis{}}), x);
  EXPECT_EQ(message_of<IndexError>([&] { get(x, {SInt(3)}); }), "indexing: index 3 is out of range for axis 0 of size 3");
  EXPECT_EQ(message_of<IndexError>([&] { get(x, {SInt(0), SInt(-5)}); }), "indexing: index -5 is out of range for axis 1 of size 4");
  EXPECT_THROW(get(x, {SInt(0), SInt(0), SInt(0)}), IndexError);
  EXPECT_THROW(get(x, {Ellipsis{}, Ellipsis{}}), IndexError);
  EXPECT_THROW(get(x, {Slice{.step = 0}}), ValueError);
}

TEST_F(IndexTest, SymbolicBounds) {
  const UOp n = variable("n", 1, 3);
  expect_shape(get(counting({4, 2}), {Slice{.start = 1, .stop = SInt(n)}}), to_string(Shape{SInt(n) - 1, 2}));
  expect_shape(get(counting({4, 2}), {n}), "(2,)");
}

TEST_F(IndexTest, Tensors) {
  const UOp x = counting({3, 4});
  expect_values(get(x, {ints({2}, {2, -3})}), {8, 9, 10, 11, 0, 1, 2, 3});
  expect_values(get(x, {Slice{}, ints({2}, {1, 1})}), {1, 1, 5, 5, 9, 9});
  expect_values(get(x, {ints({2}, {0, 2}), ints({2}, {3, -4})}), {3, 8});
  expect_shape(get(x, {ints({2, 1}, {0, 2}), ints({2}, {3, 1})}), "(2, 2)");
  expect_values(get(x, {ints({2, 1}, {0, 2}), ints({2}, {3, 1})}), {3, 1, 11, 9});
  expect_values(get(x, {ints({3}, {0, 7, 1}, DType::uint8), SInt(1)}), {1, 0, 5});
  // Out of range in one axis is nowhere, also where another axis could make up for it.
  expect_values(get(x, {ints({2}, {0, 0}), ints({2}, {4, 3})}), {0, 3});
  const UOp y = counting({2, 3, 2});
  expect_shape(get(y, {ints({4}, {0, 1, 0, 1}), Slice{}, ints({4}, {0, 1, 1, 0})}), "(4, 3)");
  expect_values(get(y, {ints({2}, {0, 1}), Slice{}, ints({2}, {0, 1})}), {0, 2, 4, 7, 9, 11});
  expect_values(get(y, {SInt(1), ints({1}, {2})}), {10, 11});
  EXPECT_EQ(message_of<IndexError>([&] { get(x, {counting({2})}); }), "a tensor of dtypes.float64 as index, expects integers");
  EXPECT_THROW(get(x, {ints({3}, {1, 0, 1}, DType::bool_)}), IndexError);
}

TEST_F(IndexTest, Assignment) {
  const UOp x = counting({2, 4});
  expect_values(set_at(x, {SInt(0)}, 9), {9, 9, 9, 9, 4, 5, 6, 7});
  expect_values(set_at(x, {Slice{}, Slice{.start = 1, .stop = 3}}, tensor({2}, {-1, -2})), {0, -1, -2, 3, 4, -1, -2, 7});
  expect_values(set_at(x, {SInt(1), Slice{.step = 2}}, tensor({2}, {-1, -2})), {0, 1, 2, 3, -1, 5, -2, 7});
  expect_values(set_at(x, {SInt(1), Slice{.step = -3}}, tensor({2}, {-1, -2})), {0, 1, 2, 3, -2, 5, 6, -1});
  expect_values(set_at(x, {SInt(0), Slice{.start = 1, .step = 2}}, 9), {0, 9, 2, 9, 4, 5, 6, 7});
  expect_values(set_at(x, {Slice{.start = 2}}, 9), {0, 1, 2, 3, 4, 5, 6, 7});
  expect_values(set_at(x, {Slice{}, ints({3}, {0, 2, 0})}, tensor({3}, {-1, -2, -3})), {-3, 1, -2, 3, -3, 5, -2, 7});
  expect_values(set_at(x, {ints({2}, {0, 1}), ints({2}, {-1, 0})}, tensor({2}, {-1, -2})), {0, 1, 2, -1, -2, 5, 6, 7});
  expect_values(set_at(x, {SInt(0), ints({1}, {2})}, tensor({1, 1}, {-5})), {0, 1, -5, 3, 4, 5, 6, 7});
  EXPECT_EQ(message_of<ShapeError>([&] { set_at(x, {SInt(0)}, counting({2, 4})); }),
            "assignment: a value of (2, 4) does not fit the indexed part (4,)");
}

TEST_F(IndexTest, GatherAndScatter) {
  const UOp x = counting({2, 3});
  expect_values(gather(x, 1, ints({2, 2}, {2, 0, 1, 1})), {2, 0, 4, 4});
  expect_values(gather(x, 0, ints({1, 2}, {1, 0}, DType::int64)), {3, 1});
  expect_values(one_hot(ints({2}, {2, 0}), 3), {0, 0, 1, 1, 0, 0});
  expect_values(embedding(counting({4, 2}), ints({2, 1}, {3, 1})), {6, 7, 2, 3});
  expect_shape(embedding(counting({4, 2}), ints({2, 3}, {3, 1, 0, 0, 0, 0})), "(2, 3, 2)");
  const UOp zero = mul(x, 0), index = ints({2, 2}, {0, 2, 1, 1}), src = tensor({2, 2}, {5, 6, 7, 8});
  expect_values(scatter(zero, 1, index, src), {5, 0, 6, 0, 8, 0});
  expect_values(scatter(zero, 1, index, 9), {9, 0, 9, 0, 9, 0});
  expect_values(scatter(zero, 0, ints({1, 3}, {1, 0, 1}), x), {0, 1, 0, 0, 0, 2});
  expect_values(scatter_reduce(x, 1, index, src, ScatterMode::sum), {5, 1, 8, 3, 19, 5});
  expect_values(scatter_reduce(x, 1, index, src, ScatterMode::sum, false), {5, 1, 6, 3, 15, 5});
  expect_values(scatter_reduce(x, 1, index, src, ScatterMode::prod), {0, 1, 12, 3, 224, 5});
  expect_values(scatter_reduce(x, 1, index, src, ScatterMode::amax), {5, 1, 6, 3, 8, 5});
  expect_values(scatter_reduce(x, 1, index, src, ScatterMode::amin), {0, 1, 2, 3, 4, 5});
  expect_values(scatter_reduce(x, 1, index, src, ScatterMode::mean), {2.5, 1, 4, 3, 19.0 / 3, 5});
  expect_values(scatter_reduce(x, 1, index, src, ScatterMode::mean, false), {5, 1, 6, 3, 7.5, 5});
  EXPECT_THROW(gather(x, 0, ints({2}, {0, 1})), ShapeError);
  EXPECT_THROW(gather(x, 0, counting({2, 3})), DTypeError);
  EXPECT_THROW(scatter(x, 1, index, tensor({2, 2}, {1, 2, 3, 4}, DType::float32)), DTypeError);
}

TEST_F(IndexTest, Selection) {
  const UOp x = counting({2, 3}), mask = ints({2, 3}, {0, 1, 0, 1, 0, 1}, DType::bool_);
  expect_values(masked_select(x, mask, 3), {1, 3, 5});
  expect_values(masked_select(x, mask, 5, -1), {1, 3, 5, -1, -1});
  expect_values(masked_select(x, mask, 2), {1, 3});
  expect_values(nonzero(tensor({2, 2}, {0, 3, 4, 0}), 2), {0, 1, 1, 0});
  expect_values(nonzero(tensor({2, 2}, {0, 3, 0, 0}), 2, -1), {0, 1, -1, -1});
}

}  // namespace
}  // namespace tinygrad::ops
