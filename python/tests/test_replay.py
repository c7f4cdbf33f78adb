"""CAPTURE_PROCESS_REPLAY keeps kernels that tools/replay compares."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = "from tinygrad_cpp import Tensor; (Tensor.arange(64).reshape(8, 8) @ Tensor.arange(64).reshape(8, 8)).realize()"


def kept(path: pathlib.Path, **options: str) -> pathlib.Path:
  environment = os.environ | {"CAPTURE_PROCESS_REPLAY": "1", "CACHEDB": str(path), "CACHELEVEL": "2", "DEV": "CPU"} | options
  subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True, timeout=300)
  return path


def replay(old: pathlib.Path, new: pathlib.Path) -> subprocess.CompletedProcess[str]:
  return subprocess.run([sys.executable, ROOT / "tools/replay", old, new], capture_output=True, text=True, timeout=300)


def test_kernels_of_two_processes_are_compared(tmp_path: pathlib.Path) -> None:
  old, same, other = kept(tmp_path / "old.db"), kept(tmp_path / "same.db"), kept(tmp_path / "other.db", NOOPT="1")
  alike = replay(old, same)
  assert alike.returncode == 0, alike.stdout + alike.stderr
  assert "0 of 1 kernels differ" in alike.stdout
  different = replay(old, other)
  assert different.returncode == 1
  assert "1 of 1 kernels differ" in different.stdout
  assert "+opts: \n" in different.stdout


def test_it_is_read_from_a_cache_that_has_the_programs(tmp_path: pathlib.Path) -> None:
  path = tmp_path / "cache.db"
  kept(path, CAPTURE_PROCESS_REPLAY="0")
  nothing = replay(path, path)
  assert nothing.returncode == 1
  assert "has no kernels; they are kept with CAPTURE_PROCESS_REPLAY=1" in nothing.stderr
  kept(path)
  assert replay(path, path).returncode == 0
