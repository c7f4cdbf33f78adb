"""Numbers beside tensors: what they make of dtypes, that integers are neither wrapped nor rounded silently, and long sums."""

import itertools
import operator
import random

import numpy as np
import pytest

import tinygrad_cpp as tg
from tinygrad_cpp import Context, Tensor, dtypes

# tinygrad's lattice; weakint and weakfloat are the dtypes of numbers.
LATTICE = {
  "bool": ["weakint"], "weakint": ["int8", "uint8"], "int8": ["int16"], "uint8": ["int16", "uint16"], "int16": ["int32"],
  "uint16": ["int32", "uint32"], "int32": ["int64"], "uint32": ["int64", "uint64"], "int64": ["weakfloat"], "uint64": ["weakfloat"],
  "weakfloat": ["fp8e4m3", "fp8e5m2", "fp8e4m3fnuz", "fp8e5m2fnuz"], "fp8e4m3": ["float16", "bfloat16"], "fp8e5m2": ["float16", "bfloat16"],
  "fp8e4m3fnuz": ["float16", "bfloat16"], "fp8e5m2fnuz": ["float16", "bfloat16"],
  "float16": ["float32"], "bfloat16": ["float32"], "float32": ["float64"], "float64": [],
}
STRONG = [n for n in LATTICE if not n.startswith("weak")]


def upper(name: str) -> set[str]:
  return {name}.union(*(upper(p) for p in LATTICE[name]))


def least_upper(a: str, b: str) -> str:
  return next(n for n in LATTICE if n in upper(a) & upper(b))


def seen(name: str) -> str:
  return {"weakint": "int32", "weakfloat": "float32"}.get(name, name)


def of(name: str) -> Tensor:
  return Tensor([0, 1], dtype=name)


WEAK = {
  "Tensor(1)": ("weakint", lambda: Tensor(1)),
  "Tensor(1.5)": ("weakfloat", lambda: Tensor(1.5)),
  "where(1, 2)": ("weakint", lambda: Tensor([True, False]).where(1, 2)),
  "where(1., 2.)": ("weakfloat", lambda: Tensor([True, False]).where(1.0, 2.0)),
  "bool + 1": ("weakint", lambda: Tensor([True, False]) + 1),
  "int / 2.0": ("weakfloat", lambda: Tensor([1, 2]) / 2.0),
  "realized int * 2.5": ("weakfloat", lambda: (Tensor([1, 2]) * 2.5).realize()),
  "view of int - 2.5": ("weakfloat", lambda: (2.5 - Tensor([[1], [2]])).reshape(2).flip(0)),
  "const": ("weakint", lambda: Tensor.const(3)),
  "1": ("weakint", lambda: 1),
  "1.5": ("weakfloat", lambda: 1.5),
  "True": ("bool", lambda: True),
}
OPS = [operator.add, operator.sub, operator.mul, lambda a, b: a.maximum(b) if isinstance(a, Tensor) else b.maximum(a),
       lambda a, b: Tensor([True, False]).where(a, b)]


@pytest.mark.parametrize("name", list(WEAK))
def test_weak_values_give_way(name: str) -> None:
  kind, make = WEAK[name]
  value = make()
  for other, op in itertools.product(STRONG, OPS):
    want = seen(least_upper(kind, other))
    for got in (op(value, of(other)), op(of(other), value)):
      assert repr(got.dtype) == f"dtypes.{want}", (name, other, OPS.index(op), got.dtype, want)


def test_weak_values_among_themselves_stay_weak() -> None:
  half = of("float16")
  for (a, (kind_a, make_a)), (b, (kind_b, make_b)) in itertools.product(WEAK.items(), WEAK.items()):
    x, y = make_a(), make_b()
    if not isinstance(x, Tensor) and not isinstance(y, Tensor):
      continue
    z = x + y
    want = least_upper(kind_a, kind_b)
    assert repr(z.dtype) == f"dtypes.{seen(want)}", (a, b)
    assert (z + half).dtype is dtypes.float16 and (z.realize() + half).dtype is dtypes.float16, (a, b)


def test_what_the_issue_of_widening_was() -> None:
  half = Tensor([1.0, 2.0], dtype=dtypes.half)
  assert (Tensor([1, 2]) / 2.0 + half).dtype is dtypes.half
  assert (Tensor([True, False]).where(1.0, 2.0) + half).dtype is dtypes.half
  assert (Tensor([1, 2]) / 2.0 + half).tolist() == [1.5, 3.0]
  assert ((Tensor([1, 2]) / 2.0).cast("float32") + half).dtype is dtypes.float32
  assert (Tensor([1, 2]) / 2 + half).dtype is dtypes.float32  # integers divided are of the default float
  assert ((Tensor([1, 2]) * 2.5).sum() + half).dtype is dtypes.float32  # what is reduced does not give way
  assert (Tensor(2.0, dtype=dtypes.float32) + half).dtype is dtypes.float32
  assert Tensor.cat(half, Tensor([1, 2]) * 1.5).dtype is dtypes.half
  w = Tensor([1.0, 2.0], dtype=dtypes.half)
  w.assign(Tensor([1, 2]) * 1.5)
  assert w.dtype is dtypes.half and w.tolist() == [1.5, 3.0]
  w.assign(Tensor.full((2,), 10))
  assert w.dtype is dtypes.half and w.tolist() == [10.0, 10.0]
  with pytest.raises(tg.DTypeError):
    Tensor([1, 2]).assign(Tensor([1, 2]) * 1.5)
  x = Tensor([2.0, 3.0])
  s = Tensor(2.0)
  (x * s).sum().backward()
  assert s.grad is not None and s.grad.item() == 5 and x.grad is not None and x.grad.tolist() == [2, 2]


def test_integers_that_the_default_does_not_hold() -> None:
  for n in (2**31, 3000000000, 2**40, -(2**31) - 1, -(2**63)):
    for t in (Tensor(n), Tensor([n]), Tensor([[0, n]]), Tensor.full((2,), n)):
      assert t.dtype is dtypes.int64 and n in np.array(t.tolist()).reshape(-1), n
  for n in (2**63, 2**64 - 1):
    assert Tensor(n).dtype is dtypes.uint64 and Tensor(n).item() == n
    assert Tensor([n, 0]).tolist() == [n, 0]
  assert Tensor(2**31 - 1).dtype is dtypes.int32 and Tensor([-(2**31)]).dtype is dtypes.int32
  assert (Tensor.arange(1) + 2**40).tolist() == [2**40] and (2**40 - Tensor.arange(2)).tolist() == [2**40, 2**40 - 1]
  assert (Tensor([3], dtype="uint8") + 256).tolist() == [259] and (300 - Tensor([3], dtype="uint8")).tolist() == [297]
  assert [(Tensor([5], dtype="uint8") + n).tolist() for n in (-255, -256, -257, -1000)] == [[6], [5], [4], [(5 - 1000) % 256]]
  assert (Tensor([5], dtype="uint32") * -(2**33 + 1)).tolist() == [2**32 - 5] and (Tensor([5], dtype="uint16") & -(2**20)).tolist() == [0]
  assert (Tensor([3], dtype="uint8") - 1).dtype is dtypes.uint8 and (Tensor([0], dtype="uint8") + -1).tolist() == [255]
  assert (Tensor([-1], dtype="int8") & 255).tolist() == [255]
  assert (Tensor([2.5]) * 2**40).dtype is dtypes.float32
  assert Tensor([1.5, 2**40], dtype=dtypes.int64).tolist() == [1, 2**40]


@pytest.mark.parametrize("make", [
  lambda: Tensor(256, dtype="uint8"), lambda: Tensor([300], dtype="uint8"), lambda: Tensor([[1], [-129]], dtype="int8"), lambda: Tensor(2**40, dtype="int32"),
  lambda: Tensor.full((2,), 256, dtype="uint8"), lambda: Tensor([1], dtype="int8").full_like(128), lambda: Tensor([1e10], dtype="int32"),
  lambda: Tensor([2**63], dtype="int64"), lambda: Tensor([2**64]), lambda: Tensor(2**64), lambda: Tensor([-1, 2**63]),
  lambda: Tensor([1], dtype="uint8").__setitem__(0, 300), lambda: Tensor([1]) + 2**63, lambda: Tensor([float("nan")], dtype="int32"),
  lambda: Tensor.randint(3, low=0, high=300, dtype="uint8"), lambda: Tensor([2]) ** -1, lambda: Tensor([2]).pow(-3), lambda: 2 ** Tensor(-1)])
def test_numbers_that_do_not_fit_are_errors(make) -> None:
  with pytest.raises(ValueError):
    make()


def test_comparisons_are_exact() -> None:
  relations = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
  numbers = [-(2**63), -(2**31) - 1, -129, -128, -1, -0.5, 0, 0.5, 1, 127, 127.5, 128, 255, 256, 65535.0, 2**24 + 1, 2.0**24, 2**31, 2**40, 2**63 - 1, 2**63,
             2.0**63, 2**64 - 1, 1e30, float("inf"), float("-inf"), float("nan")]
  for name in ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"):
    info = np.iinfo(name)
    values = sorted({int(info.min), 0, 1, int(info.max), min(2**24 + 1, int(info.max))})
    t = Tensor(values, dtype=name)
    results = [(r, n, swapped, r(n, t) if swapped else r(t, n)) for r in relations for n in numbers for swapped in (False, True)]
    Tensor.realize(*(x[3] for x in results))
    for r, n, swapped, got in results:
      assert got.tolist() == [r(n, v) if swapped else r(v, n) for v in values], (name, r.__name__, n, swapped)
  far = Tensor([-2**63, 2**63 - 1], dtype="int64")
  for n in (2**64, 2**70, 10**400):
    for x in (far, Tensor([2**64 - 1], dtype="uint64"), Tensor([1.0])):
      assert not any((x == n).tolist()) and all((x != n).tolist()) and all((x < n).tolist()) and not any((x >= n).tolist())
      assert not any((x == -n).tolist()) and all((x > -n).tolist()) and not any((x <= -n).tolist()) and all(x.ne(-n).tolist())
      for wrong in (lambda: x + n, lambda: n * x, lambda: x.maximum(-n), lambda: x.where(n, 0)):
        with pytest.raises(ValueError, match="does not fit 64 bits"):
          wrong()
  assert not (Tensor([0], dtype="uint8") == 256).item() and not (Tensor([0], dtype="uint8") < -1).item()


def test_sums_of_integers() -> None:
  assert Tensor.arange(100000).sum().item() == 4999950000
  assert Tensor.full((70000,), 40000).cumsum().tolist()[-1] == 2800000000
  assert Tensor.arange(1, 21).prod().item() == 2432902008176640000
  for name in ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"):
    x = of(name)
    assert all(y.dtype is dtypes.int64 for y in (x.sum(), x.prod(), x.cumsum(0), x.cumprod(0))), name
  assert of("uint64").sum().dtype is dtypes.uint64
  assert Tensor([100, 100], dtype="int8").sum(dtype="int8").item() == -56  # as asked
  rng = np.random.default_rng(5)
  for name in ("int8", "uint8", "int32", "uint32"):
    info = np.iinfo(name)
    a = rng.integers(info.min, info.max, (300, 50), name, endpoint=True)
    for axis in (None, 0, 1):
      np.testing.assert_array_equal(Tensor(a).sum(axis).numpy(), a.sum(axis, dtype=np.int64))


def test_randint_uses_enough_bits() -> None:
  Tensor.manual_seed(3)
  x = Tensor.randint(20000, high=2**24).numpy()
  assert abs((x % 2).mean() - 0.5) < 0.02 and abs(x.mean() / 2**23 - 1) < 0.03
  for low, high, dtype in [(-(2**62), 2**62, "int64"), (-(2**63), 2**63 - 1, "int64"), (0, 2**63 - 1, "uint64"), (-5, 2**33, "int64"), (-(2**31), 2**31, "int32"), (0, 7, "int8"), (0, 100000, "int32")]:
    x = Tensor.randint(4000, low=low, high=high, dtype=dtype).numpy().astype(object)
    assert x.min() >= low and x.max() < high
    span = high - low
    assert abs(float(x.mean() - low) / (span - 1) - 0.5) < 0.03, (low, high)
    if span > 1000:
      assert abs((x % 2).mean() - 0.5) < 0.05 and len(set(x)) > 3800 * min(1, span / 200000)
  counts = np.bincount(Tensor.randint(70000, high=7).numpy(), minlength=7)
  assert counts.min() > 9500 and counts.max() < 10500


def test_any_integer_is_a_seed() -> None:
  def drawn(seed: int) -> list[float]:
    Tensor.manual_seed(seed)
    return Tensor.rand(3).tolist()

  assert drawn(-1) == drawn(2**64 - 1) != drawn(1)
  assert drawn(2**70 + 5) == drawn(5) == drawn(np.int64(5))
  for no_integer in ("5", 5.0, None):
    with pytest.raises(TypeError):
      Tensor.manual_seed(no_integer)


def test_bytes_are_interpolated_as_pytorch_does() -> None:
  torch = pytest.importorskip("torch")
  seed = 7
  print("seed", seed)
  rng = random.Random(seed)
  torch.manual_seed(seed)
  for _ in range(25):
    h, w, to_h, to_w = (rng.randint(1, 40) for _ in range(4))
    align = rng.random() < 0.4
    x = torch.randint(0, 256, (2, 1, h, w), dtype=torch.uint8)
    want = torch.nn.functional.interpolate(x, (to_h, to_w), mode="bilinear", align_corners=align)
    got = Tensor(x.numpy()).interpolate((to_h, to_w), align_corners=align)
    np.testing.assert_array_equal(got.numpy(), want.numpy(), err_msg=f"{h} {w} {to_h} {to_w} {align}")


# Numbers that operators are given are arguments of kernels.

OF_A_NUMBER = [
  (lambda x, c: x * c, np.multiply), (lambda x, c: c + x, np.add), (lambda x, c: x - c, np.subtract),
  (lambda x, c: c - x, lambda x, c: c - x), (lambda x, c: x / c, np.divide), (lambda x, c: c / x, lambda x, c: c / x),
  (lambda x, c: x // c, np.floor_divide), (lambda x, c: x.mul(c), np.multiply), (lambda x, c: x.sub(c, reverse=True), lambda x, c: c - x),
  (lambda x, c: x.div(c), np.divide), (operator.iadd, np.add), (operator.imul, np.multiply), (operator.itruediv, np.divide),
]


@pytest.mark.parametrize("compute, expected", OF_A_NUMBER)
def test_operators_make_one_kernel_for_all_numbers(compute, expected, capfd):
  values = np.array([0.75, -2.5, 3.25, 8, -0.5, 5, 1.5], np.float32)
  made: list[str] = []
  for c in (np.float32(0.31 + 0.37 * i) for i in range(8)):
    x = Tensor(values.copy()).realize()
    capfd.readouterr()
    with tg.Context(DEBUG=3):
      got = compute(x, float(c)).sum().item()
    made += [line for line in capfd.readouterr().err.splitlines() if line.startswith(("r_", "E_"))]
    assert got == pytest.approx(float(expected(values, c).sum()), rel=1e-5, abs=1e-5)
  assert len(made) <= 2, made  # what is computed, and the sum where that was stored


def test_what_fp8_does_not_hold():
  values = [1000.0, -1000.0, 448.0, 464.0, 465.0, 57344.0, 61439.0, 61440.0, 1e9, np.inf, -np.inf, np.nan]
  nan, inf = np.nan, np.inf
  x = Tensor(values)
  np.testing.assert_array_equal(x.cast("fp8e4m3").float().numpy(), [nan, nan, 448, 448] + [nan] * 8)
  np.testing.assert_array_equal(x.cast("fp8e4m3", saturate=True).float().numpy(), [448, -448] + [448] * 8 + [-448, nan])
  small = [1024, -1024, 448, 448, 448, 57344, 57344]  # neighbours are 64 apart
  np.testing.assert_array_equal(x.cast("fp8e5m2").float().numpy(), small + [inf, inf, inf, -inf, nan])
  np.testing.assert_array_equal(x.cast("fp8e5m2", saturate=True).float().numpy(), small + [57344, 57344, 57344, -57344, nan])
  np.testing.assert_array_equal(x.cast("fp8e4m3fnuz").float().numpy(), [nan] * 12)
  np.testing.assert_array_equal(x.cast("fp8e4m3fnuz", saturate=True).float().numpy(), [240, -240] + [240] * 8 + [-240, nan])
  np.testing.assert_array_equal(x.cast("fp8e5m2fnuz").float().numpy(), small + [nan] * 5)
  np.testing.assert_array_equal(x.cast("fp8e5m2fnuz", saturate=True).float().numpy(), small + [57344, 57344, 57344, -57344, nan])
  for dtype, largest in (("fp8e4m3", 448), ("fp8e5m2", 57344), ("fp8e4m3fnuz", 240), ("fp8e5m2fnuz", 57344)):
    assert Tensor([10**6, -10**6]).cast(dtype, saturate=True).float().tolist() == [largest, -largest]
    assert Tensor([6e4, -6e4], dtype="float16").cast(dtype, saturate=True).float().tolist() == [largest, -largest]


@pytest.mark.parametrize("device", ["CPU", "INTERP"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remainders_and_whole_quotients_are_exact(dtype, device):
  """Near whole quotients as elsewhere, whether the processor fuses operations or not: as NumPy's and PyTorch's."""
  seed = random.randrange(2**32)
  rng = np.random.default_rng(seed)
  n = 200 if device == "INTERP" else 4000
  with np.errstate(all="ignore"):
    for divisor in (0.1, 0.3, -0.7, 2 * np.pi, 3.0, 1e-3, -1e-4, np.inf, -np.inf, 0.0, np.nan):
      y = dtype(divisor)
      x = rng.normal(size=n).astype(dtype) * 100
      x[n // 2:] = (np.round(x[n // 2:]) * (y if np.isfinite(y) else 1)).astype(dtype)
      x[:9] = [0, -0.0, 1, -1, 1e9, -1e9, np.inf, -np.inf, np.nan]
      with Context(DEV=device):
        t = Tensor(x)
        for name, ours, exact in (("fmod", t.fmod(float(y)), np.fmod(x, y)), ("%", t % float(y), x % y), ("//", t // float(y), x // y)):
          got = ours.numpy()
          np.testing.assert_array_equal(got, exact, err_msg=f"{name} {divisor}, seed {seed}")
          zero = (exact == 0) & (got == 0) & (name == "fmod")
          np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(exact[zero]), err_msg=f"{name} {divisor}, seed {seed}")


def test_gradients_of_remainders():
  x, y = Tensor([7.5, -7.5, 3.0, 0.25]), Tensor([2.0, 2.0, 0.1, 1.0])
  assert [g.tolist() for g in x.fmod(y).sum().gradient(x, y)] == [[1, 1, 1, 1], [-3, 3, -29, 0]]
  assert [g.tolist() for g in (x % y).sum().gradient(x, y)] == [[1, 1, 1, 1], [-3, 4, -29, 0]]
  assert [g.tolist() for g in (x // y).sum().gradient(x, y)] == [[0] * 4] * 2


def test_random_integers_are_int32_if_no_dtype_is_named() -> None:
  for default in ("int32", "int64", "int16"):
    with Context(DEFAULT_INT=default):
      assert Tensor.randint(3).dtype is dtypes.int32 and Tensor.randperm(3).dtype is dtypes.int32
      assert Tensor.randint(3, dtype="int64", high=2**40).dtype is dtypes.int64 and Tensor.randperm(3, dtype="uint8").dtype is dtypes.uint8
      assert sorted(Tensor.randperm(9).tolist()) == list(range(9))


def test_sorting_beyond_what_64_bits_count() -> None:
  for shape, axis in (((2, 2**31 + 5), -1), ((2**31 + 5, 3), 0), ((2, 2**32, 2), 1)):
    x = Tensor.empty(*shape, dtype="int8")
    values, order = x.sort(axis)
    assert values.shape == order.shape == shape and order.dtype is dtypes.int64 and values.dtype is dtypes.int8
    assert x.argsort(axis).dtype is dtypes.int64 and x.gather(axis, order).shape == shape
