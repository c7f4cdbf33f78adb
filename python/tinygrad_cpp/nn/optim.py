"""Optimizers and learning-rate schedulers."""

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
)

__all__ = [
  "LAMB", "LARS", "SGD", "Adam", "AdamW", "CosineAnnealingLR", "CosineAnnealingLRWithWarmup", "LRScheduler", "LambdaLR", "MultiStepLR", "Muon",
  "OneCycleLR", "Optimizer", "OptimizerGroup", "ReduceLROnPlateau",
]
