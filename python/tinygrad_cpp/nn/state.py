"""State dicts of any objects that hold tensors."""

from __future__ import annotations

import functools
import io
import os
from typing import Any, Callable, NamedTuple, TypeVar

from tinygrad_cpp import _core
from tinygrad_cpp._core import (
  LoadReport,
  Module,
  Optimizer,
  OptimizerGroup,
  Tensor,
  gguf_load,
  safe_load,
  safe_load_metadata,
  safe_save,
  tar_extract,
  torch_load,
  zip_extract,
)

__all__ = [
  "Checkpoint", "LoadReport", "TensorIO", "accept_filename", "get_parameters", "get_state_dict", "gguf_load", "load_checkpoint", "load_state_dict",
  "safe_load", "safe_load_metadata", "safe_save", "save_checkpoint", "tar_extract", "torch_load", "zip_extract",
]


T = TypeVar("T")


class TensorIO(io.RawIOBase):
  """The bytes of a vector of uint8 as a file that is read: `tarfile.open(fileobj=TensorIO(t))`."""

  def __init__(self, t: Tensor):
    if t.ndim != 1 or t.dtype != _core.all_dtypes["uint8"]:
      raise _core.ValueError(f"TensorIO: expects a vector of dtypes.uint8, got {t}")
    self._tensor, self._position = t, 0

  def readable(self) -> bool: return True
  def seekable(self) -> bool: return True

  def readinto(self, buffer: Any) -> int:
    part = self._tensor[self._position:self._position + len(buffer)]
    count = len(part)
    if count:
      memoryview(buffer)[:count] = part.data()
    self._position += count
    return count

  def seek(self, offset: int, whence: int = 0) -> int:
    size = len(self._tensor)
    if whence not in (0, 1, 2):
      raise _core.ValueError(f"TensorIO: whence is {whence}, expects 0, 1 or 2")
    self._position = min(max(offset + (0, self._position, size)[whence], 0), size)
    return self._position

  def tell(self) -> int: return self._position
  def write(self, _: Any) -> int: raise io.UnsupportedOperation("TensorIO: a tensor is read, not written")


def accept_filename(func: Callable[[Tensor], T]) -> Callable[[Any], T]:
  """Decorator: a function of a file's bytes that takes a path, too."""

  @functools.wraps(func)
  def call(fn: Any) -> T:
    from pathlib import Path

    return func(fn if isinstance(fn, Tensor) else Tensor(Path(os.fspath(fn))))

  return call


def get_state_dict(obj: Any, prefix: str = "", tensor_type: type = Tensor) -> dict[str, Tensor]:
  """The tensors of an object under their dotted names: of layers, of attributes, and of what is in lists, tuples and dicts."""
  if isinstance(obj, tensor_type):
    return {prefix.strip("."): obj}  # type: ignore[dict-item]
  out: dict[str, Tensor] = {}
  if isinstance(obj, Module):
    # Errors of the layer will begin with the path.
    named = obj.tensors(prefix[:-1]) if prefix.endswith(".") else [(prefix + name, t) for name, t in obj.tensors()]
    out.update(named)
  if isinstance(obj, Optimizer):
    parts = {"optimizers": obj.optimizers} if isinstance(obj, OptimizerGroup) else {"params": obj.params, "buffers": obj.buffers}
    out.update(get_state_dict(parts, prefix, tensor_type))
  if hasattr(obj, "_asdict"):
    items: Any = obj._asdict().items()
  elif isinstance(obj, dict):
    items = obj.items()
  elif isinstance(obj, (list, tuple)):
    items = enumerate(obj)
  else:
    items = getattr(obj, "__dict__", {}).items()
  for name, value in items:
    out.update(get_state_dict(value, f"{prefix}{name}.", tensor_type))
  return out


def get_parameters(obj: Any) -> list[Tensor]:
  """The tensors of an object."""
  return list(get_state_dict(obj).values())


class Checkpoint(NamedTuple):
  """What load_checkpoint() found: tensors in files, of which pages are loaded as they are used."""

  step: int
  tensors: dict[str, Tensor]
  metadata: dict[str, str]
  path: str


def save_checkpoint(folder: str | os.PathLike[str], step: int, tensors: dict[str, Tensor], metadata: dict[str, str] | None = None, keep: int = 2) -> None:
  """Writes tensors as FOLDER/step-STEP: files of safetensors and their index. The folder takes its name when it is complete; of the complete
  ones the last `keep` stay. Ranks call it together, and each writes some of the tensors."""
  _core.save_checkpoint(folder, step, tensors, metadata or {}, keep)


def load_checkpoint(folder: str | os.PathLike[str]) -> Checkpoint | None:
  """The last complete checkpoint of a folder, which any number of ranks may have written; None if there is none."""
  found = _core.load_checkpoint(folder)
  return None if found is None else Checkpoint(*found)


def load_state_dict(model: Any, state_dict: dict[str, Tensor], strict: bool = True, verbose: bool = True, consume: bool = False,
                    realize: bool = True) -> LoadReport:
  """Gives the tensors of an object the values of those with the same names, on the devices where they are. If strict, a name that is
  missing and a shape that differs are errors, which change nothing. With `consume`, what was loaded leaves the dict."""
  return _core.load_into(get_state_dict(model), state_dict, strict, verbose, consume, realize)
