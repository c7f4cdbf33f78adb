"""Axes of size 0, and memory that nothing was written to: values and gradients are PyTorch's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinygrad_cpp as tg
from tinygrad_cpp import Context, Tensor, TinyJit, dtypes, nn

torch = pytest.importorskip("torch", reason="PyTorch is not installed: sizes of 0 were not compared with it")

SHAPES = [(0,), (0, 3), (3, 0), (2, 0, 4), (0, 0)]


def inputs(shapes: tuple[tuple[int, ...], ...]) -> list[np.ndarray]:
  rng = np.random.default_rng(5)
  return [rng.uniform(0.5, 2, s).astype(np.float32) for s in shapes]


def compare(ours: Callable[..., Any], theirs: Callable[..., Any], *shapes: tuple[int, ...]) -> None:
  """The value, and the gradients of all inputs of the sum of the value weighted by something."""
  arrays = inputs(shapes)
  xs = [Tensor(a).contiguous() for a in arrays]
  ts = [torch.tensor(a, requires_grad=True) for a in arrays]
  y, t = ours(*xs), theirs(*ts)
  assert y.shape == tuple(t.shape), (y.shape, tuple(t.shape))
  np.testing.assert_allclose(y.numpy(), t.detach().numpy(), rtol=1e-5, atol=1e-6)
  if not t.requires_grad:
    return
  weights = np.arange(1, t.numel() + 1, dtype=np.float32).reshape(tuple(t.shape))
  (t * torch.tensor(weights)).sum().backward()
  grads = (y * Tensor(weights)).sum().gradient(*xs)
  for x, g, want in zip(xs, grads, ts, strict=True):
    assert g.shape == x.shape
    np.testing.assert_allclose(g.numpy(), np.zeros(x.shape) if want.grad is None else want.grad.numpy(), rtol=1e-4, atol=1e-5)


REDUCES: list[tuple[str, Callable[..., Any], Callable[..., Any]]] = [
  ("sum", lambda x, d, k: x.sum(d, keepdim=k), lambda x, d, k: x.sum(d, keepdim=k)),
  ("prod", lambda x, d, k: x.prod(d, keepdim=k), lambda x, d, k: x.prod(d, keepdim=k)),
  ("mean", lambda x, d, k: x.mean(d, keepdim=k), lambda x, d, k: x.mean(d, keepdim=k)),
  ("any", lambda x, d, k: (x > 1).any(d, keepdim=k), lambda x, d, k: (x > 1).any(d, keepdim=k)),
  ("all", lambda x, d, k: (x > 1).all(d, keepdim=k), lambda x, d, k: (x > 1).all(d, keepdim=k)),
  ("logsumexp", lambda x, d, k: x.logsumexp(d, keepdim=k), lambda x, d, k: torch.logsumexp(x, d, keepdim=k)),
  ("var", lambda x, d, k: x.var(d, keepdim=k), lambda x, d, k: x.var(d, keepdim=k)),
  ("std", lambda x, d, k: x.std(d, keepdim=k), lambda x, d, k: x.std(d, keepdim=k)),
]


@pytest.mark.parametrize("name,ours,theirs", REDUCES, ids=[r[0] for r in REDUCES])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.filterwarnings("ignore")
def test_reduces(name: str, ours: Callable[..., Any], theirs: Callable[..., Any], shape: tuple[int, ...]) -> None:
  for axis in range(len(shape)):
    for keepdim in (False, True):
      compare(lambda x: ours(x, axis, keepdim), lambda x: theirs(x, axis, keepdim), shape)


@pytest.mark.parametrize("shape", SHAPES)
def test_reduces_of_all_axes(shape: tuple[int, ...]) -> None:
  for name in ("sum", "prod", "mean"):
    compare(lambda x: getattr(x, name)(), lambda x: getattr(x, name)(), shape)
  for dtype in (dtypes.int32, dtypes.float16, dtypes.bool):
    assert Tensor.zeros(*shape, dtype=dtype).prod().item() == 1 and Tensor.zeros(*shape, dtype=dtype).sum().item() == 0


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_extremes(name: str) -> None:
  for shape in SHAPES:
    for axis, size in enumerate(shape):
      if size:
        wanted = getattr(torch.zeros(shape), "a" + name[-6:] if name[0] != "a" else name)(axis)
        assert getattr(Tensor.zeros(*shape), name)(axis).shape == tuple(wanted.shape)
      else:
        with pytest.raises((tg.ValueError, tg.ShapeError, tg.IndexError)):
          getattr(Tensor.zeros(*shape), name)(axis).realize()
        with pytest.raises(IndexError):
          getattr(torch.zeros(shape), name)(axis)


PRODUCTS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
  ((2, 0), (0, 3)), ((0, 2), (2, 3)), ((2, 3), (3, 0)), ((0,), (0,)), ((0, 2), (2,)), ((2, 0), (0,)), ((4, 2, 0), (4, 0, 3)), ((0, 2, 3), (3, 2)),
  ((0, 2, 3), (0, 3, 2)), ((1, 2, 0), (5, 0, 3)), ((0, 0), (0, 0)),
]


@pytest.mark.parametrize("a,b", PRODUCTS)
def test_products(a: tuple[int, ...], b: tuple[int, ...]) -> None:
  compare(lambda x, y: x @ y, lambda x, y: x @ y, a, b)


def test_einsum() -> None:
  for formula, shapes in {"ij,jk->ik": ((2, 0), (0, 3)), "bij,bjk->bik": ((0, 2, 3), (0, 3, 2)), "i,j->ij": ((0,), (3,)), "ij->": ((2, 0),)}.items():
    compare(lambda *x: Tensor.einsum(formula, *x), lambda *x: torch.einsum(formula, *x), *shapes)


MOVEMENTS: list[tuple[str, tuple[tuple[int, ...], ...], Callable[..., Any], Callable[..., Any]]] = [
  ("reshape", ((2, 0, 3),), lambda x: x.reshape(0, 7), lambda x: x.reshape(0, 7)),
  ("permute", ((2, 0, 3),), lambda x: x.permute(2, 0, 1), lambda x: x.permute(2, 0, 1)),
  ("flip", ((2, 0),), lambda x: x.flip(0), lambda x: x.flip(0)),
  ("expand", ((1, 0),), lambda x: x.expand(4, 0), lambda x: x.expand(4, 0)),
  ("expand to none", ((1, 3),), lambda x: x.expand(0, 3), lambda x: x.expand(0, 3)),
  ("pad", ((0, 3),), lambda x: x.pad(((1, 2), (0, 0)), value=5), lambda x: torch.nn.functional.pad(x, (0, 0, 1, 2), value=5)),
  ("slice", ((3, 4),), lambda x: x[1:1], lambda x: x[1:1]),
  ("slice of none", ((0, 4),), lambda x: x[:, 1:3], lambda x: x[:, 1:3]),
  ("cat", ((0, 3), (2, 3)), lambda *x: x[0].cat(x[1]), lambda *x: torch.cat(x)),
  ("cat of none", ((0, 3), (0, 3)), lambda *x: x[0].cat(x[1], dim=1), lambda *x: torch.cat(x, 1)),
  ("stack", ((0, 3), (0, 3)), lambda *x: Tensor.stack(*x), lambda *x: torch.stack(x)),
  ("split", ((0, 3),), lambda x: x.split([1, 2], 1)[1], lambda x: x.split([1, 2], 1)[1]),
  ("repeat", ((0, 3),), lambda x: x.repeat(2, 2), lambda x: x.repeat(2, 2)),
  ("repeat none", ((2, 3),), lambda x: x.repeat(0, 2), lambda x: x.repeat(0, 2)),
  ("roll", ((0, 3),), lambda x: x.roll(1, 1), lambda x: x.roll(1, 1)),
  ("unsqueeze", ((0,),), lambda x: x.unsqueeze(1), lambda x: x.unsqueeze(1)),
  ("flatten", ((2, 0, 3),), lambda x: x.flatten(1), lambda x: x.flatten(1)),
  ("diagonal", ((0, 3),), lambda x: x.diagonal(), lambda x: x.diagonal()),
  ("triu", ((0, 3),), lambda x: x.triu(), lambda x: x.triu()),
  ("gather", ((0, 3),), lambda x: x.gather(1, Tensor(np.zeros((0, 2), np.int32))), lambda x: x.gather(1, torch.zeros(0, 2, dtype=torch.int64))),
  ("gather none", ((2, 3),), lambda x: x.gather(0, Tensor(np.zeros((0, 3), np.int32))), lambda x: x.gather(0, torch.zeros(0, 3, dtype=torch.int64))),
  ("index none", ((2, 3),), lambda x: x[Tensor(np.zeros(0, np.int32))], lambda x: x[torch.zeros(0, dtype=torch.int64)]),
  ("cumsum", ((0, 3),), lambda x: x.cumsum(0), lambda x: x.cumsum(0)),
  ("cumsum of others", ((0, 3),), lambda x: x.cumsum(1), lambda x: x.cumsum(1)),
  ("cumprod", ((0, 3),), lambda x: x.cumprod(0), lambda x: x.cumprod(0)),
  ("sort", ((0, 3),), lambda x: x.sort(0)[0], lambda x: x.sort(0)[0]),
  ("sort of others", ((0, 3),), lambda x: x.sort(1)[0], lambda x: x.sort(1)[0]),
  ("topk", ((3, 4),), lambda x: x.topk(0)[0], lambda x: x.topk(0)[0]),
  ("softmax", ((2, 0),), lambda x: x.softmax(), lambda x: x.softmax(-1)),
  ("softmax of none", ((0, 3),), lambda x: x.softmax(), lambda x: x.softmax(-1)),
  ("log_softmax", ((0, 3),), lambda x: x.log_softmax(), lambda x: x.log_softmax(-1)),
  ("where", ((0, 3),), lambda x: (x > 1).where(x, 0), lambda x: torch.where(x > 1, x, 0)),
  ("relu", ((0, 3),), lambda x: (x - 1).relu().exp(), lambda x: (x - 1).relu().exp()),
  ("broadcast", ((0, 3), (1, 3)), lambda x, y: x * y, lambda x, y: x * y),
  ("masked_fill", ((0, 3),), lambda x: x.masked_fill(x > 1, 2.0), lambda x: x.masked_fill(x > 1, 2.0)),
]


@pytest.mark.parametrize("name,shapes,ours,theirs", MOVEMENTS, ids=[m[0] for m in MOVEMENTS])
def test_movements_and_the_rest(name: str, shapes: tuple[tuple[int, ...], ...], ours: Callable[..., Any], theirs: Callable[..., Any]) -> None:
  compare(ours, theirs, *shapes)


def with_weights_of(ours: Any, theirs: Any) -> Callable[[Any], Any]:
  for name in ("weight", "bias"):
    if getattr(theirs, name, None) is not None:
      setattr(ours, name, Tensor(getattr(theirs, name).detach().numpy().copy()))
  return ours


LAYERS: list[tuple[str, tuple[int, ...], Callable[[], Any], Callable[[], Any]]] = [
  ("Linear", (0, 4), lambda: nn.Linear(4, 3), lambda: torch.nn.Linear(4, 3)),
  ("Conv2d", (0, 2, 5, 5), lambda: nn.Conv2d(2, 3, 3), lambda: torch.nn.Conv2d(2, 3, 3)),
  ("Conv1d", (0, 2, 5), lambda: nn.Conv1d(2, 3, 3), lambda: torch.nn.Conv1d(2, 3, 3)),
  ("LayerNorm", (0, 4), lambda: nn.LayerNorm(4), lambda: torch.nn.LayerNorm(4)),
  ("RMSNorm", (0, 4), lambda: nn.RMSNorm(4), lambda: torch.nn.RMSNorm(4, eps=1e-6)),
  ("GroupNorm", (0, 4, 3), lambda: nn.GroupNorm(2, 4), lambda: torch.nn.GroupNorm(2, 4)),
]


@pytest.mark.parametrize("name,shape,ours,theirs", LAYERS, ids=[x[0] for x in LAYERS])
@pytest.mark.filterwarnings("ignore")
def test_layers(name: str, shape: tuple[int, ...], ours: Callable[[], Any], theirs: Callable[[], Any]) -> None:
  layer, reference = ours(), theirs()
  with_weights_of(layer, reference)
  compare(layer, reference, shape)
  loss = layer(Tensor.zeros(*shape)).sum().backward()
  assert loss.item() == 0 or shape[-1] == 0
  for t in nn.state.get_parameters(layer):
    assert t.grad is None or t.grad.shape == t.shape and np.all(t.grad.numpy() == 0)


def test_embedding_pooling_and_losses() -> None:
  table = nn.Embedding(5, 3)
  assert table(Tensor(np.zeros((0,), np.int32))).shape == (0, 3) == table(Tensor(np.zeros((0,), np.int32))).numpy().shape
  assert table(Tensor(np.zeros((0,), np.int32))).sum().gradient(table.weight)[0].numpy().tolist() == [[0] * 3] * 5
  compare(lambda x: x.avg_pool2d(2), lambda x: torch.nn.functional.avg_pool2d(x, 2), (0, 2, 4, 4))
  compare(lambda x: x.max_pool2d(2), lambda x: torch.nn.functional.max_pool2d(x, 2), (0, 2, 4, 4))
  labels = np.zeros(0, np.int64)
  compare(lambda x: x.sparse_categorical_crossentropy(Tensor(labels), reduction="sum"),
          lambda x: torch.nn.functional.cross_entropy(x, torch.tensor(labels), reduction="sum"), (0, 3))
  compare(lambda x: x.binary_crossentropy_logits(Tensor.zeros(0, 3), reduction="sum"),
          lambda x: torch.nn.functional.binary_cross_entropy_with_logits(x, torch.zeros(0, 3), reduction="sum"), (0, 3))


def test_attention() -> None:
  for q, k in (((0, 2, 3, 4), (0, 2, 5, 4)), ((2, 2, 0, 4), (2, 2, 5, 4)), ((2, 2, 3, 4), (2, 2, 0, 4))):
    compare(lambda q, k, v: q.scaled_dot_product_attention(k, v), torch.nn.functional.scaled_dot_product_attention, q, k, k)


@pytest.mark.parametrize("device", ["CPU", "INTERP", "NULL"])
def test_memory_that_nothing_was_written_to(device: str) -> None:
  with Context(DEV=device):
    x = Tensor.empty(3, 2)
    assert x.numpy().shape == (3, 2) and len(x.tolist()) == 3
    assert Tensor.empty(1).item() is not None and len(bytes(Tensor.empty(4, dtype=dtypes.uint8).data())) == 4
    # Any content, but always the same, and integers that arithmetic keeps apart.
    n = Tensor.empty(5, dtype=dtypes.int32)
    assert n.tolist() == n.numpy().tolist()
    assert device == "NULL" or ((n ^ n).tolist() == [0] * 5 and (n - n + 1).sum().item() == 5)
    assert Tensor.empty(2, 3).T[1:].reshape(4).shape == (4,) == Tensor.empty(2, 3).T[1:].reshape(4).numpy().shape
    assert Tensor.empty_like(x).numpy().shape == (3, 2) and Tensor.empty(0).tolist() == []
    assert x.to("CPU").numpy().shape == (3, 2) and x.clone().numpy().shape == (3, 2)

    @TinyJit
    def f(y: Tensor) -> Tensor:
      return (y * 0 + x.isnan().where(0, 0)).realize()

    for _ in range(4):
      assert f(Tensor.empty(3, 2)).numpy().shape == (3, 2)
    x[1:2] = 4
    assert device == "NULL" or x.numpy()[1].tolist() == [4, 4]
