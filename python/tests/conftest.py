"""What the tests share. TG_TEST_SEED changes the drawn inputs; failing tests print it."""

import os

import numpy as np
import pytest

SEED = int(os.environ.get("TG_TEST_SEED", "0"))


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
  """Its own numbers for every test."""
  return np.random.default_rng([SEED, sum(request.node.nodeid.encode())])


def pytest_report_header() -> list[str]:
  try:
    import torch

    oracle = f"PyTorch {torch.__version__}"
  except ImportError:
    oracle = "NumPy alone: PyTorch is not installed (tools/venv --torch), what needs it is left out"
  return [f"oracle: {oracle}", f"seed: {SEED} (TG_TEST_SEED)"]
