"""Every function of the tables against PyTorch or NumPy, and its gradient. TG_ORACLE=full runs all checks, otherwise a sample that
TG_TEST_SEED chooses."""

import os
from typing import Any

import pytest
from conftest import SEED
from oracle import core, known, tables  # noqa: F401

FULL = os.environ.get("TG_ORACLE") == "full"


def chosen() -> list[Any]:
  checks = [k for c in core.CASES if core.has_reference(c) for k in core.checks_of(c)]
  out = []
  for c in checks if FULL else core.sample(checks, SEED):
    reason = known.reason(str(c))
    # Where PyTorch has no say, a gradient is compared with our own values, which may be wrong in the same way.
    strict = core.has_torch(c.case) or c.kind == "forward"
    out.append(pytest.param(c, id=str(c), marks=[pytest.mark.xfail(strict=strict, reason=reason)] if reason else []))
  return out


def test_every_case_has_a_reference() -> None:
  missing = [c.name for c in core.CASES if not core.has_reference(c)]
  if core.torch is None:
    pytest.skip(f"PyTorch is not installed: {len(missing)} of {len(core.CASES)} cases are left out, of {', '.join(sorted(set(missing)))}")
  assert not missing


@pytest.mark.parametrize("check", chosen())
def test_function(check: core.Check) -> None:
  (core.check_gradient if check.kind == "gradient" else core.check_forward)(check, SEED)
