#include "ops/linalg.h"

#include <tinygrad/errors.h>

#include <algorithm>

#include "ops/elementwise.h"
#include "ops/gradient.h"
#include "ops/movement.h"
#include "support.h"
#include "uop/graph.h"

namespace tinygrad::ops {
namespace {

/// Row-major.
struct Matrix {
  size_t rows = 0, columns = 0;
  Values v;
  double& at(size_t i, size_t j) { return v[i * columns + j]; }
  double at(size_t i, size_t j) const { return v[i * columns + j]; }
};

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix out{a.rows, b.columns, Values(a.rows * b.columns)};
  for (size_t i = 0; i < a.rows; ++i)
    for (size_t j = 0; j < b.columns; ++j)
      for (size_t k = 0; k < a.columns; ++k) out.at(i, j) += a.at(i, k) * b.at(k, j);
  return out;
}

Matrix transposed(const Matrix& a) {
  Matrix out{a.columns, a.rows, Values(a.v.size())};
  for (size_t i = 0; i < a.rows; ++i)
    for (size_t j = 0; j < a.columns; ++j) out.at(j, i) = a.at(i, j);
  return out;
}

Matrix diagonal_matrix(size_t rows, size_t columns, const Values& d) {
  Matrix out{rows, columns, Values(rows * columns)};
  for (size_t i = 0; i < d.size(); ++i) out.at(i, i) = d[i];
  return out;
}

/// The columns made orthonormal one after the other (Gram and Schmidt), twice for accuracy.
Matrix orthonormal(Matrix a) {
  for (int pass = 0; pass < 2; ++pass)
    for (size_t j = 0; j < a.columns; ++j) {
      for (size_t k = 0; k <= j; ++k) {
        double dot = 0;
        for (size_t i = 0; i < a.rows; ++i) dot += a.at(i, k) * a.at(i, j);
        for (size_t i = 0; i < a.rows; ++i) a.at(i, j) = k < j ? a.at(i, j) - dot * a.at(i, k) : a.at(i, j) / std::sqrt(dot);
      }
    }
  return a;
}

void expect_near(const Matrix& got, const Matrix& want, double tolerance) {
  ASSERT_EQ(got.rows, want.rows);
  ASSERT_EQ(got.columns, want.columns);
  for (size_t i = 0; i < got.v.size(); ++i) EXPECT_NEAR(got.v[i], want.v[i], tolerance) << "element " << i;
}

void expect_orthonormal_columns(const Matrix& a, double tolerance) {
  expect_near(product(transposed(a), a), diagonal_matrix(a.columns, a.columns, Values(a.columns, 1.0)), tolerance);
}

class LinalgTest : public OpsTest {
 protected:
  /// Matrix `batch` of a value (..., rows, columns).
  Matrix matrix(const UOp& u, size_t batch = 0) {
    const auto sizes = known_sizes(shape_of(u));
    Matrix out{size_t(sizes[sizes.size() - 2]), size_t(sizes.back()), {}};
    const Values all = values(u);
    const size_t count = out.rows * out.columns;
    out.v.assign(all.begin() + long(batch * count), all.begin() + long((batch + 1) * count));
    return out;
  }
  UOp node(const Matrix& m, DType dtype = DType::float64) { return tensor({int64_t(m.rows), int64_t(m.columns)}, m.v, dtype); }
  Matrix random_matrix(size_t rows, size_t columns) { return {rows, columns, numbers(rows * columns)}; }

  void check_qr(const UOp& x, double tolerance = 1e-13, size_t batches = 1) {
    SCOPED_TRACE(to_string(shape_of(x)));
    const auto [q, r] = qr(x);
    for (size_t b = 0; b < batches; ++b) {
      const Matrix mx = matrix(x, b), mq = matrix(q, b), mr = matrix(r, b);
      EXPECT_EQ(mq.columns, mx.rows);
      expect_near(product(mq, mr), mx, tolerance);
      expect_orthonormal_columns(mq, tolerance);
      for (size_t i = 0; i < mr.rows; ++i)
        for (size_t j = 0; j < std::min(i, mr.columns); ++j) EXPECT_EQ(mr.at(i, j), 0);
    }
  }

  /// Returns the singular values of the last of the batch.
  Values check_svd(const UOp& x, double tolerance = 1e-13, size_t batches = 1) {
    SCOPED_TRACE(to_string(shape_of(x)));
    Values s;
    for (bool full : {true, false}) {
      const auto [u, sigma, vt] = svd(x, full);
      const Values all = values(sigma);
      const size_t k = all.size() / batches;
      for (size_t b = 0; b < batches; ++b) {
        const Matrix mx = matrix(x, b), mu = matrix(u, b), mv = matrix(vt, b);
        s.assign(all.begin() + long(b * k), all.begin() + long((b + 1) * k));
        EXPECT_EQ(k, std::min(mx.rows, mx.columns));
        EXPECT_TRUE(std::is_sorted(s.rbegin(), s.rend()));
        EXPECT_EQ(mu.columns, full ? mx.rows : k);
        EXPECT_EQ(mv.rows, full ? mx.columns : k);
        const double scale = std::max(1.0, k ? s[0] : 1.0);
        expect_near(product(product(mu, diagonal_matrix(mu.columns, mv.rows, s)), mv), mx, tolerance * scale);
        expect_orthonormal_columns(mu, tolerance);
        expect_orthonormal_columns(transposed(mv), tolerance);
      }
    }
    return s;
  }
};

TEST_F(LinalgTest, QrOfEveryForm) {
  for (auto [rows, columns] : {std::pair<size_t, size_t>{1, 1}, {4, 4}, {6, 3}, {3, 6}, {1, 4}, {4, 1}})
    check_qr(node(random_matrix(rows, columns)));
  check_qr(ops::transpose(node(random_matrix(3, 5)), 0, 1));
  check_qr(node(random_matrix(5, 4), DType::float32), 1e-6);
}

TEST_F(LinalgTest, QrIsGramSchmidtUpToSigns) {
  const Matrix a = random_matrix(5, 5), want = orthonormal(a);
  const auto [q, r] = qr(node(a));
  const Matrix mq = matrix(q), mr = matrix(r);
  for (size_t j = 0; j < 5; ++j)
    for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(mq.at(i, j) * (mr.at(j, j) < 0 ? -1 : 1), want.at(i, j), 1e-12);
  // LAPACK's signs: a reflection turns a column against its head, and none is made where there is nothing to remove.
  const auto [q2, r2] = qr(tensor({2, 2}, {3, 1, 4, 2}));
  expect_values(r2, {-5, -2.2, 0, 0.4});
  const UOp triangle = tensor({2, 2}, {2, 1, 0, 3});
  expect_values(qr(triangle).q, {1, 0, 0, 1});
  expect_values(qr(triangle).r, {2, 1, 0, 3});
}

TEST_F(LinalgTest, QrOfDeficientMatrices) {
  check_qr(node({3, 3, Values(9, 0.0)}));
  check_qr(node({4, 3, {1, 2, 3, 2, 4, 6, 3, 6, 9, 4, 8, 12}}), 1e-13);
  check_qr(node({3, 3, {0, 1, 2, 0, 3, 4, 0, 5, 6}}));
  // Squares of these leave the range of float32.
  check_qr(node({2, 2, {1e-30, 3e-30, 2e-30, 1e-30}}, DType::float32), 1e-6);
  const auto [q, r] = qr(node({2, 2, {3e30, 1e30, 4e30, 2e30}}, DType::float32));
  expect_values(q, {-0.6, -0.8, -0.8, 0.6}, 1e-6);
  expect_values(r, {-5e30, -2.2e30, 0, 0.4e30}, 1e-6);
}

TEST_F(LinalgTest, Batches) {
  check_qr(random({2, 3, 4, 2}), 1e-13, 6);
  check_svd(random({2, 3, 3, 2}), 1e-13, 6);
  check_svd(random({3, 2, 4}), 1e-13, 3);
}

TEST_F(LinalgTest, SvdOfEveryForm) {
  for (auto [rows, columns] : {std::pair<size_t, size_t>{1, 1}, {2, 2}, {5, 5}, {12, 12}, {20, 7}, {7, 3}, {3, 7}, {1, 4}, {4, 1}})
    check_svd(node(random_matrix(rows, columns)));
  check_svd(ops::transpose(node(random_matrix(3, 4)), 0, 1));
  check_svd(node(random_matrix(6, 5), DType::float32), 3e-6);
}

TEST_F(LinalgTest, SingularValues) {
  const Values want = {100, 7, 7, 1e-3, 1e-9};
  const Matrix u = orthonormal(random_matrix(6, 5)), v = orthonormal(random_matrix(5, 5));
  const Values got = check_svd(node(product(product(u, diagonal_matrix(5, 5, want)), transposed(v))));
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-12);
  expect_values(svd(tensor({2, 3}, {0, -2, 0, 5, 0, 0})).s, {5, 2});
}

TEST_F(LinalgTest, SvdOfDeficientMatrices) {
  const Values zero = check_svd(node({3, 2, Values(6, 0.0)}));
  EXPECT_EQ(zero, (Values{0, 0}));
  const Values one = check_svd(node({3, 3, {1, 2, 3, 2, 4, 6, 3, 6, 9}}));
  EXPECT_NEAR(one[0], 14, 1e-12);
  EXPECT_NEAR(one[1], 0, 1e-13);
  // Rank 2 of 5, and columns of zeros.
  const Values two = check_svd(node(product(random_matrix(6, 2), random_matrix(2, 5))));
  for (size_t i = 2; i < 5; ++i) EXPECT_NEAR(two[i], 0, 1e-14);
  check_svd(node({4, 3, {0, 1, 0, 0, 2, 0, 0, 3, 0, 0, 4, 0}}));
  check_svd(node({3, 3, {1e-25, 2e-25, 0, 3e-25, -1e-25, 1e-25, 0, 0, 2e-25}}, DType::float32), 1e-6);
}

TEST_F(LinalgTest, EmptyMatrices) {
  expect_shape(qr(tensor({0, 3}, {})).q, "(0, 0)");
  expect_shape(qr(tensor({0, 3}, {})).r, "(0, 3)");
  expect_values(qr(tensor({2, 0}, {})).q, {1, 0, 0, 1});
  expect_shape(qr(tensor({0, 2, 3}, {})).r, "(0, 2, 3)");
  const auto [u, s, vt] = svd(tensor({2, 0}, {}));
  expect_values(u, {1, 0, 0, 1});
  expect_shape(s, "(0,)");
  expect_shape(vt, "(0, 0)");
  expect_shape(svd(tensor({0, 2, 3}, {})).s, "(0, 2)");
}

TEST_F(LinalgTest, Dtypes) {
  using enum DType;
  EXPECT_EQ(qr(counting({2, 2}, int32)).q.dtype(), float32);
  EXPECT_EQ(svd(counting({2, 2}, bool_), true, {.default_float = float16}).s.dtype(), float16);
  const auto [q, r] = qr(counting({3, 2}, float16));
  EXPECT_EQ(q.dtype(), float16);
  check_qr(counting({3, 2}, float16), 4e-3);
  check_svd(counting({2, 3}, bfloat16), 3e-2);
}

TEST_F(LinalgTest, NewtonSchulz) {
  const Matrix a = random_matrix(2, 3);
  double norm = 0;
  for (double v : a.v) norm += v * v;
  Matrix g = a;
  for (double& v : g.v) v /= std::sqrt(norm) + 1e-7;
  const Values p = {2, -1.5, 0.5};
  for (int i = 0; i < 3; ++i) {
    const Matrix gg = product(g, transposed(g)), once = product(gg, g), twice = product(gg, once);
    for (size_t k = 0; k < g.v.size(); ++k) g.v[k] = p[0] * g.v[k] + p[1] * once.v[k] + p[2] * twice.v[k];
  }
  expect_near(matrix(newton_schulz(node(a), 3, p)), g, 1e-13);
  expect_near(matrix(newton_schulz(node(transposed(a)), 3, p)), transposed(g), 1e-13);
  // The singular values go to 1.
  const Matrix close = matrix(newton_schulz(random({2, 3, 5}), 30, p), 1);
  expect_orthonormal_columns(transposed(close), 1e-9);
  EXPECT_EQ(newton_schulz(counting({2, 2}, DType::float16), 1, p).dtype(), DType::float16);
  expect_values(newton_schulz(tensor({1, 2}, {3, 4}), 0, p, 0), {0.6, 0.8});
  EXPECT_EQ(message_of<ValueError>([&] { newton_schulz(node(a), 1, {}); }), "newton_schulz: got no parameters, expects at least one");
  EXPECT_EQ(message_of<ValueError>([&] { newton_schulz(node(a), -1, p); }), "newton_schulz: -1 steps, expects at least 0");
}

TEST_F(LinalgTest, Errors) {
  const UOp v = counting({3});
  EXPECT_EQ(message_of<ShapeError>([&] { qr(v); }), "qr: expects at least two axes, rows and columns, got (3,)");
  EXPECT_EQ(message_of<ShapeError>([&] { svd(counting({})); }), "svd: expects at least two axes, rows and columns, got ()");
  EXPECT_EQ(message_of<ShapeError>([&] { newton_schulz(v, 1, Values{1}); }),
            "newton_schulz: expects at least two axes, rows and columns, got (3,)");
  const UOp open = tinygrad::expand(constant(DType::float32, 1), Shape{SInt(variable("n", 1, 8)), 2});
  EXPECT_EQ(message_of<ShapeError>([&] { qr(open); }),
            "qr: the number of steps depends on rows and columns, which must be known, got (n, 2)");
}

TEST_F(LinalgTest, GraphsStaySmall) {
  EXPECT_LT(toposort(qr(random({16, 16})).q).size(), 16u * 60);
  EXPECT_LT(toposort(svd(random({8, 8})).u).size(), 42u * 110);
}

}  // namespace
}  // namespace tinygrad::ops
