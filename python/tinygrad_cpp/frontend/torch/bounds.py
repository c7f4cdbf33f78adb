"""Indices out of range: PyTorch's operators stop at one, ours read 0 there and write nothing. Graphs tell afterwards whether there was one."""

from __future__ import annotations

from typing import Any

from torch.fx import Node

from tinygrad_cpp import Tensor
from tinygrad_cpp.dtype import dtypes
from tinygrad_cpp.frontend.torch.graph import aten

# Operators by what their indices are of: an axis, rows of a table, all elements, an axis also from its end.
ALONG_AN_AXIS = {aten.index_select.default, aten.gather.default, aten.scatter.src, aten.scatter.value, aten.scatter_add.default,
                 aten.scatter_reduce.two, aten.scatter.reduce, aten.scatter.value_reduce, aten.index_add.default, aten.index_copy.default}
TABLES = {aten.embedding.default, aten._embedding_bag.default, aten._embedding_bag_forward_only.default}
FLAT = {aten.take.default, aten.put.default}
FILLS = {aten.index_fill.int_Scalar, aten.index_fill.int_Tensor}


def _outside(index: Tensor, least: int, end: int) -> Tensor:
  return (index < least) | (index >= end)


def outside(op: Any, given: dict[str, Any]) -> list[Tensor]:
  """For an operator that takes indices, which of them are out of range."""
  if op in TABLES:
    return [_outside(given["indices"], 0, given["weight"].shape[0])]
  if op in ALONG_AN_AXIS:
    x = given["self"]
    return [_outside(given["index"], 0, x.shape[given["dim"]] if x.ndim else 1)]
  if op in FILLS:
    n = given["self"].shape[given["dim"]] if given["self"].ndim else 1
    return [_outside(given["index"], -n, n)]
  if op in FLAT:
    n = given["self"].numel()
    return [_outside(given["index"], -n, n)]
  if op in (aten.index.Tensor, aten.index_put.default):
    x, out, axis = given["self"], [], 0
    for index in given["indices"]:
      if index is None or index.dtype is not dtypes.bool and index.dtype is not dtypes.uint8:
        n = x.shape[axis]
        out += [] if index is None else [_outside(index, -n, n)]
        axis += 1
      else:
        axis += index.ndim
    return out
  if op in (aten.nll_loss_forward.default, aten.nll_loss2d_forward.default):
    target, x = given["target"], given["self"]
    ignored = given.get("ignore_index", -100)
    return [_outside(target, 0, x.shape[1 if x.ndim > 1 else 0]) & (target != ignored)]
  return []


class Bounds:
  """Collects what is out of range in a graph."""

  def __init__(self) -> None:
    self.names: list[str] = []
    self.found: Tensor | None = None

  def note(self, node: Node, given: dict[str, Any]) -> None:
    for which in outside(node.target, given):
      if which.numel():
        self.names.append(str(node.target))
        number = which.where(len(self.names), 0).cast(dtypes.int32).max()
        self.found = number if self.found is None else self.found.maximum(number)
