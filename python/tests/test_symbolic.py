"""Variables as numbers, sizes and bounds: each value of one gives what the number in its place gives, and one capture serves all."""

import itertools
from typing import Any

import numpy as np
import pytest

import tinygrad_cpp as tg
from tinygrad_cpp import Context, Tensor, TinyJit, Variable, dtypes, nn

V = Variable("v", 1, 6)
X = np.array([1.0, 2.5, -3.0], np.float32)

NUMBERS = {  # of a number, or a Variable that has its value
  "tensor": lambda v: Tensor(v), "sum": lambda v: Tensor(v + 1) + 1, "times": lambda v: Tensor(X) * v, "reflected": lambda v: v * Tensor(X),
  "minus": lambda v: v - Tensor(X), "negative": lambda v: Tensor(X) + -v, "quotient": lambda v: v / Tensor(X), "power": lambda v: Tensor(X) ** v,
  "integers": lambda v: Tensor([5, 6, 7]) // v, "less": lambda v: Tensor(X) < v, "equal": lambda v: Tensor([1, 2, 3]) == v,
  "maximum": lambda v: Tensor(X).maximum(v), "where": lambda v: (Tensor(X) > 0).where(v, v * 2), "clamp": lambda v: Tensor(X).clamp(-v, v),
  "full": lambda v: Tensor.full((2, 3), v), "narrow": lambda v: Tensor([1, 2], dtype=dtypes.int8) * v, "double": lambda v: Tensor([1.5], dtype=dtypes.double) + v,
  "of a size": lambda v: Tensor.full((v, 4), 2.0).sum(), "ones": lambda v: Tensor.ones(2, v).sum(1), "arange": lambda v: Tensor.arange(v).sum(),
  "arange from": lambda v: Tensor.arange(v, v + 4), "by two": lambda v: Tensor.arange(0, v * 2, 2).sum(), "down": lambda v: Tensor.arange(v, 0, -1).sum(),
  "triu": lambda v: Tensor.ones(5, 5).triu(v + 1), "tril": lambda v: Tensor.ones(5, 5).tril(v - 3), "assigned": lambda v: Tensor([0, 0]).assign(Tensor.full((2,), v)),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name: str) -> None:
  f, jitted = NUMBERS[name], TinyJit(lambda v: NUMBERS[name](v) + 0)
  for n in range(1, 7):
    expected, found = f(n), f(V.bind(n))
    if name not in ("tensor", "sum"):  # a Python number more than the variable there
      assert found.dtype == expected.dtype and found.shape == expected.shape
    assert found.tolist() == expected.tolist()
    assert jitted(V.bind(n)).tolist() == expected.tolist()
  assert jitted.captured


def test_comparisons() -> None:
  b = V.bind(3)
  assert (b > 0) is True and (b >= 1) is True and (b < 1) is False and (b > 6) is False and (7 > b) is True and (b + 1 <= 7) is True
  for n in range(1, 7):
    v = V.bind(n)
    assert [(v > 3).item(), (v >= 3).item(), (v < 3).item(), (v <= 3).item(), (3 < v + 1).item()] == [n > 3, n >= 3, n < 3, n <= 3, 3 < n + 1]
  with pytest.raises(TypeError):
    bool(b > 3)
  assert (-b).val == -3 and (-b).vmin == -6


def test_dtypes_of_variables() -> None:
  assert Tensor(V.bind(2)).dtype is dtypes.int32 and Tensor(Variable("w", 0, 9, dtypes.int64).bind(2)).dtype is dtypes.int64
  assert Tensor(V.bind(2), dtype=dtypes.half).dtype is dtypes.half and Tensor(V.bind(2), device="INTERP").device == "INTERP"
  with pytest.raises(tg.DTypeError, match="integer dtype"):
    Variable("w", 0, 9, dtypes.float32)


def test_without_a_value() -> None:
  x = Tensor.ones(V, 4)
  assert x.shape == (V, 4) and Tensor.ones(6)[:V].shape == (V,) and (x + 1).reshape(4, V).shape == (4, V) and x.max_shape == (6, 4)
  for compute in (lambda: x.realize(), lambda: Tensor(V).item(), lambda: (Tensor(X) * V).tolist(), lambda: x.numel(), lambda: x.size(0)):
    with pytest.raises(tg.ValueError, match="no value"):
      compute()


N = Variable("n", 5, 12)
WINDOWS = [{}, {"padding": 1}, {"stride": 2}, {"stride": 3, "padding": 1}, {"dilation": 2}, {"stride": (4, 1), "dilation": (2, 1)}, {"stride": 5}]
POOLS = [{}, {"kernel_size": 3, "stride": 1}, {"kernel_size": 3, "stride": 2, "padding": 1}, {"kernel_size": 3, "ceil_mode": True},
         {"kernel_size": 2, "stride": 3}, {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}]


def same_for_all_sizes(f: Any, channels: tuple[int, ...]) -> None:
  """f of a part of a larger tensor, by a Variable, gives what it gives for a tensor of that size, and the same gradient."""
  rng = np.random.default_rng(3)
  for n in (5, 8, 12):
    data = rng.standard_normal((*channels, 12, 7)).astype(np.float32)
    x, part = Tensor(data).realize(), Tensor(data[..., :n, :].copy()).realize()
    y, expected = f(x[..., :N.bind(n), :]), f(part)
    assert [int(s) for s in y.shape] == list(expected.shape)
    whole = y.pad_to(*(20 if i >= y.ndim - 2 else None for i in range(y.ndim))).numpy()
    np.testing.assert_allclose(whole[tuple(slice(s) for s in expected.shape)], expected.numpy(), rtol=1e-4, atol=1e-4)
    assert abs(whole).sum() == pytest.approx(abs(expected.numpy()).sum(), rel=1e-4)
    (g,), (h,) = (y * y).sum().gradient(x), (expected * expected).sum().gradient(part)
    np.testing.assert_allclose(g.numpy()[..., :n, :], h.numpy(), rtol=1e-3, atol=1e-3)
    assert not g.numpy()[..., n:, :].any()


@pytest.mark.parametrize("options", WINDOWS, ids=str)
def test_convolution_over_a_symbolic_axis(options: dict[str, Any]) -> None:
  w = Tensor(np.random.default_rng(9).standard_normal((4, 3, 3, 2)).astype(np.float32)).realize()
  same_for_all_sizes(lambda x: x.conv2d(w, **options), (2, 3))


@pytest.mark.parametrize("options", POOLS, ids=str)
@pytest.mark.parametrize("pool", ["max_pool2d", "avg_pool2d"])
def test_pooling_over_a_symbolic_axis(pool: str, options: dict[str, Any]) -> None:
  same_for_all_sizes(lambda x: getattr(x, pool)(**options), (2,))


def test_one_capture_for_all_sizes() -> None:
  w = Tensor(np.random.default_rng(9).standard_normal((4, 3, 3, 3)).astype(np.float32)).realize()
  x = Tensor(np.random.default_rng(1).standard_normal((1, 3, 12, 12)).astype(np.float32)).realize()
  run = TinyJit(lambda x, n: x[:, :, :n].conv2d(w, padding=1).relu().max_pool2d(2).sum())
  for n in itertools.chain(range(5, 13), (6, 11)):
    expected = x[:, :, :n].conv2d(w, padding=1).relu().max_pool2d(2).sum().item()
    assert run(x, N.bind(n)).item() == pytest.approx(expected, rel=1e-4)
  assert run.captured


def test_gradients_of_products_of_softmaxes():
  data = np.random.default_rng(0).normal(size=(4, 3))
  results = []
  for n in (3, Variable("n", 2, 4).bind(3)):
    x = Tensor(data)
    v = x[1:n].softmax(-1)
    results.append(((v @ v.transpose(0, 1)) ** 2).sum().gradient(x)[0].numpy())
  np.testing.assert_allclose(results[0], results[1], rtol=1e-12, atol=1e-15)


def test_what_data_bound_is_scheduled_with_a_guess():
  """How often a loop runs that masks bound is not known before; kernels are told so with the middle."""
  data = np.random.default_rng(0).normal(size=(3, 3))
  mask = np.array([[True, False, True], [True, True, False], [False, True, True]])
  v = Tensor(data).logcumsumexp(1).masked_select(Tensor(mask))
  expected = np.log(np.cumsum(np.exp(data), 1))[mask]
  with Context(DEBUG=2):
    assert (v @ v).item() == pytest.approx(float(expected @ expected))


@pytest.mark.parametrize("noopt", [0, 1])
@pytest.mark.parametrize("n", [5, 6, 12])
def test_sums_in_a_loop_over_what_is_joined(noopt: int, n: int) -> None:
  """The sums in the gradient stand in loops of the softmax that their indices do not name: they have loops of their own."""
  data = np.random.default_rng(0).normal(size=12)

  def loss(x):
    v = x[1:n]
    return (v.reshape(1, n - 1).expand(3, n - 1).sum(0).softmax(0).cumsum(0).square() * 3).sum()

  def exact(x: np.ndarray) -> float:
    e = np.exp(3 * x[1:n])
    return float((np.cumsum(e / e.sum()) ** 2 * 3).sum())

  step = 1e-6
  differences = [(exact(data + step * row) - exact(data - step * row)) / (2 * step) for row in np.eye(12)]
  with Context(NOOPT=noopt):
    x = Tensor(data)
    np.testing.assert_allclose(loss(x).gradient(x)[0].numpy(), differences, rtol=1e-6, atol=1e-8)
    size = Variable("n", 2, 12).bind(n)
    v = x[1:size]
    o = v.unsqueeze(0).expand(3, v.shape[0]).sum(0).softmax(0).cumsum(0)
    np.testing.assert_allclose((o * o * 3).sum().gradient(x)[0].numpy(), differences, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("layer", ["BatchNorm", "GroupNorm", "InstanceNorm", "LayerNorm2d"])
@pytest.mark.parametrize("jitted", [False, True])
def test_normalizations_of_a_symbolic_batch(layer: str, jitted: bool) -> None:
  """Training: values, gradients and running statistics are those of the batch alone."""
  data = np.random.default_rng(6).standard_normal((12, 4, 3, 5)).astype(np.float32)
  make = {"BatchNorm": lambda: nn.BatchNorm(4), "GroupNorm": lambda: nn.GroupNorm(2, 4), "InstanceNorm": lambda: nn.InstanceNorm(4),
          "LayerNorm2d": lambda: nn.LayerNorm2d(4)}[layer]
  mine, theirs = make(), make()
  x = Tensor(data).realize()

  def step(x: Tensor, n: Variable) -> tuple[Tensor, Tensor, Tensor]:
    y = mine(x[:n])
    state = [t for name, t in nn.state.get_state_dict(mine).items() if name.startswith(("running", "num"))]
    Tensor.realize(total := (y * y * y).sum(), gradient := total.gradient(x)[0], first := y[0], *state)
    return total, gradient, first

  run = TinyJit(step) if jitted else step
  with Context(TRAINING=1):
    for n in (5, 12, 7, 9):
      total, gradient, first = run(x, N.bind(n))
      part = Tensor(data[:n].copy()).realize()
      y = theirs(part)
      assert total.item() == pytest.approx((y * y * y).sum().item(), rel=1e-4, abs=1e-2)
      np.testing.assert_allclose(first.numpy(), y[0].numpy(), rtol=1e-4, atol=1e-5)
      np.testing.assert_allclose(gradient.numpy()[:n], (y * y * y).sum().gradient(part)[0].numpy(), rtol=1e-3, atol=1e-3)
      assert not gradient.numpy()[n:].any()
      if layer == "BatchNorm":
        for name in ("running_mean", "running_var", "num_batches_tracked"):
          np.testing.assert_allclose(getattr(mine, name).numpy(), getattr(theirs, name).numpy(), rtol=1e-5, atol=1e-6)


PLACE, COUNT = Variable("place", 0, 8), Variable("count", 1, 4)


@pytest.mark.parametrize("write", [
  lambda c, x, p, n: c.__setitem__(slice(p, p + n), x[:n]), lambda c, x, p, n: c[p:p + n].assign(x[:n]), lambda c, x, p, n: c[p:p + n].assign(2),
  lambda c, x, p, n: c.assign(c.scatter(0, Tensor.arange(12).reshape(12, 1)[:n], 2))])
def test_writes_of_any_size(write: Any) -> None:
  x = np.arange(1, 9, dtype=np.float32).reshape(4, 2)
  eager, jitted = Tensor.zeros(12, 2).contiguous().realize(), Tensor.zeros(12, 2).contiguous().realize()

  def run(rows: Tensor, p: Variable, n: Variable) -> Tensor:
    write(jitted, rows, p, n)
    return jitted[:p + n].sum().realize()

  step = TinyJit(run)
  for p, n in ((0, 2), (2, 3), (5, 1), (6, 4), (1, 2)):
    rows = Tensor(x + p).realize()
    write(eager, rows, PLACE.bind(p), COUNT.bind(n))
    got = step(rows, PLACE.bind(p), COUNT.bind(n)).item()
    np.testing.assert_array_equal(jitted.numpy(), eager.numpy())
    assert got == eager.numpy()[:p + n].sum() and eager.numpy().any()
  assert step.captured


def test_conditions_on_variables_keep_reads_inside_of_memory():
  x = Tensor([[7.0]], device="INTERP").realize().pad(((2, 0), (1, 0)))  # this device says where a kernel reads outside
  for at in range(3):
    v = Variable("v", 0, 2).bind(at)
    assert x.shrink(((v, v + 1), (0, 2))).tolist() == [[0, 7.0 if at == 2 else 0]]
