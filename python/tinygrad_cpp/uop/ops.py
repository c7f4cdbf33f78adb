from __future__ import annotations

import dataclasses
from typing import Any

from tinygrad_cpp.dtype import AddrSpace
from tinygrad_cpp.uop import Ops, UOp, Variable

__all__ = ["AddrSpace", "AxisType", "KernelInfo", "Ops", "UOp", "Variable"]


class AxisType:
  """The loops of a kernel written by hand, for UOp.range."""

  LOOP = "LOOP"
  WEAK = "LOOP"
  REDUCE = "REDUCE"


@dataclasses.dataclass(frozen=True)
class KernelInfo:
  """What UOp.sink is told about a kernel."""

  name: str = "custom"
  opts_to_apply: tuple[Any, ...] | None = None

  def __post_init__(self) -> None:
    if self.opts_to_apply:
      raise ValueError("KernelInfo: the library chooses opts by itself; leave opts_to_apply out")
