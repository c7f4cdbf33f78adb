"""Optimizers and learning-rate schedulers."""

from typing import Any

from tinygrad_cpp import _core
from tinygrad_cpp._core import (
  LAMB,
  LARS,
  SGD,
  Adam,
  AdamW,
  CosineAnnealingLR,
  CosineAnnealingLRWithWarmup,
  LambdaLR,
  LRScheduler,
  MultiStepLR,
  Muon,
  OneCycleLR,
  Optimizer,
  OptimizerGroup,
  ReduceLROnPlateau,
  Tensor,
)

__all__ = [
  "LAMB", "LARS", "SGD", "Adam", "AdamW", "CosineAnnealingLR", "CosineAnnealingLRWithWarmup", "LRScheduler", "LambdaLR", "MultiStepLR", "Muon",
  "OneCycleLR", "Optimizer", "OptimizerGroup", "ReduceLROnPlateau",
]


def scheduled_step(optimizer: Any) -> list[Tensor]:
  """What a step of an optimizer assigns to, lazily, where a subclass in Python says by `_step` and `_apply_update` what is new."""
  if isinstance(optimizer, OptimizerGroup):
    return [t for o in optimizer.optimizers for t in o.schedule_step()]
  if not _core.get_option("TRAINING"):
    raise _core.ValueError("optimizer: step() while training is off; open a scope with Context(TRAINING=1)")
  params = optimizer.params
  grads = [p.grad for p in params if p.grad is not None]
  if len(grads) != len(params):
    raise _core.ValueError(f"optimizer: {len(params) - len(grads)} of {len(params)} parameters have no gradient; call backward() first")
  if optimizer.fused:
    joined, extra = optimizer._step([Tensor.cat(*[p.detach().flatten() for p in params])], [Tensor.cat(*[g.flatten() for g in grads])])
    updates, end = [], 0
    for p in params:
      begin, end = end, end + p.numel()
      updates.append(joined[0][begin:end].reshape(p.shape))
  else:
    updates, extra = optimizer._step(params, grads)
  if len(updates) != len(params):
    raise _core.ValueError(f"optimizer: _step() gave {len(updates)} tensors for {len(params)} parameters")
  for p, update in zip(params, updates):
    p.assign(optimizer._apply_update(p, update))
  return [*extra, *params, *optimizer.buffers]
