"""turns.py BUILD-FOLDER: files of 4 GB, of which one tensor is read, by each reader in turns."""

import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

GB = 10**9
SIZE = 4 * GB
ROWS, COLUMNS = 4096, 4096


def write(file: Path, header: bytes, tensor_bytes: int, count: int) -> None:
  """Of random bytes, the same for each tensor; scales of blocks are small numbers, as 16-bit floats 0.01 to 1."""
  block = bytearray(os.urandom(tensor_bytes))
  if file.suffix == ".gguf":
    for at in range(1, tensor_bytes, 144):  # of Q4_K: two scales in front
      block[at], block[at + 2] = 0x2C, 0x2C
  with file.open("wb") as out:
    out.write(header)
    for _ in range(count):
      out.write(block)
    out.flush()
    os.fsync(out.fileno())


def write_safetensors(file: Path) -> None:
  size = ROWS * COLUMNS * 4
  count = -(-SIZE // size)
  header = json.dumps({f"t{i}": {"dtype": "F32", "shape": [ROWS, COLUMNS], "data_offsets": [i * size, (i + 1) * size]} for i in range(count)}).encode()
  header += b" " * (-len(header) % 8)
  write(file, struct.pack("<Q", len(header)) + header, size, count)


def write_gguf(file: Path) -> None:
  size = ROWS * COLUMNS // 256 * 144
  count = -(-SIZE // size)
  q4_k = 12
  header = b"GGUF" + struct.pack("<IQQ", 3, count, 0)
  for i in range(count):
    name = f"t{i}".encode()
    header += struct.pack("<Q", len(name)) + name + struct.pack("<IQQIQ", 2, COLUMNS, ROWS, q4_k, i * size)
  write(file, header + b"\0" * (-len(header) % 32), size, count)


def drop(file: Path) -> None:
  handle = os.open(file, os.O_RDONLY)
  os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
  os.close(handle)


def has(module: str) -> bool:
  return subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode == 0


def main() -> None:
  build, side, rounds = Path(sys.argv[1]), str(Path(__file__).parent / "side.py"), 5
  with tempfile.TemporaryDirectory(dir=build) as folder:
    for ending, peer, make in (("safetensors", "safetensors", write_safetensors), ("gguf", "gguf", write_gguf)):
      file = Path(folder) / f"large.{ending}"
      space = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
      if space < 2 * SIZE:
        sys.exit(f"model_files: {space / GB:.1f} GB of the disk are free, {2 * SIZE / GB:.0f} are asked for")
      make(file)
      sides = {"C++": [str(build / "bench" / "model_files")], "tinygrad_cpp": [sys.executable, side, "tinygrad_cpp"], peer: [sys.executable, side, peer]}
      sides = {name: command for name, command in sides.items() if name == "C++" or has(name)}
      for where in ("cached", "cold"):
        results: dict[str, list[dict[str, float]]] = {name: [] for name in sides}
        for _ in range(rounds):
          for name, command in sides.items():
            if where == "cold":
              drop(file)
            results[name].append(json.loads(subprocess.run([*command, file, "t40"], check=True, capture_output=True, text=True).stdout))
        assert len({r["sum"] for all_of_one in results.values() for r in all_of_one}) == 1, results
        for name, all_of_one in results.items():
          middle = {key: statistics.median(r[key] for r in all_of_one) for key in ("seconds", "grown", "read")}
          print(f"{ending:11} {where:6} {name:12} {middle['seconds'] * 1e3:8.1f} ms, grows by {middle['grown']:7.1f} MB, {middle['read']:7.1f} MB from the disk", flush=True)
      file.unlink()


if __name__ == "__main__":
  main()
