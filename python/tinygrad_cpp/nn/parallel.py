"""Models on several devices. Each function gives the tensors of a model another place, which keeps their values; an optimizer is made behind
it, and its state is divided as the parameters are."""

from collections.abc import Sequence
from typing import Any

from tinygrad_cpp import _core
from tinygrad_cpp._core import Mesh, Optimizer
from tinygrad_cpp.nn.state import get_state_dict

__all__ = ["fully_shard", "replicate", "shard_state"]


def replicate(model: Any, devices: Sequence[str]) -> None:
  """A copy of every tensor on each device: each computes with its part of a batch, and gradients are summed over all."""
  _core.replicate(get_state_dict(model), devices)


def fully_shard(model: Any, devices: Sequence[str] | Mesh, direction: str = "shards") -> None:
  """A part of every parameter on each device, gathered where it is used (ZeRO-3); of a mesh along one direction."""
  if isinstance(devices, Mesh):
    _core.fully_shard_on_mesh(get_state_dict(model), devices, direction)
  else:
    _core.fully_shard(get_state_dict(model), devices)


def shard_state(optimizer: Optimizer) -> None:
  """A part of the optimizer's state on each device, which updates its part of the parameters (ZeRO-1 and 2)."""
  _core.shard_state(optimizer)
