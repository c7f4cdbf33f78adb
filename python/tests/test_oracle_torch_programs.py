"""What people write around torch.compile, each beside eager PyTorch: memory that outputs share, writes, optimizers, modes, threads, mistakes."""

from __future__ import annotations

import copy
import threading
import warnings
from typing import Any, Callable

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F
from torch import nn

from tinygrad_cpp.frontend import torch as bridge
from torch_support import fresh  # used by every test


def compiled(f: Callable[..., Any], **options: Any) -> Callable[..., Any]:
  out: Callable[..., Any] = torch.compile(f, backend="tinygrad_cpp", options={"fallback": False}, **options)
  return out


def close(got: Any, expected: Any, tolerance: float = 1e-4) -> None:
  torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance, equal_nan=True)


def shared(*tensors: Any) -> list[tuple[int, int]]:
  """Which of them lie in one memory."""
  places = [x.untyped_storage().data_ptr() for x in tensors]
  return [(i, j) for i in range(len(places)) for j in range(i) if places[i] == places[j]]


def test_outputs_share_memory_where_they_do_in_pytorch() -> None:
  def f(x: Any) -> Any:
    d = x + 1
    a, b = d.exp().split(2)
    k = x.sin()
    own = d.clone(), d.contiguous().clone(), k + 0, k * 1, x + 1, x.clone(), x.clone(), torch.zeros(3), torch.zeros(3)
    return *own, d, d[1:], d.t(), a, b, k, k.detach(), k.to(torch.float32), x.contiguous(), x.t(), x.expand(2, 4, 6), x.reshape(-1)
  g = compiled(f)
  for layout in (lambda: torch.randn(4, 6), lambda: torch.randn(6, 4).t()):
    for _ in range(3):
      x = layout()
      got, expected = g(x), f(x)
      close(got, expected)
      assert shared(x, *got) == shared(x, *expected)


def test_copies_in_a_graph_with_gradients_are_copies() -> None:
  def f(x: Any, w: Any) -> Any:
    y = x * w
    return y, y.clone(), y.contiguous().clone(), y.view(-1)
  g = compiled(f)
  for _ in range(3):
    args = [torch.randn(3, 4, requires_grad=True) for _ in range(2)]
    got, expected = g(*args), f(*args)
    assert shared(*got) == shared(*expected)
    sums = [sum(t.sum() * (i + 1) for i, t in enumerate(out)) for out in (got, expected)]
    close(torch.autograd.grad(sums[0], args), torch.autograd.grad(sums[1], args))


def test_writes_into_views_of_arguments() -> None:
  def f(x: Any) -> Any:
    y = x[1:3]
    y.mul_(2)
    x[:, 0] = 7
    x.t()[0] += 1
    x.view(-1)[::3].zero_()
    x[1:].copy_(x[:-1].clone())
    return x.sum(0), y
  g = compiled(f)
  for _ in range(3):
    a = torch.randn(4, 6)
    b = a.clone()
    got, expected = g(a), f(b)
    close((*got, a), (*expected, b))
    got[1].add_(5)
    expected[1].add_(5)
    close(a, b)


def test_arguments_that_are_negated_lazily() -> None:
  f = lambda x: x * 2
  g = compiled(f)
  for x in (torch.randn(3), torch._neg_view(torch.randn(3)), torch.randn(3, dtype=torch.complex64).conj().imag, torch.randn(3)):
    close(g(x), f(x))
  x = torch._neg_view(torch.randn(3))
  before = x.clone()
  compiled(lambda x, y: x.add_(y))(x, torch.ones(3))
  close(x, before + 1)


OPTIMIZERS = {
  "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
  "adam": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
  "adamw_on_lists": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=True),
  "rmsprop_on_lists": lambda p: torch.optim.RMSprop(p, foreach=True, momentum=0.5),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name: str) -> None:
  def train(compile: Callable[..., Any]) -> list[Any]:
    torch.manual_seed(0)
    net = nn.Linear(4, 3)
    optimizer = OPTIMIZERS[name](net.parameters())
    rate = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    step = compile(optimizer.step)
    for i in range(4):
      optimizer.zero_grad()
      net(torch.full((2, 4), i + 1.0)).square().sum().backward()
      step()
      rate.step()
    return [p.detach() for p in net.parameters()]
  close(train(compiled), train(lambda f: f))


def test_a_whole_training_step() -> None:
  def train(compile: Callable[..., Any]) -> list[Any]:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01, foreach=True)
    def step(x: Any, y: Any) -> Any:
      optimizer.zero_grad()
      loss = F.mse_loss(net(x), y)
      loss.backward()
      nn.utils.clip_grad_norm_(net.parameters(), 1.0)
      optimizer.step()
      return loss.detach()
    step = compile(step)
    torch.manual_seed(5)
    return [step(torch.randn(3, 4), torch.randn(3, 2)) for _ in range(4)] + [p.detach() for p in net.parameters()]
  close(train(compiled), train(lambda f: f))


def test_modes_of_autograd_in_turns() -> None:
  net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.BatchNorm1d(8))
  other, g = copy.deepcopy(net), compiled(net)
  for _ in range(2):
    x = torch.randn(4, 8)
    for mode in (torch.no_grad, torch.enable_grad, torch.inference_mode):
      with mode():
        close(g(x), other(x))
    x.requires_grad_()
    close(torch.autograd.grad(g(x).sin().sum(), x), torch.autograd.grad(other(x).sin().sum(), x))
  close(dict(net.state_dict()), dict(other.state_dict()))


def test_autocast_of_a_network() -> None:
  net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10))
  g = compiled(net)
  x = torch.randn(2, 3, 8, 8)
  with torch.autocast("cpu", torch.bfloat16):
    got, expected = g(x), net(x)
  assert got.dtype == expected.dtype == torch.bfloat16
  close(got, expected, 0.05)
  grads = [torch.autograd.grad(y.float().square().sum(), list(net.parameters())) for y in (got, expected)]
  for a, b in zip(*grads, strict=True):
    assert a.dtype == b.dtype and float((a - b).abs().max()) <= 0.05 * float(b.abs().max()) + 0.05


@pytest.mark.parametrize("layer", [lambda: nn.LSTM(6, 8, 2, batch_first=True, bidirectional=True), lambda: nn.GRU(6, 8), lambda: nn.LSTM(6, 8, proj_size=4)])
def test_recurrent_layers(layer: Callable[[], Any]) -> None:
  net = layer()
  g = torch.compile(net, backend="tinygrad_cpp")
  x = torch.randn(5, 7, 6, requires_grad=True)
  for _ in range(2):
    (a, h), (b, k) = g(x), net(x)
    close((a, h), (b, k))
    inputs = [x, *net.parameters()]
    close(torch.autograd.grad(a.sin().sum(), inputs), torch.autograd.grad(b.sin().sum(), inputs))


def test_one_network_used_twice_and_gradients_taken_twice() -> None:
  net = nn.Linear(4, 4)
  x = torch.randn(2, 4)
  def run(f: Callable[..., Any]) -> Any:
    net.zero_grad()
    (f(f(x)) + f(x)).sum().backward()
    y = f(x).sin().sum()
    y.backward(retain_graph=True)
    y.backward()
    return [p.grad.clone() for p in net.parameters()]
  g = compiled(net)
  for _ in range(2):
    close(run(g), run(net))


def test_threads_meet_new_sizes_at_once() -> None:
  g = compiled(lambda x: (x.sin() * 2, x.sum(), torch.rand_like(x)), dynamic=True)
  g(torch.ones(3))
  barrier, mistakes = threading.Barrier(4), []
  def work(k: int) -> None:
    try:
      for n in range(4, 10):
        barrier.wait()
        for _ in range(3):
          x = torch.full((n,), float(k))
          a, b, c = g(x)
          close((a, b), (x.sin() * 2, x.sum()))
          assert c.shape == x.shape
    except BaseException as e:
      mistakes.append(e)
      barrier.abort()
  threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
  for t in threads:
    t.start()
  for t in threads:
    t.join()
  assert not mistakes


def test_buffers_that_change_and_are_replaced() -> None:
  class Mean(nn.Module):
    def __init__(self) -> None:
      super().__init__()
      self.register_buffer("mean", torch.zeros(3))
      self.register_buffer("count", torch.zeros((), dtype=torch.long))

    def forward(self, x: Any) -> Any:
      self.mean = self.mean * 0.9 + x.mean(0) * 0.1
      self.count += 1
      return x - self.mean / self.count

  a, b = Mean(), Mean()
  g = compiled(a)
  for i in range(6):
    x = torch.randn(4, 3)
    close(g(x), b(x))
    for m in (a, b):
      if i == 3:
        m.mean = torch.ones(3)
      if i == 4:
        m.load_state_dict({"mean": torch.full((3,), 2.0), "count": torch.tensor(5)})
  close(dict(a.state_dict()), dict(b.state_dict()))


def test_a_cache_of_keys_that_is_written_by_position() -> None:
  class Cache(nn.Module):
    def __init__(self) -> None:
      super().__init__()
      self.register_buffer("keys", torch.zeros(1, 16, 4))
      self.linear = nn.Linear(4, 4)

    def forward(self, x: Any, place: Any) -> Any:
      self.keys[:, place] = self.linear(x)
      return (self.keys.softmax(1) * x[:, None]).sum(1)

  a = Cache()
  b, g = copy.deepcopy(a), compiled(a)
  with torch.no_grad():
    for place in [torch.tensor([i]) for i in range(4)] + list(range(4)):
      x = torch.randn(1, 4)
      close((g(x, place), a.keys), (b(x, place), b.keys))


def test_arrays_without_elements() -> None:
  f = lambda x, y: (x.sum(), x.mean(), x @ y, torch.cat([x, x]), x.prod(), x.reshape(0, 2, 2), F.pad(x, (1, 1)), x.any(), x.std(1))
  g = compiled(f)
  for _ in range(3):
    x, y = torch.randn(0, 4), torch.randn(4, 3)
    close(g(x, y), f(x, y))
  for nothing in (lambda x, y: x.exp(), lambda x, y: (x.t(), y.t(), 3), lambda x, y: x.add_(1), lambda x, y: y.detach()):
    h = compiled(nothing)
    for _ in range(3):
      close(h(x, y), nothing(x, y))
  net = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
  h = compiled(net)
  for n in (0, 2, 0):
    x = torch.randn(n, 4)
    close(*[torch.autograd.grad(m(x).sum(), list(net.parameters())) for m in (h, net)])


def test_several_heads_of_queries_for_one_of_keys() -> None:
  args = [torch.randn(2, heads, 6, 8, requires_grad=True) for heads in (4, 2, 2)]
  f = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
  got, expected = compiled(f)(*args), f(*args)
  close(got, expected)
  close(torch.autograd.grad(got.sin().sum(), args), torch.autograd.grad(expected.sin().sum(), args))


INDEXING = {
  "embedding": (lambda x, i: F.embedding(i, x), [0, 3], [1, 4]),
  "index": (lambda x, i: x[i], [-4, 3], [0, 4]),
  "index from the end": (lambda x, i: x[i], [-4, 3], [-5, 0]),
  "gather": (lambda x, i: x.gather(1, i[:, None].expand(2, 6)), [0, 5], [-1, 0]),
  "index_put": (lambda x, i: x.index_put((i,), torch.zeros(6)), [3, 0], [4, 0]),
  "take": (lambda x, i: x.take(i), [-24, 23], [24, 0]),
  "put": (lambda x, i: x.put(i, torch.zeros(2)), [0, 23], [-25, 0]),
  "index_fill": (lambda x, i: x.index_fill(1, i, 2.0), [0, 5], [6, 0]),
  "scatter reduce": (lambda x, i: x.scatter(0, i[None], torch.ones(1, 2), reduce="add"), [0, 3], [4, 0]),
  "scatter of a number": (lambda x, i: x.scatter(0, i[None], 2.0, reduce="multiply"), [0, 3], [-1, 0]),
  "embedding_bag": (lambda x, i: F.embedding_bag(i[None], x), [0, 3], [4, 0]),
  "without axes": (lambda x, i: x[0, 0].gather(0, i[0]), [0, 0], [1, 0]),
  "cross_entropy": (lambda x, i: F.cross_entropy(x[:2], i), [5, -100], [6, 0]),
}


@pytest.mark.parametrize("name", INDEXING)
def test_indices_out_of_range_are_errors(name: str) -> None:
  f, inside, outside = INDEXING[name]
  g = compiled(f)
  x = torch.randn(4, 6)
  for _ in range(2):
    with pytest.raises(IndexError, match="an index is out of range"):
      g(x, torch.tensor(outside))
    close(g(x, torch.tensor(inside)), f(x, torch.tensor(inside)))


def test_an_exception_between_graphs_leaves_what_was_written() -> None:
  def f(x: Any, bad: bool) -> Any:
    y = x * 2
    x.add_(1)
    if bad:
      raise ValueError("bad")
    return y + x
  g = torch.compile(f, backend="tinygrad_cpp")
  a, b = torch.ones(3), torch.ones(3)
  for bad in (False, True, False, True):
    if bad:
      for h, x in ((g, a), (f, b)):
        with pytest.raises(ValueError, match="bad"):
          h(x, bad)
    else:
      close(g(a, bad), f(b, bad))
    close(a, b)


def test_branches_on_values_and_shapes_of_values() -> None:
  def f(x: Any) -> Any:
    return x * 2 if x.sum() > 0 else x[x > 0]
  g = torch.compile(f, backend="tinygrad_cpp")
  with warnings.catch_warnings():
    warnings.simplefilter("ignore", bridge.FallbackWarning)
    for x in (torch.tensor([1.0, 2.0]), torch.tensor([1.0, -2.0]), torch.tensor([-1.0, -2.0])):
      close(g(x), f(x))
