"""fp8 in its four layouts: all codes, rounding, arithmetic and files; against tables made here, and PyTorch where it is."""

import struct
from pathlib import Path

import numpy as np
import pytest

from tinygrad_cpp import Context, Tensor, dtypes, nn

# Bits of exponent and mantissa, bias, and what has no -0 and no infinity.
LAYOUTS = {"fp8e4m3": (4, 3, 7, False), "fp8e5m2": (5, 2, 15, False), "fp8e4m3fnuz": (4, 3, 8, True), "fp8e5m2fnuz": (5, 2, 16, True)}
TORCH = {"fp8e4m3": "float8_e4m3fn", "fp8e5m2": "float8_e5m2", "fp8e4m3fnuz": "float8_e4m3fnuz", "fp8e5m2fnuz": "float8_e5m2fnuz"}
FILES = {"fp8e4m3": "F8_E4M3", "fp8e5m2": "F8_E5M2", "fp8e4m3fnuz": "F8_E4M3FNUZ", "fp8e5m2fnuz": "F8_E5M2FNUZ"}
# As the device has it, and emulated by what every device has.
WAYS = [("CPU", ""), ("INTERP", ""), ("INTERP", ",".join(LAYOUTS))]
CASTS = [pytest.param(name, marks=pytest.mark.covers("cast", "bitcast", dtype=name)) for name in LAYOUTS]


def value_of(code: int, name: str) -> float:
  exponent_bits, mantissa_bits, bias, fnuz = LAYOUTS[name]
  sign, magnitude = (-1.0 if code & 0x80 else 1.0), code & 0x7F
  exponent, mantissa = magnitude >> mantissa_bits, magnitude & ((1 << mantissa_bits) - 1)
  if fnuz and code == 0x80 or name == "fp8e4m3" and magnitude == 0x7F:
    return np.nan
  if name == "fp8e5m2" and exponent == 31:
    return np.nan if mantissa else sign * np.inf
  significand = mantissa / 2**mantissa_bits + (exponent > 0)
  return sign * significand * 2.0 ** (max(exponent, 1) - bias)


def table(name: str) -> np.ndarray:
  return np.array([value_of(code, name) for code in range(256)], dtype=np.float32)


def nearest(x: np.ndarray, name: str) -> np.ndarray:
  """The values of a dtype nearest to these, ties to even codes; beyond half a step past the greatest infinity, or NaN."""
  t = table(name)[:128].astype(np.float64)
  finite = t[np.isfinite(t)]
  steps = np.append(finite, 2 * finite[-1] - finite[-2])
  magnitude = np.minimum(np.abs(np.where(np.isnan(x), 0, x).astype(np.float64)), steps[-1])
  at = np.abs(magnitude[..., None] - steps)
  best = at.argmin(-1)
  tied = (best + 1 < len(steps)) & (at[np.arange(len(x)), best] == at[np.arange(len(x)), np.minimum(best + 1, len(steps) - 1)])
  best = np.where(tied & (best % 2 == 1), best + 1, best)
  over = np.nan if name != "fp8e5m2" else np.inf
  out = np.where(best == len(finite), over, np.append(finite, 0)[best])
  out = np.where(np.isinf(x), over, np.where(np.isnan(x), np.nan, out))
  out = np.copysign(out, np.where(np.isnan(x), 0, x))
  return np.where(out == 0, 0.0, out) if LAYOUTS[name][3] else out


def check(got: np.ndarray, want: np.ndarray) -> None:
  np.testing.assert_array_equal(got, want)
  numbers = ~np.isnan(want)
  np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(want[numbers]))


def samples(name: str) -> np.ndarray:
  """All values, the middles of neighbours and what is beside these, and drawn ones."""
  t = table(name)[:128].astype(np.float64)
  t = np.append(t[np.isfinite(t)], 2 * t[np.isfinite(t)][-1] - t[np.isfinite(t)][-2])
  middle = ((t[1:] + t[:-1]) / 2).astype(np.float32)
  around = np.concatenate([t.astype(np.float32), middle, np.nextafter(middle, np.float32(0)), np.nextafter(middle, np.float32(np.inf))])
  drawn = np.random.default_rng(0).integers(0, 2**32, 2000, dtype=np.uint32).view(np.float32)
  ends = np.array([0, np.inf, np.nan, 1e30, 1e-30, 1e-45], dtype=np.float32)
  all_of_them = np.concatenate([around, drawn, ends])
  return np.concatenate([all_of_them, -all_of_them])


@pytest.mark.parametrize("device, emulated", WAYS)
@pytest.mark.parametrize("name", CASTS)
def test_all_codes_and_rounding(name: str, device: str, emulated: str) -> None:
  with Context(EMULATED_DTYPES=emulated):
    codes = Tensor(np.arange(256, dtype=np.uint8), device=device).realize()
    check(codes.bitcast(name).cast("float32").numpy(), table(name))
    again = codes.bitcast(name).contiguous().bitcast("uint8").numpy()
    numbers = ~np.isnan(table(name))
    np.testing.assert_array_equal(again[numbers], np.arange(256)[numbers])
    x = samples(name)
    check(Tensor(x, device=device).realize().cast(name).cast("float32").numpy(), nearest(x, name))
    for other in ("float16", "bfloat16", "float64"):
      wide = Tensor(x, device=device).cast(other).realize()
      check(wide.cast(name).cast("float32").numpy(), nearest(wide.cast("float64").numpy(), name))


@pytest.mark.parametrize("name", CASTS)
def test_as_pytorch(name: str) -> None:
  torch = pytest.importorskip("torch")
  theirs = getattr(torch, TORCH[name])
  codes = np.arange(256, dtype=np.uint8)
  check(Tensor(codes).bitcast(name).float().numpy(), torch.from_numpy(codes).view(theirs).float().numpy())
  for source in ("float32", "float16", "bfloat16"):
    values = samples(name)
    if name == "fp8e4m3":  # beyond its numbers some versions of PyTorch give NaN, some the greatest
      values = values[~(np.abs(values) > 464)]
    x = torch.from_numpy(values).to(getattr(torch, source))
    got = Tensor(x.float().numpy()).cast(source).cast(name)
    check(got.float().numpy(), x.to(theirs).float().numpy())


@pytest.mark.parametrize("device, emulated", WAYS)
@pytest.mark.parametrize("name", CASTS)
def test_casts_among_all_dtypes(name: str, device: str, emulated: str) -> None:
  small = [0, 1, 2, 3, 7, 16, 100]
  with Context(EMULATED_DTYPES=emulated):
    for dtype in dtypes.all:
      want = [bool(v) for v in small] if dtype is dtypes.bool else small
      x = Tensor(small, device=device).cast(dtype).realize()
      rounded = nearest(np.array(x.cast("float32").numpy()), name)
      np.testing.assert_array_equal(x.cast(name).float().numpy(), rounded)
      back = Tensor([0.0, 1.0, 2.0, 16.0], device=device).cast(name).realize().cast(dtype)
      assert back.dtype is dtype and back.cast("float32").tolist() == ([0, 1, 1, 1] if dtype is dtypes.bool else [0, 1, 2, 16]), want


@pytest.mark.parametrize("device, emulated", WAYS)
@pytest.mark.parametrize("name", list(LAYOUTS))
def test_arithmetic_rounds_once(name: str, device: str, emulated: str) -> None:
  rng = np.random.default_rng(1)
  with Context(EMULATED_DTYPES=emulated):
    a, b = (nearest(rng.standard_normal(400).astype(np.float32) * 4, name).astype(np.float32) for _ in range(2))
    a[:20], b[10:30] = 0, 0
    x, y = (Tensor(v, device=device).cast(name).realize() for v in (a, b))
    with np.errstate(all="ignore"):
      for got, want in ((x + y, a + b), (x * y, a * b), (x - y, a - b), (-x, -a), (x.maximum(y), np.maximum(a, b)), (x.relu(), np.maximum(a, 0)),
                        (x.trunc(), np.trunc(a)), (x.abs(), np.abs(a)), (x.sqrt(), np.sqrt(a))):
        assert str(got.dtype) == f"dtypes.{name}"
        got_values, rounded = got.float().numpy(), nearest(want, name)
        np.testing.assert_array_equal(got_values, rounded)
      # What has one zero divides by it as by 0, whatever it came from.
      if LAYOUTS[name][3]:
        assert not np.signbit((-x).float().numpy()[:10]).any() and not np.signbit((x * -1.0).float().numpy()[:10]).any()
        assert (-x).bitcast("uint8").numpy()[:10].tolist() == [0] * 10
    np.testing.assert_array_equal(x.sort()[0].float().numpy(), np.sort(a))
    assert x.argmax().item() == a.argmax() and x.max().float().item() == a.max() and x.min().float().item() == a.min()
    assert x.sum().float().item() == pytest.approx(nearest(a.sum(dtype=np.float64).reshape(1), name)[0])


@pytest.mark.parametrize("name", list(LAYOUTS))
def test_files_and_numbers(name: str, tmp_path: Path) -> None:
  dtype = getattr(dtypes, name)
  assert str(dtype) == f"dtypes.{name}" and dtypes.finfo(dtype) == LAYOUTS[name][:2] and dtype.itemsize == 1 and dtype in dtypes.fp8s
  assert (dtype in dtypes.fp8_fnuz) == LAYOUTS[name][3] and dtypes.is_float(dtype) and dtype in dtypes.floats
  x = Tensor([0.0, 1.0, -2.5, 17.0]).cast(name).realize()
  nn.state.safe_save({"x": x}, str(tmp_path / "x.safetensors"))
  data = (tmp_path / "x.safetensors").read_bytes()
  assert f'"dtype":"{FILES[name]}"'.encode() in data[8 : 8 + struct.unpack("<Q", data[:8])[0]]
  again = nn.state.safe_load(str(tmp_path / "x.safetensors"))["x"].to("CPU")
  assert again.dtype is dtype and again.float().tolist() == x.float().tolist() == x.tolist() == [0, 1, -2.5, 16]
  np.testing.assert_array_equal(x.numpy(), [0, 1, -2.5, 16])
  seen = np.array([Tensor.rand(64, dtype=name).float().numpy()])
  assert (seen >= 0).all() and (seen < 1).all() and len(np.unique(seen)) == 2 ** LAYOUTS[name][1]


def test_dtypes_of_fp8_together() -> None:
  for a in LAYOUTS:
    for b in LAYOUTS:
      made = Tensor([1.0]).cast(a) + Tensor([1.0]).cast(b)
      assert str(made.dtype) == f"dtypes.{a if a == b else 'float16'}"
      assert dtypes.fp8s and made.tolist() == [2]


FUNCTIONS = {
  "softmax": lambda x: x.softmax(-1), "logsumexp": lambda x: x.logsumexp(-1), "layernorm": lambda x: x.layernorm(), "std": lambda x: x.std(-1),
  "normalize": lambda x: x.normalize(), "max_pool2d": lambda x: x.reshape(1, 1, 8, 8).max_pool2d(3, stride=2, padding=1), "cumsum": lambda x: x.cumsum(1),
  "cummax": lambda x: x.cummax(1)[0], "topk": lambda x: x.topk(3)[0], "matmul": lambda x: x @ x, "prod": lambda x: x.prod(1), "mean": lambda x: x.mean(1),
  "attention": lambda x: (h := x.reshape(1, 1, 8, 8)).scaled_dot_product_attention(h, h, is_causal=True), "gelu": lambda x: x.gelu(),
  "tanh": lambda x: x.tanh(), "exp": lambda x: x.exp(), "log": lambda x: x.abs().log(), "remainder": lambda x: x % 2, "floor": lambda x: x // 0.75,
  "copysign": lambda x: x.copysign(-1), "masked": lambda x: (x > 0).where(x, float("-inf")), "interpolate": lambda x: x.reshape(1, 1, 8, 8).interpolate((5, 5)),
  "gradient": lambda x: (x * x).sum().gradient(x)[0], "amax": lambda x: x.scatter_reduce(1, Tensor([[0, 1, 1, 2, 2, 2, 7, 7]] * 8), x, "amax"),
}


@pytest.mark.parametrize("name", list(LAYOUTS))
@pytest.mark.parametrize("function", list(FUNCTIONS))
def test_functions_are_computed_in_float32_and_rounded_once(function: str, name: str) -> None:
  values = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32) * 3
  values[0, 0] = 0
  x = Tensor(values).cast(name).realize()
  got = FUNCTIONS[function](x)
  wide = FUNCTIONS[function](x.float().realize())
  assert str(got.dtype) == f"dtypes.{name}"
  np.testing.assert_array_equal(got.float().numpy(), wide.cast(name).float().numpy())
