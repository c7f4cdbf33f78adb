#pragma once
/// Matrix decompositions over the last two axes, as graphs of a fixed number of steps: axes before them are a batch, sizes of the matrix
/// must be known. Integers and bools are taken as the default float; float16 and narrower are computed in float32. ShapeError for fewer
/// than two axes. Gradients are those of the steps.

#include "ops/operand.h"

namespace tinygrad::ops {

struct QR {
  UOp q;  ///< (..., m, m), orthogonal
  UOp r;  ///< (..., m, n), upper triangular
};
/// x = q r for x (..., m, n), by min(m - 1, n) Householder reflections; signs are LAPACK's.
QR qr(const UOp& x, const OpsContext& ctx = {});

struct SVD {
  UOp u;   ///< (..., m, m), or (..., m, k) if not full_matrices
  UOp s;   ///< (..., k), k = min(m, n), the greatest first
  UOp vt;  ///< (..., n, n), or (..., k, n)
};
/// x = u diag(s) vt with orthonormal columns of u and rows of vt, whatever the rank of x: one-sided Jacobi rotations of the triangular
/// factor (Drmac and Veselic, "New fast and accurate Jacobi SVD algorithm", 2008), log2(k) + 3 sweeps of k - 1 steps.
SVD svd(const UOp& x, bool full_matrices = true, const OpsContext& ctx = {});

/// x scaled to a Frobenius norm of at most 1, then `steps` times g = p0 g + p1 (g g^T) g + p2 (g g^T)^2 g + ...: with fitting parameters
/// the singular values go to 1 (Newton-Schulz).
UOp newton_schulz(const UOp& x, int64_t steps, std::span<const double> params, double eps = 1e-7, const OpsContext& ctx = {});

}  // namespace tinygrad::ops
