"""What the tables are made of: inputs, our call, a reference, and how the two are compared.

A case holds for several dtypes and memory layouts; each makes a check of its own. References are computed in float64 from the very values
that our call is given, so that a difference is our rounding and not theirs. Tolerances are multiples of the result dtype's epsilon.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import types
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import tinygrad_cpp

try:
  import torch
except ImportError:
  torch = None  # type: ignore[assignment]

# What the tables call: its Tensor and dtypes are ours, or tinygrad's while result dtypes are asked for.
tg = types.SimpleNamespace(Tensor=tinygrad_cpp.Tensor, dtypes=tinygrad_cpp.dtypes)

FLOATS = ("float32", "float64", "float16", "bfloat16")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTS
ALL = NUMBERS + ("bool",)
# Machine epsilon and the smallest normal number: an absolute error below it is a denormal's rounding.
EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
TINY = {"float16": 2.0**-14, "bfloat16": 2.0**-126, "float32": 2.0**-126, "float64": 2.0**-1022}
LARGEST = {"float16": 65504.0, "bfloat16": 2.0**128 - 2.0**120, "float32": float(np.finfo(np.float32).max), "float64": float(np.finfo(np.float64).max)}
LAYOUTS = ("plain", "transposed", "sliced", "flipped")
Shape = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Arg:
  """One input. `dtype` None is the check's own; integers are drawn from [low, high], others uniformly between them."""

  shape: Shape = ()
  low: float = -2.0
  high: float = 2.0
  dtype: str | None = None
  grad: bool = True
  distinct: bool = False  # no two values are equal or close: where ties decide
  values: Any = None  # these and no others


def F(*shape: int, low: float = -2.0, high: float = 2.0, **more: Any) -> Arg:
  return Arg(shape, low, high, **more)


def I(*shape: int, low: int = 0, high: int = 9, dtype: str = "int32") -> Arg:  # noqa: E743
  return Arg(shape, low, high, dtype, grad=False)


def B(*shape: int) -> Arg:
  return Arg(shape, 0, 1, "bool", grad=False)


def V(values: Any, dtype: str | None = None, grad: bool = False) -> Arg:
  return Arg(np.shape(values), dtype=dtype, values=values, grad=grad)


@dataclasses.dataclass(frozen=True)
class Case:
  """`ulps` bounds the error of an element in units of its own size; `norm` of the largest one, as for sums, whose terms cancel; `absolute`
  of 1, for formulas that subtract values near 1; `backward` allows inputs to be off by so many epsilons: what a result amplifies of the
  rounding of its argument."""

  name: str
  args: tuple[Arg, ...]
  ours: Callable[..., Any]
  torch: Callable[..., Any] | None = None
  numpy: Callable[..., Any] | None = None
  dtypes: tuple[str, ...] = ("float32",)
  grad: bool = False
  ulps: float = 0.0
  norm: float = 0.0
  absolute: float = 0.0
  backward: float = 0.0
  flush: bool = False  # denormal results may be zeros: where an intermediate overflows
  grad_norm: float = 32.0
  layouts: tuple[str, ...] = ("plain",)
  label: str = ""
  signed_zeros: bool = False
  exact_inputs: bool = True  # the reference is given float64; False: the dtype itself, where its own width matters
  interp: bool = True
  like_tinygrad: bool = True  # result shapes and dtypes are tinygrad's


CASES: list[Case] = []
_labels: dict[str, int] = {}


def case(name: str, args: Sequence[Arg] | Arg, ours: Callable[..., Any], label: str = "", **more: Any) -> None:
  """Adds a row. Its label is made unique."""
  label = label or "-".join("x".join(map(str, a.shape)) or "0d" for a in ([args] if isinstance(args, Arg) else args))
  count = _labels[f"{name}[{label}"] = _labels.get(f"{name}[{label}", 0) + 1
  CASES.append(Case(name, (args,) if isinstance(args, Arg) else tuple(args), ours, label=label if count == 1 else f"{label}.{count}", **more))


@dataclasses.dataclass(frozen=True)
class Check:
  case: Case
  kind: str  # "forward" or "gradient"
  dtype: str
  layout: str = "plain"
  device: str = "CPU"

  def __str__(self) -> str:
    parts = [self.case.name, self.case.label, self.dtype, self.layout, self.device, self.kind]
    return ":".join(p for p in parts if p not in ("plain", "CPU", "forward", ""))


def checks_of(c: Case) -> Iterator[Check]:
  for dtype in c.dtypes:
    yield Check(c, "forward", dtype)
  for layout in c.layouts:
    if layout != "plain":
      yield Check(c, "forward", c.dtypes[0], layout)
  if c.grad:
    for dtype in ("float64", "float32"):
      if dtype in c.dtypes or c.dtypes[0] in FLOATS:
        yield Check(c, "gradient", dtype)
    for layout in c.layouts:
      if layout != "plain":
        yield Check(c, "gradient", "float64", layout)
  if c.interp and math.prod(sum((a.shape for a in c.args), ())) <= 5000:
    yield Check(c, "forward", c.dtypes[0], device="INTERP")
    if c.grad:
      yield Check(c, "gradient", "float64", device="INTERP")


def rank(seed: int, text: str) -> int:
  """A number that the seed and the text alone decide."""
  return int.from_bytes(hashlib.blake2b(f"{seed}/{text}".encode(), digest_size=8).digest(), "big")


def sample(checks: Sequence[Check], seed: int, share: int = 8) -> list[Check]:
  """Of every function: one forward check in `share` and at least one, and half as many of its gradient; one of six on the interpreter."""
  groups: dict[tuple[str, str, str], list[Check]] = {}
  for c in checks:
    groups.setdefault((c.case.name, c.kind, c.device), []).append(c)
  out = []
  for (name, kind, device), group in groups.items():
    group = sorted(group, key=lambda c: rank(seed, str(c)))
    if device != "CPU":
      out += group[: rank(seed, f"{name}/{kind}/{device}") % 6 == 0]
    else:
      out += group[: max(1, len(group) // (share if kind == "forward" else 2 * share))]
  return sorted(out, key=str)


# Values


def rounded(a: np.ndarray, dtype: str) -> np.ndarray:
  """The nearest values of that dtype, in an array that can hold them."""
  if dtype != "bfloat16":
    with np.errstate(over="ignore", invalid="ignore"):
      return a.astype(dtype)
  bits = np.ascontiguousarray(a, np.float32).view(np.uint32)
  even = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
  short = np.where(np.isnan(a), bits, bits + even) & np.uint32(0xFFFF0000)
  return short.view(np.float32).reshape(np.shape(a))


def draw(arg: Arg, dtype: str, rng: np.random.Generator) -> np.ndarray:
  if arg.values is not None:
    return rounded(np.asarray(arg.values), dtype)
  if arg.distinct:
    count = math.prod(arg.shape)
    steps = rng.permutation(count).reshape(arg.shape)
    if dtype in FLOATS:
      return rounded(arg.low + (arg.high - arg.low) * (steps + 0.5) / max(count, 1), dtype)
    return (int(np.ceil(arg.low)) + steps).astype(dtype)
  if dtype == "bool":
    return rng.integers(0, 2, arg.shape).astype(bool)
  if dtype in INTS:
    low = max(int(np.floor(arg.low)), int(np.iinfo(dtype).min))
    return rng.integers(low, max(int(np.floor(arg.high)), low), arg.shape, endpoint=True).astype(dtype)
  return rounded(rng.uniform(arg.low, arg.high, arg.shape), dtype)


def tensor(a: np.ndarray, dtype: str, T: Any = None) -> Any:
  T = T or tg.Tensor
  return T(np.ascontiguousarray(a).reshape(a.shape), dtype=dtype) if dtype == "bfloat16" else T(np.array(a, order="C"))


def laid_out(a: np.ndarray, layout: str) -> tuple[np.ndarray, Callable[[Any], Any]]:
  """Memory for these values, and the view of it that has them."""
  if layout == "plain" or a.ndim == 0:
    return a, lambda t: t
  if layout == "transposed":
    order = tuple(reversed(range(a.ndim)))
    return a.transpose(order), lambda t: t.permute(order)
  if layout == "flipped":
    return a[::-1], lambda t: t.flip(0)
  wide = np.ones((2 * a.shape[0] + 1,) + a.shape[1:], a.dtype)
  wide[1::2] = a
  return wide, lambda t: t[1::2]


@dataclasses.dataclass
class Inputs:
  arrays: list[np.ndarray]
  dtypes: list[str]


def inputs_of(check: Check, seed: int) -> Inputs:
  rng = np.random.default_rng([seed, zlib.crc32(f"{check.case.name}:{check.case.label}:{check.dtype}".encode())])
  dtypes = [a.dtype or check.dtype for a in check.case.args]
  return Inputs([draw(a, d, rng) for a, d in zip(check.case.args, dtypes)], dtypes)


def all_of(x: Any) -> list[Any]:
  return list(x) if isinstance(x, (tuple, list)) else [x]


def name_of(dtype: Any) -> str:
  return str(dtype).removeprefix("dtypes.").removeprefix("torch.") if not hasattr(dtype, "name") else _NAMES.get(str(dtype), str(dtype).removeprefix("dtypes."))


_NAMES = {"dtypes.half": "float16", "dtypes.float": "float32", "dtypes.double": "float64", "dtypes.int": "int32", "dtypes.long": "int64",
          "dtypes.short": "int16", "dtypes.char": "int8", "dtypes.uchar": "uint8", "dtypes.ushort": "uint16", "dtypes.uint": "uint32",
          "dtypes.ulong": "uint64"}


def array_of(x: Any) -> np.ndarray:
  if torch is not None and isinstance(x, torch.Tensor):
    x = x.detach().resolve_neg()
    return (x.float() if x.dtype == torch.bfloat16 else x).numpy()
  return np.asarray(x)


def has_torch(c: Case) -> bool:
  return torch is not None and c.torch is not None


def has_reference(c: Case) -> bool:
  return c.numpy is not None or has_torch(c)


def slack_of(check: Check, inputs: Inputs, want: list[np.ndarray]) -> list[Any]:
  """What `absolute` and `backward` allow."""
  c, eps = check.case, EPSILON.get(check.dtype, 0.0)
  out: list[Any] = [c.absolute * eps + (TINY.get(check.dtype, 0.0) if c.flush else 0.0)] * len(want)
  if c.backward and eps:
    for factor in (1 + c.backward * eps, 1 - c.backward * eps):
      moved = Inputs([np.asarray(a * factor) if d in FLOATS else a for a, d in zip([x.astype(np.float64) if x.dtype.kind == "f" else x for x in inputs.arrays], inputs.dtypes)], inputs.dtypes)
      with np.errstate(all="ignore"):
        out = [np.fmax(o, np.abs(m - w)) if w.dtype.kind == "f" else o for o, m, w in zip(out, reference(check, moved), want)]
  return out


def reference(check: Check, inputs: Inputs) -> list[np.ndarray]:
  """What PyTorch says, or NumPy where PyTorch has no such function or is not there."""
  c = check.case
  wide = [a.astype(np.float64) if d in FLOATS and c.exact_inputs else a for a, d in zip(inputs.arrays, inputs.dtypes)]
  if has_torch(c) and c.torch:
    tensors = [torch.from_numpy(np.array(a, copy=True)) for a in wide]
    if not c.exact_inputs:
      tensors = [t.to(getattr(torch, d)) for t, d in zip(tensors, inputs.dtypes)]
    return [array_of(x) for x in all_of(c.torch(*tensors))]
  assert c.numpy is not None
  with np.errstate(all="ignore"):
    return [np.asarray(x) for x in all_of(c.numpy(*wide))]


def compare(got: np.ndarray, dtype: str, want: np.ndarray, ulps: float, norm: float, signed_zeros: bool, what: str,
            slack: np.ndarray | float = 0.0) -> None:
  """Values of `dtype` against exact ones."""
  assert got.shape == want.shape, f"{what}: shape {got.shape}, expected {want.shape}"
  if dtype not in FLOATS:
    with np.errstate(invalid="ignore"):
      np.testing.assert_array_equal(got, want.astype(got.dtype), err_msg=what)
    return
  with np.errstate(over="ignore", invalid="ignore"):
    exact = want.astype(np.float64)
    nearest = rounded(exact, dtype).astype(np.float64)
    got = got.astype(np.float64)
    finite = np.isfinite(nearest)
    scale = float(np.abs(exact[finite]).max(initial=0.0)) if norm else 0.0
    bound = EPSILON[dtype] * (ulps * np.maximum(np.abs(exact), TINY[dtype]) + norm * scale) + np.nan_to_num(slack, nan=0.0, posinf=0.0)
    # A value beyond the largest one by less than the bound may be either infinite or the largest.
    edge = np.isinf(nearest) & (np.abs(exact) - bound <= LARGEST[dtype])
    bad = np.where(finite, ~(np.abs(got - exact) <= np.maximum(bound, np.abs(nearest - exact))), ~((got == nearest) | (np.isnan(got) & np.isnan(nearest)) | edge))
    bad &= ~(np.isinf(got) & (np.sign(got) == np.sign(exact)) & (np.abs(exact) + bound >= LARGEST[dtype]))
  if bad.any():
    at = tuple(int(i[0]) for i in np.nonzero(bad)) if bad.ndim else ()
    with np.errstate(all="ignore"):
      off = abs(got[at] - exact[at]) / (EPSILON[dtype] * max(abs(exact[at]), TINY[dtype]))
    raise AssertionError(f"{what}: {int(bad.sum())} of {bad.size} {dtype} values are off; first at {at}: got {got[at]!r}, expected {exact[at]!r} "
                         f"({off:.3g} ulps; allowed {ulps:g}, and {norm:g} of the largest, {scale:.3g})")
  if signed_zeros:
    zeros = nearest == 0
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(nearest[zeros]), err_msg=f"{what}: signs of zeros")


def run_ours(check: Check, inputs: Inputs) -> list[Any]:
  views = []
  for a, d in zip(inputs.arrays, inputs.dtypes):
    memory, view = laid_out(a, check.layout)
    views.append(view(tensor(memory, d)))
  return all_of(check.case.ours(*views))


def check_forward(check: Check, seed: int) -> None:
  c, inputs = check.case, inputs_of(check, seed)
  want = reference(check, inputs)
  with tinygrad_cpp.Context(DEV=check.device):
    got = run_ours(check, inputs)
    assert len(got) == len(want), f"{len(got)} results, expected {len(want)}"
    for i, (g, w, slack) in enumerate(zip(got, want, slack_of(check, inputs, want))):
      is_tensor = isinstance(g, tinygrad_cpp.Tensor)
      dtype = name_of(g.dtype) if is_tensor else np.asarray(g).dtype.name
      compare(g.numpy() if is_tensor else np.asarray(g), dtype, w, c.ulps, c.norm, c.signed_zeros, f"{check} result {i}", slack)


def weights_of(outputs: Sequence[Any], seed: int) -> list[np.ndarray]:
  rng = np.random.default_rng([seed, 1])
  return [rng.uniform(0.5, 1.5, tuple(o.shape)) for o in outputs]


def weighted(outputs: Sequence[Any], weights: Sequence[Any]) -> Any:
  total: Any = None
  for o, w in zip(outputs, weights):
    part = (o * w).sum()
    total = part if total is None else total + part
  return total


def floats_of(outputs: Sequence[Any]) -> list[Any]:
  return [o for o in outputs if name_of(o.dtype) in FLOATS]


def our_gradients(check: Check, inputs: Inputs, seed: int) -> list[np.ndarray]:
  """Of the inputs that have one, by backward() of a weighted sum of all results."""
  leaves, views = [], []
  for a, d in zip(inputs.arrays, inputs.dtypes):
    memory, view = laid_out(a, check.layout)
    leaf = tensor(memory, d)
    leaves.append(leaf.is_param_() if d in FLOATS else leaf)
    views.append(view(leaf))
  outputs = floats_of(all_of(check.case.ours(*views)))
  weights = [tensor(rounded(w, name_of(o.dtype)), name_of(o.dtype)) for o, w in zip(outputs, weights_of(outputs, seed))]
  weighted(outputs, weights).backward()
  out = []
  for leaf, arg, a in zip(leaves, check.case.args, inputs.arrays):
    if not arg.grad or name_of(leaf.dtype) not in FLOATS:
      continue
    grad = leaf.grad if leaf.grad is not None else leaf.zeros_like()  # the result does not depend on it: compared with zeros
    assert grad.dtype is leaf.dtype and grad.shape == leaf.shape, f"{check}: the gradient is {grad.dtype} {grad.shape}"
    _, view = laid_out(a, check.layout)
    out.append(view(grad).numpy())
  return out


def check_gradient(check: Check, seed: int) -> None:
  c, inputs = check.case, inputs_of(check, seed)
  with tinygrad_cpp.Context(DEV=check.device):
    got = our_gradients(check, inputs, seed)
  picked = [i for i, (a, d) in enumerate(zip(c.args, inputs.dtypes)) if a.grad and d in FLOATS]
  if has_torch(c) and c.torch:
    tensors = [torch.from_numpy(np.array(a, np.float64 if d in FLOATS else a.dtype)) for a, d in zip(inputs.arrays, inputs.dtypes)]
    for i in picked:
      tensors[i].requires_grad_()
    outputs = [o for o in all_of(c.torch(*tensors)) if o.is_floating_point()]
    weights = [torch.from_numpy(rounded(w, check.dtype).astype(np.float64)) for w in weights_of(outputs, seed)]
    wanted = torch.autograd.grad(weighted(outputs, weights), [tensors[i] for i in picked], allow_unused=True)
    for i, g, w in zip(picked, got, wanted):
      want = np.zeros(inputs.arrays[i].shape) if w is None else w.detach().numpy()
      # One number may be where the derivative passes 0, and has no larger one beside it to be measured by.
      slack = c.absolute * EPSILON[inputs.dtypes[i]] if want.size == 1 else 0.0
      compare(g, inputs.dtypes[i], want, 0, c.grad_norm, False, f"{check} of input {i}", slack)
    return
  check_directions(check, inputs, picked, got, seed)


def check_directions(check: Check, inputs: Inputs, picked: Sequence[int], got: Sequence[np.ndarray], seed: int) -> None:
  """Central differences of our own values along random directions. Of step h their error is of the order of h^2 and of epsilon / h: the
  cube root of epsilon is the best h, and its square, with room for third derivatives, the bound."""
  rng, h = np.random.default_rng([seed, 2]), 2.0**-17

  def value(arrays: Sequence[np.ndarray]) -> float:
    with tinygrad_cpp.Context(DEV=check.device):
      outputs = floats_of(all_of(check.case.ours(*[tensor(a, "float64" if d in FLOATS else d) for a, d in zip(arrays, inputs.dtypes)])))
      return sum(float((o.numpy().astype(np.float64) * rounded(w, check.dtype)).sum()) for o, w in zip(outputs, weights_of(outputs, seed)))

  base = [a.astype(np.float64) if d in FLOATS else a for a, d in zip(inputs.arrays, inputs.dtypes)]
  for _ in range(2):
    direction = {i: rng.uniform(-1, 1, base[i].shape) for i in picked}
    ahead = value([a + h * direction[i] if i in direction else a for i, a in enumerate(base)])
    behind = value([a - h * direction[i] if i in direction else a for i, a in enumerate(base)])
    slope = (ahead - behind) / (2 * h)
    if not math.isfinite(slope):  # of nothing, as the mean of no values
      continue
    ours = sum(float((g.astype(np.float64) * direction[i]).sum()) for i, g in zip(picked, got))
    size = sum(float(np.abs(g.astype(np.float64) * direction[i]).sum()) for i, g in zip(picked, got)) + abs(ahead)
    bound = 1e-7 if check.dtype == "float64" else 1e-5
    assert abs(ours - slope) <= bound * max(size, 1.0), f"{check}: slope {slope!r} along a direction, by the gradient {ours!r}"
