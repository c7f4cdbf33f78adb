#include "spec/alu.h"

#include <random>

#include <gtest/gtest.h>

#include <tinygrad/errors.h>
#include "dtype/scalar_ops.h"
#include "spec/evaluate.h"
#include "uop/build.h"

namespace tinygrad::spec {
namespace {

std::vector<Scalar> samples(DType d) {
  std::vector<Scalar> out;
  if (is_float(d)) {
    for (double v : {0.0, -0.0, 1.0, -1.0, 0.5, -2.75, 3.0, 448.0, 1e-3, 1e30, -1e30, 1e-40}) out.push_back(Scalar::from_double(v, d));
    out.push_back(min_value(d));
    out.push_back(max_value(d));
    out.push_back(Scalar::from_double(std::numeric_limits<double>::quiet_NaN(), d));
  } else {
    for (int64_t v : {0, 1, 2, 3, 5, -1, -2, -7, 100}) out.push_back(Scalar::from_int(v, d));
    if (d != DType::index) {
      out.push_back(min_value(d));
      out.push_back(max_value(d));
    }
  }
  return out;
}

Value array_of(const std::vector<Scalar>& elements) {
  auto out = std::make_shared<Data>(elements[0].dtype(), AxisIds{}, Sizes{int64_t(elements.size())});
  for (size_t i = 0; i < elements.size(); ++i) elements[i].to_bytes(out->bytes() + i * itemsize(out->dtype));
  return out;
}

/// The array loops against the one definition, element by element; also with one operand a single element.
void check(Op op, const std::vector<std::vector<Scalar>>& columns) {
  std::vector<Value> arrays;
  for (const auto& c : columns) arrays.push_back(array_of(c));
  std::vector<Scalar> row;
  Value got;
  for (size_t i = 0; i < columns[0].size(); ++i) {
    row.clear();
    for (const auto& c : columns) row.push_back(c[i]);
    const Scalar expected = alu_element(op, row);
    if (!got) got = alu_values(op, expected.dtype(), arrays);
    EXPECT_EQ(got->element(i), expected) << name(op) << " " << row[0].to_string() << " " << row.back().to_string() << " "
                                         << repr(row[0].dtype());
    if (columns.size() == 1) continue;
    std::vector<Value> mixed = arrays;
    mixed[0] = single(row[0]);
    EXPECT_EQ(alu_values(op, expected.dtype(), mixed)->element(i), expected) << name(op);
    mixed = arrays;
    mixed.back() = single(row.back());
    EXPECT_EQ(alu_values(op, expected.dtype(), mixed)->element(i), expected) << name(op);
  }
}

bool takes(Op op, DType d) {
  switch (op) {
    case Op::EXP2:
    case Op::LOG2:
    case Op::SIN:
    case Op::SQRT:
    case Op::RECIPROCAL:
    case Op::LDEXP:
    case Op::FDIV: return is_float(d);
    case Op::CDIV:
    case Op::CMOD:
    case Op::FLOORDIV:
    case Op::FLOORMOD:
    case Op::SHL:
    case Op::SHR: return is_int(d);
    case Op::XOR:
    case Op::OR:
    case Op::AND: return is_int(d) || is_bool(d);
    case Op::POW: return is_float(d) || (is_int(d) && d != DType::index);
    case Op::THREEFRY: return d == DType::uint64;
    case Op::TRUNC:
    case Op::NEG: return !is_bool(d);
    default: return true;
  }
}

TEST(Alu, EveryOpAsScalarsDefineIt) {
  for (int i = 0; i < op_count; ++i) {
    const Op op = Op(i);
    if (!in_group(op, Group::unary | Group::binary)) continue;
    for (int k = 1; k < dtype_count; ++k) {
      const DType d = DType(k);
      if (!takes(op, d)) continue;
      const std::vector<Scalar> values = samples(d);
      std::vector<Scalar> a, b;
      for (const Scalar& x : values)
        for (const Scalar& y : values) {
          const bool shifts_index = d == DType::index && (op == Op::SHL) && (y.as_int() > 40 || y.as_int() < 0);
          if (shifts_index) continue;
          a.push_back(x);
          b.push_back(y);
        }
      if (in_group(op, Group::unary))
        check(op, {a});
      else
        check(op, {a, b});
    }
  }
}

TEST(Alu, Ternary) {
  for (DType d : {DType::float32, DType::float64, DType::float16, DType::int32, DType::bool_, DType::index}) {
    const std::vector<Scalar> values = samples(d);
    std::vector<Scalar> a, b, c, t;
    for (size_t i = 0; i < values.size(); ++i)
      for (size_t j = 0; j < values.size(); ++j) {
        a.push_back(values[i]);
        b.push_back(values[j]);
        c.push_back(values[(i + j) % values.size()]);
        t.push_back(Scalar::from_bool((i ^ j) & 1));
      }
    check(Op::MULACC, {a, b, c});
    check(Op::WHERE, {t, a, b});
  }
}

TEST(Alu, IndexOverflowIsOurError) {
  const Value big = single(Scalar::from_int(int64_t{1} << 62, DType::index));
  const Value pair[] = {big, big};
  EXPECT_THROW(alu_values(Op::ADD, DType::index, pair), InternalError);
}

TEST(Alu, Casts) {
  for (DType from : dtypes::all)
    for (DType to : dtypes::all)
      for (const Scalar& s : samples(from)) EXPECT_EQ(cast_value(single(s), to)->element(0), s.cast(to)) << repr(from) << " " << repr(to);
}

TEST(Alu, ReductionsFoldInOrder) {
  std::mt19937 random(7);
  for (DType d : dtypes::all)
    for (Op op : {Op::ADD, Op::MUL, Op::MAX, Op::AND, Op::OR, Op::XOR}) {
      if (!takes(op, d)) continue;
      std::vector<Scalar> x;
      for (int i = 0; i < 24; ++i) x.push_back(Scalar::from_double(double(random() % 1000) / 64 - 6, d));
      const Value matrix = with_shape(array_of(x), Sizes{4, 6});
      const Value rows = reduce_value(op, matrix, {}, {}, {1}, nullptr), columns = reduce_value(op, matrix, {}, {}, {0}, nullptr);
      for (size_t r = 0; r < 4; ++r) {
        Scalar pair[2] = {reduce_identity(op, d), {}};
        for (size_t c = 0; c < 6; ++c) {
          pair[1] = x[r * 6 + c];
          pair[0] = alu_element(op, pair);
        }
        EXPECT_EQ(rows->element(r), pair[0]) << name(op) << repr(d);
      }
      for (size_t c = 0; c < 6; ++c) {
        Scalar pair[2] = {reduce_identity(op, d), {}};
        for (size_t r = 0; r < 4; ++r) {
          pair[1] = x[r * 6 + c];
          pair[0] = alu_element(op, pair);
        }
        EXPECT_EQ(columns->element(c), pair[0]) << name(op) << repr(d);
      }
    }
}

}  // namespace
}  // namespace tinygrad::spec
