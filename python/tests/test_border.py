"""Between Python and C++: values that no tensor can have, and threads that hold one lock and wait for another."""

import faulthandler
import gc
import os
import pathlib
import subprocess
import sys
import threading
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import tinygrad_cpp as tg
from tinygrad_cpp import DataLoader, Tensor, TinyJit, function, nn


def test_no_tensor_is_void() -> None:
  for make in (lambda: Tensor(b"ab", dtype="void"), lambda: Tensor(b"", dtype="void"), lambda: Tensor([], dtype="void"),
               lambda: Tensor(pathlib.Path(__file__), dtype="void"), lambda: Tensor.from_blob(64, (2,), dtype="void"),
               lambda: Tensor.empty(2, dtype="void"), lambda: Tensor([1]).cast("void"), lambda: Tensor([1]).bitcast("void")):
    with pytest.raises(tg.DTypeError, match="void"):
      make()


def test_text_that_is_not_unicode() -> None:
  with pytest.raises(TypeError):
    Tensor([1]).cast("\ud800")


def test_a_folder_is_no_file(tmp_path: pathlib.Path) -> None:
  with pytest.raises(OSError, match="directory"):
    Tensor(tmp_path)
  (tmp_path / "f").write_bytes(bytes(range(7)))
  assert Tensor(tmp_path / "f").tolist() == list(range(7))
  assert Tensor(tmp_path / "f", dtype="uint16").tolist() == [0x100, 0x302, 0x504]


def test_axes_beyond_32_bits() -> None:
  x = Tensor.ones(2, 3)
  for use in (lambda: x.sum(axis=2**32), lambda: x.permute(2**32 + 1, 0), lambda: x.flip(-(2**33)), lambda: x.roll(1, 2**32),
              lambda: x.layernorm(axis=2**32)):
    with pytest.raises(IndexError):
      use()


def test_integers_beyond_64_bits_as_floats() -> None:
  assert Tensor([2**70, -(2**63) - 1], dtype="float64").tolist() == [2.0**70, -(2.0**63)]
  assert Tensor([2**63], dtype="float32").tolist() == [2.0**63]
  assert Tensor(2**70, dtype="float64").item() == 2.0**70 and Tensor(2**63, dtype="uint64").item() == 2**63
  for too_large in ([10**400], 10**400):
    with pytest.raises(OverflowError):
      Tensor(too_large, dtype="float32")
  for beyond_64_bits in ([2**70], 2**70, [-1, 2**63]):
    with pytest.raises(ValueError):
      Tensor(beyond_64_bits)


def test_jitted_functions_take_any_argument() -> None:
  f = TinyJit(lambda x, at: x[at] * 2)
  for _ in range(4):
    assert f(Tensor([1.0, 2.0]), ...).tolist() == [2.0, 4.0]
  names = TinyJit(lambda x, texts: x * len(texts))
  for _ in range(3):
    assert names(Tensor([1.0]), ["a", "b"]).tolist() == [2.0]
  with pytest.raises(tg.JitError):
    names(Tensor([1.0]), ["a', 'b"])
  with pytest.raises(tg.JitError):
    names(Tensor([1.0]), ['a", "b'])
  itself: list[Any] = []
  itself.append(itself)
  with pytest.raises(RecursionError):
    f(Tensor([1.0]), itself)
  with pytest.raises(RecursionError):
    TinyJit(lambda x: itself)(Tensor([1.0]))
  with pytest.raises(ValueError, match="two keys"):
    TinyJit(lambda d: d[1] + d["1"])({1: Tensor([1.0]), "1": Tensor([2.0])})


def test_a_gradient_function_gives_tensors() -> None:
  x = Tensor([1.0, 2.0]).realize()
  with pytest.raises(TypeError, match="a tensor or None.*float"):
    function(lambda x: x * 2, gradient=lambda gradients, inputs, outputs: 3.0)(x).sum().backward()
  function(lambda x: x * 2, gradient=lambda gradients, inputs, outputs: gradients[0] * 5)(x).sum().backward()
  assert x.grad is not None and x.grad.tolist() == [5.0, 5.0]


def in_threads(count: int, work: Any) -> None:
  """Ends the process, instead of waiting for ever, where they wait for each other, which may be for Python's own lock."""
  errors = []

  def caught(k: int) -> None:
    try:
      work(k)
    except BaseException as e:
      errors.append(e)

  threads = [threading.Thread(target=caught, args=(k,)) for k in range(count)]
  faulthandler.dump_traceback_later(120, exit=True)
  for t in threads:
    t.start()
  for t in threads:
    t.join()
  faulthandler.cancel_dump_traceback_later()
  assert not errors, errors


def test_a_jit_is_reset_while_others_call_it() -> None:
  f = TinyJit(lambda x: (x * 2).sum())
  x = Tensor.ones(8).realize()

  def work(k: int) -> None:
    for _ in range(40):
      if k == 0:
        f.reset()
        f.free_intermediates()
        assert f.captured is None or f.captured
      else:
        assert f(x).item() == 16

  switch = sys.getswitchinterval()
  sys.setswitchinterval(1e-5)
  try:
    in_threads(3, work)
  finally:
    sys.setswitchinterval(switch)


def test_a_loader_keeps_its_data_set_and_lets_it_go() -> None:
  class Rows:
    def __len__(self) -> int:
      return 64

    def __getitem__(self, i: int) -> np.ndarray:
      return np.full(3, i, np.float32)

  rows = Rows()
  before = sys.getrefcount(rows)
  for _ in range(5):
    loader = DataLoader(rows, batch_size=4, threads=3)
    assert sum(len(batch[0]) for batch in loader) == 64
    next(iter(loader))
  del loader
  gc.collect()
  assert sys.getrefcount(rows) == before


def test_optimizers_are_made_while_a_loader_decodes() -> None:
  class Computed:
    def __len__(self) -> int:
      return 64

    def __getitem__(self, i: int) -> Tensor:
      return (Tensor(np.full(4, i, np.float32)) + 1).realize()

  def work(k: int) -> None:
    for _ in range(4):
      layer = nn.Linear(4, 4)
      with tg.Context(TRAINING=1):
        nn.BatchNorm(4)(layer(Tensor.ones(2, 4))).realize()
      nn.optim.LambdaLR(nn.optim.Adam(nn.state.get_parameters(layer)), lambda step: 1.0).step()
      for i, batch in enumerate(DataLoader(Computed(), batch_size=8, threads=2)):
        assert batch[0].numpy()[0, 0] == 8 * i + 1

  in_threads(2, work)


def test_the_process_ends_while_a_loader_decodes(tmp_path: pathlib.Path) -> None:
  program = tmp_path / "program.py"
  program.write_text("""
import numpy as np, time, tinygrad_cpp as tg
class Slow:
  def __len__(self): return 1000
  def __getitem__(self, i):
    time.sleep(0.001)
    return np.ones(3)
loader = tg.DataLoader(Slow(), batch_size=4, threads=4, prefetch=64)
next(iter(loader))
cycle = [loader]
cycle.append(cycle)
print("done")
""")
  done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60)
  assert done.returncode == 0 and done.stdout == "done\n", done.stderr


def test_values_of_other_types() -> None:
  x = Tensor([[1.0, 2.0]])
  for use in (lambda: x.shrink(3), lambda: x.pad(None), lambda: Tensor(np.array(["a"])), lambda: Tensor({1: 2}),
              lambda: nn.state.load_state_dict(nn.Linear(1, 1), {"weight": 3}), lambda: x.rearrange("a b -> b a", a="1")):
    with pytest.raises(TypeError):
      use()


def test_kernels_are_written_while_others_compute() -> None:
  def double(c: Any, a: Any) -> Any:
    i = tg.UOp.range(4, 0)
    return c[i].store(a[i] * 2.0).end(i).sink()

  def work(k: int) -> None:
    for i in range(10):
      a = Tensor(np.full(4, i, np.float32))
      assert Tensor.empty(4).custom_kernel(a, fxn=double)[0].tolist() == [2.0 * i] * 4
      t = (a + k).contiguous()
      t.callify()
      assert t.tolist() == [float(i + k)] * 4

  in_threads(3, work)
  with pytest.raises(TypeError, match="memory"):
    (Tensor([1.0]) + 1).uop.shape


def test_threads_share_an_epoch() -> None:
  loader = DataLoader(Tensor.arange(4000).reshape(1000, 4), batch_size=4, threads=2)
  seen: list[int] = []
  for _ in range(3):
    epoch = iter(loader)
    seen.clear()
    in_threads(4, lambda k: seen.extend(int(batch[0][0, 0].item()) for batch in epoch))
    assert sorted(seen) == list(range(0, 4000, 16))
  stale = iter(loader)
  assert len(list(loader)) == len(loader)
  with pytest.raises(RuntimeError, match="another loop"):
    next(stale)


def test_cycles_through_functions_are_collected() -> None:
  class Model:
    def __init__(self) -> None:
      self.layer = nn.Linear(2, 2)
      self.step = TinyJit(lambda model, x: model.layer(x))
      self.optimizer = nn.optim.SGD([self.layer.weight])
      self.scheduler = nn.optim.LambdaLR(self.optimizer, lambda step: 1.0 if self else 0.0)

  model = Model()
  for _ in range(3):
    model.step(model, Tensor.ones(1, 2).contiguous().realize())
    model.scheduler.step()
  gone = weakref.ref(model)
  del model
  gc.collect()
  assert gone() is None


def test_sink_takes_kernel_info() -> None:
  def with_arg(arg: Any) -> None:
    Tensor.empty(4).custom_kernel(fxn=lambda c: c[0].store(1.0).sink(arg=arg))

  for wrong in (3, "name", object()):
    with pytest.raises(TypeError, match="KernelInfo"):
      with_arg(wrong)


def test_prefetch_may_be_any_number() -> None:
  assert len(list(DataLoader([np.ones(2)] * 10, batch_size=2, threads=2, prefetch=2**63 - 1))) == 5


def test_a_thread_with_a_small_stack_computes() -> None:
  # Of a product a tile as long as the reduction is memory of the thread that computes.
  a, b = np.ones((64, 4096), np.float32), np.ones((4096, 256), np.float32)
  found: list[float] = []
  before = threading.stack_size(256 * 1024)
  try:
    thread = threading.Thread(target=lambda: found.append((Tensor(a) @ Tensor(b)).max().item()))
    thread.start()
    thread.join()
  finally:
    threading.stack_size(before)
  assert found == [4096.0]


def test_a_forked_child_computes() -> None:
  # The parent's threads are not there; 2**20 elements are worth several.
  expected = float((Tensor.arange(1 << 20) % 7).sum().item())
  with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of os.fork in a process with threads
    child = os.fork()
  if child == 0:
    os._exit(0 if float((Tensor.arange(1 << 20) % 7).sum().item()) == expected and (Tensor.ones(1 << 20) * 3).sum().item() == 3 << 20 else 1)
  assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
