"""Meshes, models in parts, checkpoints."""
from pathlib import Path

import numpy as np
import pytest

from tinygrad_cpp import Context, Mesh, ShapeError, Tensor, ValueError, nn
from tinygrad_cpp.nn import parallel
from tinygrad_cpp.nn.state import get_parameters, get_state_dict, load_checkpoint, load_state_dict, save_checkpoint

DEVICES = ("CPU", "CPU", "CPU:1", "CPU:1")


class Net:
  def __init__(self):
    self.first, self.second = nn.Linear(6, 17), nn.Linear(17, 3)

  def __call__(self, x: Tensor) -> Tensor:
    return self.second(self.first(x).tanh())


def train(net: Net, devices: tuple[str, ...], in_parts: bool = False) -> list[float]:
  optimizer = nn.optim.Adam(get_parameters(net), lr=0.05)
  if in_parts: parallel.shard_state(optimizer)
  values, losses = np.random.default_rng(0).standard_normal((5, 8, 6), dtype=np.float32), []
  with Context(TRAINING=1):
    for v in values:
      optimizer.zero_grad()
      x = Tensor(v).shard(devices, 0) if len(devices) > 1 else Tensor(v)
      loss = net(x).square().mean().backward()
      optimizer.step()
      losses.append(loss.item())
  return losses


def made() -> Net:
  Tensor.manual_seed(3)
  net = Net()
  Tensor.realize(*get_parameters(net))
  return net


def test_trains_the_same_in_parts():
  expected = train(made(), ("CPU",))
  for place in (parallel.replicate, parallel.fully_shard, lambda net, d: parallel.fully_shard(net, Mesh(d, {"data": 4}), "data")):
    net = made()
    place(net, DEVICES)
    np.testing.assert_allclose(train(net, DEVICES), expected, rtol=1e-4)
  assert "gathered by readers" in net.first.weight.placement()
  net = made()
  parallel.replicate(net, DEVICES)
  np.testing.assert_allclose(train(net, DEVICES, in_parts=True), expected, rtol=1e-4)
  with pytest.raises(ValueError):
    parallel.shard_state(nn.optim.Adam(get_parameters(made())))


def test_meshes():
  mesh = Mesh(DEVICES, {"data": 2, "model": 2})
  assert mesh.devices == DEVICES and mesh.directions == {"data": 2, "model": 2}
  x = Tensor.arange(24).reshape(4, 6)
  y = x.shard(mesh, {"data": 0, "model": 1})
  assert "axis 0 over 2, axis 1 over 2" in y.placement() and y.tolist() == x.tolist()
  z = x.shard(mesh, {"data": 0, "model": 1}, gathered=["data"]).realize()
  assert "axis 0 over 2, gathered by readers" in z.placement() and (z + 1).tolist() == (x + 1).tolist()
  x.shard_(mesh, {"model": -1})
  assert "axis 1 over 2" in x.placement()
  for wrong in (lambda: Mesh(DEVICES, {"data": 3}), lambda: x.shard(mesh, {"rows": 0}), lambda: x.shard(mesh, {"data": 0}, gathered=["model"])):
    with pytest.raises(ValueError): wrong()
  with pytest.raises(ShapeError): x.shard(mesh, {"data": 2})
  with pytest.raises(TypeError): x.shard(mesh, {"data": "rows"})


def test_checkpoints(tmp_path: Path):
  assert load_checkpoint(tmp_path / "none") is None
  net = made()
  save_checkpoint(tmp_path, 5, get_state_dict(net), {"seed": "3"})
  found = load_checkpoint(tmp_path)
  assert found is not None and found.step == 5 and found.metadata == {"seed": "3"}
  other = Net()
  parallel.fully_shard(other, DEVICES)
  load_state_dict(other, found.tensors, verbose=False)
  for name, tensor in get_state_dict(net).items():
    assert get_state_dict(other)[name].tolist() == tensor.tolist()
