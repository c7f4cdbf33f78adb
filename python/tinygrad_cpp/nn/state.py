"""State dicts of any objects that hold tensors."""

from __future__ import annotations

from typing import Any

from tinygrad_cpp._core import Module, Tensor

__all__ = ["get_parameters", "get_state_dict", "load_state_dict"]


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
