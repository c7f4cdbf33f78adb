"""Drawn cases: movement, indexing and assignment, reductions, einsum and convolution, on tiny tensors of the interpreting device, where a
new shape costs nothing, and some on the compiled one."""

import os
from typing import Any

import numpy as np
import pytest
from conftest import SEED
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import tinygrad_cpp as tg
from tinygrad_cpp import Tensor

FULL = os.environ.get("TG_ORACLE") == "full"
DEVICES = [pytest.param("INTERP", 400 if FULL else 60), pytest.param("CPU", 60 if FULL else 8)]


def drawn(*strategies: Any) -> Any:
  """The examples that TG_TEST_SEED decides, on both devices."""

  def wrap(f: Any) -> Any:
    @pytest.mark.parametrize("device,count", DEVICES)
    def test(device: str, count: int) -> None:
      @seed(SEED)
      @settings(max_examples=count, deadline=None, database=None, phases=(Phase.explicit, Phase.generate, Phase.shrink), print_blob=False, suppress_health_check=list(HealthCheck))
      @given(st.tuples(*strategies))
      def run(args: tuple[Any, ...]) -> None:
        with tg.Context(DEV=device):
          f(*args)

      run()

    test.__name__, test.__doc__ = f.__name__, f.__doc__
    return test

  return wrap


def numbers(shape: tuple[int, ...]) -> np.ndarray:
  count = int(np.prod(shape))
  return (np.arange(count, dtype=np.float32) - count // 2).reshape(shape)


shapes = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


def moved(a: np.ndarray, data: st.DataObject) -> tuple[Any, Any]:
  """A movement of `a`, for our tensors and for arrays."""
  kind = data.draw(st.sampled_from(["permute", "flip", "shrink", "pad", "reshape", "expand", "step", "squeeze", "repeat", "roll"]))
  n = a.ndim
  if kind == "permute":
    order = tuple(data.draw(st.permutations(range(n))))
    return (lambda t: t.permute(order)), (lambda x: x.transpose(order))
  if kind == "flip":
    axes = tuple(data.draw(st.sets(st.integers(0, n - 1)))) if n else ()
    return (lambda t: t.flip(axes) if axes else t), (lambda x: np.flip(x, axes) if axes else x)
  if kind == "shrink":
    bounds = tuple(tuple(sorted((data.draw(st.integers(0, s)), data.draw(st.integers(0, s))))) for s in a.shape)
    bounds = tuple((lo, hi) if lo < hi else (0, s) for (lo, hi), s in zip(bounds, a.shape))
    return (lambda t: t.shrink(bounds)), (lambda x: x[tuple(slice(lo, hi) for lo, hi in bounds)])
  if kind == "pad":
    pads = tuple((data.draw(st.integers(0, 2)), data.draw(st.integers(0, 2))) for _ in a.shape)
    return (lambda t: t.pad(pads)), (lambda x: np.pad(x, pads) if n else x)
  if kind == "reshape":
    shape, rest = [], a.size
    while rest > 1:
      factor = data.draw(st.sampled_from([d for d in range(2, rest + 1) if rest % d == 0]))
      shape.append(factor)
      rest //= factor
    return (lambda t: t.reshape(tuple(shape) or (1,))), (lambda x: x.reshape(tuple(shape) or (1,)))
  if kind == "expand":
    return (lambda t: t.unsqueeze(0).expand(3, *a.shape)), (lambda x: np.broadcast_to(x, (3, *a.shape)))
  if kind == "step" and n:
    step = data.draw(st.sampled_from([2, 3, -1, -2]))
    return (lambda t: t[::step]), (lambda x: x[::step])
  if kind == "squeeze":
    return (lambda t: t.squeeze()), (lambda x: x.squeeze())
  if kind == "repeat" and n:
    return (lambda t: t.repeat(*[2] * n)), (lambda x: np.tile(x, [2] * n))
  return (lambda t: t.roll(1, 0) if n else t), (lambda x: np.roll(x, 1, 0) if n else x)


@drawn(shapes, st.integers(1, 4), st.data())
def test_movement(shape: tuple[int, ...], count: int, data: st.DataObject) -> None:
  a = numbers(shape)
  t = Tensor(a.copy())
  leaf = t.is_param_()
  for _ in range(count):
    ours, theirs = moved(a, data)
    t, a = ours(t), theirs(a)
    if a.size > 500:
      break
  assert t.shape == a.shape
  # The gradient of a sum of squares of moved values counts each value as often as it is there.
  (t * t).sum().backward()
  values, counts = np.unique(a, return_counts=True)
  often = dict(zip(values.tolist(), counts.tolist()))
  x = numbers(shape)
  expected = np.array([2 * v * often.get(v, 0) if v else 0.0 for v in x.ravel().tolist()]).reshape(shape)
  np.testing.assert_array_equal(leaf.grad.numpy(), expected)
  np.testing.assert_array_equal(t.numpy(), a)


@st.composite
def indices(draw: Any, shape: tuple[int, ...], tensors: bool = True) -> tuple[Any, ...]:
  out: list[Any] = []
  arrays = draw(st.sampled_from([(), (2,), (2, 1)])) if tensors else None
  for i in range(draw(st.integers(0, len(shape)))):
    size = shape[i]
    kind = draw(st.sampled_from(["int", "slice", "slice", "none", "array"]))
    if kind == "none":
      out.append(None)
    if kind == "array" and arrays is not None:
      flat = draw(st.lists(st.integers(-size, size - 1), min_size=int(np.prod(arrays)), max_size=int(np.prod(arrays))))
      out.append(np.array(flat, np.int32).reshape(arrays))
    elif kind == "int":
      out.append(draw(st.integers(-size, size - 1)))
    else:
      bound = st.one_of(st.none(), st.integers(-size - 1, size + 1))
      out.append(slice(draw(bound), draw(bound), draw(st.sampled_from([None, 1, 2, -1, -2]))))
  if draw(st.booleans()):
    out.append(...)
  return tuple(out)


def ints_first(a: np.ndarray, index: tuple[Any, ...]) -> tuple[np.ndarray, tuple[Any, ...]]:
  """As PyTorch has it, integers are no arrays: they choose before arrays do, and do not count among them."""
  first = [i if isinstance(i, int) or i is ... else slice(None) for i in index if i is not None]
  return a[tuple(first) if any(i is ... for i in index) else (*first, ...)], tuple(i for i in index if not isinstance(i, int))


def shown(index: tuple[Any, ...]) -> tuple[Any, ...]:
  return tuple(Tensor(i) if isinstance(i, np.ndarray) else i for i in index)


@drawn(shapes, st.data())
def test_getitem(shape: tuple[int, ...], data: st.DataObject) -> None:
  a, index = numbers(shape), data.draw(indices(shape))
  view, rest = ints_first(a, index)
  want = view[rest]
  got = Tensor(a.copy())[shown(index)]
  assert got.shape == want.shape
  np.testing.assert_array_equal(got.numpy(), want)


@drawn(shapes, st.data())
def test_setitem(shape: tuple[int, ...], data: st.DataObject) -> None:
  a, index = numbers(shape), data.draw(indices(shape))
  t = Tensor(a.copy())
  view, rest = ints_first(a, index)
  target = view[rest]
  if data.draw(st.booleans()):
    value: Any = 77.0
  else:
    value = np.full(target.shape, 55.0, np.float32)  # one value: which of several writes to an element wins is open
  view[rest] = value
  t[shown(index)] = value if isinstance(value, float) else Tensor(value)
  np.testing.assert_array_equal(t.numpy(), a)


@drawn(shapes, st.sampled_from(["sum", "max", "min", "prod", "mean", "any", "all"]), st.booleans(), st.data())
def test_reductions(shape: tuple[int, ...], name: str, keepdim: bool, data: st.DataObject) -> None:
  a = numbers(shape)
  if name == "prod":
    a = np.where(a % 3 == 0, np.float32(-2), np.float32(1))  # finite
  axes = data.draw(st.one_of(st.none(), st.sets(st.integers(-len(shape), len(shape) - 1).map(lambda i: i % len(shape)), min_size=1).map(tuple)))
  want = getattr(np, name)(a.astype(np.float64), axis=axes, keepdims=keepdim)
  got = getattr(Tensor(a.copy()), name)(axes, keepdim=keepdim)
  assert got.shape == want.shape
  np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-5 * max(1.0, float(np.abs(a).max())))  # 256 terms of float32, each rounded once


@drawn(st.integers(1, 3), st.data())
def test_einsum(count: int, data: st.DataObject) -> None:
  sizes = {"a": 2, "b": 3, "c": 1, "d": 2}
  terms = ["".join(data.draw(st.permutations("abcd"))[: data.draw(st.integers(1, 3))]) for _ in range(count)]
  used = sorted(set("".join(terms)))
  out = "".join(x for x in data.draw(st.permutations(used)) if data.draw(st.booleans()))
  formula = ",".join(terms) + "->" + out
  arrays = [numbers(tuple(sizes[x] for x in term)) for term in terms]
  want = np.einsum(formula, *[a.astype(np.float64) for a in arrays])
  got = Tensor.einsum(formula, *[Tensor(a) for a in arrays])
  assert got.shape == want.shape
  np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-4, err_msg=formula)


def convolved(x: np.ndarray, w: np.ndarray, groups: int, stride: tuple[int, ...], dilation: tuple[int, ...], padding: tuple[int, ...]) -> np.ndarray:
  """By the definition."""
  x = np.pad(x, [(0, 0), (0, 0)] + [(p, p) for p in padding])
  size = [(x.shape[2 + i] - dilation[i] * (w.shape[2 + i] - 1) - 1) // stride[i] + 1 for i in range(len(stride))]
  out = np.zeros((x.shape[0], w.shape[0], *size))
  per_in, per_out = w.shape[1], w.shape[0] // groups
  for at in np.ndindex(*w.shape[2:]):
    window = x[(slice(None), slice(None)) + tuple(slice(k * d, k * d + (n - 1) * s + 1, s) for k, d, n, s in zip(at, dilation, size, stride))]
    for o in range(w.shape[0]):
      g = o // per_out
      out[:, o] += np.einsum("bc...,c->b...", window[:, g * per_in : (g + 1) * per_in], w[(o, slice(None)) + at])
  return out


@drawn(st.integers(1, 2), st.sampled_from([1, 2]), st.data())
def test_convolution(axes: int, groups: int, data: st.DataObject) -> None:
  def per_axis(low: int, high: int) -> tuple[int, ...]:
    return tuple(data.draw(st.integers(low, high)) for _ in range(axes))

  kernel, stride, dilation, padding = per_axis(1, 3), per_axis(1, 2), per_axis(1, 2), per_axis(0, 2)
  size = tuple(d * (k - 1) + 1 + extra for k, d, extra in zip(kernel, dilation, per_axis(0, 2)))
  x, w = numbers((data.draw(st.integers(1, 2)), 2 * groups, *size)), numbers((2 * groups, 2, *kernel))
  want = convolved(x, w, groups, stride, dilation, padding)
  got = Tensor(x).conv2d(Tensor(w), groups=groups, stride=stride, dilation=dilation, padding=padding)
  assert got.shape == want.shape
  np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-6 * float(np.abs(x).max() * np.abs(w).max() * w[0].size))
