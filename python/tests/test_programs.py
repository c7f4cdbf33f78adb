"""The example programs, under this module and under tinygrad with nothing but the imports changed. Digits stand in for MNIST."""

import gzip
import hashlib
import importlib.util
import os
import pathlib
import re
import struct
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLES = ROOT / "python" / "examples"
NAMES = ["train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"]


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
  """A folder with MNIST's files, made of 8x8 digits: 1500 to train, the others to test."""
  rows = np.loadtxt(gzip.open(ROOT / "data" / "digits.csv.gz", "rt"), delimiter=",", dtype=np.float32)
  pictures = (rows[:, :64].reshape(-1, 8, 8).repeat(3, 1).repeat(3, 2) * (255 / 16)).astype(np.uint8)
  pictures = np.pad(pictures, ((0, 0), (2, 2), (2, 2)))
  labels = rows[:, 64].astype(np.uint8)
  folder = tmp_path_factory.mktemp("mnist")
  for name, part in zip(NAMES, (pictures[:1500], labels[:1500], pictures[1500:], labels[1500:])):
    header = struct.pack(f">HBB{part.ndim}I", 0, 8, part.ndim, *part.shape)
    (folder / name).write_bytes(header + part.tobytes())
  return folder


def run(source: str, folder: pathlib.Path, module: str, tmp_path: pathlib.Path, **variables: str) -> float:
  """Its accuracy."""
  if module == "tinygrad":
    downloads = tmp_path / "tinygrad" / "downloads"
    downloads.mkdir(parents=True)
    for name in NAMES:
      url = f"https://storage.googleapis.com/cvdf-datasets/mnist/{name}.gz"
      (downloads / (hashlib.md5(url.encode()).hexdigest() + ".gunzip")).write_bytes((folder / name).read_bytes())
    source = re.sub(r"^from tinygrad_cpp", "from tinygrad", source, flags=re.M)
  else:
    source = source.replace("mnist()", f"mnist(folder={str(folder)!r})")
  program = tmp_path / "program.py"
  program.write_text(source)
  environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "CC": "clang-19", **variables}  # tinygrad compiles with CC
  done = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, timeout=800)
  assert done.returncode == 0, done.stdout + done.stderr
  found = re.search(r"test accuracy ([0-9.]+)%", done.stdout)
  assert found, done.stdout
  return float(found[1])


@pytest.mark.parametrize("module", ["tinygrad_cpp", "tinygrad"])
@pytest.mark.parametrize("program,variables,least", [("quickstart.py", {}, 85), ("mnist.py", {"STEPS": "40", "BS": "64"}, 75)])
def test_program(program: str, variables: dict[str, str], least: float, module: str, digits: pathlib.Path, tmp_path: pathlib.Path) -> None:
  if module == "tinygrad" and not importlib.util.find_spec("tinygrad"):
    pytest.skip(f"tinygrad is not installed: {program} was run under tinygrad_cpp only")
  assert run((EXAMPLES / program).read_text(), digits, module, tmp_path, **variables) >= least
