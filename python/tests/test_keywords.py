"""Calls by tinygrad's names of parameters, and what their values mean."""

import hashlib
import io
import pathlib
import tarfile
from typing import Any

import numpy as np
import pytest

import tinygrad_cpp as tg
from tinygrad_cpp import Context, Tensor, UOp, dtypes, function, helpers, nn
from tinygrad_cpp.helpers import ContextVar, fetch
from tinygrad_cpp.nn.state import TensorIO, accept_filename

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("call,expected", [
  (lambda x: x.reshape(shape=(3, 2)), X.reshape(3, 2)),
  (lambda x: x.view(shape=(3, -1)), X.reshape(3, 2)),
  (lambda x: x.reshape(shape=(None, 3)), X),
  (lambda x: x.expand(shape=(2, 2, 3)), np.broadcast_to(X, (2, 2, 3))),
  (lambda x: x.permute(order=(1, 0)), X.T),
  (lambda x: x.flip(axis=0), X[::-1]),
  (lambda x: x.flip(axis=(0, 1)), X[::-1, ::-1]),
  (lambda x: x.repeat(repeats=(2, 1)), np.tile(X, (2, 1))),
  (lambda x: x.shrink_to(shape=(1, 2)), X[:1, :2]),
  (lambda x: x.pad_to(shape=(2, 4), value=7), np.pad(X, ((0, 0), (0, 1)), constant_values=7)),
  (lambda x: x.contiguous(arg=None), X),
  (lambda x: x.zeros_like(device="INTERP"), np.zeros((2, 3))),
  (lambda x: x.ones_like(dtype=dtypes.int8, device="INTERP"), np.ones((2, 3))),
  (lambda x: x.full_like(4, device="INTERP", buffer=False), np.full((2, 3), 4)),
  (lambda x: Tensor.zeros(2, buffer=False), np.zeros(2)),
  (lambda x: Tensor.ones(2, buffer=True), np.ones(2)),
])
def test_views_and_constants(call: Any, expected: np.ndarray) -> None:
  out = call(Tensor(X.copy()))
  assert out.shape == expected.shape
  np.testing.assert_array_equal(out.numpy(), expected)


def test_devices_and_dtypes_of_likes() -> None:
  x = Tensor(X.copy())
  for make in (x.zeros_like, x.ones_like, x.rand_like, x.randn_like, x.empty_like, lambda **o: x.full_like(3, **o)):
    assert (make().device, make().dtype) == (x.device, x.dtype)
    made = make(device="INTERP", dtype=dtypes.float16)
    assert (made.device, made.dtype, made.shape) == ("INTERP", dtypes.float16, x.shape)


def test_a_parameter_given_twice() -> None:
  x = Tensor(X.copy())
  for call in (lambda: x.reshape((3, 2), shape=(2, 3)), lambda: x.permute(1, 0, order=(0, 1)), lambda: x.flip(0, axis=1), lambda: x.repeat(2, 1, repeats=1)):
    with pytest.raises(TypeError, match="twice"):
      call()


def test_integers_drawn_from_floats() -> None:
  Tensor.manual_seed(3)
  drawn = Tensor.uniform(2000, low=-3, high=4, dtype=dtypes.int32)
  assert drawn.dtype is dtypes.int32 and set(drawn.tolist()) == set(range(-3, 4))
  counts = np.bincount(drawn.numpy() + 3)
  assert counts.min() > 200 and counts.max() < 400
  normal = Tensor.randn(2000, dtype=dtypes.int32)
  assert normal.dtype is dtypes.int32 and 1200 < (normal.numpy() == 0).sum() < 1500  # rounded toward 0: P(|x| < 1) is 0.683
  with pytest.raises(tg.ValueError, match="uniform: low 0.5 is no dtypes.int32"):
    Tensor.uniform(3, low=0.5, dtype=dtypes.int32)


def test_negative_padding_cuts() -> None:
  x, w = np.random.default_rng(1).standard_normal((2, 3, 8, 9)).astype(np.float32), np.ones((4, 3, 3, 3), np.float32)
  cut, pads = x[:, :, 1:-1, 1:-1], {"rtol": 1e-5, "atol": 1e-5}
  np.testing.assert_allclose(Tensor(x).conv2d(Tensor(w), padding=-1).numpy(), Tensor(cut.copy()).conv2d(Tensor(w)).numpy(), **pads)
  layer = nn.Conv2d(3, 4, 3, padding=-1)
  np.testing.assert_allclose(layer(Tensor(x)).numpy(), Tensor(cut.copy()).conv2d(layer.weight, layer.bias).numpy(), **pads)
  mixed = np.pad(x[:, :, :, 2:], ((0, 0), (0, 0), (1, 0), (0, 0)))[:, :, :-3, :]
  np.testing.assert_allclose(Tensor(x).conv2d(Tensor(w), padding=(-2, 0, 1, -3)).numpy(), Tensor(mixed).conv2d(Tensor(w)).numpy(), **pads)
  np.testing.assert_array_equal(Tensor(x).max_pool2d(2, padding=-1).numpy(), Tensor(cut.copy()).max_pool2d(2).numpy())
  np.testing.assert_allclose(Tensor(x).avg_pool2d(2, padding=-1).numpy(), Tensor(cut.copy()).avg_pool2d(2).numpy(), **pads)
  wt = Tensor(np.ones((3, 2, 2, 2), np.float32))
  for stride in (1, 2):
    whole = Tensor(x).conv_transpose2d(wt, stride=stride).numpy()
    np.testing.assert_allclose(Tensor(x).conv_transpose2d(wt, stride=stride, padding=-1).numpy(),
                               np.pad(whole, ((0, 0), (0, 0), (1, 1), (1, 1))), **pads)


def test_statistics_along_two_axes() -> None:
  rng = np.random.default_rng(2)
  x, mean, invstd, w, b = (rng.standard_normal(s).astype(np.float32) for s in ((2, 3, 4), (2, 4), (2, 4), (2, 4), (2, 4)))
  expected = (x - mean[:, None]) * invstd[:, None] * w[:, None] + b[:, None]
  for shape in ((2, 4), (8,)):
    m, i, v, c = (Tensor(a.reshape(shape)) for a in (mean, invstd, w, b))
    if shape == (2, 4):
      np.testing.assert_allclose(Tensor(x).batchnorm(v, c, m, i, axis=(0, 2)).numpy(), expected, rtol=1e-5, atol=1e-5)


def test_a_gradient_of_nodes() -> None:
  def tenfold(gradient: UOp, call: Any) -> tuple[UOp]:
    assert len(call.src) == 2 and call.src[1].dtype is dtypes.float32
    return (gradient * 10,)

  x = Tensor([1.0, 2.0]).realize()
  double = function(lambda x: x * 2, grad_fxn=tenfold)
  assert double(x).tolist() == [2, 4]
  double(x).sum().backward()
  assert x.grad is not None and x.grad.tolist() == [10, 10]

  @function(grad_fxn=lambda a, b, call: (Tensor(a) + Tensor(b) * 3,), precompile=True)
  def both(x: Tensor) -> tuple[Tensor, Tensor]:
    return x + 1, x * x

  y = Tensor([1.0, 2.0]).realize()
  one, square = both(y)
  assert (one.sum() + square.sum()).gradient(y)[0].tolist() == [4, 4]
  with pytest.raises(TypeError, match="one of them"):
    function(lambda x: x, grad_fxn=tenfold, gradient=tenfold)


def test_fetch(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
  source = tmp_path / "data.tar"
  with tarfile.open(source, "w") as tar:
    info = tarfile.TarInfo("in/file.txt")
    info.size = 3
    tar.addfile(info, io.BytesIO(b"abc"))
  right, url = hashlib.sha256(source.read_bytes()).hexdigest(), source.as_uri()
  folder = fetch(url, name="d.tar", sha256=right.upper(), extract=True)
  assert (folder / "in" / "file.txt").read_bytes() == b"abc" and fetch(url, name="d.tar", extract=True) == folder
  with pytest.raises(OSError, match=f"has the SHA-256 {right}"):
    fetch(url, name="other", sha256="0" * 64)
  assert fetch(url, name="d.tar", headers={"Accept": "text"}) != fetch(url, name="d.tar")
  kept = fetch(url, name="d.tar")
  kept.write_bytes(b"damaged")
  assert fetch(url, name="d.tar", sha256=right).read_bytes() == source.read_bytes()


@pytest.mark.parametrize("has_filter", [True, False])
def test_hostile_tar_files(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, has_filter: bool) -> None:
  if not has_filter:  # Python before 3.11.4
    monkeypatch.delattr(tarfile, "data_filter", raising=False)
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
  for i, (name, kind) in enumerate([("in/file", tarfile.REGTYPE), ("../../out", tarfile.REGTYPE), ("link", tarfile.SYMTYPE), ("pipe", tarfile.FIFOTYPE)]):
    source = tmp_path / f"{i}.tar"
    with tarfile.open(source, "w") as tar:
      info = tarfile.TarInfo(name)
      info.type, info.linkname = kind, "/etc"
      tar.addfile(info)
    if i == 0:
      assert (fetch(source.as_uri(), name=f"{i}", extract=True) / name).is_file()
    else:
      with pytest.raises((tarfile.TarError, tg.FormatError)):
        fetch(source.as_uri(), name=f"{i}", extract=True)
  assert not list(tmp_path.rglob("out"))


def test_a_context_takes_dtypes_and_own_variables(monkeypatch: pytest.MonkeyPatch) -> None:
  with Context(DEFAULT_FLOAT=dtypes.half):
    assert Tensor([1.5]).dtype is dtypes.half and dtypes.default_float is dtypes.half
  with Context(DEFAULT_INT="INT64"):
    assert Tensor([1]).dtype is dtypes.int64
  assert Tensor([1.5]).dtype is dtypes.float32
  for nonsense in ("nonsense", dtypes.int32, 3):
    with pytest.raises(tg.ValueError, match="DEFAULT_FLOAT"), Context(DEFAULT_FLOAT=nonsense):
      pass
  monkeypatch.setenv("OWN_NUMBER", "3")
  own, text = ContextVar("OWN_NUMBER", 0), ContextVar("OWN_TEXT", "a,b")
  assert own.value == 3 and own > 2 and text.tolist() == ["a", "b"]
  with Context(OWN_NUMBER=5, DEBUG=0):
    assert own == 5
    with Context(OWN_NUMBER=6):
      assert own == 6
      own.value = 8
      assert own == 8
    assert own == 5
  assert own == 3
  own.value = 4
  assert own == 4
  with pytest.raises(RuntimeError, match="OWN_NUMBER"):
    ContextVar("OWN_NUMBER", 1)
  with pytest.raises(tg.ValueError, match="OWN_OTHER"), Context(OWN_OTHER=5):
    pass


def test_an_option_can_be_set() -> None:
  before = helpers.WINO.value
  try:
    with Context(WINO=2):
      helpers.WINO.value = 0
      assert helpers.WINO == 0
    assert helpers.WINO == before
    helpers.WINO.value = 2
    assert helpers.WINO == 2
    with Context(WINO=1):
      assert helpers.WINO == 1
    assert helpers.WINO == 2
    with pytest.raises(tg.ValueError, match="WINO"):
      helpers.WINO.value = 7
    assert helpers.WINO == 2
  finally:
    helpers.WINO.value = before


def test_a_tensor_as_a_file() -> None:
  data = bytes(range(100))
  file = TensorIO(Tensor(data))
  assert file.read(3) == data[:3] and file.tell() == 3 and file.read(0) == b""
  assert file.seek(-5, 2) == 95 and file.read() == data[95:] and file.read(4) == b"" and file.read() == b""
  assert file.seek(10) == 10 and file.seek(2, 1) == 12 and file.read(1) == data[12:13]
  assert file.seek(-7) == 0 and file.seek(1000) == 100
  buffer = bytearray(4)
  file.seek(98)
  assert file.readinto(buffer) == 2 and buffer == data[98:] + b"\0\0"
  with pytest.raises(io.UnsupportedOperation):
    file.write(b"a")
  with pytest.raises(tg.ValueError, match="vector of dtypes.uint8"):
    TensorIO(Tensor([1.0]))
  assert io.BufferedReader(TensorIO(Tensor(b"one\ntwo\n"))).readlines() == [b"one\n", b"two\n"]


def test_a_function_of_bytes_takes_a_path(tmp_path: pathlib.Path) -> None:
  (tmp_path / "f").write_bytes(b"abc")
  length = accept_filename(len)
  assert length(tmp_path / "f") == length(str(tmp_path / "f")) == length(Tensor(b"xyz")) == 3


def test_classes_of_errors() -> None:
  for error, builtin in ((tg.ShapeError, ValueError), (tg.DTypeError, TypeError), (tg.IndexError, IndexError), (tg.ValueError, ValueError),
                         (tg.OutOfMemoryError, MemoryError), (tg.IoError, OSError), (tg.FormatError, ValueError), (tg.DeviceError, RuntimeError),
                         (tg.CompileError, RuntimeError), (tg.JitError, RuntimeError)):
    assert issubclass(error, tg.Error) and issubclass(error, RuntimeError) and issubclass(error, builtin)
  for builtin in (RuntimeError, ValueError):
    with pytest.raises(builtin, match="cannot broadcast"):
      Tensor.ones(2) + Tensor.ones(3)
  with pytest.raises(RuntimeError):
    Tensor.ones(2, 3).permute(0, 0)
  with pytest.raises(RuntimeError):
    Tensor(pathlib.Path("/nonexistent"))


def test_small_helpers() -> None:
  assert helpers.partition(range(5), lambda x: x > 2) == ([3, 4], [0, 1, 2])
  assert helpers.round_down(7, 4) == 4 and helpers.cdiv(-7, 2) == -3 and helpers.cmod(-7, 2) == -1
  assert helpers.floordiv(-7, 2) == -4 and helpers.floormod(-7, 2) == 1
  assert [helpers.next_power2(n) for n in (1, 2, 3, 5, 8)] == [1, 2, 4, 8, 8]
  assert helpers.fully_flatten([1, [2, (3, [4])]]) == [1, 2, 3, 4] and helpers.to_tuple(3) == (3,) and helpers.get_single_element([7]) == 7
  assert helpers.ansilen(helpers.colored("abc", "red")) == 3
  assert [helpers.time_to_str(t).strip() for t in (12.0, 0.02, 3e-6)] == ["12.00s", "20.00ms", "3.00us"]
