"""Ctrl-C while the library computes: KeyboardInterrupt soon, and every tensor is as it was."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import tinygrad_cpp as tg
from tinygrad_cpp import Context, Tensor, TinyJit


@contextmanager
def ctrl_c(after: float) -> Iterator[None]:
  """Presses it once, and waits for the end of the block to be sure that nothing of it comes later."""
  timer = threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT))
  timer.start()
  try:
    yield
  finally:
    timer.cancel()
    timer.join()


@pytest.fixture(autouse=True)
def default_handler() -> Iterator[None]:
  before = signal.signal(signal.SIGINT, signal.default_int_handler)
  yield
  signal.signal(signal.SIGINT, before)


def products(x: Tensor, w: Tensor, links: int) -> Tensor:
  for _ in range(links):
    x = x @ w
  return x


def long_chain(links: int = 300, n: int = 1024) -> Tensor:
  """Far longer than the test waits: ones times 1/n."""
  return products(Tensor.ones(n, n).contiguous().realize(), Tensor.full((n, n), 1 / n).contiguous().realize(), links)


@pytest.mark.parametrize("read", [Tensor.realize, Tensor.numpy, Tensor.tolist, lambda t: t.sum().item(), lambda t: t[0, 0].item()])
def test_long_computations(read: Callable[[Tensor], object]) -> None:
  w = Tensor([1.0, 2.0]).contiguous().realize()
  w.assign(w * 2)
  chain = long_chain()
  start = time.monotonic()
  with ctrl_c(0.2), pytest.raises(KeyboardInterrupt):
    read(chain)
  assert time.monotonic() - start < 30
  assert w.tolist() == [2, 4]
  assert long_chain(3, 64).numpy().min() == pytest.approx(1, rel=1e-3)


def test_replays() -> None:
  total = Tensor.zeros(1).contiguous().realize()
  w = Tensor.full((512, 512), 1 / 512).contiguous().realize()

  @TinyJit
  def step(x: Tensor) -> Tensor:
    y = products(x, w, 20)
    total.assign(total + y.mean())
    return y.realize()

  x = Tensor.ones(512, 512).contiguous().realize()
  for _ in range(3):
    step(x)
  calls, stops = 3, 0
  for i in range(10):
    try:
      with ctrl_c(0.01 + 0.02 * i):
        for _ in range(100):
          step(x)
          calls += 1
    except KeyboardInterrupt:
      stops += 1
    # One that was interrupted between its end and the count is in the total: nothing between whole calls is.
    np.testing.assert_allclose(total.item(), round(total.item()))
    assert round(total.item()) in (calls, calls + 1)
    calls = round(total.item())
  assert stops >= 8


def test_compilation_and_search() -> None:
  x, w = Tensor.rand(317, 411).realize(), Tensor.rand(411, 317).realize()
  y = x @ w
  with Context(BEAM=4, IGNORE_BEAM_CACHE=1):
    start = time.monotonic()
    with ctrl_c(0.3), pytest.raises(KeyboardInterrupt):
      y.realize()
    assert time.monotonic() - start < 30
  assert (x + 1).numpy().shape == (317, 411)


def test_a_handler_that_goes_on() -> None:
  pressed = []
  signal.signal(signal.SIGINT, lambda *_: pressed.append(True))
  with ctrl_c(0.05):
    assert long_chain(40, 700)[0, 0].item() == pytest.approx(1, rel=1e-3)
    while not pressed:
      time.sleep(0.01)


def test_a_handler_that_raises_something_else() -> None:
  class Stop(Exception):
    pass

  def handler(*_: object) -> None:
    raise Stop

  signal.signal(signal.SIGINT, handler)
  with ctrl_c(0.1), pytest.raises(Stop):
    long_chain().realize()


def test_other_threads_go_on() -> None:
  results = []
  other = threading.Thread(target=lambda: results.append(long_chain(60, 512)[0, 0].item()))
  other.start()
  with ctrl_c(0.1), pytest.raises(KeyboardInterrupt):
    long_chain().realize()
  other.join()
  assert results == [pytest.approx(1, rel=1e-3)]


def test_loaders() -> None:
  class Slow:
    def __len__(self) -> int:
      return 1000

    def __getitem__(self, i: int) -> np.ndarray:
      time.sleep(0.05)
      return np.array([i], np.float32)

  loader = tg.DataLoader(Slow(), batch_size=100)
  start = time.monotonic()
  with ctrl_c(0.1), pytest.raises(KeyboardInterrupt):
    next(iter(loader))
  assert time.monotonic() - start < 5
