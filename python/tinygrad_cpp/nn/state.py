"""State dicts of any objects that hold tensors."""

from __future__ import annotations

from typing import Any

from tinygrad_cpp import _core
from tinygrad_cpp._core import (
  LoadReport,
  Module,
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
  "LoadReport", "get_parameters", "get_state_dict", "gguf_load", "load_state_dict", "safe_load", "safe_load_metadata", "safe_save",
  "tar_extract", "torch_load", "zip_extract",
]


def get_state_dict(obj: Any, prefix: str = "", tensor_type: type = Tensor) -> dict[str, Tensor]:
  """The tensors of an object under their dotted names: of layers, of attributes, and of what is in lists, tuples and dicts."""
  if isinstance(obj, tensor_type):
    return {prefix.strip("."): obj}  # type: ignore[dict-item]
  out: dict[str, Tensor] = {}
  if isinstance(obj, Module):
    out.update({prefix + name: t for name, t in obj.tensors()})
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


def load_state_dict(model: Any, state_dict: dict[str, Tensor], strict: bool = True, verbose: bool = True, consume: bool = False,
                    realize: bool = True) -> LoadReport:
  """Gives the tensors of an object the values of those with the same names, on the devices where they are. If strict, a name that is
  missing and a shape that differs are errors, which change nothing. With `consume`, what was loaded leaves the dict."""
  return _core.load_into(get_state_dict(model), state_dict, strict, verbose, consume, realize)
