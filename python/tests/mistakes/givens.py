"""What the tables of mistakes are made with."""

import json
import operator
import pathlib
import struct
import tempfile
from typing import Any, Callable

import numpy as np

from tinygrad_cpp import Context, Tensor, dtypes, function, nn
from tinygrad_cpp.nn import optim
from tinygrad_cpp.nn.state import get_state_dict, load_state_dict, safe_save

__all__ = [
  "B", "E", "FOLDER", "FULL", "GOOD", "GOOD_BYTES", "I", "IMAGE", "KERNEL", "LOGITS", "PROBS", "QUERY", "S", "V", "Y",
  "CountsUp", "Fails", "Grows", "NoLength", "add_in_place", "call_each", "changed", "file_of", "gradient_of", "load", "operator",
  "safetensors", "set_grad", "set_item", "set_weight", "sgd", "step",
]

# Tensors that no mistake may change.
V = Tensor([1.0, 2.0, 3.0]).realize()
I = Tensor([[1, 2], [3, 4]]).realize()
B = Tensor([True, False]).realize()
S = Tensor(2.0).realize()
E = Tensor(np.zeros((0, 3), np.float32))
IMAGE = Tensor(np.ones((1, 4, 8, 8), np.float32))
KERNEL = Tensor(np.ones((3, 4, 3, 3), np.float32))
LOGITS = Tensor(np.ones((2, 3), np.float32))
PROBS = Tensor([[0.25, 0.5], [0.125, 0.75]]).realize()
QUERY = Tensor(np.ones((1, 2, 3, 4), np.float32))
Y = Tensor([0, 1]).realize()
GIVEN = {"V": V, "I": I, "B": B, "S": S, "E": E, "IMAGE": IMAGE, "KERNEL": KERNEL, "LOGITS": LOGITS, "PROBS": PROBS, "QUERY": QUERY, "Y": Y}

_temporary = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(_temporary.name)


def file_of(data: bytes) -> pathlib.Path:
  file = FOLDER / f"file{len(list(FOLDER.iterdir()))}"
  file.write_bytes(data)
  return file


def safetensors(header: Any, data: bytes, length: int | None = None) -> pathlib.Path:
  """A file with this header, which may lie about its length."""
  text = header if isinstance(header, bytes) else json.dumps(header).encode()
  return file_of(struct.pack("<Q", len(text) if length is None else length) + text + data)


GOOD = FOLDER / "good.safetensors"
safe_save({"a": Tensor([[1.0, 2.0], [3.0, 4.0]])}, GOOD)
GOOD_BYTES = GOOD.read_bytes()
(FOLDER / "mnist").mkdir()
(FOLDER / "mnist" / "train-images-idx3-ubyte").write_bytes(b"xx")


class Net:
  def __init__(self) -> None:
    self.l1, self.l2 = nn.Linear(2, 2), nn.Linear(2, 1)


FULL = get_state_dict(Net())


def changed(without: list[str], **other: Any) -> dict[str, Any]:
  return {name: value for name, value in {**FULL, **other}.items() if name not in without}


def load(state: Any) -> Any:
  """Into a net, which stays as it was."""
  net = Net()
  before = {name: t.tolist() for name, t in get_state_dict(net).items()}
  try:
    return load_state_dict(net, state, verbose=False)
  finally:
    assert before == {name: t.tolist() for name, t in get_state_dict(net).items()}


# Data sets.

class Grows:
  """Each example is longer than the one before."""

  def __len__(self) -> int: return 4
  def __getitem__(self, i: int) -> Any: return np.zeros(i + 1, np.float32)


class CountsUp:
  """Each example has more arrays than the one before."""

  def __len__(self) -> int: return 3
  def __getitem__(self, i: int) -> Any: return (np.zeros(2, np.float32),) * (i + 1)


class Fails:
  def __len__(self) -> int: return 4
  def __getitem__(self, i: int) -> Any: raise KeyError(f"item {i}")


class NoLength:
  def __getitem__(self, i: int) -> Any: return i


# Statements as functions.

def set_item(t: Tensor, index: Any, value: Any) -> None: t[index] = value
def set_grad(t: Tensor, grad: Any) -> None: t.grad = grad


def set_weight(layer: Any, weight: Any) -> Tensor:
  layer.weight = weight
  return layer(Tensor.ones(2, 3))  # type: ignore[no-any-return]


def add_in_place(x: Tensor) -> Tensor: return x.assign(x + 1).realize()


def call_each(f: Callable[..., Any], *arguments: tuple[Any, ...]) -> None:
  for a in arguments:
    f(*a)


def gradient_of(t: Tensor, f: Any, gradient: Any) -> Any:
  """Of a function with a gradient of its own."""
  try:
    function(f, gradient=gradient)(t).sum().backward()
    return t.grad
  finally:
    t.grad = None


def sgd(t: Tensor) -> optim.Optimizer: return optim.SGD([t])


def step(t: Tensor, prepare: Callable[[Tensor], Any], training: int = 1) -> None:
  optimizer = optim.Adam([t, Tensor([1.0])])
  before = {name: s.tolist() for name, s in get_state_dict(optimizer).items()}
  try:
    prepare(t)
    with Context(TRAINING=training):
      optimizer.step()
  finally:
    t.grad = None
    assert before == {name: s.tolist() for name, s in get_state_dict(optimizer).items()}
