"""BEAM from Python: kernels are searched by the tg-worker of the package."""

import os
import pathlib
import subprocess
import sys

PROGRAM = """
import numpy as np
from tinygrad_cpp import Context, Tensor
x, y = (np.random.default_rng(s).standard_normal((200, 200), dtype=np.float32) for s in (1, 2))
with Context(BEAM=1):
  z = (Tensor(x) @ Tensor(y)).numpy()
assert np.abs(z - x.astype(np.float64) @ y).max() < 1e-4
"""


def log_of(folder: pathlib.Path, **variables: str) -> str:
  """What the program writes to standard error, with a disk cache of its own."""
  environment = {**os.environ, "CACHEDB": str(folder / "cache.db"), "DEBUG": "1", **variables}
  done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=300)
  assert done.returncode == 0, done.stderr
  return done.stderr


def test_a_kernel_is_searched_once(tmp_path: pathlib.Path) -> None:
  assert "BEAM r_200_200_200" in log_of(tmp_path)
  assert "BEAM" not in log_of(tmp_path)


def test_without_the_worker(tmp_path: pathlib.Path) -> None:
  log = log_of(tmp_path, WORKER_PATH="/nonexistent/tg-worker", DEBUG="0")
  assert log == "BEAM: kernels are not searched for, heuristics choose their opts: WORKER_PATH: /nonexistent/tg-worker is no program\n"
