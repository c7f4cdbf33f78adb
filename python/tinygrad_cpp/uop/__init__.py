from __future__ import annotations

from tinygrad_cpp import _core
from tinygrad_cpp._core import BoundedVariable as Variable, UOp

__all__ = ["Ops", "UOp", "Variable"]


class OpNames:
  """Ops.ADD and so on: what UOp.op is."""

  def __getattr__(self, name: str) -> str:
    if name in _core.op_names():
      return name
    raise AttributeError(f"there is no Ops.{name}")

  def __dir__(self) -> list[str]:
    return _core.op_names()


Ops = OpNames()
