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


def test_parts_of_memory() -> None:
  def row_sums(C: UOp, X: UOp) -> UOp:
    i, k = UOp.range(X.shape[0], 0), UOp.range(X.shape[1], 1, AxisType.REDUCE)
    row = X[i, :]
    assert row.shape == (7,) and row.size == 7 and row.ndim == 1 and X[i].shape == (7,) and X[i, ...].shape == (7,)
    total = UOp.placeholder((1,), X.dtype, 0, addrspace=AddrSpace.REG).after(i)[0].set(0.0)
    total = total[0].set(total.after(k)[0] + row[k], end=k)
    return C[i].set(total[0], end=i).sink()

  np.testing.assert_allclose(run(Tensor.empty(5), A, kernel=row_sums), A.sum(1), rtol=1e-5, atol=1e-5)

  def window(C: UOp, X: UOp) -> UOp:
    i, j = UOp.range(C.shape[0], 0), UOp.range(C.shape[1], 1)
    return C[i][j].store(X[1:4, ::-2][i, j] + X[..., -1][i]).end(i, j).sink()

  np.testing.assert_allclose(run(Tensor.empty(3, 4), A, kernel=window), A[1:4, ::-2] + A[:3, -1:], rtol=1e-6)

  def into_part(C: UOp, X: UOp) -> UOp:
    i, k = UOp.range(3, 0), UOp.range(X.shape[1], 1, AxisType.REDUCE)
    part = C[1:4]
    part = part[i].set(0.0)
    assert part.shape == (3,)
    part = part[i].set(part.after(k)[i] + X[1:4][i, k], end=k)
    return part.end(i).sink()

  want = np.arange(5, dtype=np.float32)
  want[1:4] = A[1:4].sum(1)
  np.testing.assert_allclose(run(Tensor(np.arange(5, dtype=np.float32)).realize(), A, kernel=into_part), want, rtol=1e-5, atol=1e-5)

  def flat(C: UOp, X: UOp) -> UOp:
    block = X[2:4].flatten()
    i = UOp.range(block.size, 0)
    return C[i].store(block[i]).end(i).sink()

  np.testing.assert_array_equal(run(Tensor.empty(14), A, kernel=flat), A[2:4].ravel())


@pytest.mark.parametrize("index, error", [
  ((0, 0, 0), "2 axes with 3 indices"), (5, "5 elements with 5"), ((0, -8), "7 elements with -8"), (slice(3, 3), "no elements"), (None, "no new axes"),
])
def test_parts_that_are_not_there(index: Any, error: str) -> None:
  def kernel(C: UOp, X: UOp) -> UOp:
    return C[0].store(X[index][0]).sink()

  with pytest.raises((IndexError, TypeError), match=error):
    run(Tensor.empty(5), A, kernel=kernel)
  with pytest.raises(tg.ValueError, match="equal steps"):
    run(Tensor.empty(5), A, kernel=lambda C, X: C[0].store(X[:, 1:3].flatten()[0]).sink())


def test_memory_of_work_groups_is_the_librarys() -> None:
  with pytest.raises(tg.ValueError, match="no LOCAL memory"):
    run(Tensor.empty(5), A, kernel=lambda C, X: C[0].store(UOp.placeholder((4,), X.dtype, 0, AddrSpace.LOCAL)[0]).sink())


def test_sinks_and_groups_of_any_number() -> None:
  assert UOp.sink().op == Ops.SINK and UOp.sink().src == () and UOp.sink(None, arg=KernelInfo(name="nothing")).op == Ops.SINK
  x = Tensor([1.0, 2.0, 3.0]).realize()
  with pytest.raises(tg.ValueError, match="stores nothing"):
    run(x, kernel=lambda C: UOp.sink(arg=KernelInfo(name="nothing")))
  assert run(x, kernel=lambda C: UOp.sink(C[0].store(5.0), C[2].store(7.0))).tolist() == [5, 2, 7]
  assert run(x, kernel=lambda C: C[1].store(6.0).sink(None)).tolist() == [5, 6, 7]
  assert run(x, kernel=lambda C: UOp.group(C[0].store(1.0), None, C[1].store(2.0)).sink()).tolist() == [1, 2, 7]
  assert run(x, kernel=lambda C: C[0].store(3.0).group(C[2].store(4.0)).sink()).tolist() == [3, 2, 4]


def test_operators_by_name() -> None:
  def kernel(C: UOp) -> UOp:
    i = UOp.range(C.size, 0, dtype=dtypes.int32)
    x = i.mul(3).add(1).sub(2, reverse=True).bitwise_and(15).bitwise_xor(1).bitwise_or(16).mod(19).lshift(1)
    y = ((i >= 2) & (i <= 4)).where(1, x)
    return C[i].store((i < 6).where(y, 7) + (1 << i) + i.neg()).end(i).sink()

  i = np.arange(8)
  x = (((2 - (i * 3 + 1)) & 15 ^ 1 | 16) % 19) << 1
  want = np.where(i < 6, np.where((i >= 2) & (i <= 4), 1, x), 7) + (1 << i) - i
  assert run(Tensor.empty(8, dtype=dtypes.int32), kernel=kernel).tolist() == want.tolist()
  v = UOp.variable("v", 1, 9)
  assert v.vmin == 1 and v.vmax == 9 and v.bind(4).val == 4


def test_calls_of_formulas() -> None:
  a, b = (Tensor(x).realize() for x in (A, A[::-1].copy()))
  formula = (a.as_param(0) * b.as_param(1)).softmax(1).gather(1, Tensor([[0, 3]]).expand(5, 2))
  want = (a * b).softmax(1).gather(1, Tensor([[0, 3]]).expand(5, 2))
  np.testing.assert_allclose(Tensor.call(a, b, fxn=formula).numpy(), want.numpy(), rtol=1e-6)
  np.testing.assert_allclose(b.call(a, fxn=formula.uop).numpy(), want.numpy(), rtol=1e-6)
  np.testing.assert_allclose(a.call(a, fxn=a.as_param(1) + b.as_param(1)).numpy(), 2 * A, rtol=1e-6)
  for got, right in zip(Tensor.call(a, b, fxn=formula).sum().gradient(a, b), want.sum().gradient(a, b)):
    np.testing.assert_allclose(got.numpy(), right.numpy(), rtol=1e-5, atol=1e-7)

  def own(gradient: UOp, call: Any) -> tuple[Any, Any]:
    x, y = (Tensor(u) for u in call.src[1:])
    return Tensor(gradient) * y * 10, Tensor(gradient) * x * 100

  made = Tensor.call(a, b, fxn=a.as_param(0) * b.as_param(1), grad_fxn=own)
  np.testing.assert_allclose(made.numpy(), A * A[::-1], rtol=1e-6)
  for got, right in zip(made.sum().gradient(a, b), (A[::-1] * 10, A * 100)):
    np.testing.assert_allclose(got.numpy(), right, rtol=1e-5)
  with pytest.raises(tg.ValueError, match="an argument 1, got 1 tensors"):
    a.call(fxn=b.as_param(1))
  with pytest.raises(tg.ShapeError, match="argument 0"):
    Tensor([1.0]).call(fxn=b.as_param(0))
  with pytest.raises(TypeError, match="as_param"):
    a.call(fxn=3)  # type: ignore[arg-type]


def test_memory_with_other_axes() -> None:
  def transposed(C: UOp, X: UOp) -> UOp:
    C, X = C.reshape(4, 7), X.reshape((7, -1)).permute(1, 0)
    assert C.shape == (4, 7) and X.shape == (4, 7)
    i, j = UOp.range(4, 0), UOp.range(7, 1)
    return C.index(i, j).store(X[i][j].load()).end(i, j).sink()

  np.testing.assert_array_equal(run(Tensor.empty(28), B.ravel(), kernel=transposed).reshape(4, 7), B.T)

  def block(C: UOp, X: UOp) -> UOp:
    part = C.reshape(2, 14)[1].reshape(2, 7)
    i, j = UOp.range(2, 0), UOp.range(7, 1)
    return part[i, j].set(X[i, j] * 2, end=(i, j)).sink()

  want = np.zeros((4, 7), np.float32)
  want[2:] = A[:2] * 2
  np.testing.assert_array_equal(run(Tensor(np.zeros((4, 7), np.float32)).realize(), A, kernel=block), want)
  for call, error in ((lambda X: X.reshape(6, 6), "elements"), (lambda X: X[:, :2].reshape(10), "equal steps"), (lambda X: X.permute(0, 0), "once"),
                      (lambda X: X.permute(1), "once")):
    with pytest.raises((tg.ValueError, tg.ShapeError), match=error):
      run(Tensor.empty(5), A, kernel=lambda C, X, call=call: call(X))


@pytest.mark.parametrize("device", ["CPU", "INTERP"])
def test_stores_where_a_gate_holds(device: str) -> None:
  def kernel(C: UOp, X: UOp) -> UOp:
    i = UOp.range(C.size, 0)
    return C[i].store(X[i] * 2, X[i] > 0).end(i).sink()

  x = A.ravel()
  c = Tensor(np.full(35, 9, np.float32), device=device).realize()
  got = c.custom_kernel(Tensor(x, device=device), fxn=kernel)[0].numpy()
  np.testing.assert_array_equal(got, np.where(x > 0, x * 2, 9))
  with pytest.raises(tg.DTypeError, match="gate"):
    run(Tensor.empty(35), x, kernel=lambda C, X: C[0].store(1.0, X[0]).sink())


def test_functions_of_elements() -> None:
  functions = {"exp": np.exp, "log": np.log, "relu": lambda x: np.maximum(x, 0), "abs": np.abs, "square": np.square,
               "rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "neg": np.negative}
  x = np.abs(A.ravel()) + 0.1
  for name, f in functions.items():
    def kernel(C: UOp, X: UOp, name: str = name) -> UOp:
      i = UOp.range(C.size, 0)
      return C[i].store(getattr(X[i], name)()).end(i).sink()

    np.testing.assert_allclose(run(Tensor.empty(35), x, kernel=kernel), f(x), rtol=1e-5, err_msg=name)
  with pytest.raises(tg.DTypeError, match="float"):
    run(Tensor.empty(35, dtype=dtypes.int32), x, kernel=lambda C, X: C[0].store(C[1].exp()).sink())
