"""What the tests share. TG_TEST_SEED changes the drawn inputs; failing tests print it."""

import json
import os
from typing import Any

import numpy as np
import pytest

SEED = int(os.environ.get("TG_TEST_SEED", "0"))


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
  """Its own numbers for every test."""
  return np.random.default_rng([SEED, sum(request.node.nodeid.encode())])


def pytest_configure(config: pytest.Config) -> None:
  config.addinivalue_line("markers", "covers(*names, kind='forward', backend='CPU', dtype='float32'): functions that the test is about")
  config.stash[RESULTS] = []


RESULTS = pytest.StashKey[list[dict[str, Any]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
  parser.addoption("--oracle-results", metavar="FILE", help="write what every check of the oracle found; coverage_page.py makes a page of it")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
  report = (yield).get_result()
  if report.when != "call":
    return
  outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
  found = item.config.stash[RESULTS]
  check = getattr(item, "callspec", None) and item.callspec.params.get("check")
  if hasattr(check, "case"):
    found.append({"name": check.case.name, "kind": check.kind, "dtype": check.dtype, "backend": check.device, "outcome": outcome, "id": str(check)})
  for mark in item.iter_markers("covers"):
    for name in mark.args:
      found.append({"name": name, "kind": "forward", "dtype": "float32", "backend": "CPU", "outcome": outcome, "id": item.name, **mark.kwargs})


def pytest_sessionfinish(session: pytest.Session) -> None:
  path = session.config.getoption("--oracle-results")
  if path:
    with open(path, "w") as file:
      json.dump(session.config.stash[RESULTS], file)


def pytest_report_header() -> list[str]:
  try:
    import torch

    oracle = f"PyTorch {torch.__version__}"
  except ImportError:
    oracle = "NumPy alone: PyTorch is not installed (tools/venv --torch), what needs it is left out"
  return [f"oracle: {oracle}", f"seed: {SEED} (TG_TEST_SEED)"]
