"""How operators are taken apart that are not computed here as they are."""

from __future__ import annotations

import functools
from typing import Any, Callable

import torch
from torch._decomp import core_aten_decompositions, get_decompositions

from tinygrad_cpp import _core

aten = torch.ops.aten

# PyTorch's core operators keep these whole, or its own backends do.
MORE = [aten.native_batch_norm_backward, aten.native_layer_norm_backward, aten.native_group_norm_backward, aten.embedding_dense_backward,
        aten.native_dropout, aten.native_dropout_backward, aten._softmax_backward_data, aten._log_softmax_backward_data, aten.gelu_backward, aten.addmm, aten.addmv,
        aten.baddbmm, aten.upsample_nearest2d.vec, aten.upsample_nearest2d_backward, aten.upsample_bilinear2d.vec, aten.avg_pool2d_backward,
        aten.max_pool2d_with_indices_backward, aten.grid_sampler_2d, aten.im2col, aten.col2im, aten.lerp, aten.index_add, aten.index_copy, aten.glu]


def fma(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
  return a * b + c


# Operators on lists of tensors, as optimizers use, whose names are not "_foreach_" and that of the operator on tensors.
SINGLE = {"norm": "linalg_vector_norm", "maximum": "clamp_min", "minimum": "clamp_max"}
KEYWORDS = {"alpha", "value", "dtype", "memory_format"}


def _single(op: Any) -> str:
  name: str = op._opname.removeprefix("_foreach_")
  return SINGLE.get(name, name)


def one_by_one(op: Any) -> Callable[..., Any]:
  """An operator on lists of tensors by the one on tensors: arguments that are lists have an item for each."""
  single = getattr(aten, _single(op))

  def decomposed(*args: Any, **kwargs: Any) -> Any:
    given = {**{a.name: x for a, x in zip(op._schema.arguments, args)}, **kwargs}
    if _single(op) in ("addcmul", "addcdiv") and "scalars" in given:
      given["value"] = given.pop("scalars")
      if isinstance(given["value"], torch.Tensor):
        return NotImplemented
    count = next(len(x) for x in given.values() if isinstance(x, (list, tuple)))
    out = []
    for i in range(count):
      own = {k: x[i] if isinstance(x, (list, tuple)) else x for k, x in given.items()}
      out.append(single(*(x for k, x in own.items() if k not in KEYWORDS), **{k: x for k, x in own.items() if k in KEYWORDS and x is not None}))
    return out

  return decomposed


def on_lists() -> dict[Any, Callable[..., Any]]:
  names = [n.removeprefix("aten::").partition(".") for n in torch._C._dispatch_get_all_op_names() if n.startswith("aten::_foreach_")]
  ops = [getattr(getattr(aten, name), overload or "default") for name, _, overload in names]
  return {op: one_by_one(op) for op in ops if not op._schema.is_mutable and hasattr(aten, _single(op))}


@functools.cache
def decompositions() -> dict[Any, Callable[..., Any]]:
  table: dict[Any, Callable[..., Any]] = {**core_aten_decompositions(), **get_decompositions(MORE)}
  table |= {torch.ops.prims.fma.default: fma} | on_lists()
  return {op: f for op, f in table.items() if not _core.aten_supports(str(op))}
