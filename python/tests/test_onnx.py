"""ONNX models from Python: what goes in and comes out, mistakes, and training. The models are written here, byte by byte."""

import numpy as np
import pytest

from tinygrad_cpp import Context, FormatError, Tensor, TinyJit, UnsupportedError, ValueError as LibraryValueError, dtypes
from tinygrad_cpp.nn.onnx import OnnxRunner
from tinygrad_cpp.nn.optim import SGD

FLOAT, INT64, STRING = 1, 7, 8


def varint(n: int) -> bytes:
  out = bytearray()
  while n > 127:
    out.append(n & 127 | 128)
    n >>= 7
  return bytes(out + bytes([n]))


def field(number: int, value: "int | str | bytes") -> bytes:
  if isinstance(value, int):
    return varint(number << 3) + varint(value)
  data = value.encode() if isinstance(value, str) else value
  return varint(number << 3 | 2) + varint(len(data)) + data


def node(op: str, inputs: list[str], outputs: list[str]) -> bytes:
  return field(1, b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs) + field(4, op))


def weight(name: str, values: np.ndarray) -> bytes:
  dims = b"".join(field(1, n) for n in values.shape)
  return field(5, dims + field(2, FLOAT) + field(8, name) + field(9, values.astype(np.float32).tobytes()))


def info(place: int, name: str, kind: int, shape: "list[int | str]") -> bytes:
  sizes = b"".join(field(1, field(1, s) if isinstance(s, int) else field(2, s)) for s in shape)
  return field(place, field(1, name) + field(2, field(1, field(1, kind) + field(2, sizes))))


def model(*parts: bytes, version: int = 17) -> bytes:
  return field(1, 8) + field(8, field(2, version)) + field(7, field(2, "g") + b"".join(parts))


W = np.array([[1, 2], [3, -4]], dtype=np.float32)
LAYER = model(node("MatMul", ["x", "w"], ["h"]), node("Relu", ["h"], ["y"]), weight("w", W), info(11, "x", FLOAT, ["batch", 2]),
              info(12, "y", FLOAT, ["batch", 2]))


def test_is_a_function_of_tensors(tmp_path):
  path = tmp_path / "layer.onnx"
  path.write_bytes(LAYER)
  for source in (LAYER, path, str(path), Tensor(LAYER, dtype="uint8")):
    runner = OnnxRunner(source)
    x = np.array([[1, 2], [-1, 0.5]], dtype=np.float32)
    for given in (x, Tensor(x), x.tolist()):
      np.testing.assert_array_equal(runner({"x": given})["y"].numpy(), np.maximum(x @ W, 0))
    for _ in range(4):
      np.testing.assert_array_equal(runner.run({"x": x})["y"].numpy(), np.maximum(x @ W, 0))
  assert list(runner.graph_inputs) == ["x"] and list(runner.graph_outputs) == ["y"]
  assert runner.graph_inputs["x"].shape == ("batch", 2) and runner.graph_inputs["x"].dtype == dtypes.float32
  assert runner.operators == {"MatMul": 1, "Relu": 1}
  assert runner.get_empty_input_data()["x"].shape == (1, 2)


def test_is_jitted_and_trains():
  runner = OnnxRunner(LAYER)
  f = TinyJit(lambda x: runner({"x": x})["y"].realize())
  for i in range(4):
    np.testing.assert_array_equal(f(Tensor([[i, 2.0]])).numpy(), np.maximum(np.array([[i, 2.0]]) @ W, 0))
  w = runner.parameters["w"]
  optimizer = SGD([w], lr=0.1)
  losses = []
  with Context(TRAINING=1):
    for _ in range(3):
      optimizer.zero_grad()
      loss = runner({"x": Tensor([[1.0, 0.0]])})["y"].square().sum()
      losses.append(loss.backward().item())
      optimizer.step()
  assert losses[0] > losses[1] > losses[2]


def test_texts():
  runner = OnnxRunner(model(node("StringConcat", ["a", "b"], ["c"]), info(11, "a", STRING, [2]), info(11, "b", STRING, [1]),
                            info(12, "c", STRING, [2]), version=20))
  out = runner({"a": ["x", "é"], "b": np.array(["!"])})["c"]
  assert out.tolist() == ["x!", "é!"] and out.shape == (2,)


def test_mistakes():
  runner = OnnxRunner(LAYER)
  with pytest.raises(LibraryValueError, match="the input 'x' is missing"):
    runner({})
  with pytest.raises(LibraryValueError, match="there is no input 'z'"):
    runner({"x": [[1.0, 2.0]], "z": [1.0]})
  with pytest.raises(LibraryValueError, match="expected float32 .batch, 2"):
    runner({"x": np.zeros((1, 2), dtype=np.float64)})
  with pytest.raises(LibraryValueError, match="expected float32 .batch, 2"):
    runner({"x": np.zeros((1, 3), dtype=np.float32)})
  with pytest.raises(FormatError):
    OnnxRunner(b"this is no model")
  with pytest.raises(OSError):
    OnnxRunner("no/such/file.onnx")
  unknown = model(node("Frobnicate", ["x"], ["y"]), info(11, "x", FLOAT, [2]), info(12, "y", FLOAT, [2]))
  with pytest.raises(UnsupportedError, match="Frobnicate"):
    OnnxRunner(unknown)
