"""Layers and optimizers against PyTorch's with the same weights, random functions against their distributions, in-place and other
functions that no table holds."""

import math
from typing import Any

import numpy as np
import pytest

import tinygrad_cpp as tg
from tinygrad_cpp import Tensor, dtypes, nn

try:
  import torch
except ImportError:
  torch = None  # type: ignore[assignment]

needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is not installed: not compared with its layers, optimizers and schedulers")


def numbers(rng: np.random.Generator, *shape: int) -> np.ndarray:
  return rng.uniform(-1, 1, shape).astype(np.float32)


# Ours, PyTorch's, the shape of the input.
LAYERS: list[tuple[str, tuple[Any, ...], dict[str, Any], str, tuple[Any, ...], dict[str, Any], tuple[int, ...]]] = [
  ("Linear", (4, 3), {}, "Linear", (4, 3), {}, (2, 4)),
  ("Linear", (4, 3), {"bias": False}, "Linear", (4, 3), {"bias": False}, (2, 5, 4)),
  ("Conv1d", (2, 4, 3), {"stride": 2, "padding": 1}, "Conv1d", (2, 4, 3), {"stride": 2, "padding": 1}, (2, 2, 7)),
  ("Conv2d", (2, 4, 3), {}, "Conv2d", (2, 4, 3), {}, (1, 2, 5, 5)),
  ("Conv2d", (2, 4, (3, 2)), {"stride": 2, "padding": 1, "dilation": 2, "groups": 2, "bias": False}, "Conv2d", (2, 4, (3, 2)), {"stride": 2, "padding": 1, "dilation": 2, "groups": 2, "bias": False}, (1, 2, 7, 7)),
  ("Conv2d", (2, 3, 3), {"padding": "same"}, "Conv2d", (2, 3, 3), {"padding": "same"}, (1, 2, 4, 4)),
  ("ConvTranspose1d", (2, 3, 3), {"stride": 2, "output_padding": 1}, "ConvTranspose1d", (2, 3, 3), {"stride": 2, "output_padding": 1}, (1, 2, 4)),
  ("ConvTranspose2d", (2, 4, 3), {"stride": 2, "padding": 1, "groups": 2}, "ConvTranspose2d", (2, 4, 3), {"stride": 2, "padding": 1, "groups": 2}, (1, 2, 3, 4)),
  ("GroupNorm", (2, 4), {}, "GroupNorm", (2, 4), {}, (2, 4, 3)),
  ("GroupNorm", (2, 4), {"eps": 0.1, "affine": False}, "GroupNorm", (2, 4), {"eps": 0.1, "affine": False}, (2, 4, 3, 2)),
  ("InstanceNorm", (3,), {}, "InstanceNorm2d", (3,), {"affine": True}, (2, 3, 4, 2)),
  ("LayerNorm", (4,), {}, "LayerNorm", (4,), {}, (2, 3, 4)),
  ("LayerNorm", ((3, 4),), {"eps": 0.1, "elementwise_affine": False}, "LayerNorm", ((3, 4),), {"eps": 0.1, "elementwise_affine": False}, (2, 3, 4)),
  ("RMSNorm", (4,), {}, "RMSNorm", (4,), {"eps": 1e-6}, (2, 3, 4)),
  ("Embedding", (5, 3), {}, "Embedding", (5, 3), {}, ()),
]


@needs_torch
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("ours,args,options,theirs,their_args,their_options,shape", [pytest.param(*layer, id=f"{layer[0]}{i}", marks=[pytest.mark.covers(layer[0]), pytest.mark.covers(layer[0], kind="gradient")]) for i, layer in enumerate(LAYERS)])
def test_layer(ours: str, args: Any, options: Any, theirs: str, their_args: Any, their_options: Any, shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> None:
  a, b = getattr(nn, ours)(*args, **options), getattr(torch.nn, theirs)(*their_args, **their_options).double()
  for name, parameter in b.named_parameters():
    value = numbers(rng, *parameter.shape).astype(dtype)
    assert getattr(a, name).shape == parameter.shape, name
    setattr(a, name, Tensor(value).is_param_())
    parameter.data = torch.from_numpy(value).double()
  if ours == "Embedding":
    index = np.array([[1, 4, 0], [1, 1, 2]], np.int32)
    y, z = a(Tensor(index)), b(torch.from_numpy(index))
  else:
    x = numbers(rng, *shape).astype(dtype)
    mine, other = Tensor(x.copy()).is_param_(), torch.from_numpy(x).double().requires_grad_()
    y, z = a(mine), b(other)
  assert y.dtype is getattr(dtypes, dtype)
  weight = numbers(rng, *z.shape).astype(dtype)
  (y * Tensor(weight)).sum().backward()
  (z * torch.from_numpy(weight).double()).sum().backward()

  factor = 16 if dtype == "float16" else 256  # sums are in float32

  def close(got: Tensor, want: Any) -> None:
    want = want.detach().numpy()
    np.testing.assert_allclose(got.numpy(), want, rtol=0, atol=factor * np.finfo(dtype).eps * max(1.0, float(np.abs(want).max())))  # normalizations divide by a root of a sum

  close(y, z)
  if ours != "Embedding":
    close(mine.grad, other.grad)
  for name, parameter in b.named_parameters():
    close(getattr(a, name).grad, parameter.grad)


@needs_torch
@pytest.mark.covers("BatchNorm")
@pytest.mark.covers("BatchNorm", kind="gradient")
@pytest.mark.parametrize("affine,momentum", [(True, 0.1), (False, 0.3)])
def test_batch_norm(affine: bool, momentum: float, rng: np.random.Generator) -> None:
  a, b = nn.BatchNorm(3, affine=affine, momentum=momentum), torch.nn.BatchNorm2d(3, affine=affine, momentum=momentum).double()
  with tg.Context(TRAINING=1):
    for _ in range(2):
      x = numbers(rng, 4, 3, 2, 2)
      mine, other = Tensor(x.copy()).is_param_(), torch.from_numpy(x).double().requires_grad_()
      y, z = a(mine), b(other)
      (y * y * y).sum().backward()
      (z * z * z).sum().backward()
      np.testing.assert_allclose(y.numpy(), z.detach().numpy(), atol=2e-5)
      np.testing.assert_allclose(mine.grad.numpy(), other.grad.numpy(), atol=3e-4)
  np.testing.assert_allclose(a.running_mean.numpy(), b.running_mean.numpy(), atol=1e-6)
  np.testing.assert_allclose(a.running_var.numpy(), b.running_var.numpy(), atol=1e-6)
  b.eval()
  x = numbers(rng, 4, 3, 2, 2)
  np.testing.assert_allclose(a(Tensor(x)).numpy(), b(torch.from_numpy(x).double()).detach().numpy(), atol=2e-5)


@needs_torch
@pytest.mark.covers("LSTMCell")
@pytest.mark.covers("LSTMCell", kind="gradient")
def test_lstm_cell(rng: np.random.Generator) -> None:
  a, b = nn.LSTMCell(3, 4), torch.nn.LSTMCell(3, 4).double()
  for name, parameter in b.named_parameters():
    value = numbers(rng, *parameter.shape)
    setattr(a, name, Tensor(value).is_param_())
    parameter.data = torch.from_numpy(value).double()
  x, h, c = numbers(rng, 2, 3), numbers(rng, 2, 4), numbers(rng, 2, 4)
  got = a(Tensor(x), (Tensor(h), Tensor(c)))
  want = b(torch.from_numpy(x).double(), (torch.from_numpy(h).double(), torch.from_numpy(c).double()))
  (got[0].sum() + got[1].sum()).backward()
  (want[0].sum() + want[1].sum()).backward()
  for name, parameter in b.named_parameters():
    np.testing.assert_allclose(getattr(a, name).grad.numpy(), parameter.grad.numpy(), atol=1e-5)
  for g, w in zip(got, want):
    np.testing.assert_allclose(g.numpy(), w.detach().numpy(), atol=1e-6)


@pytest.mark.covers("LayerNorm2d")
@pytest.mark.covers("LayerNorm2d", kind="gradient")
def test_layer_norm_2d(rng: np.random.Generator) -> None:
  x, g = numbers(rng, 2, 3, 4, 4).astype(np.float64), numbers(rng, 2, 3, 4, 4).astype(np.float64)
  deviation = np.sqrt(x.var(1, keepdims=True) + 1e-5)
  want = (x - x.mean(1, keepdims=True)) / deviation
  ours = Tensor(x.astype(np.float32))
  got = nn.LayerNorm2d(3)(ours)
  np.testing.assert_allclose(got.numpy(), want, atol=2e-5)
  slope = (g - g.mean(1, keepdims=True) - want * (g * want).mean(1, keepdims=True)) / deviation
  np.testing.assert_allclose((got * Tensor(g.astype(np.float32))).sum().gradient(ours)[0].numpy(), slope, rtol=1e-4, atol=1e-4)


OPTIMIZERS: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
  ("SGD", {"lr": 0.1}, "SGD", {"lr": 0.1}),
  ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "nesterov": True}, "SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "nesterov": True}),
  ("SGD", {"lr": 0.1, "momentum": 0.5}, "SGD", {"lr": 0.1, "momentum": 0.5}),
  ("Adam", {"lr": 0.01}, "Adam", {"lr": 0.01}),
  ("Adam", {"lr": 0.01, "b1": 0.8, "b2": 0.9, "eps": 1e-4}, "Adam", {"lr": 0.01, "betas": (0.8, 0.9), "eps": 1e-4}),
  ("AdamW", {"lr": 0.01, "weight_decay": 0.1}, "AdamW", {"lr": 0.01, "weight_decay": 0.1}),
]


# Four steps, each rounded some times; Adam divides by small roots, and counts its powers of the betas in float32 as tinygrad does.
@needs_torch
@pytest.mark.parametrize("dtype,tolerance", [("float32", 4 * 8 * 2.0**-23 + 1e-6), ("float64", 1e-6), ("float16", 4 * 2.0**-10)])
@pytest.mark.parametrize("ours,options,theirs,their_options", [pytest.param(*o, id=f"{o[0]}{i}", marks=pytest.mark.covers(o[0], "zero_grad", "step")) for i, o in enumerate(OPTIMIZERS)])
def test_optimizer(ours: str, options: Any, theirs: str, their_options: Any, dtype: str, tolerance: float, rng: np.random.Generator) -> None:
  start, target = numbers(rng, 3, 4).astype(dtype), numbers(rng, 3, 4).astype(dtype)
  a, b = Tensor(start.copy()).is_param_(), torch.from_numpy(start.copy()).double().requires_grad_()
  with tg.Context(DEFAULT_FLOAT="float64" if dtype == "float64" else "float32"):  # that of the rate
    p, q = getattr(nn.optim, ours)([a], **options), getattr(torch.optim, theirs)([b], **their_options)
  with tg.Context(TRAINING=1):
    for _ in range(4):
      p.zero_grad()
      q.zero_grad()
      ((a - Tensor(target)) ** 2).sum().backward()
      ((b - torch.from_numpy(target).double()) ** 2).sum().backward()
      p.step()
      q.step()
  assert a.dtype is getattr(dtypes, dtype)
  np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=0, atol=tolerance)


# Distributions, by the Kolmogorov-Smirnov statistic: of n = 20000 draws it exceeds 1.95 / sqrt(n) once in a thousand seeds.
def ks(samples: np.ndarray, cdf: Any) -> float:
  x = np.sort(samples.ravel().astype(np.float64))
  f, n = cdf(x), len(x)
  return float(max((np.arange(1, n + 1) / n - f).max(), (f - np.arange(n) / n).max())) * math.sqrt(n)


def normal_cdf(x: np.ndarray) -> np.ndarray:
  return np.array([(1 + math.erf(v / math.sqrt(2))) / 2 for v in x])


def uniform(low: float, high: float) -> Any:
  return lambda x: np.clip((x - low) / (high - low), 0, 1)


BOUND = math.sqrt(6 / 200)  # glorot: (100, 100)
RANDOM: list[tuple[str, Any, Any, Any]] = [
  ("rand", lambda: Tensor.rand(20000), uniform(0, 1), (0, 1)),
  ("rand_like", lambda: Tensor.zeros(20000).rand_like(), uniform(0, 1), (0, 1)),
  ("randn", lambda: Tensor.randn(20000), normal_cdf, None),
  ("randn_like", lambda: Tensor.zeros(20000).randn_like(), normal_cdf, None),
  ("normal", lambda: Tensor.normal(20000, mean=3.0, std=0.5), lambda x: normal_cdf((x - 3) / 0.5), None),
  ("uniform", lambda: Tensor.uniform(20000, low=-2.0, high=5.0), uniform(-2, 5), (-2, 5)),
  ("scaled_uniform", lambda: Tensor.scaled_uniform(100, 200), uniform(-(20000**-0.5), 20000**-0.5), None),
  ("glorot_uniform", lambda: Tensor.glorot_uniform(100, 100), uniform(-BOUND, BOUND), (-BOUND, BOUND)),
  ("kaiming_uniform", lambda: Tensor.kaiming_uniform(100, 200, a=0.01), uniform(-math.sqrt(6 / 1.0001 / 200), math.sqrt(6 / 1.0001 / 200)), None),
  ("kaiming_normal", lambda: Tensor.kaiming_normal(100, 200, a=0.01), lambda x: normal_cdf(x / math.sqrt(2 / 1.0001 / 200)), None),
]


@pytest.mark.parametrize("name,draw,cdf,bounds", [pytest.param(*r, id=r[0], marks=pytest.mark.covers(r[0])) for r in RANDOM])
def test_distribution(name: str, draw: Any, cdf: Any, bounds: Any) -> None:
  Tensor.manual_seed(42)
  x = draw()
  first = x.numpy().copy()
  assert x.dtype is dtypes.float32 and np.isfinite(first).all()
  assert ks(first, cdf) < 1.95
  if bounds:
    assert first.min() >= bounds[0] and first.max() < bounds[1] + 1e-6
  assert not np.array_equal(draw().numpy(), first)
  Tensor.manual_seed(42)
  np.testing.assert_array_equal(draw().numpy(), first)


@pytest.mark.covers("randint", "randperm", "multinomial", "dropout", "manual_seed", "random_bits")
def test_discrete_distributions() -> None:
  Tensor.manual_seed(7)
  x = Tensor.randint(20000, low=-3, high=5).numpy()
  counts = np.bincount(x + 3, minlength=8)
  assert x.dtype == np.int32 and len(counts) == 8
  assert ((counts - 2500) ** 2 / 2500).sum() < 24.3  # chi-squared of 7 degrees, once in a thousand
  assert sorted(Tensor.randperm(50).tolist()) == list(range(50))
  drawn = Tensor([0.1, 0.0, 0.9]).multinomial(5000, replacement=True).numpy()
  assert (drawn != 1).all() and abs((drawn == 0).mean() - 0.1) < 0.02
  assert sorted(Tensor([1.0, 2.0, 3.0]).multinomial(3).tolist()) == [0, 1, 2]
  with tg.Context(TRAINING=1):
    y = Tensor.ones(20000).dropout(0.25).numpy()
  np.testing.assert_allclose(np.unique(y), [0, 4 / 3], rtol=1e-6)
  assert abs((y == 0).mean() - 0.25) < 0.02
  assert Tensor.ones(5).dropout(0.5).tolist() == [1.0] * 5


@pytest.mark.covers("rand", backend="INTERP")
def test_rand_is_the_same_on_every_device() -> None:
  Tensor.manual_seed(3)
  a = Tensor.rand(37).numpy()
  with tg.Context(DEV="INTERP"):
    Tensor.manual_seed(3)
    np.testing.assert_array_equal(Tensor.rand(37).numpy(), a)


@pytest.mark.covers("gradient", "backward")
@pytest.mark.covers("gradient", "backward", kind="gradient")
def test_gradients_of_gradients() -> None:
  x = Tensor([0.5, 1.5], dtype=dtypes.float64)
  (g,) = (x * x * x).sum().gradient(x)
  (h,) = g.sum().gradient(x)
  np.testing.assert_allclose(g.numpy(), 3 * x.numpy() ** 2, rtol=1e-15)
  np.testing.assert_allclose(h.numpy(), 6 * x.numpy(), rtol=1e-15)
  y = Tensor([1.0, 2.0]).is_param_()
  y.square().backward(gradient=Tensor([1.0, 10.0]))
  y.square().sum().backward()
  assert y.grad.tolist() == [4.0, 44.0]


@pytest.mark.covers("item", "data", "tolist", "numpy", "assign", "replace", "clone", "realize", "to", "to_", "shape", "dtype", "device", "ndim", "numel", "nbytes", "element_size", "is_floating_point", "size", "is_param_", "T", "hash")
def test_handles() -> None:
  t = Tensor([[1.0, 2.0], [3.0, 4.0]])
  assert t.shape == (2, 2) and t.ndim == 2 and t.numel() == 4 and t.nbytes() == 16 and t.element_size() == 4 and t.is_floating_point()
  assert t.dtype is dtypes.float32 and t.device.startswith("CPU") and t.size(0) == 2
  assert t.sum().item() == 10.0 and t.tolist() == [[1.0, 2.0], [3.0, 4.0]] and t.data().tolist() == t.tolist()
  u = t.clone().assign(t + 1).realize()
  assert u.tolist() == [[2.0, 3.0], [4.0, 5.0]] and t.tolist() == [[1.0, 2.0], [3.0, 4.0]]
  assert t.replace(u).tolist() == u.tolist() and t.is_param_().is_param and t.T.tolist() == [[2.0, 4.0], [3.0, 5.0]]
  assert t.to("INTERP").tolist() == t.tolist()
  assert u.to_("INTERP").device.startswith("INTERP") and u.tolist() == t.tolist()
  big = Tensor(np.arange(3000, dtype=np.uint8))
  assert big.hash().tolist() == big.clone().hash().tolist() and big.hash().tolist() != (big + 1).hash().tolist()


@needs_torch
def test_a_tensor_that_is_negated_lazily() -> None:
  assert Tensor(torch.tensor([1 + 2j, 3 - 4j]).conj().imag).tolist() == [-2.0, 4.0]


def test_an_ignored_class_index_of_minus_one() -> None:
  x, y = Tensor([[1.0, 2.0], [3.0, 1.0]]), Tensor([1, -1])
  alone = x[:1].sparse_categorical_crossentropy(y[:1]).item()
  for labels in (y, y * 1):
    assert x.sparse_categorical_crossentropy(labels, ignore_index=-1).item() == pytest.approx(alone)
  with pytest.raises(tg.IndexError):
    x.sparse_categorical_crossentropy(y)
