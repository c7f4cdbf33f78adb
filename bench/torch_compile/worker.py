"""Trains one network with one backend as it is told: worker.py BACKEND NETWORK"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from typing import Any, Callable

import torch
import torch_models

torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
warnings.simplefilter("ignore")
spent = 0.0


def timed(f: Callable[..., Any]) -> Callable[..., Any]:
  """Adds to `spent`, but for what is inside of another."""
  def run(*args: Any, **kwargs: Any) -> Any:
    global spent
    before, start = spent, time.perf_counter()
    try:
      return f(*args, **kwargs)
    finally:
      spent = before + time.perf_counter() - start
  return run


def watch(backend: str) -> None:
  """Of our backend all that its programs do is counted, their first runs too; of inductor its compiler."""
  if backend == "tinygrad_cpp":
    from tinygrad_cpp.frontend.torch import program

    for name in ("__init__", "__call__"):
      setattr(program.Program, name, timed(getattr(program.Program, name)))
  else:
    from torch._inductor import compile_fx

    compile_fx.fx_codegen_and_compile = timed(compile_fx.fx_codegen_and_compile)


def main() -> None:
  backend, network = sys.argv[1:]
  net, inputs = torch_models.make(network)
  watch(backend)
  model = torch.compile(net, backend=backend)

  def step() -> None:
    for p in net.parameters():
      p.grad = None
    torch_models.loss_of(model(*inputs)).backward()

  count = 1
  for line in sys.stdin:
    start = time.perf_counter()
    if line == "first\n":
      step()
      answer: Any = {"all": time.perf_counter() - start, "backend": spent}
      start = time.perf_counter()
      step()
      count = max(1, int(0.3 / (time.perf_counter() - start)))
    elif line == "steps\n":
      for _ in range(count):
        step()
      answer = (time.perf_counter() - start) / count
    else:
      from tinygrad_cpp.frontend.torch import fallback_counts

      answer = fallback_counts()
    print(json.dumps(answer), flush=True)


main()
