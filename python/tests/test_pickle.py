"""Captured functions and tensors through pickle, in this process and in another."""

import dataclasses
import pathlib
import pickle
import subprocess
import sys

import pytest

import tinygrad_cpp as tg
from tinygrad_cpp import Tensor, TinyJit, Variable, nn


@dataclasses.dataclass
class Result:
  total: Tensor
  parts: dict[str, Tensor]


def test_a_capture_without_its_function() -> None:
  layer = nn.Linear(4, 3)

  @TinyJit
  def run(x: Tensor, scale: int = 2, *, bias: Tensor) -> Result:
    y = layer(x) * scale
    return Result(y.sum(), {"y": y, "shifted": y + bias})

  def inputs(k: int) -> tuple[Tensor, Tensor]:
    return Tensor([[1.0 + k, 2.0, 3.0, -1.0]]).realize(), Tensor([k * 1.0]).realize()

  with pytest.raises(tg.JitError, match="nothing is captured"):
    pickle.dumps(run)
  for k in range(3):
    x, b = inputs(k)
    run(x, bias=b)
  again = pickle.loads(pickle.dumps(run))
  for k in (7, 8):
    x, b = inputs(k)
    mine, theirs = run(x, bias=b), again(x, bias=b)
    assert isinstance(theirs, Result) and list(theirs.parts) == ["y", "shifted"]
    assert theirs.total.item() == mine.total.item() and theirs.parts["shifted"].tolist() == mine.parts["shifted"].tolist()
  assert again.captured and pickle.loads(pickle.dumps(again))(x, bias=b).total.item() == mine.total.item()
  with pytest.raises(tg.JitError, match="takes"):
    again(x, 3, bias=b)
  with pytest.raises(tg.JitError):
    again(Tensor([[1.0, 2.0]]).realize(), bias=b)
  with pytest.raises(tg.JitError, match="unpickled"):
    again.reset()


def test_in_another_process(tmp_path: pathlib.Path) -> None:
  class Net:
    def __init__(self) -> None:
      self.weight = Tensor([2.0, 3.0]).realize()

    @TinyJit
    def __call__(self, x: Tensor, n: Variable) -> tuple[Tensor, None]:
      return (x[:n] * 2).sum() * self.weight, None

  net, v, x = Net(), Variable("n", 1, 4), Tensor([1.0, 2.0, 3.0, 4.0]).realize()
  for n in (2, 3, 4):
    net(x, v.bind(n))
  (tmp_path / "run.pickle").write_bytes(pickle.dumps(net.__call__))
  program = f"""
import pickle
from tinygrad_cpp import Tensor, Variable
run = pickle.load(open({str(tmp_path / "run.pickle")!r}, "rb"))
out, nothing = run(Tensor([1.0, 2.0, 3.0, 5.0]).realize(), Variable("n", 1, 4).bind(4))
print(out.tolist(), nothing)
"""
  out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
  assert out.stdout.strip() == "[44.0, 66.0] None"


def test_a_clone_has_the_gradient() -> None:
  x = Tensor([1.0, 2.0]).realize()
  assert x.clone().grad is None
  (x * x).sum().backward()
  copy = x.clone()
  assert copy.grad is not None and x.grad is not None and copy.grad is not x.grad and copy.grad.tolist() == [2, 4]
  copy.grad.assign(Tensor([0.0, 0.0]))
  assert copy.grad.tolist() == [0, 0] and x.grad.tolist() == [2, 4]
  moved = x.clone(device="INTERP")
  assert moved.grad is not None and (moved.device, moved.grad.device) == ("INTERP", "INTERP") and moved.grad.tolist() == [2, 4]
