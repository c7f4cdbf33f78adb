"""Tensors as Python values: data in and out, operators, changes in place, errors."""

import pickle

import numpy as np
import pytest

import tinygrad_cpp as tg
from tinygrad_cpp import Tensor, dtypes


def test_from_numbers_and_lists() -> None:
  assert Tensor(3).item() == 3 and Tensor(3).dtype is dtypes.int32
  assert Tensor(2.5).dtype is dtypes.float32 and Tensor(True).dtype is dtypes.bool
  assert Tensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
  assert Tensor([1, 2.5]).dtype is dtypes.float32
  assert Tensor([]).shape == (0,) and Tensor([[], []]).shape == (2, 0)
  assert Tensor([True, False]).dtype is dtypes.bool
  assert Tensor([1, 2], dtype="int8").dtype is dtypes.int8
  assert Tensor([2**63], dtype=dtypes.uint64).tolist() == [2**63]
  assert Tensor([-1], dtype=dtypes.uint8).tolist() == [255]
  assert Tensor(b"\x01\x02").tolist() == [1, 2]
  assert Tensor(range(3)).tolist() == [0, 1, 2]
  assert Tensor([np.float32(1.5), np.float32(2)]).tolist() == [1.5, 2.0]


@pytest.mark.parametrize("name", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"])
def test_numpy_and_back(name: str) -> None:
  a = np.arange(6).reshape(2, 3).astype(name)
  t = Tensor(a)
  assert repr(t.dtype) == f"dtypes.{name}" and t.shape == (2, 3)
  np.testing.assert_array_equal(t.numpy(), a)
  assert t.numpy().dtype == a.dtype
  np.testing.assert_array_equal(Tensor(a.T).numpy(), a.T)
  np.testing.assert_array_equal(Tensor(a[:, ::-2]).numpy(), a[:, ::-2])
  assert t.tolist() == a.tolist()


def test_memory_is_shared() -> None:
  a = np.zeros((2, 3), np.float32)
  t = Tensor(a)
  a[0, 0] = 4
  assert t[0, 0].item() == 4
  t.assign(t + 1).realize()
  assert a[0, 0] == 5 and a[1, 2] == 1
  view = t.numpy()
  view[1, 1] = 9
  assert a[1, 1] == 9 and t[1, 1].item() == 9
  del t, a
  assert view[1, 1] == 9  # keeps the memory


def test_read_only_memory_is_copied() -> None:
  a = np.ones(3, np.float32)
  a.flags.writeable = False
  t = Tensor(a)
  t.assign(t + 1).realize()
  assert a.tolist() == [1, 1, 1] and t.tolist() == [2, 2, 2]


def test_unaligned_memory_is_copied() -> None:
  raw = np.zeros(17, np.uint8)
  a = raw[1:].view(np.float32)
  t = Tensor(a)
  a[0] = 3
  assert t.tolist() == [0, 0, 0, 0]


def test_protocols() -> None:
  t = Tensor([[1.0, 2.0], [3.0, 4.0]])
  np.testing.assert_array_equal(np.asarray(t), [[1, 2], [3, 4]])
  np.testing.assert_array_equal(np.from_dlpack(t), [[1, 2], [3, 4]])
  assert memoryview(t.data()).shape == (2, 2)
  assert len(t) == 2 and [row.tolist() for row in t] == [[1, 2], [3, 4]]
  assert float(t.sum()) == 10.0 and int(t.sum()) == 10


def test_torch_both_ways() -> None:
  torch = pytest.importorskip("torch")
  a = torch.arange(6, dtype=torch.float32).reshape(2, 3)
  t = Tensor(a)
  a[0, 0] = 7
  assert t[0, 0].item() == 7
  b = torch.from_dlpack(t)
  assert b.tolist() == [[7, 1, 2], [3, 4, 5]]
  half = Tensor([1.5, 2.5], dtype=dtypes.bfloat16)
  assert torch.from_dlpack(half).dtype == torch.bfloat16
  assert Tensor(torch.tensor([1.5], dtype=torch.bfloat16)).dtype is dtypes.bfloat16


def test_operators() -> None:
  t = Tensor([1, 2, 3])
  assert (t + 1).tolist() == [2, 3, 4] and (1 + t).tolist() == [2, 3, 4]
  assert (5 - t).tolist() == [4, 3, 2] and (t - 5).tolist() == [-4, -3, -2]
  assert (t / 2).tolist() == [0.5, 1.0, 1.5] and (6 / t).tolist() == [6.0, 3.0, 2.0]
  assert (t // 2).tolist() == [0, 1, 1] and (7 // t).tolist() == [7, 3, 2]
  assert (t % 2).tolist() == [1, 0, 1] and (-t % 2).tolist() == [1, 0, 1]
  assert (t**2).tolist() == [1, 4, 9] and (2**t).tolist() == [2, 4, 8]
  assert (t & 1).tolist() == [1, 0, 1] and (t | 4).tolist() == [5, 6, 7] and (t ^ 1).tolist() == [0, 3, 2]
  assert (t << 1).tolist() == [2, 4, 6] and (t >> 1).tolist() == [0, 1, 1] and (1 << t).tolist() == [2, 4, 8]
  assert (~t).tolist() == [-2, -3, -4] and (-t).tolist() == [-1, -2, -3] and abs(-t).tolist() == [1, 2, 3]
  assert (t < 2).tolist() == [True, False, False] and (2 <= t).tolist() == [False, True, True]
  assert (t == 2).tolist() == [False, True, False] and (t != 2).tolist() == [True, False, True]
  assert (np.array([1, 2, 3], np.int32) + t).tolist() == [2, 4, 6] and (t + np.array([1, 2, 3], np.int32)).tolist() == [2, 4, 6]
  x = Tensor([[1.0, 2.0], [3.0, 4.0]])
  assert (x @ x).tolist() == [[7, 10], [15, 22]]


def test_in_place_keeps_the_object() -> None:
  t = Tensor([1.0, 2.0])
  same = t
  t += 1
  t *= 3
  t -= 1
  t /= 5
  assert same is t and t.tolist() == [1.0, 1.600000023841858]
  assert t.realize() is t and t.assign([5, 6]) is t and t.tolist() == [5.0, 6.0]
  assert t.assign(0).tolist() == [0.0, 0.0]


def test_indexing() -> None:
  a = np.arange(24).reshape(2, 3, 4)
  t = Tensor(a)
  for index in [0, -1, (0, 1), (slice(None), 1), (..., 0), (None, 1), (slice(None, None, -1),), (0, slice(1, 3), slice(None, None, 2)),
                ([0, 1], [1, 2]), (slice(None), [2, 0]), np.array([1, 0]), a > 5, (1, ..., None), (slice(0, 0),)]:
    np.testing.assert_array_equal(t[index].numpy(), a[index], err_msg=repr(index))


def test_index_assignment() -> None:
  for index, value in [(0, 5), ((slice(None), 1), 7), ((..., 0), -1), (([0, 1], [1, 2]), 9), ((slice(None, None, 2), slice(None), slice(1, 3)), 3)]:
    a = np.arange(24).reshape(2, 3, 4).copy()
    t = Tensor(a.copy())
    t[index] = value
    a[index] = value
    np.testing.assert_array_equal(t.numpy(), a, err_msg=repr(index))
  t = Tensor([1.0, 2.0, 3.0])
  t[t > 1.5] = 0
  assert t.tolist() == [1, 0, 0]
  t[1:] = Tensor([8.0, 9.0])
  assert t.tolist() == [1, 8, 9]
  t[0] += 4
  assert t.tolist() == [5, 8, 9]


def test_one_tensor_is_one_object() -> None:
  layer = tg.nn.Linear(3, 2)
  weight = layer.weight
  assert layer.weight is weight and tg.nn.state.get_parameters(layer)[0] is weight
  optimizer = tg.nn.optim.SGD(tg.nn.state.get_parameters(layer))
  assert optimizer.params[0] is weight and weight in set(optimizer.params)
  weight.sum().backward()
  grad = weight.grad
  assert weight.grad is grad and layer.weight.grad is grad
  mine = Tensor([[1.0]])
  layer.weight = mine
  assert layer.weight is mine and layer.weight is not weight
  copy = pickle.loads(pickle.dumps(mine))
  layer.weight = copy
  assert layer.weight is copy and copy is not mine

  class Named(Tensor):
    pass

  named = Named([1.0])
  layer.bias = named
  assert layer.bias is named
  del named
  assert type(layer.bias) is Tensor and layer.bias.tolist() == [1.0]
  assert all(Tensor.ones(2).clone().tolist() == [1, 1] for _ in range(1000))


def test_variables_are_equal_by_what_they_are() -> None:
  n = tg.Variable("n", 1, 10)
  assert n == tg.Variable("n", 1, 10) and hash(n) == hash(tg.Variable("n", 1, 10))
  assert n != tg.Variable("n", 1, 11) and n != tg.Variable("m", 1, 10) and n != 3 and n != "n"
  assert n.bind(3) == tg.Variable("n", 1, 10).bind(3) and n.bind(3) != n.bind(4) and n.bind(3) != n
  assert n.bind(3).unbind()[0] == n and {n: 1}[tg.Variable("n", 1, 10)] == 1
  size = Tensor.empty(10)[:n.bind(3)].shape[0]
  assert size == n.bind(3) and n.bind(3) == size and hash(size) == hash(n.bind(3))
  assert size != n and n != size and size != n.bind(4) and size + 1 == n.bind(3) + 1


def test_pickle() -> None:
  t = Tensor([[1.0, 2.0]], dtype=dtypes.bfloat16).is_param_(False)
  u = pickle.loads(pickle.dumps(t))
  assert u.tolist() == t.tolist() and u.dtype is t.dtype and u.is_param is False
  assert pickle.loads(pickle.dumps(dtypes.float16)) is dtypes.float16


def test_reading_a_value_keeps_the_way_of_gradients() -> None:
  x = Tensor([1.0, 2.0])
  y = x * x
  assert y.numpy().tolist() == [1, 4] and y.tolist() == [1, 4] and np.from_dlpack(y).tolist() == [1, 4] and y.sum().item() == 5
  assert y.sum().gradient(x)[0].tolist() == [2, 4]


def test_gradients() -> None:
  x, w = Tensor([[1.0, 2.0]]), Tensor([[3.0], [4.0]])
  (x @ w).sum().backward()
  assert w.grad is not None and w.grad.tolist() == [[1.0], [2.0]]
  assert x.grad is not None and x.grad.tolist() == [[3.0, 4.0]]
  x.grad = None
  assert x.grad is None
  y = Tensor([2.0])
  (dy,) = (y**3).sum().gradient(y)
  (ddy,) = dy.sum().gradient(y)
  assert dy.item() == 12 and ddy.item() == 12


def test_errors_are_what_python_expects() -> None:
  assert issubclass(tg.ShapeError, ValueError) and issubclass(tg.IndexError, IndexError) and issubclass(tg.DTypeError, TypeError)
  assert issubclass(tg.OutOfMemoryError, MemoryError) and issubclass(tg.IoError, OSError)
  assert all(issubclass(e, tg.Error) for e in (tg.ShapeError, tg.ValueError, tg.JitError, tg.CompileError))


def test_dtypes() -> None:
  assert dtypes.float is dtypes.float32 and dtypes.half is dtypes.float16 and dtypes.default_int is dtypes.int32
  assert dtypes.is_float(dtypes.bfloat16) and dtypes.is_int(dtypes.uint8) and not dtypes.is_int(dtypes.bool)
  assert dtypes.int8.min == -128 and dtypes.uint64.max == 2**64 - 1 and dtypes.float32.max == float("inf")
  assert dtypes.float32.itemsize == 4 and dtypes.float16.fmt == "e" and dtypes.finfo(dtypes.float16) == (5, 10)
  assert (Tensor([1], dtype=dtypes.int8) + Tensor([1.5])).dtype is dtypes.float32
  with tg.Context(DEFAULT_FLOAT="float64"):
    assert Tensor([1.5]).dtype is dtypes.float64


def test_context_and_counters() -> None:
  @tg.Context(TRAINING=1)
  def least_kept() -> float:
    return Tensor.ones(1000).dropout(0.5).min().item()

  assert least_kept() == 0 and Tensor.ones(1000).dropout(0.5).min().item() == 1
  tg.GlobalCounters.reset()
  kept = (Tensor([1.0, 2.0]) + 31).realize()
  assert tg.GlobalCounters.kernel_count == 1 and tg.GlobalCounters.mem_used >= kept.nbytes()


def slope(y: Tensor, x: Tensor) -> list[float]:
  return y.sum().gradient(x)[0].float().tolist()  # type: ignore[no-any-return]


def test_gradients_are_finite_where_functions_are() -> None:
  x = Tensor([-3e38, -100.0, -89.0, -45.0, -10.2, 90.0, 3e38])
  for y in (x.gelu(), x.gelu("none"), x.silu(), x.quick_gelu(), x.mish(), x.elu(), x.celu(), x.softplus()):
    np.testing.assert_allclose(slope(y, x), [0, 0, 0, 0, 0, 1, 1], atol=4e-4)
  for y in (x.tanh(), x.sigmoid(), x.erf()):
    np.testing.assert_allclose(slope(y, x), 0, atol=4e-5)
  half = Tensor([-11.1, -60.0], dtype=dtypes.float16)
  for y in (half.sigmoid(), half.silu(), half.quick_gelu()):
    np.testing.assert_allclose(slope(y, half), 0, atol=2e-4)
  zero = Tensor([0.0])
  np.testing.assert_allclose(slope(zero.erf(), zero), 1.1283792, rtol=1e-6)
  for y in (zero.atan(), zero.asin(), zero.asinh(), zero.elu()):
    assert slope(y, zero) == [1.0] and y.item() == 0
  small = Tensor([1e-10])
  np.testing.assert_allclose([small.tanh().item(), small.sinh().item(), small.erf().item()], [1e-10, 1e-10, 1.1283792e-10], rtol=1e-6)
  zeros = Tensor.zeros(2, 3).contiguous().realize()
  assert np.isfinite(slope(zeros.normalize(), zeros)).all()


def test_gradients_beyond_a_domain_are_those_of_the_formula() -> None:
  x = Tensor([-300.0, 0.5])
  below, between = slope(x.acosh(), x)
  np.testing.assert_allclose(below, (300.0**2 - 1) ** -0.5, rtol=1e-6)
  assert np.isnan(between)


def test_answers_that_are_defined() -> None:
  same = Tensor.full((2, 3), 5.0).contiguous().realize()
  assert slope(same.std(), same) == [[0.0] * 3] * 2
  q, v = Tensor([[[1.0, 2.0], [3.0, 4.0]]]), Tensor([[[5.0, 6.0], [7.0, 8.0]]])
  y = q.scaled_dot_product_attention(q, v, attn_mask=Tensor([[False, False], [True, False]]))
  assert y.tolist() == [[[0, 0], [5, 6]]]
  assert slope(y, q) == [[[0, 0], [0, 0]]] and slope(y, v) == [[[1, 1], [0, 0]]]
  x, other = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
  a, b = (x * x).sum().gradient(x, other, gradient=Tensor([2.0]))
  assert a.tolist() == [4, 8] and b.tolist() == [0, 0]
  with pytest.raises(ValueError, match="3 samples without replacement from 2 weights above 0"):
    Tensor([0.0, 1.0, 2.0]).multinomial(3)


def test_narrow_floats_are_rounded_once() -> None:
  x = Tensor((np.arange(32) % 7 * 300.0 - 900.0).reshape(4, 8)).half().realize()
  wide = x.double().realize()
  for f in (lambda t: t.layernorm(), lambda t: t.std(1), lambda t: t.softmax(), lambda t: t.log_softmax(), lambda t: t.logsumexp(1), lambda t: t.normalize(),
            lambda t: t.cross_entropy(Tensor([0, 3, 5, 1]))):
    np.testing.assert_array_equal(f(x).numpy(), f(wide).numpy().astype(np.float16))
  q = Tensor.full((1, 2, 64), 200.0, dtype=dtypes.float16)
  assert q.scaled_dot_product_attention(q, Tensor([[[1.0], [3.0]]]).half()).tolist() == [[[2], [2]]]
