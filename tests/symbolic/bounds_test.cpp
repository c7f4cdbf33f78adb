#include "symbolic/bounds.h"

#include <gtest/gtest.h>

#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::symbolic {

void PrintTo(const Bounds& b, std::ostream* out) { *out << b.min << ".." << b.max; }

namespace {

constexpr int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();

UOp loaded(DType d) { return load(index(param(d, 4, {.slot = 0}), range(4, 0))); }

TEST(Bounds, OfEachOp) {
  const UOp a = variable("a", -5, 7), p = variable("p", 2, 3), x = range(4, 0);
  const UOp byte = loaded(DType::uint8), word = loaded(DType::int32), truth = loaded(DType::bool_);
  const UOp huge = loaded(DType::uint64), unknown = cast(loaded(DType::float32), DType::index);
  struct Case {
    UOp u;
    Bounds expected;
  };
  const Case cases[] = {
      {index_const(3), {3, 3}},
      {bool_const(true), {1, 1}},
      {a, {-5, 7}},
      {bind(a, 3), {-5, 7}},
      {x, {0, 3}},
      {range(p, RangeArg{}), {0, 2}},
      {a + p, {-3, 10}},
      {a - p, {-8, 5}},
      {a * p, {-15, 21}},
      {a * -2, {-14, 10}},
      {loaded(DType::uint64) * loaded(DType::uint64), {0, most}},  // up to nearly 2^128 before it wraps
      {-a, {-7, 5}},
      {max(a, x), {0, 7}},
      {floor_div(a, 2), {-3, 3}},
      {floor_div(a, -2), {-4, 2}},
      {alu(Op::CDIV, {a, index_const(2)}), {-2, 3}},
      {floor_div(a, a), {-7, 7}},
      {floor_mod(a, 4), {0, 3}},
      {floor_mod(a, -4), {-3, 0}},
      {floor_mod(x + 8, 10), {0, 9}},
      {floor_mod(x + 4, 8), {4, 7}},
      {floor_mod(x, p), {0, 2}},
      {alu(Op::CMOD, {a, index_const(4)}), {-3, 3}},
      {alu(Op::CMOD, {x, index_const(4)}), {0, 3}},
      {where(truth, a, index_const(20)), {-5, 20}},
      {where(bool_const(true), a, index_const(20)), {-5, 7}},
      {x & index_const(2), {0, 2}},
      {x | index_const(4), {4, 7}},
      {x ^ index_const(4), {0, 7}},
      {x << p, {0, 24}},
      {a >> p, {-2, 1}},
      {x < 4, {1, 1}},
      {a < -5, {0, 0}},
      {a < 0, {0, 1}},
      {eq(x, index_const(4)), {0, 0}},
      {ne(x, index_const(4)), {1, 1}},
      {truth & bool_const(false), {0, 0}},
      {truth + bool_const(true), {1, 1}},
      {byte, {0, 255}},
      {word, {-2147483648, 2147483647}},
      {cast(byte, DType::int32) + 1, {1, 256}},
      {byte + 1, {0, 255}},  // wraps
      {word + 1, {-2147483648, 2147483647}},
      {cast(byte, DType::int8), {-128, 127}},
      {cast(truth, DType::int32), {0, 1}},
      {cast(byte, DType::bool_), {0, 1}},
      {cast(cast(byte, DType::int32) + 1, DType::bool_), {1, 1}},
      {loaded(DType::float32) < 0, {0, 1}},
      {huge, {0, most}},
      {huge + 1, {0, most}},
      {max(huge, constant(DType::uint64, 5)), {5, most}},
      {loaded(DType::int64) + 1, {least, most}},
      {unknown, {least, most}},
      {max(unknown, index_const(0)) * 4 + 1, {1, most}},
      {floor_mod(unknown, 8), {0, 7}},
      {floor_div(max(unknown, index_const(0)), 8), {0, most}},
      {index_const(most) * 4, {most - 1, most}},
      {stack(UOps{x, a}), {-5, 7}},
      {pad(reshape(x + 1, {1}), {1, 1}), {0, 4}},
      {UOp(Op::IOTA, DType::int32, {index_const(10)}, DeviceArg{}), {0, 9}},
  };
  for (const Case& c : cases) EXPECT_EQ(bounds(c.u), c.expected) << print_expr(c.u);
}

TEST(Bounds, DeepGraphs) {
  UOp u = range(4, 0);
  for (int i = 0; i < 300'000; ++i) u = floor_mod(u + 1, 1000);
  EXPECT_EQ(bounds(u), (Bounds{0, 999}));
}

}  // namespace
}  // namespace tinygrad::symbolic
