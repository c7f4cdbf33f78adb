"""A graph of ATen operators as a function of PyTorch's tensors."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from tinygrad_cpp import Error, _core
from tinygrad_cpp.frontend.torch.fallback import count
from tinygrad_cpp.frontend.torch.graph import Stage, aten, concrete, has_effects, has_our_elements, meta, note_symbols, reasons_of, stages_of, tensors_in
from tinygrad_cpp.frontend.torch.lower import Lowering, NotLowered

VIEWS_THAT_MAY_COPY = {aten.view.default: aten.reshape.default, aten._unsafe_view.default: aten.reshape.default}


def seed() -> int:
  """From PyTorch's generator, so that torch.manual_seed decides what graphs draw."""
  return int(torch.randint(0, 2**63 - 1, ()).item())


class Refused(RuntimeError):
  """With fallback=False: what eager PyTorch would have to run."""


# What is not the graph's fault: such a call runs in eager PyTorch, and the next one here again.
PASSING = (_core.DeviceError, _core.OutOfMemoryError, _core.JitError)


@dataclass(frozen=True)
class Plan:
  """Which operators run where. `is_one`: the graph is one stage, which is called as the graph is."""
  stages: list[Stage]
  functions: list[Any]
  reasons: dict[Node, str]
  is_one: bool


class Program:
  """`exact` outputs of the graph have the strides that PyTorch's have."""

  def __init__(self, gm: GraphModule, exact: int | None, sizes: int, fallback: bool):
    self.gm, self.sizes, self.fallback = gm, sizes, fallback
    self._boxed_call = True
    self.placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
    self.constants = {n: self.attribute(n) for n in gm.graph.nodes if n.op == "get_attr"}
    self.result: Any = next(n for n in gm.graph.nodes if n.op == "output").args[0]
    outputs = list(self.result)
    self.exact = {n for n in (outputs if exact is None else outputs[:exact]) if isinstance(n, Node)}
    self.refused: dict[Node, str] = {}
    self.lock = threading.Lock()
    self.current = self.plan()

  def attribute(self, node: Node) -> Any:
    out: Any = self.gm
    for name in str(node.target).split("."):
      out = getattr(out, name)
    return out

  def plan(self) -> Plan:
    reasons = reasons_of(self.gm.graph, self.refused)
    named = {n: r for n, r in reasons.items() if r}
    if named and not self.fallback:
      raise Refused("tinygrad_cpp: fallback is off, and eager PyTorch would have to run "
                    + "; ".join(dict.fromkeys(f"{n.target}: {r}" for n, r in named.items())))
    stages = stages_of(self.gm, reasons)
    theirs = {n for s in stages for n in s.theirs}
    read_by_theirs = {a for n in theirs for a in n.all_input_nodes}
    for s in stages:
      s.inputs = [n for n in self.placeholders if n in set(s.inputs)] + [n for n in s.inputs if n.op != "placeholder"]
    is_one = len(stages) == 1 and not theirs and not self.constants and all(has_our_elements(x) for n in self.placeholders for x in tensors_in(meta(n)))
    if is_one:
      stages[0].inputs, stages[0].outputs = self.placeholders, list(self.result)
    functions = [self.function(s, (self.exact | read_by_theirs) & {n for n in s.outputs if isinstance(n, Node)}) if s.ours else None for s in stages]
    return Plan(stages, functions, reasons, is_one)

  def function(self, stage: Stage, exact: set[Node]) -> Any:
    def prepare(arguments: list[Any]) -> Any:
      if out.count >= self.sizes:
        return self.run_eagerly(stage, arguments, f"its graph has been compiled for {self.sizes} forms of its arguments already (the option 'sizes')")
      lowering = Lowering(stage, arguments, exact)
      return lowering, lowering.copied, lowering.written, lowering.draws

    out = _core.GraphFunction(torch.Tensor, prepare, seed)
    return out

  def __call__(self, arguments: list[Any]) -> Any:
    plan = self.current  # another thread may make another one meanwhile
    if plan.is_one:
      return self.run_ours(plan.stages[0], plan.functions[0], arguments)
    env: dict[Node, Any] = {**dict(zip(self.placeholders, arguments)), **self.constants}
    arguments.clear()
    symbols: dict[Any, int] = {}
    for node in self.placeholders:
      x = env[node]
      if isinstance(x, torch.Tensor) and isinstance(meta(node), torch.Tensor):
        note_symbols(meta(node).shape, x.shape, symbols)
      elif isinstance(meta(node), torch.SymInt):
        note_symbols([meta(node)], [x], symbols)
    for stage, function in zip(plan.stages, plan.functions):
      if function is not None:
        env.update(zip(stage.outputs, self.run_ours(stage, function, [env[n] for n in stage.inputs]), strict=True))
      for node in stage.theirs:
        env[node] = self.run_theirs(node, env, symbols, plan.reasons.get(node, ""))
    return map_arg(self.result, env.__getitem__)

  def run_ours(self, stage: Stage, function: Any, arguments: list[Any]) -> Any:
    try:
      return function(arguments)
    except NotLowered as e:
      refused, reason = [e.node], e.reason
    except PASSING as e:
      may_have_written = not isinstance(e, _core.JitError) and any(n.target is aten.copy_.default for n in stage.ours)
      if may_have_written or not self.fallback:
        raise
      return self.run_eagerly(stage, arguments, f"{type(e).__name__}: {e}")
    except Error as e:  # of the whole stage, when it was scheduled or compiled
      refused, reason = [n for n in stage.ours if n.target is not aten.copy_.default], f"{type(e).__name__}: {e}"
    if not self.fallback:
      raise Refused(f"tinygrad_cpp: fallback is off, and {refused[0].target} cannot be computed: {reason}")
    out = self.run_eagerly(stage, arguments, reason)
    with self.lock:
      self.refused |= {n: reason for n in refused}
      self.current = self.plan()
    return out

  def run_eagerly(self, stage: Stage, arguments: list[Any], reason: str) -> list[Any]:
    """A stage once in PyTorch."""
    env = dict(zip(stage.inputs, arguments))
    symbols: dict[Any, int] = {}
    for node, x in env.items():
      if isinstance(x, torch.Tensor) and isinstance(meta(node), torch.Tensor):
        note_symbols(meta(node).shape, x.shape, symbols)
    for node in stage.ours:
      env[node] = self.run_theirs(node, env, symbols, reason)
    return [env[n] if isinstance(n, Node) else n for n in stage.outputs]

  def run_theirs(self, node: Node, env: dict[Node, Any], symbols: dict[Any, int], reason: str) -> Any:
    if reason and isinstance(node.target, torch._ops.OpOverload) or has_effects(node) and reason:
      count(str(node.target), reason)
    elif reason:
      count(getattr(node.target, "__name__", str(node.target)), reason)

    def value(n: Node) -> Any:
      x, expected = env[n], meta(n)
      if isinstance(x, torch.Tensor) and isinstance(expected, torch.Tensor) and expected.layout is torch.strided and x.numel():
        strides = [concrete(s, symbols) for s in expected.stride()]
        if None not in strides and any(k > 1 and s != w for k, s, w in zip(x.shape, x.stride(), strides)):
          own = torch.empty_strided(x.shape, strides, dtype=x.dtype)
          return own.copy_(x)
      return x

    written = node.target is aten.copy_.default
    args, kwargs = map_arg((node.args, node.kwargs), env.__getitem__ if written else value)
    target: Any = VIEWS_THAT_MAY_COPY.get(node.target, node.target)
    return target(*args, **kwargs)
