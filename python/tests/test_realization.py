"""Realization is not observable: random programs with views, writes, copies, gradients and jitted steps give the same bits wherever `realize`
is put in, in any order that means the same, and PyTorch's.

`TG_PROGRAMS=20000 TG_TEST_SEED=1 pytest python/tests/test_realization.py` runs as many; all numbers in them are exact in float64."""

import os
import random
from typing import Any, Callable

import numpy as np
import pytest

from tinygrad_cpp import Tensor

torch = pytest.importorskip("torch")

SEED = int(os.environ.get("TG_TEST_SEED", "20240229"))
PROGRAMS = int(os.environ.get("TG_PROGRAMS", 20 * int(os.environ.get("TG_TEST_SCALE", "1"))))


def where(condition: Any, x: Any, y: Any) -> Any:
  return torch.where(condition, x, y) if isinstance(x, torch.Tensor) else condition.where(x, y)


# What a step does with tensors of six elements, and whether PyTorch can view what comes out in another shape.
VIEWS: dict[str, tuple[Callable[[Any], Any], bool]] = {
  "flat": (lambda x: x.reshape(6), True),
  "rows": (lambda x: x.reshape(2, 3), True),
  "columns": (lambda x: x.reshape(6).reshape(3, 2).permute(1, 0), False),
  "transposed": (lambda x: x.reshape(3, 2).permute(1, 0), False),
  "slice": (lambda x: x.reshape(6)[1:4], False),
  "steps": (lambda x: x.reshape(6)[::2], False),
  "far steps": (lambda x: x.reshape(6)[1::4], False),
  "row": (lambda x: x.reshape(2, 3)[1], False),
  "element": (lambda x: x.reshape(6)[2:3], False),
  "part of a part": (lambda x: x.reshape(2, 3)[:, 1:][1:2], False),
  "steps of a part": (lambda x: x.reshape(6)[1:5][::2], False),
}
COPIES: dict[str, Callable[[Any, Any], Any]] = {
  "add": lambda x, y: x + y.reshape(6)[0],
  "double": lambda x, y: x * 2,
  "product": lambda x, y: x * y.reshape(6)[1],
  "nothing": lambda x, y: x + 0,
  "clone": lambda x, y: x.clone(),
  "sum": lambda x, y: x + x.sum(),
  "where": lambda x, y: where(x > 0, x, y.reshape(6)[2]),
  "none of it": lambda x, y: y.reshape(6) + x.flatten()[9:].sum(),
}
WRITES: dict[str, Callable[[Any, Any, Any], Any]] = {
  "number": lambda x, y, of: x.__setitem__(0, 3),
  "slice": lambda x, y, of: x.__setitem__(slice(0, 1), y.reshape(6)[3] * 1),
  "steps": lambda x, y, of: x.__setitem__(slice(None, None, 2), y.reshape(6)[1] * 2),
  "index": lambda x, y, of: x.__setitem__(of([0]), y.reshape(6)[2] + 1),
  "mask": lambda x, y, of: x.__setitem__(x > 4, 1),
  "add": lambda x, y, of: x.__iadd__(y.reshape(6)[4] * 1),
  "scale": lambda x, y, of: x.__imul__(2),
  "itself": lambda x, y, of: x.__iadd__(x),
}


class Step:
  def __init__(self, kind: str, name: str, x: int, y: int, out: int) -> None:
    self.kind, self.name, self.x, self.y, self.out = kind, name, x, y, out

  def __repr__(self) -> str:
    return f"{self.kind} {self.name}({self.x}, {self.y}) -> {self.out}"


def draw(rng: random.Random) -> list[Step]:
  """Tensors 0 to 2 are given, of six elements each; every step names what it makes by the next number."""
  whole, all_of = [0, 1, 2], [0, 1, 2]
  steps: list[Step] = []
  for _ in range(rng.randint(4, 12)):
    kind = rng.choice(["view", "view", "copy", "write", "write"])
    y, out = rng.choice(whole), len(all_of)
    if kind == "view":
      name = rng.choice(list(VIEWS))
      steps.append(Step(kind, name, rng.choice(whole), y, out))
      if VIEWS[name][1]:
        whole.append(out)
    elif kind == "copy":
      x, name = rng.choice(all_of), rng.choice(list(COPIES))
      used = [s.name for s in steps]
      if used.count("product") >= 1 or used.count("sum") >= 3:  # numbers stay exact
        name = "double"
      steps.append(Step(kind, name, x, y, out))
      if x in whole:
        whole.append(out)
    else:
      steps.append(Step(kind, rng.choice(list(WRITES)), rng.choice(all_of), y, -1))
      continue
    all_of.append(out)
  return steps


def reordered(steps: list[Step], rng: random.Random) -> list[Step]:
  """Steps between two writes change nothing, so each may come as soon as what it takes is there."""
  out: list[Step] = []
  run: list[Step] = []
  for step in [*steps, Step("write", "", 0, 0, -1)]:
    if step.kind != "write":
      run.append(step)
      continue
    while run:
      missing = {s.out for s in run}
      ready = [s for s in run if s.x not in missing and s.y not in missing]
      chosen = rng.choice(ready)
      run.remove(chosen)
      out.append(chosen)
    out.append(step)
  return out[:-1]


def run(steps: list[Step], given: list[Any], of: Callable[[Any], Any], after: Callable[[dict[int, Any]], None]) -> dict[int, Any]:
  tensors = dict(enumerate(given))
  for s in steps:
    x, y = tensors[s.x], tensors[s.y]
    if s.kind == "view":
      tensors[s.out] = VIEWS[s.name][0](x)
    elif s.kind == "copy":
      tensors[s.out] = COPIES[s.name](x, y)
    else:
      WRITES[s.name](x, y, of)
    del x, y
    after(tensors)
  return tensors


def loss_of(tensors: dict[int, Any]) -> Any:
  total = None
  for i, t in sorted(tensors.items()):
    part = (t * (i + 1)).sum()
    total = part if total is None else total + part
  return total


def ours(steps: list[Step], start: list[np.ndarray], share: float, seed: int, gradients: bool) -> tuple[list[np.ndarray], Any]:
  rng = random.Random(seed)

  def after(tensors: dict[int, Any]) -> None:
    if rng.random() < share:
      t = tensors[rng.choice(list(tensors))]
      rng.choice([t.realize, t.numpy, t.realize])()

  leaves = [Tensor(a.copy()) for a in start]
  tensors = run(steps, [x * 1 for x in leaves], lambda i: Tensor(i), after)
  grads: Any = None
  if gradients:
    try:
      grads = [g.numpy() for g in loss_of(tensors).gradient(*leaves)]
    except ValueError as e:
      assert "written to since" in str(e), e
      assert share > 0
      grads = "overwritten"
  return [tensors[i].numpy() for i in sorted(tensors)], grads


def theirs(steps: list[Step], start: list[np.ndarray], gradients: bool) -> tuple[list[np.ndarray], Any]:
  leaves = [torch.tensor(a, requires_grad=gradients) for a in start]
  tensors = run(steps, [x * 1 for x in leaves], lambda i: torch.tensor(i), lambda _: None)
  grads: Any = None
  if gradients:
    try:
      loss_of(tensors).backward()
      grads = [np.zeros(a.shape) if x.grad is None else x.grad.numpy() for x, a in zip(leaves, start)]
    except RuntimeError as e:
      assert "inplace" in str(e), e
      grads = "overwritten"
  return [tensors[i].detach().numpy() for i in sorted(tensors)], grads


def check(seed: int) -> tuple[bool, bool]:
  rng = random.Random(seed)
  steps = draw(rng)
  gradients = rng.random() < 0.6
  start = [np.array([rng.randint(-4, 9) for _ in range(6)], np.float64 if gradients else np.int64) for _ in range(3)]
  values, grads = theirs(steps, start, gradients)
  lost = False
  for share, order in ((0.0, steps), (0.4, steps), (0.4, reordered(steps, rng)), (1.0, steps)):
    our_values, our_grads = ours(order, start, share, seed, gradients)
    where = f"seed {seed}, realized {share}: {order}"
    for i, (a, b) in enumerate(zip(our_values, values, strict=True)):
      np.testing.assert_array_equal(a, b, err_msg=f"tensor {i} of {where}")
    if our_grads == "overwritten":
      lost = True
    elif gradients and not isinstance(grads, str):
      for i, (a, b) in enumerate(zip(our_grads, grads, strict=True)):
        np.testing.assert_array_equal(a, b, err_msg=f"gradient {i} of {where}")
  return lost, isinstance(grads, str)


def test_programs() -> None:
  print(f"TG_TEST_SEED={SEED}, {PROGRAMS} programs")
  counts = [check(SEED * 1_000_003 + i) for i in range(PROGRAMS)]
  print(f"{sum(c[0] for c in counts)} with a gradient of what was overwritten, {sum(c[1] for c in counts)} in PyTorch")
