"""Small things that programs take from tinygrad.helpers."""

from __future__ import annotations

import contextlib
import functools
import math
import operator
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tinygrad_cpp import _core

if TYPE_CHECKING:
  import pathlib
  import tarfile

T = TypeVar("T")


# Options and counters.

class Context(contextlib.ContextDecorator):
  """Options for the calling thread inside of a `with` or of a decorated function: Context(DEBUG=2, TRAINING=1)."""

  def __init__(self, **options: Any):
    self.options = options
    self._before: list[dict[str, Any]] = []  # values of a program's own variables, which all threads share

  def _recreate_cm(self) -> Context:
    return self

  def __enter__(self) -> None:
    own = {key: value for key, value in self.options.items() if key in ContextVar._own}
    _core.push_context({key: value for key, value in self.options.items() if key not in own})
    self._before.append({key: ContextVar._own[key].value for key in own})
    for key, value in own.items():
      ContextVar._own[key].value = value

  def __exit__(self, *_: object) -> None:
    _core.pop_context()
    for key, value in self._before.pop().items():
      ContextVar._own[key].value = value


class ContextVar:
  """A number or a text that `with Context(KEY=...)` changes, which compares and converts as its value does: an option of the library, or one
  of a program's own, which begins with what the environment has under its name, as the type of the default, or with the default. What
  is assigned to `value` holds until the innermost Context ends."""

  _own: dict[str, ContextVar] = {}

  def __init__(self, key: str, default_value: Any):
    self.key = key
    if key in _core.option_names():
      return
    if key in ContextVar._own:
      raise RuntimeError(f"ContextVar: {key} is there already")
    ContextVar._own[key] = self
    self._value = getenv(key, default_value)

  @property
  def value(self) -> Any:
    if self.key in ContextVar._own:
      return self._value
    value = _core.get_option(self.key)
    return int(value) if isinstance(value, bool) else value

  @value.setter
  def value(self, value: Any) -> None:
    if self.key in ContextVar._own:
      self._value = value
    else:
      _core.set_option({self.key: value})

  def tolist(self, obj: object = None) -> list[Any]:
    """The parts of a text between commas, or the attributes of these names."""
    parts = [part for part in str(self.value).split(",") if part]
    return [getattr(obj, part) for part in parts] if obj is not None else parts

  def __bool__(self) -> bool: return bool(self.value)
  def __int__(self) -> int: return int(self.value)
  def __eq__(self, x: object) -> bool: return bool(self.value == x)
  def __ge__(self, x: Any) -> bool: return bool(self.value >= x)
  def __gt__(self, x: Any) -> bool: return bool(self.value > x)
  def __le__(self, x: Any) -> bool: return bool(self.value <= x)
  def __lt__(self, x: Any) -> bool: return bool(self.value < x)
  def __hash__(self) -> int: return hash(self.key)
  def __repr__(self) -> str: return f"ContextVar({self.key!r}, {self.value!r})"


def __getattr__(name: str) -> ContextVar:  # DEBUG, BEAM, TRAINING, ...
  if name in _core.option_names():
    return ContextVar(name, None)
  raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Counters(type):
  @property
  def global_ops(cls) -> int: return _core.global_ops()
  @property
  def global_mem(cls) -> int: return _core.global_mem()
  @property
  def time_sum_s(cls) -> float: return _core.time_sum_s()
  @property
  def kernel_count(cls) -> int: return _core.kernel_count()
  @property
  def mem_used(cls) -> int: return _core.mem_used()


class GlobalCounters(metaclass=_Counters):
  """What the process has run since the start or the last reset()."""

  @staticmethod
  def reset() -> None: _core.reset_counters()


def getenv(key: str, default: Any = 0) -> Any:
  """The environment variable as the type of the default."""
  return type(default)(os.getenv(key, default))


# Time and progress.

class Timing(contextlib.ContextDecorator):
  """Prints how long a `with` took."""

  def __init__(self, prefix: str = "", on_exit: Callable[[int], str] | None = None, enabled: bool = True):
    self.prefix, self.on_exit, self.enabled = prefix, on_exit, enabled

  def __enter__(self) -> None:
    self.st = time.perf_counter_ns()

  def __exit__(self, *_: object) -> None:
    self.et = time.perf_counter_ns() - self.st
    if self.enabled:
      print(f"{self.prefix}{self.et * 1e-6:6.2f} ms" + (self.on_exit(self.et) if self.on_exit else ""))


class Profiling(contextlib.ContextDecorator):
  """Prints the functions of Python that a `with` spent its time in."""

  def __init__(self, enabled: bool = True, sort: str = "cumtime", frac: float = 0.2, fn: str | None = None, ts: float = 1):
    self.enabled, self.sort, self.frac, self.fn = enabled, sort, frac, fn

  def __enter__(self) -> None:
    import cProfile

    self.profile = cProfile.Profile()
    if self.enabled:
      self.profile.enable()

  def __exit__(self, *_: object) -> None:
    if not self.enabled:
      return
    import pstats

    self.profile.disable()
    if self.fn:
      self.profile.dump_stats(self.fn)
    pstats.Stats(self.profile).strip_dirs().sort_stats(self.sort).print_stats(self.frac)


class tqdm(Generic[T]):
  """A progress bar on standard error around a loop."""

  def __init__(self, iterable: Iterable[T] | None = None, desc: str = "", disable: bool = False, unit: str = "it", unit_scale: bool = False,
               total: int | None = None, rate: int = 100):
    self.iterable, self.desc, self.disable, self.unit = iterable, f"{desc}: " if desc else "", disable, unit
    self.total = total if total is not None else len(iterable) if hasattr(iterable, "__len__") else None  # type: ignore[arg-type]
    self.n, self.start, self.drawn = 0, time.perf_counter(), 0.0

  def __iter__(self) -> Iterator[T]:
    assert self.iterable is not None, "iterating over a tqdm needs an iterable"
    for item in self.iterable:
      yield item
      self.update(1)
    self.close()

  def __enter__(self) -> tqdm[T]: return self
  def __exit__(self, *_: object) -> None: self.close()
  def set_description(self, desc: str) -> None: self.desc = f"{desc}: " if desc else ""

  def update(self, n: int = 0, close: bool = False) -> None:
    self.n += n
    now = time.perf_counter()
    if not self.disable and (close or (sys.stderr.isatty() and now - self.drawn > 0.1)):
      self.drawn = now
      self._draw(now - self.start, close)

  def close(self) -> None:
    self.update(close=True)

  def _draw(self, elapsed: float, close: bool) -> None:
    rate = f"{self.n / elapsed:.2f}{self.unit}/s" if elapsed > 0 else "?"
    of = f"{100 * self.n / self.total:3.0f}% {self.n}/{self.total}" if self.total else f"{self.n}{self.unit}"
    print(f"\r\033[K{self.desc}{of} [{elapsed:.0f}s, {rate}]", end="\n" if close else "", flush=True, file=sys.stderr)

  @classmethod
  def write(cls, s: str) -> None: print(f"\r\033[K{s}", flush=True, file=sys.stderr)


def trange(n: int, **options: Any) -> tqdm[int]:
  return tqdm(range(n), total=n, **options)


# Downloads.

def _download(url: str, path: pathlib.Path, headers: Mapping[str, str], gunzip: bool, sha256: str | None) -> None:
  import hashlib
  import urllib.request
  import zlib

  with urllib.request.urlopen(urllib.request.Request(url, headers=dict(headers)), timeout=30) as reply:
    data = reply.read()
  data = zlib.decompress(data, wbits=31) if gunzip else data
  if sha256 and (found := hashlib.sha256(data).hexdigest()) != sha256.lower():
    raise _core.IoError(f"fetch: {url} has the SHA-256 {found}, expects {sha256}")
  path.parent.mkdir(parents=True, exist_ok=True)
  part = path.with_name(f"{path.name}.{os.getpid()}.part")
  part.write_bytes(data)
  part.rename(path)


def _extract_files(tar: tarfile.TarFile, folder: pathlib.Path) -> None:
  """What can do no harm: files and folders inside of the folder."""
  folder.mkdir()
  root = folder.resolve()
  for member in tar.getmembers():
    if not (member.isfile() or member.isdir()) or not (root / member.name).resolve().is_relative_to(root):
      raise _core.FormatError(f"fetch: {member.name!r} in the tar file is no file or folder inside of it")
    tar.extract(member, root, set_attrs=False)


def _extracted(path: pathlib.Path, anew: bool) -> pathlib.Path:
  """The folder beside a tar file with what is in it."""
  import shutil
  import tarfile

  folder = path.with_name(f"{path.name}.extract")
  if anew or not folder.is_dir():
    part = path.with_name(f"{path.name}.{os.getpid()}.extract.part")
    shutil.rmtree(part, ignore_errors=True)
    with tarfile.open(path) as tar:
      if hasattr(tarfile, "data_filter"):
        tar.extractall(part, filter="data")
      else:  # Python before 3.11.4
        _extract_files(tar, part)
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)
  return folder


def fetch(url: str, name: pathlib.Path | str | None = None, subdir: str | None = None, gunzip: bool = False,
          allow_caching: bool = not getenv("DISABLE_HTTP_CACHE"), headers: Mapping[str, str] = MappingProxyType({}),
          sha256: str | None = None, extract: bool = False) -> pathlib.Path:
  """Downloads a file into the cache folder, unless it is there; local paths are returned as they are. With `sha256`, a file that is there
  with other bytes is downloaded again, and IoError if it has others then, too. With `extract`, the folder with what is in a tar file. By
  Python's own library: that of C++ needs libcurl."""
  import hashlib
  import pathlib

  if url.startswith(("/", ".")):
    return pathlib.Path(url)
  if isinstance(name, pathlib.Path) or (name is not None and "/" in name):
    path = pathlib.Path(name)
  else:
    cache = pathlib.Path(os.getenv("XDG_CACHE_HOME", "~/.cache")).expanduser() / "tinygrad_cpp" / "downloads" / (subdir or "")
    asked = "_" + hashlib.md5(repr(sorted(headers.items())).encode()).hexdigest() if headers else ""
    path = cache / ((name or hashlib.md5(url.encode()).hexdigest()) + asked + (".gunzip" if gunzip else ""))
  is_there = allow_caching and path.is_file() and (sha256 is None or hashlib.sha256(path.read_bytes()).hexdigest() == sha256.lower())
  if not is_there:
    _download(url, path, headers, gunzip, sha256)
  return _extracted(path, not is_there) if extract else path


# Lists, numbers and text.

def prod(x: Iterable[Any]) -> Any: return functools.reduce(operator.mul, x, 1)
def dedup(x: Iterable[T]) -> list[T]: return list(dict.fromkeys(x))
def argfix(*x: Any) -> tuple[Any, ...]: return tuple(x[0]) if x and isinstance(x[0], (tuple, list)) else x
def argsort(x: Sequence[Any]) -> list[int]: return sorted(range(len(x)), key=x.__getitem__)
def all_same(items: Sequence[Any]) -> bool: return all(x == items[0] for x in items)
def all_int(t: Sequence[Any]) -> bool: return all(isinstance(s, int) for s in t)
def flatten(l: Iterable[Iterable[T]]) -> list[T]: return [item for part in l for item in part]
def make_tuple(x: int | Sequence[int], cnt: int) -> tuple[int, ...]: return (x,) * cnt if isinstance(x, int) else tuple(x)
def ceildiv(num: int, amt: int) -> int: return -(num // -amt)
def round_up(num: int, amt: int) -> int: return ceildiv(num, amt) * amt
def round_down(num: int, amt: int) -> int: return num // amt * amt
def floordiv(x: int, y: int) -> int: return x // y if y else 0
def floormod(x: int, y: int) -> int: return x % y if y else x
def cdiv(x: int, y: int) -> int: return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) if y else 0
def cmod(x: int, y: int) -> int: return x - cdiv(x, y) * y
def next_power2(x: int) -> int: return 1 << max(x - 1, 0).bit_length()
def to_tuple(x: Any) -> tuple[Any, ...]: return x if isinstance(x, tuple) else (x,)
def fully_flatten(l: Any) -> list[Any]: return [x for part in l for x in fully_flatten(part)] if isinstance(l, (list, tuple)) else [l]
def unwrap(x: T | None) -> T:
  assert x is not None, "unwrap: got None"
  return x
def get_single_element(x: Sequence[T]) -> T:
  assert len(x) == 1, f"expects one element, got {len(x)}"
  return x[0]
def partition(itr: Iterable[T], fxn: Callable[[T], bool]) -> tuple[list[T], list[T]]:
  kept: list[T] = []
  rest: list[T] = []
  for item in itr:
    (kept if fxn(item) else rest).append(item)
  return kept, rest
def merge_dicts(ds: Iterable[dict[Any, Any]]) -> dict[Any, Any]: return {k: v for d in ds for k, v in d.items()}
def get_child(obj: Any, key: str) -> Any:
  for k in key.split("."):
    obj = obj[int(k)] if k.isnumeric() else obj[k] if isinstance(obj, dict) else getattr(obj, k)
  return obj


def colored(st: str, color: str | None, background: bool = False) -> str:
  """The text in a colour of the terminal; capitals are bright."""
  if color is None or os.getenv("NO_COLOR"):
    return st
  names = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"]
  return f"\u001b[{10 * background + 60 * color.isupper() + 30 + names.index(color.lower())}m{st}\u001b[0m"


def ansistrip(s: str) -> str: return re.sub("\x1b\\[[0-9;]*[mK]", "", s)
def ansilen(s: str) -> int: return len(ansistrip(s))


def time_to_str(t: float, w: int = 8) -> str:
  """Seconds in a unit that fits, in `w` columns."""
  for scale, unit in ((1, "s "), (1e3, "ms")):
    if t * scale > 10:
      return f"{t * scale:{w}.2f}{unit}"
  return f"{t * 1e6:{w}.2f}us"


def size_to_str(s: int) -> str:
  power = min(int(math.log(max(s, 1), 1024)), 3)
  return f"{s / 1024**power:.2f} {['B', 'KB', 'MB', 'GB'][power]}" if power else f"{s} B"
