"""Errors that come when values are computed name the operation, its shapes and the line of the program."""

import threading

import pytest

import tinygrad_cpp as tg
from tinygrad_cpp import Context, Tensor, TinyJit, nn


def failing(f) -> str:
  with pytest.raises(tg.OutOfMemoryError) as error, Context(MEMORY_LIMIT=1):
    f()
  return str(error.value)


def test_the_expression_and_the_line():
  x = Tensor.rand(300, 1000).realize()
  y = x.reshape(1000, 300).sum(0)
  z = y * 2 + 1
  line = test_the_expression_and_the_line.__code__.co_firstlineno + 3
  text = failing(z.realize)
  assert "while computing add: (300,) dtypes.float32 of (300,), at " in text
  assert f"test_origin.py:{line} in test_the_expression_and_the_line: y * 2 + 1" in text
  assert "1.1 MiB on CPU, rand: (300, 1000) dtypes.float32, at " in text and "Tensor.rand(300, 1000)" in text
  assert z.tolist()[0] == pytest.approx(y.tolist()[0] * 2 + 1)


def test_indexing_layers_and_gradients_name_the_users_line():
  w = Tensor.ones(8, 8).contiguous().realize()
  part = w[2:4, Tensor([1, 0])]
  assert ": w[2:4, Tensor([1, 0])]" in failing(part.realize)
  layer = nn.Linear(8, 3)
  out = layer(w).relu()
  assert ": layer(w).relu()" in failing(out.realize)
  loss = (w * w).sum()
  grad = loss.gradient(w)[0]
  assert "while computing gradient: (8, 8) dtypes.float32" in failing(grad.realize) and ": loss.gradient(w)" in failing(grad.realize)


def test_code_that_has_no_file():
  scope = {"Tensor": Tensor}
  exec("y = Tensor.ones(3).contiguous().exp()", scope)
  assert "exp: (3,) dtypes.float32 of (3,), at <string>:1" in failing(scope["y"].realize)


def test_threads_tell_their_own_lines():
  texts: list[list[str]] = [[], []]

  def first() -> None:
    for _ in range(200):
      texts[0].append(failing_line(lambda x: x * 3))

  def second() -> None:
    for _ in range(200):
      texts[1].append(failing_line(lambda x: x - 7))

  def failing_line(f) -> str:
    with pytest.raises(tg.OutOfMemoryError) as error, Context(MEMORY_LIMIT=1):
      f(source).realize()
    return str(error.value)

  source = Tensor.ones(4).contiguous().realize()
  threads = [threading.Thread(target=f) for f in (first, second)]
  for t in threads:
    t.start()
  for t in threads:
    t.join(60)
  assert len(texts[0]) == len(texts[1]) == 200
  assert all(": x * 3" in t for t in texts[0]) and all(": x - 7" in t for t in texts[1])


def test_replays_name_the_line_of_the_function():
  @TinyJit
  def step(x: Tensor) -> Tensor:
    h = (x @ x).realize()
    return (h + 1).relu().realize()

  for size in (64, 64, 64):
    step(Tensor.ones(size, size).contiguous().realize())
  x = Tensor.ones(64, 64).contiguous().realize()
  text = failing(lambda: step(x))
  assert "in a replay of a jitted function" in text and "test_origin.py" in text
  assert "while computing relu: (64, 64) dtypes.float32 of (64, 64)" in text and "in step: (h + 1).relu()" in text
  assert "live tensors have" in text
  assert step(x).tolist()[0][0] == 65
