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


def run(ranks: int, program: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
  path = folder / "program.py"
  path.write_text(program)
  command = ["mpirun", "--oversubscribe", *options, "-n", str(ranks), sys.executable, str(path)]
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


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), 9)", "os._exit(3)", "raise MemoryError", "sys.exit(0)"])
def test_a_rank_that_ends_is_named_at_once(end: str, tmp_path: Path) -> None:
  # mpirun itself would end the others of one that fails.
  ran = run(3, f"""
import os, sys, time
from tinygrad_cpp import CommError, Tensor, rank
x = Tensor.arange(9).shard(("CPU@0", "CPU@1", "CPU@2"), 0).realize()
assert x.sum().item() == 36
if rank() == 1:
  {end}
start = time.monotonic()
try:
  x.sum().item()
except CommError as e:
  assert "rank 1 on" in str(e) and "has ended" in str(e), e
  assert time.monotonic() - start < 4
  print("named by", rank(), flush=True)
""", tmp_path, "--enable-recovery", "--mca", "orte_abort_on_non_zero_status", "0")
  assert sorted(ran.stdout.split("\n"))[1:] == ["named by 0", "named by 2"], ran.stderr


def test_a_model_in_parts_takes_its_part_of_memory(tmp_path: Path) -> None:
  program = """
from tinygrad_cpp import Context, GlobalCounters, Tensor, nn, rank, world_size
from tinygrad_cpp.nn import parallel
from tinygrad_cpp.nn.state import get_parameters
devices = tuple(f"CPU@{r}" for r in range(world_size()))
Tensor.manual_seed(1)
class Net:
  def __init__(self): self.layers = [nn.Linear(256, 256) for _ in range(8)]
net = Net()
parallel.fully_shard(net, devices)
optimizer = nn.optim.Adam(get_parameters(net))
with Context(TRAINING=1):
  for step in range(3):
    optimizer.zero_grad()
    x = Tensor.ones(8, 256).shard(devices, 0) * (step + 1)
    for layer in net.layers: x = layer(x).tanh()
    loss = x.square().mean().backward()
    optimizer.step()
    value = loss.item()
if rank() == 0: print(value, GlobalCounters.mem_used)
"""
  alone, together = (run(n, program, tmp_path) for n in (1, 4))
  (loss, whole), (same, part) = (ran.stdout.split() for ran in (alone, together))
  assert abs(float(loss) - float(same)) < 1e-5 * abs(float(loss)), together.stderr
  assert int(part) < 1.15 / 4 * int(whole)
