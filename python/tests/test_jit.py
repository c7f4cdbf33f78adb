"""TinyJit on Python functions."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any, NamedTuple

import numpy as np
import pytest

from tinygrad_cpp import Context, GlobalCounters, JitError, Tensor, TinyJit, Variable, nn


def test_replays_with_new_arguments() -> None:
  runs = []

  @TinyJit
  def f(x: Tensor, y: Tensor) -> Tensor:
    runs.append(1)
    return (x * 2 + y).realize()

  for i in range(5):
    assert f(Tensor([float(i)]), Tensor([1.0])).tolist() == [2 * i + 1]
  assert len(runs) == 2 and f.captured and f.__name__ == "f"
  GlobalCounters.reset()
  kept = f(Tensor([7.0]), Tensor([0.0]))
  assert GlobalCounters.kernel_count == 1
  f(Tensor([9.0]), Tensor([0.0]))
  assert kept.tolist() == [14]  # results have memory of their own
  f.reset()
  assert not f.captured


class Pair(NamedTuple):
  first: Tensor
  second: Tensor


@dataclasses.dataclass
class Batch:
  x: Tensor
  scale: float


def test_containers() -> None:
  @TinyJit
  def f(batch: Batch, named: dict[str, Tensor], *rest: list[Tensor], last: Tensor) -> dict[str, Any]:
    s = batch.x * batch.scale + named["b"] - named["a"]
    return {"pair": Pair(s, rest[0][0]), "list": [s + last], "none": None, "batch": Batch(s * 2, 1.0) if False else (s * 2,)}

  for i in range(4):
    x = Tensor([float(i)])
    out = f(Batch(x, 3.0), {"b": Tensor([1.0]), "a": Tensor([2.0])}, [Tensor([5.0])], last=Tensor([10.0]))
    assert isinstance(out["pair"], Pair) and out["pair"].first.tolist() == [3 * i - 1] and out["pair"].second.tolist() == [5]
    assert out["list"][0].tolist() == [3 * i + 9] and out["none"] is None and out["batch"][0].tolist() == [6 * i - 2]


def test_methods_have_a_capture_for_each_object() -> None:
  class Scale:
    def __init__(self, by: float):
      self.by = Tensor([by])

    @TinyJit
    def __call__(self, x: Tensor) -> Tensor:
      return x * self.by

  a, b = Scale(2), Scale(3)
  for i in range(4):
    assert a(Tensor([float(i)])).tolist() == [2 * i] and b(Tensor([float(i)])).tolist() == [3 * i]


def test_methods_of_objects_that_are_equal_or_not_hashable() -> None:
  @dataclasses.dataclass
  class Scale:
    by: int

    @TinyJit
    def run(self, x: Tensor) -> Tensor:
      return x * self.by

  a, b = Scale(2), Scale(2)
  for i in range(3):
    assert a.run(Tensor([float(i)])).tolist() == [2 * i]
  assert a.run.captured and not b.run.captured
  a.run.reset()
  assert not a.run.captured


def test_numbers_of_numpy_are_numbers() -> None:
  @TinyJit
  def f(x: Tensor, n: int) -> Tensor:
    return x * int(n)

  for i in range(4):
    assert f(Tensor([1.0 * i]), np.int64(3)).tolist() == [3 * i]
  assert f.captured and f(Tensor([1.0]), 3).tolist() == [3]
  with pytest.raises(JitError, match="4"):
    f(Tensor([1.0]), np.int32(4))


def test_keywords_are_named_as_they_are() -> None:
  @TinyJit
  def f(x: Tensor, k: int = 0) -> Tensor:
    return x * k

  for i in range(3):
    f(Tensor([1.0 * i]), k=3)
  with pytest.raises(JitError, match=r"\{k: 4\}"):
    f(Tensor([1.0]), k=4)


def test_training_step() -> None:
  Tensor.manual_seed(3)
  layer = nn.Linear(4, 1)
  optimizer = nn.optim.SGD(nn.state.get_parameters(layer), lr=0.1)
  x = np.random.default_rng(0).normal(size=(64, 4)).astype(np.float32)
  y = (x @ np.array([[1.0], [-2], [3], [0.5]], np.float32)) + 0.25

  @TinyJit
  @Context(TRAINING=1)
  def step(x: Tensor, y: Tensor) -> Tensor:
    optimizer.zero_grad()
    loss = ((layer(x) - y) ** 2).mean().backward()
    return loss.realize(*optimizer.schedule_step())

  losses = [step(Tensor(x), Tensor(y)).item() for _ in range(60)]
  assert losses[-1] < 1e-3 < losses[0]
  np.testing.assert_allclose(layer.weight.numpy().ravel(), [1, -2, 3, 0.5], atol=0.05)


def test_variables() -> None:
  x = Tensor.arange(10).realize()

  @TinyJit
  def head_sum(x: Tensor, n: Any) -> Tensor:
    return x[:n].sum()

  n = Variable("n", 1, 10)
  for i in range(1, 8):
    assert head_sum(x, n.bind(i)).item() == i * (i - 1) // 2


def test_mistakes() -> None:
  @TinyJit
  def reads(x: Tensor) -> Tensor:
    return x + x.sum().item()

  reads(Tensor([1.0]))
  with pytest.raises(JitError, match="item"):
    reads(Tensor([1.0]))

  @TinyJit
  def gives_number(x: Tensor) -> Any:
    return x, 3

  with pytest.raises(JitError, match="must return tensors"):
    gives_number(Tensor([1.0]))

  @TinyJit
  def scaled(x: Tensor, by: float) -> Tensor:
    return x * by

  for _ in range(3):
    scaled(Tensor([1.0]), 2.0)
  with pytest.raises(JitError):
    scaled(Tensor([1.0]), 3.0)

  calls = [0]

  @TinyJit(check=True)
  def changes(x: Tensor) -> Tensor:
    calls[0] += 1
    return x * (1 if calls[0] < 3 else 2)

  changes(Tensor([1.0]))
  changes(Tensor([1.0]))
  with pytest.raises(JitError):
    changes(Tensor([1.0]))


def test_errors_of_the_function_pass_through() -> None:
  @TinyJit
  def fails(x: Tensor) -> Tensor:
    raise KeyError("mine")

  with pytest.raises(KeyError, match="mine"):
    fails(Tensor([1.0]))


def test_results_that_are_kept_hold_the_latest_values() -> None:
  kept: dict[str, Any] = {}

  @TinyJit
  def f(x: Tensor) -> Any:
    kept["one"], kept["list"] = (x * 2).realize(), [(x + 1).realize()]
    return kept["one"], kept["list"], {"other": x * 3}

  for i in range(5):
    one, several, others = f(Tensor([float(i)]).realize())
    assert [one.item(), several[0].item(), others["other"].item()] == [2 * i, i + 1, 3 * i]
    assert [kept["one"].item(), kept["list"][0].item()] == [2 * i, i + 1]
  assert f.captured


def test_a_result_may_be_returned_twice() -> None:
  def as_list(v: Tensor) -> Any: return [v, v]
  def as_pair(v: Tensor) -> Any: return v, v.realize()
  def nested(v: Tensor) -> Any:
    both = [v, v]
    return {"a": both, "b": both, "c": v}

  def first(results: Any) -> Tensor: return results["a"][0] if isinstance(results, dict) else results[0]

  for returned in (as_list, as_pair, nested):
    f = TinyJit(lambda x, r=returned: r(x + 1))
    results = [first(f(Tensor([k * 10.0]).realize())) for k in range(6)]
    assert [r.item() for r in results] == [1, 11, 21, 31, 41, 51], returned.__name__


def test_threads() -> None:
  @TinyJit
  def f(x: Tensor) -> Tensor:
    return (x * 2).sum()

  f(Tensor.ones(64)), f(Tensor.ones(64))
  wrong = []

  def work(k: int) -> None:
    for i in range(50):
      got = f(Tensor.full((64,), float(k * i)).realize()).item()
      if got != 128 * k * i:
        wrong.append((k, i, got))

  threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
  for t in threads:
    t.start()
  for t in threads:
    t.join()
  assert not wrong
