"""Tensors on several devices, with tinygrad's names."""
import numpy as np
import pytest

from tinygrad_cpp import Context, Tensor, nn

DEVICES = ("CPU", "CPU:1")


def test_devices_are_a_tuple():
  x = Tensor.arange(12).reshape(6, 2)
  assert x.device == "CPU"
  assert x.shard(DEVICES, axis=0).device == DEVICES
  assert x.to(DEVICES).device == DEVICES
  assert x.shard(DEVICES).to("CPU").device == "CPU"
  assert x.shard(DEVICES).to(DEVICES).device == DEVICES
  assert x.shard(("CPU:1",), axis=0).device == "CPU:1"
  assert "axis 0 over 2" in x.shard(DEVICES, axis=0).placement()


def test_values_and_gradients():
  rng = np.random.default_rng(1)
  x, w = rng.integers(-5, 6, (6, 4)).astype(np.float32), rng.integers(-5, 6, (4, 3)).astype(np.float32)
  for axis in (None, 0, 1):
    a, b = Tensor(x).shard(DEVICES, axis), Tensor(w).shard(DEVICES)
    y = (a @ b).relu().sum()
    np.testing.assert_array_equal((a @ b).numpy(), x @ w)
    y.backward()
    mask = (x @ w > 0).astype(np.float32)
    np.testing.assert_array_equal(b.grad.numpy(), x.T @ mask)
    np.testing.assert_array_equal(a.grad.numpy(), mask @ w.T)


def test_made_on_several():
  for make in (Tensor.zeros, Tensor.ones, Tensor.rand, Tensor.randn):
    x = make(3, 5, device=DEVICES)
    assert x.device == DEVICES and x.shape == (3, 5)
    assert x.shard_(DEVICES, 1).realize().numpy().shape == (3, 5)
  assert Tensor([1, 2, 3], device=DEVICES).tolist() == [1, 2, 3]
  x = Tensor.ones(4, 4).shard(DEVICES, 0)
  assert Tensor.full((4, 4), 2.0).shard_like(x).placement() == x.placement()


def test_training_step():
  Tensor.manual_seed(3)
  with Context(TRAINING=1):
    losses = []
    for devices in (None, DEVICES):
      Tensor.manual_seed(3)
      layer = nn.Linear(4, 2)
      x, y = Tensor.rand(8, 4), Tensor.rand(8, 2)
      if devices:
        for t in nn.state.get_parameters(layer):
          t.shard_(devices)
        x, y = x.shard(devices, 0), y.shard(devices, 0)
      opt = nn.optim.SGD(nn.state.get_parameters(layer), lr=0.1)
      for _ in range(3):
        opt.zero_grad()
        loss = (layer(x) - y).square().mean().backward()
        opt.step()
      losses.append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
