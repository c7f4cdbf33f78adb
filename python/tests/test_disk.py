"""Files as tensors, by tinygrad's names: what is read, and where what is written goes."""

import os
import pathlib

import numpy as np
import pytest

import tinygrad_cpp as tg
from tinygrad_cpp import Tensor, dtypes
from tinygrad_cpp.nn.state import load_state_dict, safe_load, safe_load_metadata, safe_save


def on_disk(folder: pathlib.Path, values: np.ndarray, name: str = "x") -> Tensor:
  return Tensor(values).to(f"disk:{folder / name}").realize()


def in_file(folder: pathlib.Path, dtype: str = "int32", name: str = "x") -> list:
  return np.fromfile(folder / name, dtype).tolist()


def test_items_go_where_they_are(tmp_path: pathlib.Path) -> None:
  x = Tensor([1, 2, 3, 4]).to(f"disk:{tmp_path / 'x'}").realize()
  x[2:4] = [8, 9]
  assert in_file(tmp_path) == x.tolist() == [1, 2, 8, 9]
  x[0] = 5
  x[1:2] = np.array([6], np.int32)
  x[3] = Tensor([7])[0]
  assert in_file(tmp_path) == [5, 6, 8, 7]


# Each index, what is written there, and by whom the right answer is known: NumPy.
WRITES = [
  (slice(2, 4), [8, 9]), (slice(None), 3), (slice(None, None, 2), [1, 2, 3]), (slice(None, None, -1), [6, 5, 4, 3, 2, 1]), (5, 100), (-1, 100),
  ([0, 3], [7, 8]), (slice(1, 1), []), (Ellipsis, [9, 9, 9, 9, 9, 9]), (slice(4, None), 1.9),
]


@pytest.mark.parametrize("index,value", WRITES)
@pytest.mark.parametrize("dtype", ["int32", "float32", "uint8", "int64", "float16"])
def test_writes_are_numpys(tmp_path: pathlib.Path, index: object, value: object, dtype: str) -> None:
  expected = np.arange(6).astype(dtype)
  x = on_disk(tmp_path, expected.copy())
  expected[index] = value
  x[Tensor(index) if isinstance(index, list) else index] = value
  assert in_file(tmp_path, dtype) == x.tolist() == x.numpy().tolist() == expected.tolist()


def test_writes_into_two_axes(tmp_path: pathlib.Path) -> None:
  expected = np.arange(12, dtype=np.int32).reshape(3, 4)
  x = on_disk(tmp_path, expected.copy())
  for index in (1, (slice(None), 2), (slice(0, 2), slice(1, 3)), (2, slice(None, None, 3)), (slice(None, None, -1), 0)):
    value = np.arange(np.size(expected[index]), dtype=np.int32).reshape(expected[index].shape) * 7 + 100
    expected[index] = value
    x[index] = Tensor(value)
    assert in_file(tmp_path) == expected.ravel().tolist()
  np.testing.assert_array_equal(x.numpy(), expected)
  np.testing.assert_array_equal(x.T[1:].numpy(), expected.T[1:])


@pytest.mark.parametrize("dtype", [dtypes.bool, dtypes.uint8, dtypes.int16, dtypes.int64, dtypes.uint64, dtypes.half, dtypes.bfloat16, dtypes.float, dtypes.double])
def test_reading(tmp_path: pathlib.Path, dtype: object) -> None:
  values = [True, False, True] if dtype is dtypes.bool else [1, 0, 3]
  x = Tensor(values, dtype=dtype).to(f"disk:{tmp_path / 'x'}")
  assert x.device == f"DISK:{tmp_path / 'x'}" and x.dtype is dtype
  assert x.tolist() == values and x[2].item() == values[2]
  assert x.numpy().tolist() == values and x.data().nbytes == x.numpy().nbytes and np.array(x).tolist() == values
  assert x.to("CPU").tolist() == values


def test_paths_stay_where_they_are(tmp_path: pathlib.Path) -> None:
  np.array([1, 2, 3], np.int32).tofile(tmp_path / "x")
  x = Tensor(tmp_path / "x", dtype=dtypes.int32)
  assert x.device == f"DISK:{tmp_path / 'x'}" and x.tolist() == [1, 2, 3]
  assert Tensor(tmp_path / "x").shape == (12,)
  x[1] = 9
  assert in_file(tmp_path) == [1, 9, 3]
  here = Tensor(tmp_path / "x", dtype=dtypes.int32, device="CPU")
  assert here.device == "CPU" and (here + 1).tolist() == [2, 10, 4]
  (tmp_path / "odd").write_bytes(b"abcde")
  assert Tensor(tmp_path / "odd", dtype=dtypes.uint16).shape == (2,)
  with pytest.raises(OSError):
    Tensor(tmp_path / "none")
  assert not (tmp_path / "none").exists()


def test_values_of_the_file_before(tmp_path: pathlib.Path) -> None:
  x = on_disk(tmp_path, np.array([1, 2, 3, 4], np.int32))
  view, lazy = x[1:3], x.to("CPU") * 10
  bits = x.bitcast(dtypes.float32)
  Tensor(tmp_path / "x", dtype=dtypes.int32)[1] = 20
  assert view.tolist() == [20, 3] and x[1:3].tolist() == [20, 3] and lazy.tolist() == [10, 20, 30, 40]
  bits[0] = 1.0
  assert x.tolist() == [0x3F800000, 20, 3, 4]
  x.assign(Tensor([4, 3, 2, 1]))
  assert bits.bitcast(dtypes.int32).tolist() == [4, 3, 2, 1]
  x.assign(7)
  assert in_file(tmp_path) == [7] * 4
  with pytest.raises(tg.DTypeError):
    x.assign(Tensor([1.0, 2.0, 3.0, 4.0]))
  with pytest.raises(tg.ShapeError):
    x[:2] = [1, 2, 3]
  assert in_file(tmp_path) == [7] * 4


def test_nothing_is_computed_there(tmp_path: pathlib.Path) -> None:
  x = on_disk(tmp_path, np.array([1, 2, 3, 4], np.int32))
  for wrong in (lambda: (x + 1).realize(), lambda: x.clone(), lambda: x.sum().item(), lambda: Tensor.rand(2, device=x.device).realize(),
                lambda: (x + Tensor([1, 2, 3, 4])).realize(), lambda: x[1:].contiguous().realize()):
    with pytest.raises(tg.DeviceError):
      wrong()
  assert in_file(tmp_path) == [1, 2, 3, 4]


def test_files_grow_and_shrink(tmp_path: pathlib.Path) -> None:
  x = on_disk(tmp_path, np.array([1, 2], np.int32))
  more = Tensor.empty(4, dtype=dtypes.int32, device=x.device)
  more[2:] = [3, 4]
  assert in_file(tmp_path) == [1, 2, 3, 4] and x.tolist() == [1, 2]
  os.truncate(tmp_path / "x", 6)
  for read in (more.tolist, more.numpy, lambda: (more.to("CPU") + 1).tolist()):
    with pytest.raises(OSError, match="shorter"):
      read()
  assert x[:1].tolist() == [1]


def test_shared_memory() -> None:
  name = f"tg_test_{os.getpid()}"
  try:
    x = Tensor([1, 2, 3]).to(f"disk:shm:{name}").realize()
    Tensor.empty(3, dtype=dtypes.int32, device=f"DISK:shm:{name}")[1] = 9
    assert x.tolist() == [1, 9, 3] == np.fromfile(f"/dev/shm/{name}", np.int32).tolist()
  finally:
    os.unlink(f"/dev/shm/{name}")


def test_state_keeps_its_order(tmp_path: pathlib.Path) -> None:
  rng = np.random.default_rng(3)
  state = {"z": Tensor([1.0]), "a": Tensor([2], dtype=dtypes.uint8), "m.0": Tensor(rng.normal(size=(3, 2)), dtype=dtypes.double), "b": Tensor([True])}
  safe_save(state, tmp_path / "s")
  assert list(safe_load(tmp_path / "s")) == list(state)
  assert [n for n in safe_load_metadata(tmp_path / "s")[2] if n != "__metadata__"] == list(state)
  assert list(safe_load(Tensor((tmp_path / "s").read_bytes()))) == list(state)
  for name, t in safe_load(str(tmp_path / "s")).items():
    assert t.device == f"DISK:{tmp_path / 's'}" and t.dtype is state[name].dtype
    np.testing.assert_array_equal(t.numpy(), state[name].numpy())


def test_loaded_tensors_are_their_file(tmp_path: pathlib.Path) -> None:
  safe_save({"a": Tensor([1.0, 2.0, 3.0]), "b": Tensor([[1, 2], [3, 4]])}, tmp_path / "s")
  state = safe_load(tmp_path / "s")
  state["a"][1:] = [8, 9]
  state["b"].reshape(4)[0] = 7
  state["b"][:, 1] = [5, 6]
  again = safe_load(tmp_path / "s")
  assert again["a"].tolist() == [1, 8, 9] and again["b"].tolist() == [[7, 5], [3, 6]]

  class Model:
    def __init__(self) -> None:
      self.a, self.b = Tensor([0.0, 0.0, 0.0]), Tensor([[0, 0], [0, 0]])

  for consume in (False, True):
    model = Model()
    load_state_dict(model, safe_load(tmp_path / "s"), verbose=False, consume=consume)
    assert model.a.device == "CPU"
    model.a.assign(model.a * 2).realize()
    assert model.a.tolist() == [2, 16, 18] and safe_load(tmp_path / "s")["a"].tolist() == [1, 8, 9], "what trains does not change its file"


def test_a_file_saved_over_itself(tmp_path: pathlib.Path) -> None:
  safe_save({"a": Tensor([1, 2]), "b": Tensor([3, 4])}, tmp_path / "s")
  state = safe_load(tmp_path / "s")
  safe_save({"b": state["b"], "a": state["a"], "c": Tensor([5])}, tmp_path / "s")
  assert {n: t.tolist() for n, t in safe_load(tmp_path / "s").items()} == {"b": [3, 4], "a": [1, 2], "c": [5]}
  assert state["a"].tolist() == [1, 2], "the old file is still open"
