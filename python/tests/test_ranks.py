import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(shutil.which("mpirun") is None, reason="no mpirun")

SETTINGS = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_plm": "isolated", "COMM_TIMEOUT": "20"}
TRAINING = """
import numpy as np
from tinygrad_cpp import Context, Tensor, TinyJit, nn, rank, world_size
devices = tuple(f"CPU@{s * world_size() // 4}" for s in range(4))
Tensor.manual_seed(1)
w = Tensor.randn(8, 3).shard(devices).realize()
optimizer = nn.optim.Adam([w], lr=0.1)
@TinyJit
def step(x, y):
  with Context(TRAINING=1):
    optimizer.zero_grad()
    loss = (x @ w).sparse_categorical_crossentropy(y)
    loss.backward()
    optimizer.step()
    return loss.realize()
values = np.random.default_rng(0).standard_normal((5, 12, 8), dtype=np.float32)
for v in values:
  loss = step(Tensor(v).shard(devices, 0), Tensor(np.arange(12, dtype=np.int32) % 3).shard(devices, 0)).item()
  if rank() == 0: print(loss.hex())
"""


def run(ranks: int, program: str, folder: Path) -> subprocess.CompletedProcess[str]:
  path = folder / "program.py"
  path.write_text(program)
  command = ["mpirun", "--oversubscribe", "-n", str(ranks), sys.executable, str(path)]
  return subprocess.run(command, env=SETTINGS, capture_output=True, text=True, timeout=120, check=False)


def test_losses_are_the_same_on_any_number_of_ranks(tmp_path: Path) -> None:
  alone = run(1, TRAINING, tmp_path)
  assert len(alone.stdout.split()) == 5, alone.stderr
  for ranks in (2, 4):
    assert run(ranks, TRAINING, tmp_path).stdout == alone.stdout


def test_what_is_read_is_the_same_on_all(tmp_path: Path) -> None:
  ran = run(3, """
from tinygrad_cpp import Tensor, rank
x = Tensor.arange(7).shard(("CPU@2", "CPU@0", "CPU@1"), 0) * 2
assert x.device == ("CPU@2", "CPU@0", "CPU@1"), x.device
assert x.tolist() == [0, 2, 4, 6, 8, 10, 12] and x.sum().item() == 42
assert Tensor([1, 2], device="CPU@1").numpy().tolist() == [1, 2]
""", tmp_path)
  assert ran.returncode == 0, ran.stderr


def test_a_rank_at_another_place_is_an_error(tmp_path: Path) -> None:
  ran = run(2, """
from tinygrad_cpp import CommError, Tensor, rank
x = Tensor.arange(8).shard(("CPU@0", "CPU@1"), 0).realize()
try:
  (x.max() if rank() == 1 else x.sum()).item()
except CommError as e:
  assert "ranks run different programs" in str(e) and isinstance(e, ConnectionError), e
else:
  raise AssertionError("no error")
""", tmp_path)
  assert ran.returncode == 0, ran.stderr
