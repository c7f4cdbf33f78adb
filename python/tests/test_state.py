"""State dicts, files and optimizers from Python."""

import copy
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

import tinygrad_cpp as tg
from tinygrad_cpp import Context, Tensor, dtypes, nn
from tinygrad_cpp.nn.state import get_parameters, get_state_dict, load_state_dict, safe_load, safe_load_metadata, safe_save


class Net:
  def __init__(self) -> None:
    self.layers = [nn.Linear(4, 8), Tensor.relu, nn.BatchNorm(8)]
    self.heads = {"a": nn.Linear(8, 2, bias=False), "b": (nn.Conv2d(1, 2, 3),)}
    self.scale = Tensor([1.0])
    self.name = "net"


def test_state_dict_of_objects() -> None:
  names = list(get_state_dict(Net()))
  assert names == ["layers.0.weight", "layers.0.bias", "layers.2.weight", "layers.2.bias", "layers.2.num_batches_tracked",
                   "layers.2.running_mean", "layers.2.running_var", "heads.a.weight", "heads.b.0.weight", "heads.b.0.bias", "scale"]
  assert len(get_parameters(Net())) == len(names)


def test_layers_in_python_classes() -> None:
  class Wide(nn.Linear):
    def __init__(self) -> None:
      super().__init__(3, 5)
      self.extra = Tensor.zeros(2)

  layer = Wide()
  assert set(get_state_dict(layer)) == {"weight", "bias", "extra"}
  layer.weight = Tensor.ones(5, 3)
  layer.bias = None
  assert layer(Tensor([[1.0, 2.0, 3.0]])).tolist() == [[6.0] * 5]
  assert set(get_state_dict(layer)) == {"weight", "extra"}


def test_save_and_load(tmp_path: pathlib.Path) -> None:
  a, b = Net(), Net()
  file = tmp_path / "net.safetensors"
  safe_save(get_state_dict(a), str(file), metadata={"epoch": 3})
  loaded = safe_load(file)
  for name, t in get_state_dict(a).items():
    np.testing.assert_array_equal(loaded[name].numpy(), t.numpy())
  report = load_state_dict(b, loaded, verbose=False)
  assert not report.missing and not report.unexpected and len(report.loaded) == 11
  for name, t in get_state_dict(b).items():
    np.testing.assert_array_equal(t.numpy(), loaded[name].numpy())
  _, start, header = safe_load_metadata(file)
  assert start > 8 and header["__metadata__"]["epoch"] == "3" and header["scale"]["dtype"] is dtypes.float32
  del loaded["scale"]
  loaded["other"] = Tensor([1.0])
  with pytest.raises(tg.ValueError, match="scale"):
    load_state_dict(b, loaded, verbose=False)
  report = load_state_dict(b, loaded, strict=False, verbose=False)
  assert report.missing == ["scale"] and report.unexpected == ["other"]
  load_state_dict(b, loaded, strict=False, verbose=False, consume=True)
  assert list(loaded) == ["other"]


def test_bad_files(tmp_path: pathlib.Path) -> None:
  file = tmp_path / "x.safetensors"
  with pytest.raises(OSError):
    safe_load(file)
  file.write_bytes(b"\xff" * 16)
  with pytest.raises(tg.FormatError):
    safe_load(file)
  with pytest.raises(tg.FormatError):
    nn.state.torch_load(file)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "LAMB", "LARS", "Muon"])
def test_optimizers_resume_exactly(name: str, tmp_path: pathlib.Path) -> None:
  def train(steps: int, state: pathlib.Path | None = None) -> tuple[list[float], Net, nn.optim.Optimizer]:
    Tensor.manual_seed(1)
    net = nn.Linear(4, 3)
    Tensor.realize(net.weight, net.bias)  # a lazy one may become part of a kernel, which rounds less often than memory does
    options = {"momentum": 0.9} if name == "SGD" else {}
    optimizer = getattr(nn.optim, name)([net.weight] if name == "Muon" else get_parameters(net), lr=0.01, **options)
    if state:
      saved = safe_load(state)
      load_state_dict({"net": net, "optimizer": optimizer}, saved, verbose=False)
    x = Tensor(np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32))
    losses = []
    with Context(TRAINING=1):
      for _ in range(steps):
        optimizer.zero_grad()
        loss = (net(x) ** 2).mean().backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, net, optimizer

  whole, _, _ = train(6)
  first, net, optimizer = train(3)
  safe_save(get_state_dict({"net": net, "optimizer": optimizer}), tmp_path / "s")
  rest, _, _ = train(3, tmp_path / "s")
  assert first + rest == whole and whole[-1] < whole[0]


def test_schedulers() -> None:
  optimizer = nn.optim.SGD([Tensor([1.0])], lr=1.0)
  scheduler = nn.optim.MultiStepLR(optimizer, [2, 3], gamma=0.5)
  rates = []
  for _ in range(4):
    rates.append(optimizer.lr.item())
    scheduler.step()
  assert rates == [1, 1, 0.5, 0.25]
  nn.optim.LambdaLR(optimizer, lambda step: 0.1 * (step + 1)).step()


def test_other_threads_run_while_it_computes() -> None:
  with Context(SCACHE=1):
    big = Tensor.rand(512, 512)
    ticks = []
    done = threading.Event()

    def count() -> None:
      while not done.is_set():
        ticks.append(time.perf_counter())
        time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    for _ in range(3):
      big = big @ big / 256
    start = time.perf_counter()
    big.realize()
    end = time.perf_counter()
    done.set()
    thread.join()
  assert sum(start < t < end for t in ticks) >= 2


def test_ctrl_c(tmp_path: pathlib.Path) -> None:
  program = """
import signal, sys, tinygrad_cpp as tg
x = tg.Tensor([1.0])
try:
  print("ready", flush=True)
  for i in range(10**6):
    x = (x * (i + 0.5) + i).realize()
except KeyboardInterrupt:
  print("stopped", (tg.Tensor([2.0]) * 3).tolist(), flush=True)
"""
  environment = {**os.environ, "CACHEDB": str(tmp_path / "cache.db")}
  child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment)
  assert child.stdout is not None and child.stdout.readline() == "ready\n"
  time.sleep(0.5)
  child.send_signal(signal.SIGINT)
  out, _ = child.communicate(timeout=60)
  assert out == "stopped [6.0]\n"


LAYERS = [
  (lambda: nn.Linear(4, 3), (2, 4)), (lambda: nn.Conv1d(4, 6, 3, padding="same"), (2, 4, 5)),
  (lambda: nn.Conv2d(4, 6, 3, stride=2, groups=2, bias=False), (2, 4, 7, 7)), (lambda: nn.ConvTranspose2d(4, 3, 3, stride=2, output_padding=1), (2, 4, 3, 3)),
  (lambda: nn.BatchNorm(4, eps=1e-3), (2, 4, 3)), (lambda: nn.GroupNorm(2, 4), (2, 4, 3)), (lambda: nn.InstanceNorm(4, affine=False), (2, 4, 3)),
  (lambda: nn.LayerNorm((4, 3), eps=1e-3), (2, 4, 3)), (lambda: nn.LayerNorm2d(4), (2, 4, 3, 3)), (lambda: nn.RMSNorm(4), (2, 4)),
]


@pytest.mark.parametrize("make,shape", LAYERS)
def test_layers_are_copied_and_pickled(make: Any, shape: tuple[int, ...]) -> None:
  layer, x = make(), Tensor.randn(*shape).realize()
  for t in get_parameters(layer):
    t.realize()
  layer.note = ["kept"]
  for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
    assert type(other) is type(layer) and other.note == ["kept"] and other.note is not layer.note
    np.testing.assert_array_equal(other(x).numpy(), layer(x).numpy())
    for name, t in nn.state.get_state_dict(other).items():
      before = nn.state.get_state_dict(layer)[name].numpy().copy()
      t.assign(t + 1).realize()
      np.testing.assert_array_equal(nn.state.get_state_dict(layer)[name].numpy(), before)


def test_cells_and_tables_are_pickled() -> None:
  cell, table = pickle.loads(pickle.dumps((nn.LSTMCell(3, 2), nn.Embedding(5, 3))))
  h, c = cell(table(Tensor([1, 4])))
  assert h.shape == c.shape == (2, 2)
  with pytest.raises(TypeError):
    cell.__setstate__((1, 2))


def test_settings_of_layers() -> None:
  conv, group = nn.Conv2d(4, 6, 3, stride=2, groups=2), nn.GroupNorm(2, 4)
  assert conv.kernel_size == (3, 3) and conv.stride == (2,) and conv.groups == 2 and group.num_groups == 2 and group.num_channels == 4
