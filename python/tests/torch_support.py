"""What the tests of torch.compile share."""

from __future__ import annotations

from typing import Iterator

import pytest
import torch

from tinygrad_cpp.frontend import torch as bridge


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
  """Nothing compiled before, nothing counted, the same random numbers."""
  torch._dynamo.reset()
  bridge.reset_fallback_counts()
  torch.manual_seed(1)
  yield
