"""The backend of torch.compile."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition

from tinygrad_cpp.frontend.torch.decompositions import decompositions
from tinygrad_cpp.frontend.torch.program import Program

OPTIONS = {"sizes": 16, "fallback": True}


def _options(mode: str | None, options: dict[str, Any] | None) -> dict[str, Any]:
  if mode not in (None, "default"):
    raise ValueError(f"tinygrad_cpp: the backend has no mode, got {mode!r}")
  for name, value in (options or {}).items():
    if name not in OPTIONS:
      raise ValueError(f"tinygrad_cpp: no option is named {name!r}; there are {', '.join(map(repr, OPTIONS))}")
    if type(value) is not type(OPTIONS[name]) or name == "sizes" and value < 1:
      raise ValueError(f"tinygrad_cpp: the option {name!r} is {'a positive integer' if name == 'sizes' else 'True or False'}, got {value!r}")
  return {**OPTIONS, **(options or {})}


def backend(gm: torch.fx.GraphModule, example_inputs: Sequence[Any], *, mode: str | None = None,
            options: dict[str, Any] | None = None) -> Callable[..., Any]:
  """What torch.compile(backend="tinygrad_cpp") calls. `options`: "sizes", how many forms of arguments (sizes, strides, numbers) each graph is
  compiled for before eager PyTorch takes the others; "fallback", whether eager PyTorch runs what is not supported, or that is an error."""
  chosen = _options(mode, options)
  for x in example_inputs:
    if isinstance(x, torch.Tensor) and x.device.type != "cpu":
      raise ValueError(f"tinygrad_cpp: an argument or a parameter is on {x.device}; the backend computes with tensors on the CPU")

  def forward(graph: torch.fx.GraphModule, _: Sequence[Any]) -> Any:
    context = torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context else None
    return Program(graph, metadata.num_forward if metadata else None, **chosen)

  def all_exact(graph: torch.fx.GraphModule, _: Sequence[Any]) -> Any:
    return Program(graph, None, **chosen)

  compiler = aot_autograd(fw_compiler=forward, bw_compiler=all_exact, inference_compiler=all_exact, decompositions=decompositions(),
                          partition_fn=min_cut_rematerialization_partition, keep_inference_input_mutations=True)
  out: Callable[..., Any] = compiler(gm, example_inputs)
  return out
