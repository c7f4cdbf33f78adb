"""Checkpoints of PyTorch and GGUF files, written here byte by byte."""

import io
import pathlib
import struct
import zipfile

import numpy as np
import pytest

import tinygrad_cpp as tg
from tinygrad_cpp import Tensor, dtypes
from tinygrad_cpp.nn.state import gguf_load, safe_save, torch_load


def text(value: str) -> bytes: return b"X" + struct.pack("<I", len(value.encode())) + value.encode()
def numbers(values: tuple[int, ...]) -> bytes: return b"(" + b"".join(b"J" + struct.pack("<i", v) for v in values) + b"t"


def tensor(storage: str, key: str, count: int, shape: tuple[int, ...], stride: tuple[int, ...]) -> bytes:
  memory = b"(" + text("storage") + f"ctorch\n{storage}\n".encode() + text(key) + text("cpu") + b"J" + struct.pack("<i", count) + b"tQ"
  return b"ctorch._utils\n_rebuild_tensor_v2\n(" + memory + b"K\0" + numbers(shape) + numbers(stride) + b"\x89ccollections\nOrderedDict\n)RtR"


def dict_of(items: dict[str, bytes]) -> bytes: return b"}(" + b"".join(text(k) + v for k, v in items.items()) + b"u"


def checkpoint(value: bytes, storages: dict[str, bytes]) -> bytes:
  """As torch.save writes one."""
  out = io.BytesIO()
  with zipfile.ZipFile(out, "w") as archive:
    archive.writestr("net/data.pkl", b"\x80\x02" + value + b".")
    archive.writestr("net/version", "3\n")
    for key, content in storages.items():
      archive.writestr(f"net/data/{key}", content)
  return out.getvalue()


def test_checkpoints_of_torch(tmp_path: pathlib.Path) -> None:
  values = np.arange(6, dtype=np.float32)
  model = {"weight": tensor("FloatStorage", "0", 6, (3, 2), (1, 3)), "bias": tensor("HalfStorage", "1", 2, (2,), (1,))}
  content = checkpoint(dict_of({"model": dict_of(model), "epoch": b"K\x07"}), {"0": values.tobytes(), "1": values[:2].astype(np.float16).tobytes()})
  file = tmp_path / "net.pt"
  file.write_bytes(content)
  for loaded in (torch_load(file), torch_load(str(file)), torch_load(Tensor(list(content), dtype=dtypes.uint8)), torch_load(Tensor(file))):
    assert list(loaded) == ["model.weight", "model.bias"]
    assert loaded["model.bias"].dtype is dtypes.float16
    np.testing.assert_array_equal(loaded["model.weight"].numpy(), values.reshape(2, 3).T)


def test_nothing_of_a_checkpoint_is_executed(tmp_path: pathlib.Path) -> None:
  file = tmp_path / "net.pt"
  file.write_bytes(checkpoint(b"cos\nsystem\n(" + text(f"touch {tmp_path}/executed") + b"tR", {}))
  with pytest.raises(tg.FormatError, match="os.system"):
    torch_load(file)
  assert not (tmp_path / "executed").exists()


def gguf(values: "np.ndarray[tuple[int, ...], np.dtype[np.float32]]", blocks: bytes) -> bytes:
  """Two metadata values and two tensors: floats, and two rows of 32 in a block of Q8_0 each."""
  def string(value: bytes) -> bytes: return struct.pack("<Q", len(value)) + value

  out = b"GGUF" + struct.pack("<IQQ", 3, 2, 3)
  out += string(b"general.name") + struct.pack("<I", 8) + string("näme".encode())
  out += string(b"layers") + struct.pack("<II", 4, 2)
  out += string(b"tokens") + struct.pack("<IIQ", 9, 8, 2) + string(b"a") + string(b"\xff")
  out += string(b"w") + struct.pack("<IQQIQ", 2, values.shape[1], values.shape[0], 0, 0)
  size = values.nbytes + -values.nbytes % 32
  out += string(b"q") + struct.pack("<IQQIQ", 2, 32, 2, 8, size)
  out += b"\0" * (-len(out) % 32) + values.tobytes()
  return out + b"\0" * (size - values.nbytes) + blocks


def test_gguf(tmp_path: pathlib.Path) -> None:
  values = np.arange(6, dtype=np.float32).reshape(2, 3)
  integers = np.arange(-32, 32, dtype=np.int8).reshape(2, 32)
  scales = np.array([[0.5], [2.0]], dtype=np.float16)
  content = gguf(values, b"".join(scales[i].tobytes() + integers[i].tobytes() for i in range(2)))
  file = tmp_path / "net.gguf"
  file.write_bytes(content)
  for metadata, tensors in (gguf_load(file), gguf_load(Tensor(list(content), dtype=dtypes.uint8)), gguf_load(Tensor(file))):
    assert metadata == {"general.name": "näme", "layers": 2, "tokens": ["a", "\ufffd"]}
    assert list(tensors) == ["w", "q"]
    np.testing.assert_array_equal(tensors["w"].numpy(), values)
    np.testing.assert_array_equal(tensors["q"].numpy(), integers * scales.astype(np.float32))


def test_files_of_other_formats(tmp_path: pathlib.Path) -> None:
  file = tmp_path / "x"
  safe_save({"a": Tensor([1.0])}, file)
  with pytest.raises(tg.FormatError, match="torch_load: expects a file of torch, got one of safetensors"):
    torch_load(file)
  with pytest.raises(tg.FormatError, match="gguf_load: expects a file of gguf, got one of safetensors"):
    gguf_load(file)
  file.write_bytes(b"GGUF\x03")
  with pytest.raises(tg.FormatError, match="GGUF|bytes"):
    gguf_load(file)
  with pytest.raises(OSError):
    torch_load(tmp_path / "missing")
  with pytest.raises(TypeError, match="expects a path"):
    gguf_load(3)
