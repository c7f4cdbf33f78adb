"""Optimizers: classes of their own in Python, what they have, and their state."""

import pathlib
from typing import Any

import numpy as np
import pytest

import tinygrad_cpp as tg
from tinygrad_cpp import Context, Tensor, TinyJit, dtypes, nn
from tinygrad_cpp.nn.optim import LAMB, LARS, SGD, Adam, AdamW, Optimizer, OptimizerGroup
from tinygrad_cpp.nn.state import get_parameters, get_state_dict, load_state_dict, safe_load, safe_save


class Momentum(Optimizer):
  """SGD with momentum, as a program would write it."""

  def __init__(self, params: list[Tensor], lr: float = 0.1, momentum: float = 0.9, **options: Any):
    super().__init__(params, lr, **options)
    self.momentum = momentum
    self.b = self._new_optim_param()

  def _step(self, params: list[Tensor], grads: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    updates = []
    for i, g in enumerate(grads):
      self.b[i].assign(self.momentum * self.b[i] + g)
      updates.append((self.lr * self.b[i]).cast(params[i].dtype))
    return updates, self.b


def parameters() -> list[Tensor]:
  return [Tensor([[1.0, -2.0], [3.0, 0.5]]).realize(), Tensor([0.25, 4.0]).realize()]


def train(optimizer: Optimizer, params: list[Tensor], steps: int = 4, jit: bool = False) -> list[np.ndarray]:
  a, b = params

  def step(x: Tensor) -> Tensor:
    optimizer.zero_grad()
    loss = ((x @ a).square() + b * x).sum()
    loss.backward()
    optimizer.step()
    return loss

  run = TinyJit(step) if jit else step
  with Context(TRAINING=1):
    for k in range(steps):
      run(Tensor([[1.0, 0.5 + k]]).realize())
  return [p.numpy() for p in params]


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("fused", [False, True])
def test_a_subclass_is_what_it_says(fused: bool, jit: bool) -> None:
  own, library = parameters(), parameters()
  optimizer = Momentum(own, lr=0.01, fused=fused)
  assert isinstance(optimizer, Optimizer) and len(optimizer.b) == (1 if fused else 2)
  for x, y in zip(train(optimizer, own, jit=jit), train(SGD(library, lr=0.01, momentum=0.9), library)):
    np.testing.assert_allclose(x, y, rtol=1e-6)


def test_a_subclass_in_a_group_and_with_a_schedule() -> None:
  own, library = parameters(), parameters()
  group = OptimizerGroup(Momentum(own[:1], lr=0.01), Momentum(own[1:], lr=0.02))
  train(group, own)
  train(OptimizerGroup(SGD(library[:1], lr=0.01, momentum=0.9), SGD(library[1:], lr=0.02, momentum=0.9)), library)
  for x, y in zip(own, library):
    np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-6)
  params = parameters()
  scheduled = Momentum(params, lr=0.1)
  nn.optim.MultiStepLR(scheduled, [1], gamma=0.5).step()
  assert scheduled.lr.item() == pytest.approx(0.05)


def test_a_part_of_a_step_can_be_changed() -> None:
  class Clipped(LAMB):
    """AdamW whose gradients are clipped."""

    def _step(self, params: list[Tensor], grads: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
      return super()._step(params, [g.clamp(-1, 1) for g in grads])

  class Rounded(LARS):
    def _apply_update(self, t: Tensor, up: Tensor) -> Tensor:
      return (super()._apply_update(t, up) * 8).round() / 8

  params, expected = parameters(), parameters()
  optimizer, plain = Clipped(params, lr=0.1, eps=1e-8, weight_decay=0.01, adam=True), AdamW(expected, lr=0.1)
  with Context(TRAINING=1):
    for k in range(3):
      for p, q in zip(params, expected):
        p.grad = Tensor.full(p.shape, 3.0 - k)
        q.grad = Tensor.full(p.shape, min(3.0 - k, 1.0))
      optimizer.step()
      plain.step()
  for p, q in zip(params, expected):
    np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-6)
  rounded = parameters()
  for x in train(Rounded(rounded, lr=0.013, momentum=0.5, tcoef=0.0), rounded):
    np.testing.assert_array_equal(x, np.round(x * 8) / 8)


def test_mistakes_of_subclasses() -> None:
  params = parameters()
  with Context(TRAINING=1):
    params[0].grad = Tensor.ones(2, 2)
    with pytest.raises(tg.ValueError, match="1 of 2 parameters have no gradient"):
      Momentum(params).step()
    params[1].grad = Tensor.ones(2)
    with pytest.raises(NotImplementedError, match="_step"):
      Optimizer(params, 0.1).step()

    class Short(Momentum):
      def _step(self, params: list[Tensor], grads: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        return super()._step(params[:1], grads[:1])

    with pytest.raises(tg.ValueError, match="gave 1 tensors for 2 parameters"):
      Short(params).step()
  with pytest.raises(tg.ValueError, match="training is off"):
    Momentum(params).step()
  with pytest.raises(RuntimeError):
    Momentum(params).step()


def test_what_optimizers_have() -> None:
  params = parameters()
  statistics = Tensor([1.0]).is_param_(False)
  adam = Adam([*params, statistics], lr=0.2, b1=0.8)
  assert adam.device == params[0].device and not adam.fused and adam.lr.item() == pytest.approx(0.2)
  assert len(adam.params) == 2 and adam.params[0] is params[0] and adam.buffers[0] is statistics
  assert (adam.b1, adam.b2, adam.eps, adam.wd, adam.adam) == (0.8, 0.999, 1e-8, 0.0, True)
  with Context(TRAINING=1):
    for p in params:
      p.grad = Tensor.ones(*p.shape)
    adam.step()
  np.testing.assert_allclose(adam.m[0].numpy(), np.full((2, 2), 0.2), rtol=1e-6)
  np.testing.assert_allclose(adam.v[1].numpy(), np.full(2, 1e-3), rtol=1e-3)
  assert adam.b1_t.item() == pytest.approx(0.8) and adam.b2_t.item() == pytest.approx(0.999)
  sgd = SGD(params, momentum=0.5, nesterov=True)
  assert (sgd.momentum, sgd.nesterov, sgd.classic, sgd.wd, sgd.tcoef, sgd.pre_wd) == (0.5, True, False, 0.0, 0.0, True)
  assert [b.shape for b in sgd.b] == [(2, 2), (2,)] and SGD(params).b == []
  half = Adam([Tensor([1.0], dtype=dtypes.half)])
  assert half.m[0].dtype is dtypes.float32


def test_state_holds_the_parameters(tmp_path: pathlib.Path) -> None:
  params = parameters()
  adam = Adam(params, lr=0.1)
  assert list(get_state_dict(adam)) == ["lr", "b1_t", "b2_t", "m.0", "m.1", "v.0", "v.1", "params.0", "params.1"]
  own = Momentum(parameters())
  assert set(get_state_dict({"o": own})) == {"o.lr", "o.b.0", "o.b.1", "o.params.0", "o.params.1"}
  assert set(get_state_dict(OptimizerGroup(own))) == {f"optimizers.0.{name}" for name in get_state_dict(own)}
  assert any(t is params[1] for t in get_parameters(adam))
  train(adam, params)
  safe_save(get_state_dict(adam), str(tmp_path / "state"))
  again = parameters()
  other = Adam(again, lr=0.7)
  load_state_dict(other, safe_load(tmp_path / "state"), verbose=False)
  for x, y in zip(train(adam, params, steps=2), train(other, again, steps=2)):
    np.testing.assert_array_equal(x, y)
