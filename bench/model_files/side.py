"""side.py READER FILE TENSOR: what model_files.cpp does, in Python, with a reader of PyPI or ours."""

import json
import sys
import time

import numpy as np


def status(file: str, name: str) -> float:
  for line in open(file):
    if line.startswith(name):
      return float(line.split()[1])
  raise ValueError(name)


def safetensors(file: str, name: str) -> np.ndarray:
  with safe_open(file, framework="np") as opened:
    return opened.get_tensor(name)


def gguf_values(file: str, name: str) -> np.ndarray:
  tensor = next(t for t in gguf.GGUFReader(file).tensors if t.name == name)
  return gguf.quants.dequantize(tensor.data, tensor.tensor_type)


def ours(file: str, name: str) -> np.ndarray:
  tensors = nn.state.safe_load(file) if file.endswith(".safetensors") else nn.state.gguf_load(file)[1]
  return tensors[name].numpy()


reader, file, name = sys.argv[1:]
if reader == "safetensors":
  from safetensors import safe_open

  read = safetensors
elif reader == "gguf":
  import gguf

  read = gguf_values
else:
  from tinygrad_cpp import Tensor, nn

  Tensor([1.0]).realize()
  read = ours
peak_before, read_before = status("/proc/self/status", "VmHWM:"), status("/proc/self/io", "read_bytes:")
start = time.perf_counter()
array = np.ascontiguousarray(read(file, name)).view(np.uint8).reshape(-1)
total = int(array[::4096].sum(dtype=np.uint64))
seconds = time.perf_counter() - start
grown = (status("/proc/self/status", "VmHWM:") - peak_before) * 1.024e-3
print(json.dumps({"seconds": seconds, "grown": grown, "read": (status("/proc/self/io", "read_bytes:") - read_before) * 1e-6, "sum": total}))
