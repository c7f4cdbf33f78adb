#include "shape/shape.h"

#include <gtest/gtest.h>
#include <tinygrad/errors.h>

#include <numeric>

#include "uop/build.h"

namespace tinygrad {
namespace {

UOp value(std::initializer_list<int64_t> sizes, DType dtype = DType::float32) {
  return UOp(Op::PARAM, dtype, size_nodes(make_shape(sizes)), ParamArg{});
}
UOp number(double v = 1) { return constant(DType::float32, v); }
const UOp& n() {
  static const UOp v = variable("n", 1, 16);
  return v;
}
UOp symbolic() { return UOp(Op::PARAM, DType::float32, {n(), index_const(4)}, ParamArg{}); }
std::string shape_text(const UOp& u) { return to_string(shape_of(u)); }

void expect_error(const UOp& u, std::string_view text) {
  try {
    shape_of(u);
    ADD_FAILURE() << "no error: " << text;
  } catch (const ShapeError& e) {
    EXPECT_NE(std::string_view(e.what()).find(text), std::string_view::npos) << e.what();
  }
}

TEST(Shape, Sources) {
  EXPECT_EQ(shape_text(number()), "()");
  EXPECT_EQ(shape_text(n()), "()");
  EXPECT_EQ(shape_text(bind(n(), 3)), "()");
  EXPECT_EQ(shape_text(range(4, 0)), "()");
  EXPECT_EQ(shape_text(UOp(Op::SPECIAL, DType::index, {index_const(4)}, SpecialArg{})), "()");
  EXPECT_EQ(shape_text(buffer(DType::float32, {.id = 1, .size = 12})), "(12,)");
  EXPECT_EQ(shape_text(value({3, 4})), "(3, 4)");
  EXPECT_EQ(shape_text(value({})), "()");
  EXPECT_EQ(shape_text(symbolic()), "(n, 4)");
}

TEST(Shape, Movement) {
  const UOp x = value({3, 4});
  EXPECT_EQ(shape_text(reshape(x, {2, 6})), "(2, 6)");
  EXPECT_EQ(shape_text(reshape(number(), {1, 1})), "(1, 1)");
  EXPECT_EQ(shape_text(expand(reshape(x, {3, 1, 4}), {3, 5, 4})), "(3, 5, 4)");
  EXPECT_EQ(shape_text(expand(number(), {2, 3})), "(2, 3)");
  EXPECT_EQ(shape_text(permute(x, {1, 0})), "(4, 3)");
  EXPECT_EQ(shape_text(flip(x, {0, 1})), "(3, 4)");
  EXPECT_EQ(shape_text(pad(x, {1, 2, 0, 3})), "(6, 7)");
  EXPECT_EQ(shape_text(shrink(x, {1, 3, 0, 4})), "(2, 4)");
  EXPECT_EQ(shape_text(shrink(x, {1, 1, 0, 4})), "(0, 4)");
  EXPECT_EQ(shape_text(reshape(value({0, 4}), {2, 0})), "(2, 0)");
}

TEST(Shape, MovementErrors) {
  const UOp x = value({3, 4});
  expect_error(reshape(x, {5, 2}), "RESHAPE: cannot view (3, 4) as (5, 2): 12 elements against 10");
  expect_error(reshape(x, {-3, -4}), "has a negative size");
  expect_error(expand(x, {3, 8}), "EXPAND: cannot expand (3, 4) to (3, 8): axis 1 has size 4, only an axis of size 1 can grow");
  expect_error(expand(x, {2, 3, 4}), "the number of axes differs");
  expect_error(expand(number(), {-1}), "negative size");
  expect_error(permute(x, {0, 0}), "PERMUTE: axis 0 is given twice");
  Axes many(65);
  std::iota(many.begin(), many.end(), 0);
  expect_error(permute(reshape(value({1}), Shape(65, SInt(1))), many), "PERMUTE: 65 axes, expects at most 64");
  expect_error(permute(x, {0, 2}), "axis 2 is not one of the 2 axes of (3, 4)");
  expect_error(permute(x, {0}), "does not list every axis");
  expect_error(flip(x, {-1}), "FLIP: axis -1");
  expect_error(pad(x, {0, -1, 0, 0}), "PAD: negative padding (0, -1) of axis 0; use shrink to cut");
  expect_error(pad(x, {0, 1}), "needs two numbers an axis");
  expect_error(shrink(x, {0, 4, 0, 4}), "SHRINK: [0, 4) is not within axis 0 of (3, 4)");
  expect_error(shrink(x, {-1, 2, 0, 4}), "[-1, 2)");
  expect_error(shrink(x, {2, 1, 0, 4}), "[2, 1)");
}

TEST(Shape, Symbolic) {
  const UOp x = symbolic();
  EXPECT_EQ(shape_text(reshape(x, Shape{SInt(n()) * 2, 2})), "((n*2), 2)");
  EXPECT_EQ(shape_text(pad(x, std::vector<std::pair<SInt, SInt>>{{1, SInt(16) - n()}, {0, 0}})), "(17, 4)");
  EXPECT_EQ(shape_text(shrink(value({16, 4}), std::vector<std::pair<SInt, SInt>>{{0, n()}, {0, 4}})), "(n, 4)");
  EXPECT_EQ(shape_text(shrink(x, std::vector<std::pair<SInt, SInt>>{{SInt(n()) - 1, n()}, {0, 4}})), "(1, 4)");
  EXPECT_EQ(shape_text(expand(value({1, 4}), Shape{n(), 4})), "(n, 4)");
  EXPECT_EQ(shape_text(x + value({3, 4})), "(n, 4)");  // n may be 3
  expect_error(x + value({17, 4}), "ADD: the sources have the shapes (n, 4) and (17, 4)");
  expect_error(reshape(x, {3, 100}), "(n*4) elements against 300");
  expect_error(shrink(x, std::vector<std::pair<SInt, SInt>>{{0, SInt(n()) + 1}, {0, 4}}), "not within axis 0 of (n, 4)");
}

TEST(Shape, Elementwise) {
  const UOp x = value({3, 4}), c = value({3, 4}, DType::bool_);
  EXPECT_EQ(shape_text(x + x), "(3, 4)");
  EXPECT_EQ(shape_text(number() + x), "(3, 4)");
  EXPECT_EQ(shape_text(number() + number()), "()");
  EXPECT_EQ(shape_text(where(c, x, number())), "(3, 4)");
  EXPECT_EQ(shape_text(cast(x, DType::float16)), "(3, 4)");
  EXPECT_EQ(shape_text(alu(Op::MULACC, {number(), x, x})), "(3, 4)");
  expect_error(x + value({4, 3}), "ADD: the sources have the shapes (3, 4) and (4, 3); reshape and expand them to one shape first");
  expect_error(x + value({4}), "(3, 4) and (4,)");
}

TEST(Shape, Reduce) {
  const UOp x = value({3, 4, 5});
  EXPECT_EQ(shape_text(reduce(Op::ADD, x, {1})), "(3, 5)");
  EXPECT_EQ(shape_text(reduce(Op::MAX, x, {0, 2})), "(4,)");
  EXPECT_EQ(shape_text(reduce(Op::ADD, x, {0, 1, 2})), "()");
  expect_error(reduce(Op::ADD, x, {3}), "REDUCE: axis 3 is not one of the 3 axes of (3, 4, 5)");
  expect_error(reduce(Op::ADD, x, {1, 1}), "twice");
}

UOp tuple(std::initializer_list<UOp> s) { return UOp(Op::TUPLE, DType::void_, s); }
UOp element(const UOp& u, int32_t i) { return UOp(Op::GETTUPLE, DType::float32, {u}, TupleArg{i}); }

UOp general_reduce(const UOp& x, const UOp& identity, const Axes& axes) {
  const UOp a = UOp(Op::PARAM, DType::float32, {}, ParamArg{.slot = 0}), b = UOp(Op::PARAM, DType::float32, {}, ParamArg{.slot = 1});
  const UOp body(Op::FUNCTION, DType::void_, {tuple({a + b})}, FunctionArg{"sum"});
  return UOp(Op::REDUCE, DType::void_, {tuple({x}), tuple({identity}), body, body}, ReduceArg{Op::FUNCTION, axes});
}

TEST(Shape, GeneralReduceAndTuples) {
  const UOp x = value({3, 4});
  EXPECT_EQ(shape_text(element(general_reduce(x, number(), {1}), 0)), "(3,)");
  EXPECT_EQ(shape_text(element(tuple({number(), x}), 1)), "(3, 4)");
  expect_error(element(general_reduce(x, number(), {1}), 1), "no element 1 in a reduction that carries 1 values");
  expect_error(general_reduce(x, value({7}), {1}), "an identity has the shape (7,), the carried values (3,)");
  expect_error(element(tuple({x}), 1), "no element 1 in a tuple of 1");
  expect_error(element(x, 0), "PARAM has no elements");
}

TEST(Shape, Memory) {
  const UOp b = buffer(DType::float32, {.id = 2, .size = 12});
  const UOp at = index_const(3), lanes = stack(std::vector<UOp>{at, at, at});
  EXPECT_EQ(shape_text(index(b, at)), "()");
  EXPECT_EQ(shape_text(index(b, at, 4)), "(4,)");
  EXPECT_EQ(shape_text(load(index(b, lanes))), "(3,)");
  EXPECT_EQ(shape_text(index(value({8}), at)), "()");
  EXPECT_EQ(shape_text(store(index(b, at, 4), value({4}))), "()");
  EXPECT_EQ(shape_text(store(index(b, at, 4), number())), "()");
  EXPECT_EQ(shape_text(after(b, std::vector<UOp>{store(b, value({12}))})), "(12,)");
  EXPECT_EQ(shape_text(UOp(Op::COPY, DType::float32, {b}, DeviceArg{"CUDA"})), "(12,)");
  EXPECT_EQ(shape_text(UOp(Op::STAGE, DType::float32, {value({2}), range(3, 0), range(4, 1)}, StageArg{})), "(3, 4, 2)");
  EXPECT_EQ(shape_text(UOp(Op::STAGE, DType::float32, {value({2})}, StageArg{})), "(2,)");
  expect_error(store(b, value({3})), "STORE: the value has the shape (3,), the place for it (12,)");
  expect_error(index_valid(b, lanes, value({2}, DType::bool_)), "INDEX: the index has the shape (3,), its validity (2,)");
  expect_error(UOp(Op::LOAD, DType::float32, {index(b, lanes), value({2})}), "LOAD: the alternative has the shape (2,)");
}

TEST(Shape, VectorsAndDevices) {
  EXPECT_EQ(shape_text(stack(std::vector<UOp>{number(), number(2)})), "(2,)");
  EXPECT_EQ(shape_text(stack(std::vector<UOp>{value({3, 4}), value({3, 4})})), "(2, 3, 4)");
  expect_error(stack(std::vector<UOp>{value({3}), value({4})}), "STACK: the sources have the shapes (3,) and (4,)");
  const UOp b0 = buffer(DType::float32, {.id = 3, .size = 6, .device = "CPU"}),
            b1 = buffer(DType::float32, {.id = 4, .size = 6, .device = "CPU:1"});
  const Symbol names[] = {"CPU", "CPU:1"};
  const Devices both = Devices::of(names);
  const UOp parts(Op::MSTACK, DType::float32, {b0, b1}, ShardingArg{both, {}});
  EXPECT_EQ(shape_text(parts), "(6,)");
  const auto whole = [&](int64_t rows, int64_t columns, int axis) {
    return UOp(Op::UNSHARD, DType::float32, {parts, index_const(rows), index_const(columns)}, ShardingArg{both, {{axis, {2, 1}}}});
  };
  EXPECT_EQ(shape_text(whole(4, 3, 0)), "(4, 3)");
  EXPECT_EQ(shape_text(whole(3, 3, 0)), "(3, 3)");
  EXPECT_EQ(shape_text(whole(2, 5, 1)), "(2, 5)");
  expect_error(whole(6, 3, 0), "UNSHARD: parts of 6 elements for (6, 3), which has parts of (3, 3)");
  expect_error(whole(4, 3, 2), "UNSHARD: axis 2 is not one of the 2 axes of (4, 3)");
  EXPECT_EQ(shape_text(UOp(Op::SHARD, DType::float32, {value({3, 4})}, ShardingArg{both, {{1, {2, 1}}}})), "(3, 4)");
  expect_error(UOp(Op::SHARD, DType::float32, {value({3, 4})}, ShardingArg{both, {{1, {3, 1}}}}),
               "SHARD: 2 shards are no mesh with a direction of 3 of stride 1");
  const auto collective = [](const UOp& x, Collective kind) {
    return UOp(Op::COLLECTIVE, DType::float32, {x}, CollectiveArg{.kind = kind, .along = {{2, 1}}});
  };
  EXPECT_EQ(shape_text(collective(value({3, 4}), Collective::allreduce)), "(3, 4)");
  EXPECT_EQ(shape_text(collective(value({3, 4}), Collective::allgather)), "(2, 3, 4)");
  EXPECT_EQ(shape_text(collective(value({2, 4}), Collective::reducescatter)), "(4,)");
  expect_error(collective(value({3, 4}), Collective::scatter), "COLLECTIVE: (3, 4) are no parts for 2 shards");
}

TEST(Shape, Calls) {
  const UOp count = UOp(Op::PARAM, DType::index, {}, ParamArg{.slot = 1});
  const UOp p = UOp(Op::PARAM, DType::float32, {count, index_const(2)}, ParamArg{.slot = 0});
  const UOp body(Op::FUNCTION, DType::float32, {p * p}, FunctionArg{"square"});
  EXPECT_EQ(shape_text(UOp(Op::CALL, DType::float32, {body, value({5, 2}), index_const(5)})), "(5, 2)");
  const UOp two(Op::FUNCTION, DType::void_, {tuple({p, reduce(Op::ADD, p, {0})})}, FunctionArg{"two"});
  const UOp call(Op::CALL, DType::void_, {two, value({5, 2}), index_const(5)});
  EXPECT_EQ(shape_text(element(call, 0)), "(5, 2)");
  EXPECT_EQ(shape_text(element(call, 1)), "(2,)");
  EXPECT_EQ(shape_text(UOp(Op::CALL, DType::void_, {sink({}), value({5, 2})})), "()");
}

TEST(Shape, ErrorsAreNotCached) {
  const UOp bad = value({3}) + value({4});
  EXPECT_THROW(shape_of(bad), ShapeError);
  EXPECT_THROW(shape_of(bad), ShapeError);
}

TEST(Shape, MillionNodes) {
  UOp x = value({3});
  const UOp one = number();
  for (int i = 0; i < 1'000'000; ++i) x = x + one;
  EXPECT_EQ(shape_text(x), "(3,)");
}

TEST(Shape, Strides) {
  EXPECT_EQ(row_major_strides(make_shape({2, 3, 4})), (SmallVector<int64_t, 6>{12, 4, 1}));
  EXPECT_EQ(row_major_strides(Shape{4, n(), 2}), (SmallVector<int64_t, 6>{32, 2, 1}));
  EXPECT_EQ(max_sizes(Shape{4, n()}), (SmallVector<int64_t, 6>{4, 16}));
  EXPECT_THROW(known_sizes(Shape{n()}), ValueError);
  EXPECT_EQ(numel(make_shape({2, 3, 4})), SInt(24));
}

}  // namespace
}  // namespace tinygrad
