"""Layers."""

from tinygrad_cpp._core import (
  BatchNorm,
  BatchNorm2d,
  BatchNorm3d,
  Conv1d,
  Conv2d,
  ConvTranspose1d,
  ConvTranspose2d,
  Embedding,
  GroupNorm,
  InstanceNorm,
  LayerNorm,
  LayerNorm2d,
  Linear,
  LSTMCell,
  Module,
  RMSNorm,
)
from tinygrad_cpp.nn import datasets, optim, parallel, state, utils

__all__ = [
  "BatchNorm", "BatchNorm2d", "BatchNorm3d", "Conv1d", "Conv2d", "ConvTranspose1d", "ConvTranspose2d", "Embedding", "GroupNorm",
  "InstanceNorm", "LSTMCell", "LayerNorm", "LayerNorm2d", "Linear", "Module", "RMSNorm", "datasets", "optim", "parallel", "state",
  "utils",
]
