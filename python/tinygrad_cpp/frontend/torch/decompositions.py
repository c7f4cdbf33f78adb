"""How operators are taken apart that are not computed here as they are."""

from __future__ import annotations

import functools
import math
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


def _scores(query: torch.Tensor, key: torch.Tensor, attn_mask: torch.Tensor | None, is_causal: bool, scale: float | None) -> torch.Tensor:
  factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
  scores = torch.matmul(query, key.transpose(-2, -1)) * factor
  if is_causal:
    rows, columns = torch.arange(query.shape[-2]).unsqueeze(1), torch.arange(key.shape[-2]).unsqueeze(0)
    scores = scores.masked_fill(columns > rows, -math.inf)
  return scores if attn_mask is None else scores + attn_mask


def attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, dropout_p: float = 0.0, is_causal: bool = False, *,
              attn_mask: torch.Tensor | None = None, scale: float | None = None) -> Any:
  if dropout_p:
    return NotImplemented
  scores = _scores(query, key, attn_mask, is_causal, scale)
  out = torch.matmul(torch.softmax(scores, -1), value)
  # PyTorch's own kernel lays the result out by tokens, and its logarithms by heads.
  out = out.transpose(1, 2).contiguous().transpose(1, 2)
  return out, torch.logsumexp(scores.float(), -1).transpose(1, 2).contiguous().transpose(1, 2)


def attention_backward(grad_out: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, out: torch.Tensor,
                       logsumexp: torch.Tensor, dropout_p: float, is_causal: bool, *, attn_mask: torch.Tensor | None = None,
                       scale: float | None = None) -> Any:
  if dropout_p:
    return NotImplemented
  factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
  weights = torch.exp(_scores(query, key, attn_mask, is_causal, scale).float() - logsumexp.unsqueeze(-1)).to(query.dtype)
  of_weights = torch.matmul(grad_out, value.transpose(-2, -1))
  of_scores = weights * (of_weights - (grad_out * out).sum(-1, keepdim=True)) * factor
  return torch.matmul(of_scores, key), torch.matmul(of_scores.transpose(-2, -1), query), torch.matmul(weights.transpose(-2, -1), grad_out)


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
  own = {aten._scaled_dot_product_flash_attention_for_cpu.default: attention,
         aten._scaled_dot_product_flash_attention_for_cpu_backward.default: attention_backward}
  table |= own | {torch.ops.prims.fma.default: fma} | on_lists()
  return {op: f for op, f in table.items() if not _core.aten_supports(str(op))}
