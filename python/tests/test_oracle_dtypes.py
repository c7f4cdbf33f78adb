"""Shapes and dtypes of results are tinygrad's: the calls of the tables, made by both. Needs tinygrad."""

from typing import Any

import numpy as np
import pytest
from conftest import SEED
from oracle import core, tables  # noqa: F401
from oracle.known import DIFFERENT

import tinygrad_cpp

tinygrad = pytest.importorskip("tinygrad", reason="tinygrad is not installed: shapes and dtypes of results were not compared with its")
DEFAULTS = {"weakint": "int32", "weakfloat": "float32"}  # what they become in memory


def results(check: core.Check, inputs: core.Inputs, lib: Any) -> list[tuple[str, tuple[int, ...]]] | None:
  core.tg.Tensor, core.tg.dtypes = lib.Tensor, lib.dtypes
  try:
    tensors = [lib.Tensor(np.array(a)).cast(getattr(lib.dtypes, d)) for a, d in zip(inputs.arrays, inputs.dtypes)]
    found = [(core.name_of(o.dtype), tuple(o.shape)) for o in core.all_of(check.case.ours(*tensors))]
    return [(DEFAULTS.get(d, d), s) for d, s in found]
  except TypeError:
    if lib is tinygrad_cpp:
      raise
    return None  # tinygrad has no such form
  finally:
    core.tg.Tensor, core.tg.dtypes = tinygrad_cpp.Tensor, tinygrad_cpp.dtypes


def test_result_dtypes() -> None:
  wrong = []
  repaired = set(DIFFERENT)
  for c in core.CASES:
    if not c.like_tinygrad:
      continue
    for dtype in c.dtypes:
      check = core.Check(c, "forward", dtype)
      inputs = core.inputs_of(check, SEED)
      theirs = results(check, inputs, tinygrad)
      ours = results(check, inputs, tinygrad_cpp)
      if theirs is None or ours == theirs:
        continue
      repaired.discard(c.name)
      if c.name not in DIFFERENT:
        wrong.append(f"{check}: {ours}, tinygrad {theirs}")
  assert not wrong, "\n".join(wrong)
  assert not repaired, f"as tinygrad has it, yet in DIFFERENT: {', '.join(sorted(repaired))}"
