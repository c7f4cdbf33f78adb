"""Reductions, scans and sorting."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from oracle.core import FLOATS, INTS, LAYOUTS, Arg, B, F, I, V, case, tg

try:
  import torch
except ImportError:
  pass

NAN, INF = math.nan, math.inf
SHAPES: list[tuple[tuple[int, ...], Any]] = [((3, 4), None), ((3, 4), 0), ((3, 4), -1), ((2, 3, 4), (0, 2)), ((), None), ((1,), 0), ((40, 50), 1), ((2, 3, 4), (1, -1))]


def over(f: Any, x: Any, axis: Any, keepdim: bool) -> Any:
  """PyTorch's reductions take no None."""
  axes = tuple(range(x.ndim)) if axis is None else axis
  return f(x, axes, keepdim)


def reduction(name: str, torch_form: Any, numpy_form: Any, *, empty: bool = False, dtypes: tuple[str, ...] = FLOATS, more: Any = None, **bounds: Any) -> None:
  options = more or {}
  for shape, axis in SHAPES:
    for keepdim in (False, True):
      first = shape == (3, 4) and axis == 0 and not keepdim
      case(name, Arg(shape, distinct=name in ("max", "min")), lambda x, a=axis, k=keepdim: getattr(x, name)(a, keepdim=k, **options), f"{shape} {axis} {keepdim} {options or ''}".strip(),
           torch=lambda x, a=axis, k=keepdim: torch_form(x, a, k), numpy=lambda x, a=axis, k=keepdim: numpy_form(x, axis=a, keepdims=k), dtypes=dtypes if first else dtypes[:1], layouts=LAYOUTS if first else ("plain",), **bounds)
  if empty:
    case(name, F(0, 3), lambda x: getattr(x, name)(0), "empty", torch=lambda x: torch_form(x, 0, False), numpy=lambda x: numpy_form(x, axis=0, keepdims=False), **bounds)


def t_prod(x: Any, axis: Any, keepdim: bool) -> Any:
  axes = sorted(a % x.ndim for a in (range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis)) if x.ndim else []
  for a in reversed(axes):
    x = x.prod(a, keepdim=True)
  for a in reversed(axes if not keepdim else []):
    x = x.squeeze(a)
  return x


NUMERIC = FLOATS + INTS + ("bool",)
reduction("sum", lambda x, a, k: x.sum(a, keepdim=k) if a is not None else x.sum(tuple(range(x.ndim)), keepdim=k), np.sum, empty=True, dtypes=FLOATS + ("int32", "int64", "uint8", "int8", "bool"), norm=16, grad=True)
reduction("prod", t_prod, np.prod, empty=True, dtypes=FLOATS + ("int32", "int64"), ulps=64, grad=True)
reduction("max", lambda x, a, k: over(torch.amax, x, a, k), np.max, dtypes=FLOATS + ("int32", "uint8", "int8", "int64"), grad=True)
reduction("min", lambda x, a, k: over(torch.amin, x, a, k), np.min, dtypes=FLOATS + ("int32", "uint8", "int8", "int64"), grad=True)
reduction("mean", lambda x, a, k: over(torch.mean, x, a, k), np.mean, empty=True, norm=16, grad=True)
reduction("any", lambda x, a, k: over(torch.any, x, a, k) if x.ndim else x.bool(), np.any, empty=True, dtypes=("bool", "float32", "int32"))
reduction("all", lambda x, a, k: over(torch.all, x, a, k) if x.ndim else x.bool(), np.all, empty=True, dtypes=("bool", "float32", "int32"))
reduction("logsumexp", lambda x, a, k: over(torch.logsumexp, x, a, k), lambda x, axis, keepdims: np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims)), norm=16, absolute=16, grad=True)
for _c in (0, 1, 2):
  for _name, _t, _n in (("var", lambda x, a, k, c=_c: torch.var(x, a, correction=c, keepdim=k), np.var), ("std", lambda x, a, k, c=_c: torch.std(x, a, correction=c, keepdim=k), np.std)):
    for _shape, _axis in (((3, 4), None), ((3, 4), 0), ((2, 3, 4), (0, 2))):
      case(_name, Arg(_shape), lambda x, n=_name, a=_axis, c=_c: getattr(x, n)(a, correction=c), f"{_shape} {_axis} {_c}", torch=lambda x, t=_t, a=_axis: t(x, a, False), numpy=lambda x, n=_n, a=_axis, c=_c: n(x, axis=a, ddof=c),
           dtypes=FLOATS if _axis == 0 else ("float32",), norm=32, grad=True, grad_norm=128)
      case(_name + "_mean", Arg(_shape), lambda x, n=_name, a=_axis, c=_c: getattr(x, n + "_mean")(a, keepdim=True, correction=c), f"{_shape} {_axis} {_c}", torch=lambda x, t=_t, a=_axis: (t(x, a, True), over(torch.mean, x, a, True)),
           numpy=lambda x, n=_n, a=_axis, c=_c: (n(x, axis=a, ddof=c, keepdims=True), np.mean(x, axis=a, keepdims=True)), norm=32, grad=True, grad_norm=128)
case("var", F(1), lambda x: x.var(), "one", torch=lambda x: x.var(), norm=1)
case("sum", V([[NAN, 1, INF], [0, -INF, INF]]), lambda x: (x.sum(0), x.sum(1)), "special", torch=lambda x: (x.sum(0), x.sum(1)), dtypes=FLOATS)
case("sum", I(3, 4, low=100, high=127, dtype="int8"), lambda x: x.sum(), "wide accumulator", numpy=lambda x: x.sum(), dtypes=("int8",))
case("sum", F(3, 4), lambda x: x.sum(0, dtype=tg.dtypes.float64), "dtype", torch=lambda x: x.sum(0), numpy=lambda x: x.sum(0), norm=1)
case("prod", F(3, 4), lambda x: x.prod(0, dtype=tg.dtypes.float64), "dtype", torch=lambda x: x.prod(0), numpy=lambda x: x.prod(0), ulps=4)
for _name in ("max", "min"):
  case(_name, V([[NAN, 1.0, 2.0], [0.0, -INF, INF]]), lambda x, n=_name: getattr(x, n)(1), "special", numpy=lambda x, n=_name: getattr(x, n)(1), dtypes=FLOATS)
  case(_name, V([[1.0, 1.0, 0.0], [2.0, 2.0, 2.0]], grad=True), lambda x, n=_name: getattr(x, n)(1), "ties", torch=lambda x, n=_name: getattr(torch, "a" + n)(x, 1), grad=True)
for _name in ("softmax", "log_softmax", "softmin"):
  for _shape, _axis in (((3, 4), -1), ((3, 4), 0), ((2, 3, 4), 1), ((5,), 0)):
    case(_name, Arg(_shape, -5, 5), lambda x, n=_name, a=_axis: getattr(x, n)(axis=a), f"{_shape} {_axis}", torch=lambda x, n=_name, a=_axis: torch.softmax(-x, a) if n == "softmin" else getattr(torch, n)(x, a),
         dtypes=FLOATS if _axis == -1 else ("float32",), layouts=LAYOUTS if _axis == -1 else ("plain",), norm=16, grad=True, grad_norm=1024)  # a gradient is the difference of sums near 1
  case(_name, F(3, 4), lambda x, n=_name: getattr(x, n)(dtype=tg.dtypes.float64), "dtype", torch=lambda x, n=_name: torch.softmax(-x, -1) if n == "softmin" else getattr(torch, n)(x, -1), norm=16)
case("softmax", V([[1e4, 0.0, -1e4], [-INF, 0.0, 1.0]]), lambda x: x.softmax(), "large", torch=lambda x: torch.softmax(x, -1), norm=16)
case("logsumexp", V([[1e4, 0.0, -1e4], [-INF, 0.0, 1.0]]), lambda x: x.logsumexp(1), "large", torch=lambda x: torch.logsumexp(x, 1), norm=16)
for _name in ("argmax", "argmin"):
  for _axis in (None, 0, -1):
    for _keepdim in (False, True):
      case(_name, F(3, 4, distinct=True), lambda x, n=_name, a=_axis, k=_keepdim: getattr(x, n)(a, keepdim=k), f"{_axis} {_keepdim}", numpy=lambda x, n=_name, a=_axis, k=_keepdim: getattr(np, n)(x, axis=a, keepdims=k) if a is not None or not k else getattr(np, n)(x, keepdims=True),
           dtypes=("float32", "float64", "float16", "bfloat16", "int32", "uint8"))
  case(_name, I(3, 9, high=3), lambda x, n=_name: getattr(x, n)(1), "ties", numpy=lambda x, n=_name: getattr(np, n)(x, 1), dtypes=("int32",))
  case(_name, V([[1.0, NAN, 2.0, NAN]]), lambda x, n=_name: getattr(x, n)(1), "nan", numpy=lambda x, n=_name: getattr(np, n)(x, 1))
case("allclose", [F(3, 4)], lambda x: (x.allclose(x + 1e-9), x.allclose(x + 1), x.allclose(x + 1, atol=2)), numpy=lambda x: (True, False, True), like_tinygrad=False)

# Scans.
for _shape, _axis in (((3, 4), 0), ((3, 4), 1), ((2, 3, 4), -2), ((7,), 0), ((0, 3), 0), ((2, 600), 1)):
  _wide = dict(dtypes=FLOATS + ("int32",) if _shape == (3, 4) else ("float32",), layouts=LAYOUTS if _shape == (3, 4) else ("plain",), grad=_shape != (2, 600), interp=_shape != (2, 600))
  case("cumsum", Arg(_shape), lambda x, a=_axis: x.cumsum(a), f"{_shape} {_axis}", torch=lambda x, a=_axis: x.cumsum(a), numpy=lambda x, a=_axis: x.cumsum(a), norm=32, **_wide)
  case("cumprod", Arg(_shape, 0.5, 1.3), lambda x, a=_axis: x.cumprod(a), f"{_shape} {_axis}", torch=lambda x, a=_axis: x.cumprod(a), numpy=lambda x, a=_axis: x.cumprod(a), norm=32 if _shape[-1] < 600 else 600, **_wide)
  case("logcumsumexp", Arg(_shape), lambda x, a=_axis: x.logcumsumexp(a), f"{_shape} {_axis}", torch=lambda x, a=_axis: x.logcumsumexp(a), numpy=lambda x, a=_axis: np.logaddexp.accumulate(x, a), norm=32, absolute=32, **{**_wide, "dtypes": FLOATS if _shape == (3, 4) else ("float32",)})
  for _name in ("cummax", "cummin"):
    case(_name, Arg(_shape, distinct=True), lambda x, n=_name, a=_axis: getattr(x, n)(a), f"{_shape} {_axis}", torch=lambda x, n=_name, a=_axis: tuple(getattr(x, n)(a)), **_wide)
case("cummax", V([1.0, NAN, 3.0, 2.0]), lambda x: x.cummax(0)[0], "nan", torch=lambda x: x.cummax(0)[0], numpy=lambda x: np.maximum.accumulate(x))

# Sorting.
for _shape, _dim in (((3, 5), -1), ((3, 5), 0), ((2, 3, 4), 1), ((7,), 0), ((1,), 0), ((33,), 0)):
  for _descending in (False, True):
    _o = dict(dtypes=FLOATS + ("int32", "uint8") if _shape == (3, 5) else ("float32",), layouts=LAYOUTS if _shape == (3, 5) and not _descending else ("plain",))
    case("sort", Arg(_shape, distinct=True), lambda x, d=_dim, r=_descending: x.sort(d, descending=r), f"{_shape} {_dim} {_descending}", torch=lambda x, d=_dim, r=_descending: tuple(torch.sort(x, dim=d, descending=r, stable=True)), grad=True, **_o)
    case("argsort", Arg(_shape, distinct=True), lambda x, d=_dim, r=_descending: x.argsort(d, descending=r), f"{_shape} {_dim} {_descending}", torch=lambda x, d=_dim, r=_descending: x.argsort(d, descending=r), numpy=lambda x, d=_dim, r=_descending: np.argsort(-x if r else x, d, kind="stable"), **{**_o, "dtypes": ("float32",)})
case("sort", I(3, 9, high=3), lambda x: x.sort(1), "ties", torch=lambda x: tuple(torch.sort(x, dim=1, stable=True)), dtypes=("int32",))
case("sort", I(3, 9, high=3), lambda x: x.sort(1, descending=True), "ties descending", torch=lambda x: tuple(torch.sort(x, dim=1, descending=True, stable=True)), dtypes=("int32",))
case("sort", V([2.0, INF, -INF, 0.5, -3.0]), lambda x: x.sort(0), "infinities", torch=lambda x: tuple(x.sort(0)), numpy=lambda x: (np.sort(x), np.argsort(x)))
case("sort", V([2.0, NAN, 1.0, NAN, INF]), lambda x: x.sort(0), "nan", torch=lambda x: tuple(torch.sort(x, dim=0, stable=True)), numpy=lambda x: (np.sort(x), np.argsort(x, kind="stable")))
for _k, _dim, _largest in ((1, -1, True), (3, -1, True), (2, 0, False), (3, 1, False)):
  case("topk", F(3, 5, distinct=True), lambda x, k=_k, d=_dim, b=_largest: x.topk(k, d, largest=b), f"{_k} {_dim} {_largest}", torch=lambda x, k=_k, d=_dim, b=_largest: tuple(x.topk(k, d, largest=b)), dtypes=("float32", "float16", "int32"), grad=True)
