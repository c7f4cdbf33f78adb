"""torch.compile(backend="tinygrad_cpp") beside eager PyTorch: shapes, strides, writes, random numbers, what falls back, and mistakes."""

from __future__ import annotations

import gc
import warnings
from typing import Any, Callable

import pytest

torch = pytest.importorskip("torch")

import tinygrad_cpp as tg
from tinygrad_cpp.frontend import torch as bridge
from torch_support import fresh  # used by every test


def compiled(f: Callable[..., Any], **options: Any) -> Callable[..., Any]:
  """All of it here, or an error."""
  out: Callable[..., Any] = torch.compile(f, backend="tinygrad_cpp", fullgraph=True, options={"fallback": False, **options.pop("options", {})}, **options)
  return out


def close(got: Any, expected: Any) -> None:
  torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)


def same(f: Callable[..., Any], *args: Any, **options: Any) -> None:
  """Values, dtypes and strides in three calls, of which the last ones are replays."""
  g = compiled(f, **options)
  expected = f(*args)
  for _ in range(3):
    got = g(*args)
    for a, b in zip(got if isinstance(got, tuple) else (got,), expected if isinstance(expected, tuple) else (expected,), strict=True):
      if isinstance(b, torch.Tensor):
        close(a, b)
        assert a.stride() == b.stride() or b.numel() < 2, (a.stride(), b.stride())
      else:
        assert a == b


LAYOUTS = {
  "contiguous": lambda: torch.randn(4, 6),
  "transposed": lambda: torch.randn(6, 4).t(),
  "rows": lambda: torch.randn(9, 6)[1::2],
  "columns": lambda: torch.randn(4, 13)[:, 1::2],
  "offset": lambda: torch.randn(5, 6)[1:],
  "expanded": lambda: torch.randn(1, 6).expand(4, 6),
  "overlapping": lambda: torch.randn(20).as_strided((4, 6), (2, 1)),
  "empty": lambda: torch.randn(0, 6),
  "one": lambda: torch.randn(1, 1),
  "channels_last": lambda: torch.randn(2, 4, 3, 5).to(memory_format=torch.channels_last),
  "inner": lambda: torch.randn(2, 3, 4, 5)[:, 1, :, 2],
  "scalar": lambda: torch.randn(()),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_arguments(layout: str) -> None:
  x = LAYOUTS[layout]()
  same(lambda x: x * 2 + 1, x)
  torch.testing.assert_close(bridge.to_torch(bridge.from_torch(x)), x)


SHARED = {**LAYOUTS, "first columns": lambda: torch.randn(4, 6)[:, :2], "every other row": lambda: torch.randn(8, 6)[::2],
          "channels": lambda: torch.randn(2, 4, 3, 5)[:, :2]}


@pytest.mark.parametrize("layout", [n for n in SHARED if n not in ("expanded", "overlapping", "empty", "inner", "columns")])
def test_what_is_written_is_seen_on_both_sides(layout: str) -> None:
  x = SHARED[layout]()
  mine = bridge.from_torch(x)
  before = x.clone()
  mine.assign(mine + 1).realize()
  torch.testing.assert_close(x, before + 1)
  x.fill_(5)
  torch.testing.assert_close(bridge.to_torch(mine), torch.full_like(before, 5))


DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64,
          torch.float8_e4m3fn, torch.float8_e5m2]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes_are_shared_and_computed(dtype: torch.dtype) -> None:
  x = torch.tensor([0, 1, 2, 3]).to(dtype)
  back = bridge.to_torch(bridge.from_torch(x))
  assert back.dtype == dtype and back.data_ptr() == x.data_ptr() and torch.equal(back.float(), x.float())
  assert bridge.from_torch(x).dtype is tg.Tensor(x).dtype
  same(lambda x: (x.to(torch.float32) + 1).to(dtype), x) if dtype.itemsize > 1 or not dtype.is_floating_point else None


def test_memory_is_shared_both_ways() -> None:
  x = torch.zeros(3, 4).t()
  mine = bridge.from_torch(x)
  mine.assign(mine + 1).realize()
  assert x.sum() == 12
  x[1, 2] = 5
  assert mine.tolist()[1][2] == 5
  out = bridge.to_torch(tg.Tensor([1.0, 2.0]) * 2)
  assert bridge.from_torch(out).tolist() == [2, 4]


def test_memory_lives_as_long_as_it_is_used() -> None:
  x = torch.arange(1000.0)
  mine = bridge.from_torch(x)
  del x
  gc.collect()
  assert mine.sum().item() == 499500
  out = bridge.to_torch(mine + 0)
  del mine
  gc.collect()
  assert out.sum() == 499500


def test_results_outlive_later_calls() -> None:
  g = compiled(lambda x: x * 2)
  outs = [g(torch.full((1000,), float(i))) for i in range(6)]
  for i, out in enumerate(outs):
    assert (out == 2 * i).all()


def test_outputs_that_are_arguments_or_their_views() -> None:
  x = torch.randn(3, 4)
  same(lambda x: (x, x.t(), x[1:], x.reshape(2, 6) + 0, x.detach()), x)
  g = compiled(lambda x: (x.t(), x * 1))
  for _ in range(3):
    view, copy = g(x)
    assert view.data_ptr() == x.data_ptr() and copy.data_ptr() != x.data_ptr()


def test_clones_have_memory_of_their_own() -> None:
  x = torch.randn(8)
  g = compiled(lambda x: (x.clone(), x.to(torch.float32, copy=True)))
  for _ in range(3):
    for out in g(x):
      assert out.data_ptr() != x.data_ptr()
      close(out, x)


def test_outputs_that_are_views_of_one_value() -> None:
  def f(x: Any) -> Any:
    y = x.exp()
    return y, y.t(), y[1], y.view(-1)[2:5]
  same(f, torch.randn(3, 4))
  g = compiled(f)
  y, t, *_ = g(torch.zeros(3, 4))
  y[0, 1] = 7
  assert t[1, 0] == 7


def test_gradients_through_views_and_several_outputs() -> None:
  def f(x: Any, w: Any) -> Any:
    y = (x @ w).relu()
    return y.sum(), y.t().contiguous()
  x, w = torch.randn(4, 6, requires_grad=True), torch.randn(6, 5, requires_grad=True)
  g = compiled(f)
  for _ in range(3):
    a, b = g(x, w)
    got = torch.autograd.grad(a + (b * torch.arange(4.0)).sum(), (x, w))
    a, b = f(x, w)
    close(got, torch.autograd.grad(a + (b * torch.arange(4.0)).sum(), (x, w)))


def test_gradients_that_are_none() -> None:
  w = torch.randn(3, requires_grad=True)
  unused = torch.randn(3, requires_grad=True)
  g = compiled(lambda x, w, unused: (x * w, x + 1))
  y, z = g(torch.ones(3), w, unused)
  assert not z.requires_grad
  y.sum().backward()
  assert unused.grad is None and torch.equal(w.grad, torch.ones(3))


def test_none_and_numbers_among_outputs() -> None:
  same(lambda x: (x + 1, None, 3, x.shape[0]), torch.randn(2))


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "rows", "columns", "channels_last"])
def test_writes_into_arguments(layout: str) -> None:
  def f(x: Any, y: Any) -> Any:
    before = x * 3
    x.mul_(2).add_(y)
    y.copy_(x)
    return before + x
  g = compiled(f)
  for _ in range(3):
    x, y = LAYOUTS[layout](), LAYOUTS[layout]()
    a, b = x.clone(), y.clone()
    out, expected = g(x, y), f(a, b)
    close((out, x, y), (expected, a, b))


def test_swap_by_writes() -> None:
  def f(x: Any, y: Any) -> None:
    t = x.clone()
    x.copy_(y)
    y.copy_(t)
  g = compiled(f)
  x, y = torch.zeros(4), torch.ones(4)
  for i in range(1, 5):
    g(x, y)
    assert (x == i % 2).all() and (y == 1 - i % 2).all()


def test_a_write_is_seen_by_autograd() -> None:
  x = torch.ones(3)
  w = torch.ones(3, requires_grad=True)
  y = w * x
  compiled(lambda x: x.add_(1))(x)
  with pytest.raises(RuntimeError, match="modified by an inplace operation"):
    y.sum().backward()


def test_an_optimizer_step() -> None:
  def train(step_of: Callable[..., Any]) -> list[Any]:
    torch.manual_seed(0)
    p = [torch.nn.Parameter(torch.randn(4, 4)), torch.nn.Parameter(torch.randn(4))]
    opt = torch.optim.AdamW(p, lr=0.1, capturable=False, foreach=False)
    step = step_of(opt.step)
    for _ in range(4):
      opt.zero_grad()
      (p[0] @ p[1]).square().sum().backward()
      step()
    return [x.detach() for x in p]
  got = train(lambda step: torch.compile(step, backend="tinygrad_cpp"))
  close(got, train(lambda step: step))


def test_batch_normalization_writes_its_statistics() -> None:
  a, b = torch.nn.BatchNorm1d(3), torch.nn.BatchNorm1d(3)
  g = compiled(a)
  for _ in range(3):
    x = torch.randn(5, 3)
    close(g(x), b(x))
  close(dict(a.state_dict()), dict(b.state_dict()))
  assert a.num_batches_tracked == 3


def test_sizes_that_change() -> None:
  f = lambda x: (x.softmax(-1) * x.shape[0]).sum(0)
  for dynamic in (True, None, False):
    torch._dynamo.reset()
    g = compiled(f, dynamic=dynamic)
    for n in (2, 3, 5, 3, 2, 7):
      x = torch.randn(n, 4)
      close(g(x), f(x))
  assert not bridge.fallback_counts()


def test_sizes_without_end_are_not_compiled_without_end() -> None:
  g = torch.compile(lambda x: x.exp().sum(), backend="tinygrad_cpp", dynamic=True, options={"sizes": 3})
  with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for n in range(2, 12):
      x = torch.randn(n)
      close(g(x), x.exp().sum())
  assert bridge.fallback_counts() == {"aten.exp.default": 7, "aten.sum.default": 7}
  assert [str(w.message) for w in caught if issubclass(w.category, bridge.FallbackWarning)][0].startswith(
    "tinygrad_cpp: aten.exp.default runs in eager PyTorch: its graph has been compiled for 3 forms")


def test_gradients_of_sizes_that_change() -> None:
  w = torch.randn(4, 3, requires_grad=True)
  f = lambda x, w: (x @ w).tanh().mean(0).sum()
  g = compiled(f, dynamic=True)
  for n in (2, 6, 4, 6):
    x = torch.randn(n, 4)
    got = torch.autograd.grad(g(x, w), w)
    close(got, torch.autograd.grad(f(x, w), w))


def test_numbers_as_arguments() -> None:
  f = lambda x, n, a: x * n + a
  g = compiled(f)
  for n, a in ((2, 0.5), (3, 0.5), (3, 1.5), (4, 2.5)):
    close(g(torch.ones(3), n, a), f(torch.ones(3), n, a))


def test_random_numbers_follow_the_seed() -> None:
  g = compiled(lambda x: torch.rand_like(x))
  x = torch.empty(20000)
  torch.manual_seed(5)
  a, b = g(x), g(x)
  torch.manual_seed(5)
  c = g(x)
  assert torch.equal(a, c) and not torch.equal(a, b)
  assert 0 <= a.min() and a.max() < 1 and abs(a.mean() - 0.5) < 0.01 and abs(a.var() - 1 / 12) < 0.003
  n = compiled(lambda x: torch.randn_like(x))(x)
  assert abs(n.mean()) < 0.03 and abs(n.std() - 1) < 0.03


def test_our_own_random_numbers_are_left_alone() -> None:
  g = compiled(lambda x: torch.rand_like(x))
  tg.Tensor.manual_seed(3)
  expected = tg.Tensor.rand(4).tolist()
  tg.Tensor.manual_seed(3)
  g(torch.empty(4))
  assert tg.Tensor.rand(4).tolist() == expected


def test_dropout_drops_the_same_in_gradients() -> None:
  x = torch.ones(20000, requires_grad=True)
  g = compiled(lambda x: torch.nn.functional.dropout(x, 0.25))
  for _ in range(3):
    y = g(x)
    (grad,) = torch.autograd.grad(y.sum(), x)
    close(grad, y.detach())
    assert abs((y == 0).float().mean() - 0.25) < 0.02
    close(y[y != 0], torch.full_like(y[y != 0], 4 / 3))


def test_checkpoints_draw_the_same_again() -> None:
  from torch.utils.checkpoint import checkpoint
  def f(x: Any) -> Any:
    return checkpoint(lambda x: torch.nn.functional.dropout(x.sin(), 0.5), x, use_reentrant=False)
  x = torch.ones(2000, requires_grad=True)
  g = torch.compile(f, backend="tinygrad_cpp")
  for _ in range(3):
    y = g(x)
    (grad,) = torch.autograd.grad(y.sum(), x)
    assert torch.equal(grad != 0, y != 0)


def test_an_operator_that_is_not_ours_runs_in_pytorch_alone() -> None:
  f = lambda x: torch.linalg.eigh(x.exp() + x.exp().t())[0].sin()
  g = torch.compile(f, backend="tinygrad_cpp")
  x = torch.randn(4, 4)
  with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(3):
      close(g(x), f(x))
  counts = bridge.fallback_counts()
  assert len(counts) == 1 and list(counts.values()) == [3] and "eigh" in next(iter(counts))
  assert len([w for w in caught if issubclass(w.category, bridge.FallbackWarning)]) == 1


def test_shapes_that_depend_on_values() -> None:
  with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
    f = lambda x: x.nonzero() * 2 + x.sum().to(torch.int64).item()
    g = torch.compile(f, backend="tinygrad_cpp", fullgraph=True)
    for x in (torch.tensor([0, 1, 2]), torch.tensor([0, 1, 0]), torch.tensor([3, 1, 2])):
      assert torch.equal(g(x), f(x))
  assert bridge.fallback_counts()["aten.nonzero.default"] == 3


def test_complex_numbers_run_in_pytorch() -> None:
  f = lambda x: torch.fft.fft(x * 2).abs() + 1
  g = torch.compile(f, backend="tinygrad_cpp")
  x = torch.randn(8)
  close(g(x), f(x))
  assert bridge.fallback_counts()


def test_custom_operators_and_effects() -> None:
  seen = []

  @torch.library.custom_op("tg_test::note", mutates_args=())
  def note(x: torch.Tensor) -> torch.Tensor:
    seen.append(float(x.sum()))
    return x + 1

  note.register_fake(lambda x: torch.empty_like(x))
  g = torch.compile(lambda x: note(x * 2) * 3, backend="tinygrad_cpp")
  for i in range(3):
    close(g(torch.full((2,), float(i))), torch.full((2,), 3 * (2.0 * i + 1)))
  assert seen == [0, 4, 8]


def test_autocast() -> None:
  f = lambda x, w: x @ w
  def g(x: Any, w: Any) -> Any:
    with torch.autocast("cpu", torch.bfloat16):
      return f(x, w)
  x, w = torch.randn(4, 8), torch.randn(8, 4)
  out = compiled(g)(x, w)
  assert out.dtype == torch.bfloat16
  torch.testing.assert_close(out.float(), x @ w, rtol=0.05, atol=0.05)


def test_threads() -> None:
  import concurrent.futures
  g = compiled(lambda x: (x * 2).sum())
  g(torch.ones(10))
  with concurrent.futures.ThreadPoolExecutor(4) as pool:
    assert list(pool.map(lambda i: float(g(torch.full((10,), float(i)))), range(40))) == [20.0 * i for i in range(40)]


def test_mistakes() -> None:
  f = lambda x: x + 1
  x = torch.ones(2)
  for options, message in (({"sixes": 3}, "no option is named 'sixes'"), ({"sizes": 0}, "'sizes' is a positive integer"), ({"fallback": 1}, "True or False")):
    with pytest.raises(Exception, match=message):
      torch._dynamo.reset()
      torch.compile(f, backend="tinygrad_cpp", options=options)(x)
  with pytest.raises(Exception, match="the backend has no mode"):
    torch.compile(f, backend=bridge.backend, mode="max-autotune")(x)
  with pytest.raises(Exception, match="fallback is off.*linalg"):
    torch._dynamo.reset()
    compiled(lambda x: torch.linalg.inv(x))(torch.eye(2))
  with pytest.raises(TypeError, match="expects a torch.Tensor"):
    bridge.from_torch([1.0])
  with pytest.raises(TypeError, match="expects a Tensor"):
    bridge.to_torch(x)
  with pytest.raises(TypeError, match="complex64"):
    bridge.from_torch(torch.ones(2, dtype=torch.complex64))
  with pytest.raises(tg.DeviceError, match="meta"):
    bridge.from_torch(torch.ones(2, device="meta"))


def test_the_backend_is_registered() -> None:
  assert "tinygrad_cpp" in torch._dynamo.list_backends()
