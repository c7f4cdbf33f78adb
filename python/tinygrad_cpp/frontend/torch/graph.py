"""A graph of ATen operators as stages: parts that are computed here, and single operators that eager PyTorch runs between them."""

from __future__ import annotations

import dataclasses
import math
import operator
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from tinygrad_cpp import _core
from tinygrad_cpp.frontend.torch.arrays import DTYPES

aten = torch.ops.aten

NUMBER_TYPES = (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool)
SIZE_OPS = {aten.sym_size.int, aten.sym_numel.default, aten.sym_stride.int, aten.sym_storage_offset.default, aten.sym_size.default, aten.sym_stride.default}
CHECKS = {aten._assert_scalar.default, aten.sym_constrain_range.default, aten.sym_constrain_range_for_size.default}
# What PyTorch's strides decide: right only where they are those of a contiguous tensor.
STRIDE_OPS = {aten.as_strided.default, aten.as_strided_copy.default, aten.as_strided_scatter.default}


def tensors_in(value: Any) -> list[torch.Tensor]:
  if isinstance(value, torch.Tensor):
    return [value]
  if isinstance(value, (tuple, list)):
    return [t for v in value for t in tensors_in(v)]
  return []


def meta(node: Node) -> Any:
  return node.meta.get("val")


def is_number(node: Node) -> bool:
  """What Python computes of numbers and sizes."""
  if node.target in SIZE_OPS or node.target in CHECKS:
    return True
  return isinstance(meta(node), NUMBER_TYPES) and not isinstance(node.target, torch._ops.OpOverload)


def is_contiguous(x: torch.Tensor) -> bool:
  return bool(x.is_contiguous()) and int(x.storage_offset()) == 0


def _has_new_sizes(node: Node) -> bool:
  """Whether sizes of the result come from values; of indexing, where masks index."""
  known = {s for a in node.all_input_nodes for s in free_unbacked_symbols(meta(a))}
  return bool(free_unbacked_symbols(meta(node)) - known)


def refusal(node: Node) -> str:
  """Why an operator is not computed here; empty where it is."""
  op = node.target
  if not isinstance(op, torch._ops.OpOverload):
    return "it is no operator of ATen"
  if op is aten.copy_.default:
    into = node.args[0]
    if isinstance(into, Node) and into.op == "placeholder" and all(u.op == "output" for u in node.users):
      return _refused_elements(node)
    return "it writes into what is no argument"
  if torch.Tag.data_dependent_output in op.tags or torch.Tag.dynamic_output_shape in op.tags and _has_new_sizes(node):
    return "the shape or the number that it gives depends on values"
  if op._schema.is_mutable:
    return "it writes into an argument"
  if not _core.aten_supports(str(op)):
    return "it is not among the supported operators"
  if op in STRIDE_OPS and not all(isinstance(a, Node) and a.op == "call_function" and is_contiguous(meta(a)) for a in node.args[:1]):
    return "it depends on strides"
  if torch.Tag.nondeterministic_seeded in op.tags and any(a.name == "generator" and node.kwargs.get("generator") is not None for a in op._schema.arguments):
    return "it draws from a generator of its own"
  return _refused_elements(node)


def has_our_elements(x: torch.Tensor) -> bool:
  return x.layout is torch.strided and x.dtype in DTYPES and x.device.type == "cpu"


def _refused_elements(node: Node) -> str:
  for x in tensors_in(meta(node)) + [t for a in node.all_input_nodes for t in tensors_in(meta(a))]:
    if x.layout is not torch.strided or x.dtype not in DTYPES:
      return f"it takes or gives {x.layout} {x.dtype}"
    if x.device.type != "cpu":
      return f"it computes on {x.device}"
  return ""


@dataclasses.dataclass
class Stage:
  """Nodes that are computed here, as one function, and then operators of PyTorch."""
  ours: list[Node] = dataclasses.field(default_factory=list)
  theirs: list[Node] = dataclasses.field(default_factory=list)
  inputs: list[Node] = dataclasses.field(default_factory=list)  # of `ours`, made elsewhere
  outputs: list[Any] = dataclasses.field(default_factory=list)  # of `ours`, used elsewhere; of a graph that is one stage, all that it gives


def has_effects(node: Node) -> bool:
  return node.target is not aten.copy_.default and node.is_impure() and node.target not in CHECKS


def reasons_of(graph: Graph, refused: dict[Node, str]) -> dict[Node, str]:
  """The operators that PyTorch runs, and why."""
  out = dict(refused)
  for node in graph.nodes:
    if node.op != "call_function" or node in out or is_number(node):
      continue
    if node.target is operator.getitem:
      if node.args[0] in out:
        out[node] = ""
    elif reason := refusal(node):
      out[node] = reason
  return out


def stages_of(gm: GraphModule, reasons: dict[Node, str]) -> list[Stage]:
  """The stages in their order. As few as can be: each operator goes to the first stage that has all it needs. Writes into arguments come
  last, so that everything reads what was there before."""
  graph = gm.graph
  level: dict[Node, int] = {}
  effects = 0
  for node in graph.nodes:
    if node.op != "call_function" or node.target is aten.copy_.default and node not in reasons:
      continue
    own = max((level[a] + (a in reasons and node not in reasons) for a in node.all_input_nodes if a in level), default=0)
    if node in reasons and has_effects(node):
      effects = own = max(own, effects)
    level[node] = own
  last = max((level[n] + (n in reasons) for n in level), default=0)
  for node in graph.nodes:
    if node.op == "call_function" and node not in level:
      level[node] = last
  stages = [Stage() for _ in range(max(level.values(), default=-1) + 1)]
  order = {n: i for i, n in enumerate(graph.nodes)}
  for node, i in level.items():
    (stages[i].theirs if node in reasons else stages[i].ours).append(node)
  for stage in stages:
    stage.ours.sort(key=order.__getitem__)
    stage.theirs.sort(key=order.__getitem__)
    ours = set(stage.ours)
    stage.inputs = list(dict.fromkeys(a for n in stage.ours for a in n.all_input_nodes if a not in ours))
    stage.outputs = [n for n in stage.ours if any(u not in ours for u in n.users)]
  return [s for s in stages if s.ours or s.theirs]


def arguments_of(node: Node) -> dict[str, Any]:
  """Arguments by the names of the schema."""
  schema = node.target._schema.arguments
  return {**{p.name: a for p, a in zip(schema, node.args)}, **node.kwargs}


def concrete(x: Any, symbols: dict[Any, int]) -> int | None:
  """A size in numbers; None where the symbols do not tell."""
  if isinstance(x, int):
    return x
  value = x.node.expr.xreplace(symbols)
  if isinstance(value, int):
    return value
  return int(value) if value.is_number and math.isfinite(value) else None


def note_symbols(sizes: Any, values: Any, symbols: dict[Any, int]) -> None:
  for size, value in zip(sizes, values):
    if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
      symbols[size.node.expr] = int(value)
