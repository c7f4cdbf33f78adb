"""A tensor is a variable and a piece of memory of its own, whatever its value is and whenever that is computed."""

from typing import Callable

import numpy as np
import pytest

from tinygrad_cpp import Tensor, TinyJit, dtypes, nn


def gradient_of(loss: Tensor, x: Tensor) -> list:
  return loss.sum().gradient(x)[0].tolist()


MAKERS: dict[str, Callable[[], Tensor]] = {
  "ones": lambda: Tensor.ones(3),
  "zeros": lambda: Tensor.zeros(3),
  "full": lambda: Tensor.full((2, 2), 3.0),
  "number": lambda: Tensor(2.0),
  "arange": lambda: Tensor.arange(4.0),
  "eye": lambda: Tensor.eye(3),
  "contiguous": lambda: Tensor.ones(3).contiguous(),
  "realized": lambda: Tensor.ones(3).realize(),
  "list": lambda: Tensor([1.0, 2.0]),
}


@pytest.mark.parametrize("name", MAKERS)
def test_equal_values_are_different_variables(name: str) -> None:
  x, c = MAKERS[name](), MAKERS[name]()
  (x * c * c).sum().backward()
  assert x.grad.tolist() == (c * c).tolist() and c.grad.tolist() == (x * c * 2).tolist()
  dx, dc = (x * c * c).sum().gradient(x, c)
  assert dx.tolist() == x.grad.tolist() and dc.tolist() == c.grad.tolist()


def test_equal_computations_are_different_variables() -> None:
  x = Tensor([1.0, 2.0, 3.0])
  a, b = x * 2, x * 2
  assert gradient_of(a * b, a) == b.tolist() and gradient_of(a * b, b) == a.tolist()
  y = x.reshape(3)
  assert gradient_of(x * y, y) == [1, 2, 3] and gradient_of(x * y, x) == [2, 4, 6]


def test_numbers_have_no_gradient() -> None:
  x, two = Tensor([1.0, 2.0]), Tensor(2.0)
  (x * 2.0 * two).sum().backward()
  assert two.grad.item() == 6 and x.grad.tolist() == [4, 4]


def test_a_gradient_stays_the_same_object() -> None:
  x = Tensor([1.0, 2.0])
  (x * x).sum().backward()
  g = x.grad
  (x * 3).sum().backward()
  assert x.grad is g and g.tolist() == [5, 7]
  g.realize()
  (x * 3).sum().backward()
  assert x.grad is g and g.tolist() == [8, 10]


def test_layers_with_equal_weights() -> None:
  a, b = nn.Linear(2, 2), nn.Linear(2, 2)
  for layer in (a, b):
    layer.weight, layer.bias = Tensor.ones(2, 2), Tensor.zeros(2)
  b(a(Tensor([[1.0, 2.0]]))).sum().backward()
  assert a.weight.grad.tolist() == [[2, 4], [2, 4]] and b.weight.grad.tolist() == [[3, 3], [3, 3]]


def test_a_step_that_makes_tensors_is_captured() -> None:
  @TinyJit
  def step(x: Tensor) -> Tensor:
    w = Tensor.ones(4)
    return (x * w * Tensor.ones(4)).sum().gradient(w)[0].realize()

  for i in range(4):
    assert step(Tensor([1.0, 2.0, 3.0, float(i)]).realize()).tolist() == [1, 2, 3, i]
  assert step.captured is not None


def test_writes_are_differentiable() -> None:
  w = Tensor.ones(4)
  y = w * 2
  y[1] = 0
  assert gradient_of(y, w) == [2, 0, 2, 2]
  x = Tensor([1.0, 2.0])
  z = Tensor.ones(4).contiguous()
  z[:2] = x
  (z * z).sum().backward()
  assert x.grad.tolist() == [2, 4]


def test_writes_as_in_pytorch() -> None:
  torch = pytest.importorskip("torch")

  def masked(y, x, t):
    y[t([True, False, True, False, False, True])] = x[0]

  def indexed(y, x, t):
    y[t([3, 1])] = x

  def slices(y, x, t):
    for i in range(3):
      y[2 * i : 2 * i + 2] = x * (i + 1) + y[:2]

  def views(y, x, t):
    v = y.reshape(2, 3)[1]
    v[0:2] += x
    v *= 3

  def strided(y, x, t):
    y[1::3] = x
    y[::2] *= 3

  def whole(y, x, t):
    y += y * 3
    y *= 2

  start = np.arange(1, 7, dtype=np.float32)
  for write in (masked, indexed, slices, views, strided, whole):
    tw, tx = torch.tensor(start, requires_grad=True), torch.tensor([5.0, 7.0], requires_grad=True)
    ty = tw * 2
    write(ty, tx, torch.tensor)
    (ty * ty).sum().backward()
    w, x = Tensor(start.copy()), Tensor([5.0, 7.0])
    y = w * 2
    write(y, x, Tensor)
    dw, dx = (y * y).sum().gradient(w, x)
    np.testing.assert_array_equal(y.numpy(), ty.detach().numpy(), err_msg=write.__name__)
    np.testing.assert_array_equal(dw.numpy(), tw.grad.numpy(), err_msg=write.__name__)
    np.testing.assert_array_equal(dx.numpy(), (tx.grad if tx.grad is not None else torch.zeros(2)).numpy(), err_msg=write.__name__)


VIEWS = {
  "reshape": lambda x: x.reshape(2, 3),
  "permute": lambda x: x.reshape(2, 3).permute(1, 0),
  "flip": lambda x: x.flip(0),
  "slice": lambda x: x[1:4],
  "step": lambda x: x[::4],
  "backwards": lambda x: x[::-2],
  "element": lambda x: x[2],
  "chunk": lambda x: x.chunk(2)[1],
  "diagonal": lambda x: x.reshape(2, 3).diagonal(),
  "detach": lambda x: x.detach(),
  "bitcast": lambda x: x.bitcast(dtypes.uint32),
}
COPIES = {
  "contiguous": lambda x: x.contiguous(),
  "clone": lambda x: x.clone(),
  "cast": lambda x: x.cast(dtypes.float64),
  "indices": lambda x: x[Tensor([0, 1])],
  "list": lambda x: x[[0, 1]],
  "mask": lambda x: x[Tensor([True] * 6)],
  "pad": lambda x: x.pad(((0, 0),)),
  "roll": lambda x: x.roll(1),
  "add": lambda x: x + 0,
}


@pytest.mark.parametrize("name", [*VIEWS, *COPIES])
@pytest.mark.parametrize("computed", [False, True])
def test_views_and_copies(name: str, computed: bool) -> None:
  for bits in range(8):
    source = Tensor.arange(6.0).realize()
    x = source + 0 if computed else source.clone()
    if bits & 1:
      x.realize()
    y = (VIEWS | COPIES)[name](x)
    if bits & 2:
      y.realize()
    before = x.tolist()
    y += 1
    if bits & 4:
      y.realize()
    assert (x.tolist() != before) == (name in VIEWS), bits
    was = y.tolist()
    x *= 100
    x += 1
    assert (y.tolist() != was) == (name in VIEWS), bits
    assert source.tolist() == [0, 1, 2, 3, 4, 5]


def test_expanded_views_are_not_written() -> None:
  for x in (Tensor.ones(3, 1), Tensor.ones(3, 1).realize(), Tensor([[1.0], [1.0], [1.0]])):
    wide = x.expand(3, 2)
    with pytest.raises(ValueError, match="expanded"):
      wide.assign(Tensor.zeros(3, 2))
    with pytest.raises(ValueError, match="expanded"):
      wide[0] = 1
    with pytest.raises(ValueError, match="expanded"):
      wide += 1
    assert wide.tolist() == [[1, 1]] * 3


def test_a_part_of_a_computed_tensor_is_written_in_both() -> None:
  y = Tensor.zeros(4).contiguous()
  v = y[1:3]
  v += 5
  assert y.tolist() == [0, 5, 5, 0] and v.tolist() == [5, 5]
  x = Tensor([1.0, 2.0])
  x.bitcast(dtypes.uint32).assign(Tensor([0x40400000, 0x40800000], dtype=dtypes.uint32))
  assert x.tolist() == [3, 4]


def test_gradients_go_on_behind_realize() -> None:
  for bits in range(16):
    x = Tensor([1.0, 2.0, 3.0])
    h = x * 2
    if bits & 1:
      h.realize()
    y = h * h
    if bits & 2:
      assert y.tolist() == [4, 16, 36]
      y.realize()
    y[1] = x[0] * 5
    if bits & 4:
      y.numpy()
    z = (y + h).realize() if bits & 8 else y + h
    dx, dh = z.sum().gradient(x, h)
    assert dx.tolist() == [10 + 5, 2, 26] and dh.tolist() == [5, 1, 13], bits
    z.sum().backward()
    assert x.grad.tolist() == [15, 2, 26], bits


def test_what_was_overwritten_is_an_error() -> None:
  w = Tensor([1.0, 2.0]).realize()
  square, double = (w * w).realize(), (w * 2).realize()
  w.assign(Tensor([5.0, 5.0]).detach()).realize()
  assert double.sum().gradient(w)[0].tolist() == [2, 2]
  with pytest.raises(ValueError, match="written to since"):
    square.sum().gradient(w)


def test_histories_end() -> None:
  x, w = Tensor([1.0]), Tensor([0.5])
  for _ in range(3000):
    x = (x * 0.999).realize()
  assert abs(x.item() - 0.999**3000) < 1e-4
  h = Tensor([1.0])
  for i in range(12000):
    h = (h * w).realize()
    if i == 100:
      assert h.sum().gradient(w)[0].item() >= 0
  with pytest.raises(ValueError, match="history is gone"):
    h.sum().gradient(w)
  (h.detach() * w).sum().backward()
  assert w.grad is not None


def test_gradients_leave_stores_that_wait_as_they_are() -> None:
  for realized in (False, True):
    a, c = Tensor([-2.0, 5.0, 9.0, 8.0, 8.0, -3.0]), Tensor([6.0, 2.0, 8.0, -1.0, -3.0, 3.0])
    x, y = a * 1, (c * 1)[2:3]
    z = (x > y).where(x, y)
    w = x + z[2:3]
    diagonal = z.reshape(2, 3).diagonal()
    if realized:
      w.realize()
      x.realize()
    diagonal[diagonal > 4] = 1
    da, dc = ((z * 6).sum() + (w * 8).sum()).gradient(a, c)
    assert da.tolist() == [8, 8, 62, 8, 8, 8] and dc.tolist() == [0, 0, 18, 0, 0, 0], realized


def test_histories_that_meet_are_counted_once() -> None:
  w = Tensor([0.5])
  before, now = Tensor([0.0]), w
  for _ in range(60):  # what is behind both would be counted 10^12 times
    before, now = now, (now * 2 - before).realize()
  assert now.gradient(w)[0].item() == 61 and now.item() == 30.5


def test_a_loop_of_writes_that_are_differentiable() -> None:
  w = Tensor([2.0])
  z = Tensor.zeros(100).contiguous()
  z[0:1] = w
  for i in range(1, 100):
    z[i : i + 1] = z[i - 1 : i] + w
  assert z[99].gradient(w)[0].item() == 100 and z.tolist() == [2.0 * (i + 1) for i in range(100)]


@pytest.mark.parametrize("write, expected", [
  (lambda h: h.assign(h.detach()), None), (lambda h: h.__setitem__(slice(None), h.detach()), None),
  (lambda h: h.__setitem__(slice(0, 2), h[0:2].detach()), [0, 0, 24]), (lambda h: h.__setitem__(slice(0, 2), h.detach()[0:2]), [0, 0, 24]),
  (lambda h: h.assign(h), [8, 16, 24]), (lambda h: h.__setitem__(slice(0, 2), h[0:2]), [8, 16, 24])])
@pytest.mark.parametrize("realized", [False, True])
def test_no_gradient_goes_through_what_was_written_over_with_its_own_detached_values(write, expected, realized):
  x = Tensor([1.0, 2.0, 3.0])
  h = x * 2
  if realized:
    h.realize()
  write(h)
  assert h.tolist() == [2, 4, 6]
  (h * h).sum().backward()
  assert x.grad is None if expected is None else x.grad.tolist() == expected
