"""Builds our graph of the nodes of a stage."""

from __future__ import annotations

import collections
import operator
from typing import Any, Sequence

import torch
from torch.fx import Node
from torch.fx.node import map_arg

from tinygrad_cpp import Error, Tensor, _core
from tinygrad_cpp.frontend.torch import arrays
from tinygrad_cpp.frontend.torch.bounds import Bounds
from tinygrad_cpp.frontend.torch.graph import SIZE_OPS, Stage, arguments_of, aten, concrete, is_number, meta, note_symbols

# Those whose result is a view in PyTorch, of their first argument.
VIEW_OPS = {aten.view.default, aten.permute.default, aten.t.default, aten.transpose.int, aten.expand.default, aten.unsqueeze.default,
            aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.slice.Tensor, aten.select.int, aten.alias.default,
            aten.detach.default, aten.diagonal.default, aten._unsafe_view.default}
# Those that give several views of it.
SPLIT_OPS = {aten.split.Tensor, aten.split_with_sizes.default, aten.unbind.int}


def viewed(node: Node) -> Node | None:
  """What a node shows a part of, in PyTorch."""
  if node.target is operator.getitem and node.args[0].target in SPLIT_OPS:
    node = node.args[0]
  return node.args[0] if node.target in VIEW_OPS or node.target in SPLIT_OPS else None


def slowest_first(strides: Sequence[int]) -> list[int]:
  """The axes as they follow one another in memory."""
  return sorted(range(len(strides)), key=lambda i: (-strides[i], i))


class NotLowered(Exception):
  """A node that cannot be built here."""

  def __init__(self, node: Node, reason: str):
    super().__init__(f"{node.target}: {reason}")
    self.node, self.reason = node, reason


def _to_ours(x: Any) -> Any:
  if isinstance(x, torch.dtype):
    if x not in arrays.DTYPES:
      raise TypeError(f"no tensor has elements of {x}")
    return arrays.DTYPES[x]
  return [_to_ours(v) for v in x] if isinstance(x, (tuple, list)) else x


class Lowering:
  """One form of a stage: `arguments` are those that it was made for. `exact` are the outputs whose strides must be those that PyTorch's have."""

  def __init__(self, stage: Stage, arguments: Sequence[Any], exact: set[Node]):
    self.stage, self.exact = stage, exact
    self.shadows: dict[Node, Any] = {}  # arguments without their memory; PyTorch's views and sizes are asked on these
    self.symbols: dict[Any, int] = {}
    self.is_empty, self.copied = [], []
    self.written = [stage.inputs.index(n.args[0]) for n in stage.ours if n.target is aten.copy_.default]
    for i, (node, x) in enumerate(zip(stage.inputs, arguments)):
      is_array = isinstance(x, torch.Tensor)
      self.is_empty.append(is_array and x.numel() == 0)
      self.shadows[node] = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta") if is_array else x
      if is_array and isinstance(meta(node), torch.Tensor):
        note_symbols(meta(node).shape, x.shape, self.symbols)
        fits = arrays.is_whole_view if i in self.written else arrays.is_view_of_memory
        if not fits(x.shape, x.stride()) or x.data_ptr() % x.element_size() or x.is_neg():
          self.copied.append(i)
          self.shadows[node] = torch.empty(x.shape, dtype=x.dtype, device="meta")
      elif isinstance(meta(node), torch.SymInt):
        note_symbols([meta(node)], [x], self.symbols)
    self.laid_as_theirs: set[Node] = set()  # outputs whose strides are asked for, and what they are views of
    for node in exact:
      while node not in self.laid_as_theirs and node not in stage.inputs:
        self.laid_as_theirs.add(node)
        if (of := viewed(node)) is None:
          break
        node = of
    self.draws = any(isinstance(n.target, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in n.target.tags for n in stage.ours)

  def __call__(self, memories: list[Tensor]) -> tuple[list[Tensor], list[Any], list[str]]:
    """The results to be computed, and the outputs as what of them, or of the arguments, they are. If operators are named, a last result is the
    number of one, from 1 on, that got an index out of range, or 0."""
    self.env: dict[Node, Any] = {}
    self.bounds = Bounds()
    given = iter(memories)
    for node, is_empty in zip(self.stage.inputs, self.is_empty):
      x = self.shadows[node]
      if not isinstance(x, torch.Tensor):
        self.env[node] = x
      elif is_empty:
        self.env[node] = Tensor.empty(*x.shape, dtype=arrays.DTYPES[x.dtype], device="CPU")
      else:
        self.env[node] = arrays.view_of_memory(next(given), x.shape, x.stride())
    old = {n.args[0]: self.env[n.args[0]] for n in self.stage.ours if n.target is aten.copy_.default}
    writes = []
    for node in self.stage.ours:
      try:
        if node.target is aten.copy_.default:
          writes.append((self.env[node.args[0]], self.env[node.args[1]], node))
        else:
          self.env[node] = self.compute(node)
      except (Error, TypeError, ValueError, OverflowError) as e:
        raise NotLowered(node, str(e)) from e
    results: list[Tensor] = []
    places: dict[Node, int] = {}
    shared = collections.Counter(self.root(n) for n in self.stage.outputs if isinstance(n, Node) and isinstance(self.env.get(n), Tensor))
    self.shared = {n for n, count in shared.items() if count > 1}
    outputs = [self.output(n, results, places, old) for n in self.stage.outputs]
    # Values are those from before all writes.
    writes = [(into, value.clone() if _core.shows_memory(value) else value, node) for into, value, node in writes]
    for into, value, node in writes:
      try:
        into.assign(value.cast(into.dtype).expand(*into.shape))
      except Error as e:
        raise NotLowered(node, str(e)) from e
    self.env = {}
    if self.bounds.found is not None:
      results.append(self.bounds.found)
    return results, outputs, self.bounds.names

  def compute(self, node: Node) -> Any:
    if node.target in SIZE_OPS:
      return node.target(self.shadow(node.args[0]), *node.args[1:])
    if is_number(node) or node.target is operator.getitem:
      args, kwargs = map_arg((node.args, node.kwargs), self.env.__getitem__)
      return node.target(*args, **kwargs)
    arguments = {k: _to_ours(v) for k, v in map_arg(arguments_of(node), self.env.__getitem__).items()}
    self.bounds.note(node, arguments)
    results = _core.aten_call(str(node.target), arguments, "CPU")
    expected = meta(node)
    if isinstance(expected, torch.Tensor):
      return self.checked(node, results[0], expected)
    if isinstance(expected, (tuple, list)):
      given = results[0] if len(results) == 1 and isinstance(results[0], list) else results
      return [x if x is None or not isinstance(e, torch.Tensor) else self.checked(node, x, e) for x, e in zip(given, expected, strict=True)]
    return results[0]

  def checked(self, node: Node, x: Tensor, expected: torch.Tensor) -> Tensor:
    """What PyTorch said of a result before it ran is true of ours. Of statistics in reduced precision it says another precision than its own
    kernels then give: the graph is right."""
    shape, dtype = [concrete(n, self.symbols) for n in expected.shape], arrays.DTYPES[expected.dtype]
    if x.dtype is not dtype and expected.dtype.is_floating_point and x.is_floating_point():
      x = x.cast(dtype)
    if x.dtype is not dtype or len(x.shape) != len(shape) or any(n is not None and n != m for n, m in zip(shape, x.shape)):
      raise NotLowered(node, f"it gave {x.dtype} {tuple(x.shape)} where PyTorch gives {expected.dtype} {tuple(expected.shape)}")
    return x

  def shadow(self, node: Any) -> Any:
    """A tensor without memory that has the strides which a value will have."""
    if node not in self.shadows:
      if viewed(node) is not None:
        op = node if node.target in VIEW_OPS else node.args[0]
        args, kwargs = map_arg((op.args, op.kwargs), lambda n: self.shadow(n) if isinstance(meta(n), torch.Tensor) else self.env[n])
        try:
          views = op.target(*args, **kwargs)
          self.shadows[node] = views if op is node else views[node.args[1]]
          return self.shadows[node]
        except RuntimeError:  # a view of memory that is laid out in another way
          pass
      shape = tuple(self.env[node].shape)
      strides = self.strides_asked(node) if node in self.laid_as_theirs else None
      own = torch.empty(shape, dtype=meta(node).dtype, device="meta")
      if strides and own.numel() and arrays.is_whole_view(shape, strides) and arrays.span(shape, strides) == own.numel():
        own = torch.empty_strided(shape, strides, dtype=meta(node).dtype, device="meta")
      self.shadows[node] = own
    return self.shadows[node]

  def strides_asked(self, node: Node) -> list[int] | None:
    strides = [concrete(s, self.symbols) for s in meta(node).stride()]
    known = [s for s in strides if s is not None]
    return known if len(known) == len(strides) else None

  def output(self, node: Any, results: list[Tensor], places: dict[Node, int], written: dict[Any, Tensor]) -> Any:
    if isinstance(node, Node) and node.target is aten.copy_.default:
      return ("argument", self.stage.inputs.index(node.args[0]))
    value = self.env.get(node) if isinstance(node, Node) else node
    if not isinstance(value, Tensor):
      return ("constant", value)
    if node in self.stage.inputs and node not in written:
      return ("argument", self.stage.inputs.index(node))
    root, shape = self.root(node), tuple(value.shape)
    shadow = self.shadow(node)
    wanted = self.strides_asked(node) if node in self.exact and value.numel() else None
    fits = wanted is None or all(n == 1 or s == w for n, s, w in zip(shape, shadow.stride(), wanted))
    if root in self.stage.inputs:
      if fits and root not in written and self.stage.inputs.index(root) not in self.copied and value.numel():
        return ("view_of_argument", self.stage.inputs.index(root), shape, shadow.stride(), shadow.storage_offset())
    elif fits and (root in self.shared or self.env[root].numel() <= value.numel()):
      if root not in places:
        places[root] = len(results)
        whole, order = self.env[root], slowest_first(self.shadow(root).stride())
        in_order = order == sorted(order)
        is_own = in_order and root.target not in VIEW_OPS and root.target is not operator.getitem
        results.append(whole if is_own else (whole if in_order else whole.permute(*order)).contiguous())
      return ("result", places[root], shape, shadow.stride(), shadow.storage_offset())
    return self.laid_out(value, shape, wanted, results)

  def root(self, node: Node) -> Node:
    """The value whose memory a node shows. Reshaping memory that is laid out in another way is a copy."""
    while node not in self.stage.inputs and (of := viewed(node)) is not None and self.storage(node) == self.storage(of):
      node = of
    return node

  def storage(self, node: Node) -> int:
    return int(self.shadow(node).untyped_storage()._cdata)

  def laid_out(self, value: Tensor, shape: tuple[int, ...], wanted: list[int] | None, results: list[Tensor]) -> Any:
    """A value in memory of its own, with these strides if its elements can lie so without a gap."""
    order = slowest_first(wanted) if wanted else list(range(len(shape)))
    strides = [0] * len(shape)
    step = 1
    for i in reversed(order):
      strides[i] = step
      step *= max(shape[i], 1)
    results.append(value.permute(*order).clone() if order != sorted(order) else value.clone())
    return ("result", len(results) - 1, shape, strides, 0)
