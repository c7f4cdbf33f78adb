"""Kernels that are written as UOps in tinygrad's manner: memory that is set, loops that carry values, placeholders in registers."""

from typing import Any

import numpy as np
import pytest

import tinygrad_cpp as tg
from tinygrad_cpp import Ops, Tensor, UOp, dtypes
from tinygrad_cpp.dtype import AddrSpace
from tinygrad_cpp.uop.ops import AxisType, KernelInfo

A = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)
B = np.random.default_rng(1).standard_normal((7, 4)).astype(np.float32)


def run(out: Tensor, *inputs: np.ndarray, kernel: Any) -> np.ndarray:
  return out.custom_kernel(*[Tensor(x) for x in inputs], fxn=kernel)[0].numpy()


def test_a_sum_that_is_set() -> None:
  def total(C: UOp, X: UOp) -> UOp:
    X = X.flatten()
    i = UOp.range(X.size, 0, axis_type=AxisType.REDUCE)
    C = C[0].set(0.0)
    C = C[0].set(C.after(i)[0] + X[i], end=i)
    return C.sink(arg=KernelInfo(name="total"))

  np.testing.assert_allclose(run(Tensor.empty(1), A, kernel=total), [A.sum()], rtol=1e-5)


@pytest.mark.parametrize("start", [0.0, 2.5])
def test_a_product_that_is_set(start: float) -> None:
  def gemm(C: UOp, X: UOp, Y: UOp) -> UOp:
    i, j = UOp.range(C.shape[0], 0), UOp.range(C.shape[1], 1, AxisType.LOOP)
    k = UOp.range(X.shape[1], 2, axis_type=AxisType.REDUCE)
    C = C[i, j].set(start)
    C = C[i, j].set(C.after(k)[i, j] + X[i, k] * Y[k, j], end=k)
    return C.end(i, j).sink(arg=KernelInfo(name="gemm"))

  np.testing.assert_allclose(run(Tensor.empty(5, 4), A, B, kernel=gemm), A @ B + start, rtol=1e-5, atol=1e-5)


def test_registers() -> None:
  def rows(C: UOp, X: UOp) -> UOp:
    i, k = UOp.range(X.shape[0], 0), UOp.range(X.shape[1], 1, AxisType.REDUCE)
    top = UOp.placeholder((1,), X.dtype, 0, addrspace=AddrSpace.REG).after(i)[0].set(-100.0)
    top = top[0].set(X[i, k].maximum(top.after(k)[0]), end=k)
    return C[i].store(top[0] * 2).end(i).sink()

  np.testing.assert_array_equal(run(Tensor.empty(5), A, kernel=rows), A.max(1) * 2)

  def unset(C: UOp, X: UOp) -> UOp:
    return C[0].store(UOp.placeholder((1,), X.dtype, 0, addrspace=AddrSpace.REG)[0]).sink()

  with pytest.raises(tg.ValueError, match="before anything was stored"):
    run(Tensor.empty(5), A, kernel=unset)


def test_more_than_is_there_before() -> None:
  def add_to(C: UOp, X: UOp) -> UOp:
    i, k = UOp.range(X.shape[0], 0), UOp.range(X.shape[1], 1, AxisType.REDUCE)
    return C[i].set(C.after(k)[i] + X[i, k], end=k).end(i).sink()

  c = Tensor(np.arange(5, dtype=np.float32)).realize()
  np.testing.assert_allclose(run(c, A, kernel=add_to), np.arange(5) + A.sum(1), rtol=1e-5, atol=1e-5)


def test_what_no_loop_can_carry() -> None:
  def mean(C: UOp, X: UOp) -> UOp:
    k = UOp.range(X.shape[1], 0, AxisType.REDUCE)
    C = C[0].set(0.0)
    return C[0].set((C.after(k)[0] + X[0, k]) * 0.5, end=k).sink()

  with pytest.raises(tg.ValueError, match="must be added"):
    run(Tensor.empty(1), A, kernel=mean)


def test_constants_and_ranges() -> None:
  def fill(C: UOp) -> UOp:
    i = UOp.range(C.size, 0, dtype=dtypes.int32)
    return C[i].store(i + UOp.const(3, dtypes.int32)).end(i).sink()

  assert run(Tensor.empty(4, dtype=dtypes.int32), kernel=fill).tolist() == [3, 4, 5, 6]
  assert UOp.const(1.5).dtype is dtypes.float32 and UOp.const(True).dtype is dtypes.bool and UOp.const(2, dtypes.half).dtype is dtypes.half
  assert UOp.const(b=4, dtype=dtypes.int8).op == Ops.CONST


def test_values_with_axes() -> None:
  x = Tensor(A)
  np.testing.assert_allclose(Tensor(x.uop.sum(1)).numpy(), A.sum(1), rtol=1e-5, atol=1e-5)
  np.testing.assert_array_equal(Tensor(x.uop.max(axis=0, keepdim=True)).numpy(), A.max(0, keepdims=True))
  i = UOp.range(10, 0)
  assert (i + 1 - i).simplify() == UOp.const(1) and ((i * 4) // 4).simplify() == i
