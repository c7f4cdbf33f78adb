"""x[...] and x[...] = y: expressions drawn at random, against NumPy; what lists mean; and indices out of range."""

from typing import Any

import numpy as np
import pytest

import tinygrad_cpp as tg
from tinygrad_cpp import Context, Tensor, TinyJit, Variable, dtypes, function, nn

A = np.arange(24).reshape(2, 3, 4)


class Drawn:
  """An index for an array of a shape, as ours and as NumPy takes it."""

  def __init__(self, rng: np.random.Generator, shape: tuple[int, ...]):
    self.rng, self.shape, self.axis = rng, shape, 0
    self.ours: list[Any] = []
    self.ints: list[Any] = []  # integers select first, as in PyTorch: with NumPy they would be index arrays
    self.rest: list[Any] = []
    self.ways = 1 if rng.random() < 0.5 else rng.integers(2, 4)  # how long the index arrays of this expression are
    self.draw()

  def draw(self) -> None:
    hole = self.rng.integers(0, len(self.shape) + 1) if self.rng.random() < 0.3 else -1  # an ellipsis in front of this axis
    while self.axis < len(self.shape):
      if self.axis == hole:
        skipped = int(self.rng.integers(0, len(self.shape) - self.axis + 1))
        self.ours.append(...)
        self.ints += [slice(None)] * skipped
        self.rest += [slice(None)] * skipped
        self.axis += skipped
        hole = -1
        if self.axis == len(self.shape):
          return
      elif hole < 0 and not any(e is ... for e in self.ours) and self.rng.random() < 0.1:
        return  # whole axes are left
      if self.rng.random() < 0.1:
        self.ours.append(None)
        self.rest.append(None)
      self.entry(self.shape[self.axis])

  def entry(self, n: int) -> None:
    kind = self.rng.choice(["int", "slice", "whole", "list", "array", "tensor", "mask"], p=[0.2, 0.25, 0.1, 0.15, 0.1, 0.1, 0.1])
    if kind == "int":
      i = int(self.rng.integers(-n, n))
      self.ours.append(i)
      self.ints.append(i)
      self.axis += 1
      return
    if kind == "slice" or kind == "whole":
      ends = [None if self.rng.random() < 0.3 else int(self.rng.integers(-n - 1, n + 2)) for _ in range(2)]
      index = slice(*ends, int(self.rng.choice([1, 1, 2, 3, -1, -2]))) if kind == "slice" else slice(None)
      self.ours.append(index)
      self.rest.append(index)
    elif kind == "mask":
      mask = np.zeros(n, bool)
      mask[self.rng.permutation(n)[:min(n, self.ways)]] = True
      if mask.sum() != self.ways:  # would not broadcast with the others
        mask[:] = False
        mask[int(self.rng.integers(0, n))] = True
      self.ours.append(mask.tolist() if self.rng.random() < 0.5 else Tensor(mask))
      self.rest.append(mask)
    else:
      index = self.rng.integers(-n, n, size=self.ways if self.rng.random() < 0.8 else (2, self.ways))
      self.ours.append({"list": index.tolist, "array": lambda: index, "tensor": lambda: Tensor(index)}[str(kind)]())
      self.rest.append(index)
    self.ints.append(slice(None))
    self.axis += 1

  def of(self, a: np.ndarray) -> tuple[np.ndarray, tuple[Any, ...]]:
    return a[(*self.ints, ...)], tuple(self.rest)


def drawn(rng: np.random.Generator) -> tuple[np.ndarray, Drawn]:
  shape = tuple(int(n) for n in rng.integers(1, 6, size=rng.integers(1, 5)))
  return rng.integers(0, 1000, size=shape).astype(np.int32), Drawn(rng, shape)


def test_reading(rng: np.random.Generator) -> None:
  for _ in range(150):
    a, index = drawn(rng)
    part, rest = index.of(a)
    key = tuple(index.ours) if rng.random() < 0.8 or all(isinstance(e, int) for e in index.ours) else index.ours  # a list means the same
    out = Tensor(a)[key]
    expected = part[rest]
    assert out.shape == expected.shape and out.numpy().tolist() == expected.tolist(), f"{a.shape}[{index.ours}]"


def test_writing(rng: np.random.Generator) -> None:
  for _ in range(60):
    a, index = drawn(rng)
    expected = a.copy()
    part, rest = index.of(expected)
    part[rest] = -7
    x = Tensor(a.copy())
    x[tuple(index.ours)] = -7
    assert x.numpy().tolist() == expected.tolist(), f"{a.shape}[{index.ours}] = -7"


LISTS = [  # as tinygrad and PyTorch have them: a list of more than numbers is a tuple
  ([0, 1], A[[0, 1]]), ([[0, 1]], A[[0, 1]]), ([[0, 1], [1, 0]], A[[0, 1], [1, 0]]), (([[0, 1], [1, 0]],), A[np.array([[0, 1], [1, 0]])]),
  ([slice(None), [0, 1]], A[:, [0, 1]]), ([[0, 1], slice(None)], A[[0, 1]]), ([Ellipsis, 0], A[..., 0]), ([None], A[None]), ([0, None], A[0, None]),
  ([(0, 1), (1, 0)], A[[0, 1], [1, 0]]), (((0, 1), (1, 0)), A[[0, 1], [1, 0]]), ([[[0, 1], [1, 0]]], A[np.array([[0, 1], [1, 0]])]),
  ([True, False], A[[True, False]]), ([[True, False]], A[[True, False]]), ([], A[:0]), ([[]], A[:0]), (range(2), A[[0, 1]]),
  ([np.int64(1), np.int64(0)], A[[1, 0]]), (np.array([1, 0]), A[[1, 0]]), ([np.array([1, 0]), 2], A[[1, 0], 2]),
  ((slice(None), [[0, 1], [1, 2]]), A[:, np.array([[0, 1], [1, 2]])]), (None, A[None]), ((None, None, 0), A[None, None, 0]), (..., A), ((), A),
]


@pytest.mark.parametrize("index,expected", LISTS, ids=lambda x: str(x)[:40] if not isinstance(x, np.ndarray) else "")
def test_lists(index: Any, expected: np.ndarray) -> None:
  out = Tensor(A)[index]
  assert out.shape == expected.shape and out.numpy().tolist() == expected.tolist()
  changed, x = A.copy(), Tensor(A.copy())
  changed_index = index
  if isinstance(index, list) and any(isinstance(e, (list, tuple, slice, np.ndarray)) or e is None or e is ... for e in index):
    changed_index = tuple(np.array(e, int) if isinstance(e, (list, tuple)) and not (e and isinstance(e[0], bool)) else e for e in index)
  changed[changed_index] = -1
  x[index] = -1
  assert x.numpy().tolist() == changed.tolist()


def test_lists_of_tensors() -> None:
  x, i, j = Tensor(A), Tensor([0, 1]), Tensor([1, 0])
  assert x[[i, j]].tolist() == A[[0, 1], [1, 0]].tolist() and x[[i]].tolist() == A.tolist()
  assert x[[Tensor(0), Tensor(1)]].tolist() == A[0, 1].tolist() and x[[0, Tensor(1)]].tolist() == A[0, 1].tolist()
  assert x[:, [Tensor(0), Tensor(2)]].tolist() == A[:, [0, 2]].tolist()
  assert x[[Tensor([True, False])]].tolist() == A[:1].tolist()
  x = Tensor(A.copy())
  x[[i, j]] = 5
  changed = A.copy()
  changed[[0, 1], [1, 0]] = 5
  assert x.numpy().tolist() == changed.tolist()


OUT_OF_RANGE = [
  (2, "index 2 is out of range for axis 0 of size 2"), (-3, "index -3 is out of range for axis 0 of size 2"),
  ((0, 3), "index 3 is out of range for axis 1 of size 3"), ((..., 4), "index 4 is out of range for axis 2 of size 4"),
  ([0, 2], "index 2 is out of range for axis 0 of size 2"), ([[0, -3]], "index -3 is out of range for axis 0 of size 2"),
  ((slice(None), [1, 5]), "index 5 is out of range for axis 1 of size 3"), ((..., [0, 4]), "index 4 is out of range for axis 2 of size 4"),
  ((None, ..., np.array([-5, 1])), "index -5 is out of range for axis 2 of size 4"), (np.array([[2]]), "index 2 is out of range for axis 0 of size 2"),
  (([True, False], [0, 3]), "index 3 is out of range for axis 1 of size 3"), (range(3), "index 2 is out of range for axis 0 of size 2"),
  ((np.ones((2, 3), bool), [7]), "index 7 is out of range for axis 2 of size 4"), (np.array(2), "index 2 is out of range for axis 0 of size 2"),
]


@pytest.mark.parametrize("index,message", OUT_OF_RANGE, ids=lambda x: str(x)[:30])
def test_indices_of_the_host_out_of_range(index: Any, message: str) -> None:
  x = Tensor(A.copy())
  with pytest.raises(IndexError, match=message):
    x[index]
  with pytest.raises(tg.IndexError, match=message):
    x[index] = 1
  assert x.tolist() == A.tolist()


def tensor(*values: int) -> Tensor:
  return Tensor(list(values)) + 0  # computed: the host does not know it


CHECKED = [  # what is done, the message with CHECK_OOB=1, and what is given without
  (lambda x: x[tensor(0, 5)], r"indexing: the index 5 is out of range for axis 0 of size 2 of <Tensor \(2, 3\)", [[0, 1, 2], [0, 0, 0]]),
  (lambda x: x[:, tensor(-4, 1)], "indexing: the index -4 is out of range for axis 1 of size 3", [[0, 1], [0, 4]]),
  (lambda x: x[..., tensor(0, 3)], "indexing: the index 3 is out of range for axis 1 of size 3", [[0, 0], [3, 0]]),
  (lambda x: x.gather(1, tensor(0, 9).reshape(2, 1)), "gather: the index 9 is out of range for axis 1 of size 3", [[0], [0]]),
  (lambda x: x.scatter(1, tensor(0, -1).reshape(2, 1), Tensor([[7.0], [8.0]])), "scatter: the index -1 is out of range for axis 1", [[7, 1, 2], [3, 4, 5]]),
  (lambda x: x.sparse_categorical_crossentropy(tensor(1, 3)), "sparse_categorical_crossentropy: the index 3 is out of range for axis 1 of size 3", None),
  (lambda x: x.cross_entropy(tensor(1, 3)), "cross_entropy: the index 3 is out of range for axis 1 of size 3", None),
  (lambda x: x.nll_loss(tensor(1, -2)), "nll_loss: the index -2 is out of range for axis 1 of size 3", None),
  (lambda x: nn.Embedding(4, 2)(tensor(4)), "indexing: the index 4 is out of range for axis 0 of size 4", [[0, 0]]),
]


@pytest.mark.parametrize("number", range(len(CHECKED)))
def test_indices_that_are_computed(number: int) -> None:
  f, message, otherwise = CHECKED[number]
  x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
  with Context(CHECK_OOB=1), pytest.raises(IndexError, match=message):
    f(x)
  if otherwise is not None:
    assert f(x).tolist() == otherwise


def test_what_is_in_range_passes_the_check() -> None:
  x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
  with Context(CHECK_OOB=1):
    assert x[tensor(1, -2), tensor(-3, 2)].tolist() == [3, 2]
    assert x[:, None, tensor(2)].tolist() == [[[2]], [[5]]] and x[Tensor([True, False])].tolist() == [[0, 1, 2]]
    assert x.sparse_categorical_crossentropy(tensor(1, 7), ignore_index=7).item() == x.sparse_categorical_crossentropy(tensor(1, 0), ignore_index=0).item()
    x[tensor(1)] = 9
    assert x.tolist() == [[0, 1, 2], [9, 9, 9]]
    with pytest.raises(IndexError):
      x[tensor(2)] = 1
    assert function(lambda i: x[i] * 2, gradient=lambda g, i, o: None)(tensor(1)).tolist() == [[18, 18, 18]]


LOOKED_AT = [  # what a jitted function does, right and wrong indices, and the message
  (lambda x, i: x[i], [1, -2], [0, 2], r"indexing: the index 2 is out of range for axis 0 of size 2 of <Tensor \(2, 3\)"),
  (lambda x, i: x[:, i + 1] * 2, [1, -2], [-5, 0], "indexing: the index -4 is out of range for axis 1 of size 3"),
  (lambda x, i: x.gather(1, i.reshape(2, 1).expand(2, 3)), [2, 0], [0, 3], "gather: the index 3 is out of range for axis 1 of size 3"),
  (lambda x, i: x.scatter(1, i.reshape(2, 1), 5.0), [2, 0], [-1, 0], "scatter: the index -1 is out of range for axis 1 of size 3"),
  (lambda x, i: x.cross_entropy(i), [2, -100], [0, 3], "cross_entropy: the index 3 is out of range for axis 1 of size 3"),
  (lambda x, i: x.sparse_categorical_crossentropy(i), [2, 0], [9, 0], "sparse_categorical_crossentropy: the index 9 is out of range for axis 1"),
  (lambda x, i: x.nll_loss(i), [2, 0], [0, -2], "nll_loss: the index -2 is out of range for axis 1 of size 3"),
  (lambda x, i: x[(x[i].sum(1) / 3).cast(dtypes.int) - 1], [0, 0], [0, 1], "indexing: the index 3 is out of range for axis 0 of size 2"),
]


@pytest.mark.parametrize("number", range(len(LOOKED_AT)))
def test_indices_in_jitted_functions(number: int) -> None:
  f, right, wrong, message = LOOKED_AT[number]
  x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3)).realize()
  expected = f(x, Tensor(right)).numpy()
  with Context(CHECK_OOB=1):
    for first in range(4):
      jitted = TinyJit(lambda i: f(x, i).realize())
      for call in range(4):
        if call >= first:
          with pytest.raises(IndexError, match=message):
            jitted(Tensor(wrong).realize())
        np.testing.assert_array_equal(jitted(Tensor(right).realize()).numpy(), expected)
      assert jitted.captured


def test_an_index_in_a_replay_names_the_line() -> None:
  x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3)).realize()

  @TinyJit
  def pick(i: Tensor) -> Tensor:
    return x.gather(0, i).realize()

  with Context(CHECK_OOB=1):
    for _ in range(3):
      pick(Tensor([[1, 0, 1]]).realize())
    with pytest.raises(IndexError, match=r"gather: the index 2 .* at .*test_indexing\.py:\d+ in .*pick: x\.gather\(0, i\)"):
      pick(Tensor([[1, 0, 2]]).realize())


def test_a_step_with_a_wrong_label_changes_no_weight() -> None:
  layer = nn.Linear(4, 3)
  optimizer = nn.optim.SGD([layer.weight, layer.bias], lr=0.1)

  @TinyJit
  def step(x: Tensor, y: Tensor) -> Tensor:
    optimizer.zero_grad()
    loss = layer(x).cross_entropy(y)
    loss.backward()
    optimizer.step()
    return loss.realize()

  x, right, wrong = Tensor.rand(2, 4).realize(), Tensor([0, 2]).realize(), Tensor([0, 3]).realize()
  with Context(CHECK_OOB=1, TRAINING=1):
    for _ in range(4):
      before = layer.weight.tolist()
      with pytest.raises(IndexError, match="cross_entropy: the index 3 is out of range for axis 1 of size 3"):
        step(x, wrong)
      assert layer.weight.tolist() == before
      step(x, right)
      assert layer.weight.tolist() != before


def test_sizes_of_variables_are_those_of_the_call() -> None:
  x, n = Tensor(np.arange(8)).realize(), Variable("n", 1, 8)
  jitted = TinyJit(lambda i, n: x[:n][i].realize())
  with Context(CHECK_OOB=1):
    for size in (3, 4, 5, 6):
      assert jitted(Tensor([size - 1, -size]).realize(), n.bind(size)).tolist() == [size - 1, 0]
      with pytest.raises(IndexError, match=f"the index {size} is out of range for axis 0 of size {size}"):
        jitted(Tensor([0, size]).realize(), n.bind(size))
