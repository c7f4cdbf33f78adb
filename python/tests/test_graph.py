"""What is next to the graph: kernels written as UOps, and looking at them."""

import numpy as np
import pytest

import tinygrad_cpp as tg
from tinygrad_cpp import Tensor, UOp, dtypes
from tinygrad_cpp.uop.ops import AxisType, KernelInfo, Ops


def add(C: UOp, A: UOp, B: UOp) -> UOp:
  C, A, B = C.flatten(), A.flatten(), B.flatten()
  i = UOp.range(C.numel(), 0)
  return C[i].store(A[i] + B[i]).end(i).sink(arg=KernelInfo(name=f"add_{C.numel()}"))


def gemm(C: UOp, A: UOp, B: UOp) -> UOp:
  i, j, k = UOp.range(C.shape[0], 0), UOp.range(C.shape[1], 1), UOp.range(A.shape[1], 2, axis_type=AxisType.REDUCE)
  return C[i, j].store((A[i, k] * B[k, j]).reduce(k, arg=Ops.ADD)).end(i, j).sink()


def eye(C: UOp) -> UOp:
  i, j = UOp.range(C.shape[0], 0), UOp.range(C.shape[1], 1)
  return C[i, j].store(i.eq(j).cast(C.dtype)).end(i, j).sink(arg=KernelInfo("eye"))


@pytest.mark.covers("custom_kernel")
def test_custom_kernels(rng: np.random.Generator) -> None:
  a, b = (rng.standard_normal((5, 7)).astype(np.float32) for _ in range(2))
  out = Tensor.custom_kernel(Tensor.empty(5, 7), Tensor(a), Tensor(b), fxn=add)[0]
  np.testing.assert_array_equal((out * 2).numpy(), (a + b) * 2)
  product = Tensor.empty(5, 5).custom_kernel(Tensor(a), Tensor(b).T.contiguous(), fxn=gemm)[0]
  np.testing.assert_allclose(product.numpy(), a @ b.T, rtol=1e-5, atol=1e-5)
  assert Tensor.empty(3, 3, dtype=dtypes.int32).custom_kernel(fxn=eye)[0].tolist() == np.eye(3, dtype=int).tolist()


def test_two_stores() -> None:
  def both(C: UOp, D: UOp, A: UOp) -> UOp:
    i = UOp.range(A.shape[0], 0)
    half = (A[i] * 0.5).maximum(1)
    return UOp.group(C[i].store(half), D[i].store((A[i] < 3).where(-A[i], 2 / A[i]))).end(i).sink()

  c, d, _ = Tensor.custom_kernel(Tensor.empty(3), Tensor.empty(3), Tensor([1.0, 2.0, 4.0]), fxn=both)
  assert c.tolist() == [1, 1, 2] and d.tolist() == [-1, -2, 0.5]


def test_gradient_of_a_custom_kernel() -> None:
  def backward(gradient: UOp, kernel: UOp) -> tuple[None, UOp, Tensor]:
    _, a, b = kernel.src[1:]
    return None, (Tensor(gradient) @ Tensor(b).T).uop, Tensor(a).T @ Tensor(gradient)

  a, b = Tensor([[1.0, 2.0]]), Tensor([[3.0], [4.0]])
  out = Tensor.empty(1, 1).custom_kernel(a, b, fxn=gemm, grad_fxn=backward)[0]
  ga, gb = (out * 2).sum().gradient(a, b)
  assert ga.tolist() == [[6, 8]] and gb.tolist() == [[2], [4]]
  with pytest.raises(tg.ValueError, match="without a gradient function"):
    Tensor.empty(1, 1).custom_kernel(a, b, fxn=gemm)[0].sum().gradient(a)


@pytest.mark.parametrize("kernel,error,text", [
  (lambda C, A: C, tg.ValueError, "expects a SINK"),
  (lambda C, A: 3, TypeError, "must return a UOp"),
  (lambda C, A: C[0, 0].store(1).sink(), tg.IndexError, "1 axes with 2"),
  (lambda C, A: C[0].store(A).sink(), TypeError, "index it"),
  (lambda C, A: C[0].store(A[0] + UOp.range(3, 0)).sink(), tg.DTypeError, "cast"),
  (lambda C, A: C[0].store(UOp.range(3, 0)).sink(), tg.DTypeError, "cast"),
  (lambda C, A: A[0].sink(), tg.ValueError, "custom_kernel"),
  (lambda C, A: C[0].store("a").sink(), TypeError, "UOps and numbers"),
  (lambda C, A: C[UOp.range(0, 0)].store(1).sink(), tg.ValueError, "at least 1"),
  (lambda C, A: C[UOp.range(2, 0)].store(1).sink(), tg.ValueError, "custom_kernel"),
])
def test_what_is_no_kernel(kernel, error, text) -> None:  # type: ignore[no-untyped-def]
  c, a = Tensor.zeros(3).contiguous().realize(), Tensor([1.0, 2.0, 3.0])
  with pytest.raises(error, match=text):
    c.custom_kernel(a, fxn=kernel)
  assert c.tolist() == [0, 0, 0] and a.tolist() == [1, 2, 3]


@pytest.mark.covers("alu", "ufix", "usum", "uprod", "schedule_linear", "linear_with_vars", "max_shape", "max_numel")
@pytest.mark.covers("usum", "uprod", kind="gradient")
def test_looking() -> None:
  a = Tensor([1.0, 2.0])
  y = (a + 1).sum()
  assert any(u.op == Ops.REDUCE for u in y.uop.toposort())
  assert y.schedule_linear().op == Ops.LINEAR
  linear, values = y.linear_with_vars()
  assert len(linear.src) == 1 and values == {}
  assert Tensor(y.uop).item() == 5
  assert a.alu(Ops.ADD, a).tolist() == [2, 4] and a.usum(a, a).tolist() == [3, 6] and a.uprod(a).tolist() == [1, 4]
  b = Tensor([3.0, 5.0])
  assert a.usum(b, b).sum().gradient(b)[0].tolist() == [2, 2] and a.uprod(b, b).sum().gradient(b)[0].tolist() == [6, 20]
  assert a.ufix(2).dtype is dtypes.float32 and a.max_shape == (2,) and a.max_numel() == 2
  with pytest.raises(tg.ValueError, match="NOPE"):
    a.alu("NOPE", a)


@pytest.mark.covers("callify")
def test_callify() -> None:
  a = Tensor([1.0, 2.0])
  y = (a * a).callify()
  before = tg.GlobalCounters.kernel_count
  assert (y + 1).tolist() == [2, 5] and y.tolist() == [1, 4]
  assert tg.GlobalCounters.kernel_count - before <= 2


@pytest.mark.covers("from_url")
def test_from_url(tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
  (tmp_path / "file").write_bytes(b"abc")
  assert Tensor.from_url((tmp_path / "file").as_uri()).tolist() == [97, 98, 99]
