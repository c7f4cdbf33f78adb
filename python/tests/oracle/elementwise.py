"""Functions of single elements: PyTorch's values, special ones included.

Tolerances: arguments may be off by two epsilons, as exp(x) = exp2(x log2(e)) rounds its own; a formula that subtracts values near 1, as
tinygrad's for tanh, has an absolute error of some epsilons. Our sine, exponential, logarithm and root are within 2 ulps of float32 and 16-bit results are rounded once or twice more; a
function composed of n of them is allowed about n times that.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from oracle.core import ALL, FLOATS, INTS, LAYOUTS, NUMBERS, SIGNED, Arg, B, F, I, V, case, tg

try:
  import torch
  import torch.nn.functional as tf
except ImportError:
  pass

NAN, INF = math.nan, math.inf
# What arithmetic treats specially. Denormals of float32 are zeros of the 16-bit types and normal for float64.
SPECIAL = [NAN, INF, -INF, 0.0, -0.0, 1e-40, -1e-40, 1.0, -1.0, 0.5, -0.5, 1.5, -2.5, 2.5, 6.0, -3.0, 3.0, 1e10, -1e10, 3e38, -3e38, 100.0, -100.0, 1e-7]
SHAPES: list[tuple[int, ...]] = [(3, 4), (), (0,), (2, 0, 3), (2, 3, 5, 7), (1000,)]


def torch_of(name: str) -> Callable[..., Any]:
  def call(*args: Any, **kwargs: Any) -> Any:
    home = torch if hasattr(torch, name) else torch.Tensor if hasattr(torch.Tensor, name) else tf
    return getattr(home, name)(*args, **kwargs)

  return call


def method(name: str, *args: Any, **kwargs: Any) -> Callable[..., Any]:
  return lambda t: getattr(t, name)(*args, **kwargs)


def unary(name: str, torch_form: Any, numpy_form: Any, low: float = -3.0, high: float = 3.0, *, ulps: float = 4.0, grad: bool = True, special: bool = True,
          dtypes: tuple[str, ...] = FLOATS, signed_zeros: bool = False, ours: Callable[..., Any] | None = None, label: str = "", grad_norm: float = 32.0, absolute: float = 0.0) -> None:
  """A row for each shape; the first with every dtype and layout. Two more with the values that arithmetic treats specially and of integers."""
  torch_form = torch_of(torch_form) if isinstance(torch_form, str) else torch_form
  ours = ours or method(name)
  prefix = label + "-" if label else ""
  for i, shape in enumerate(SHAPES):
    text = prefix + ("x".join(map(str, shape)) or "0d")
    case(name, Arg(shape, low, high), ours, text, torch=torch_form, numpy=numpy_form, dtypes=dtypes if i == 0 else dtypes[:1],
         layouts=LAYOUTS if i == 0 else ("plain",), grad=grad and i < 4, ulps=ulps, grad_norm=grad_norm, absolute=absolute, backward=2.0 if ulps > 1 else 0, flush=ulps >= 4)
  if special:
    floats = tuple(d for d in dtypes if d in FLOATS)
    case(name, V(SPECIAL), ours, prefix + "special", torch=torch_form, numpy=numpy_form, dtypes=floats, ulps=ulps, signed_zeros=signed_zeros, absolute=absolute, backward=2.0 if ulps > 1 else 0, flush=ulps >= 4)


def recast(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
  """PyTorch's functional forms want floating point."""
  return lambda x: f(x if x.is_floating_point() else x.double())


def logsig(x: np.ndarray) -> np.ndarray:
  return -np.logaddexp(0, -x)


def np_erf(x: np.ndarray) -> np.ndarray:
  return np.vectorize(math.erf, otypes=[np.float64])(x)


def np_sigmoid(x: np.ndarray) -> np.ndarray:
  return 1 / (1 + np.exp(-x))


ALL_SIGNED = FLOATS + SIGNED
# Exact functions.
unary("neg", "neg", np.negative, dtypes=ALL_SIGNED, ulps=0, signed_zeros=True)
unary("abs", "abs", np.abs, dtypes=ALL_SIGNED, ulps=0, signed_zeros=True)
unary("sign", "sign", lambda x: np.where(np.isnan(x), 0, np.sign(x)), dtypes=ALL_SIGNED, ulps=0, grad=False)
unary("square", "square", np.square, dtypes=FLOATS + SIGNED + ("uint8",), ulps=0.5)
unary("reciprocal", "reciprocal", lambda x: 1 / x, ulps=1, signed_zeros=True)
unary("trunc", "trunc", np.trunc, ulps=0, dtypes=ALL_SIGNED, grad=False, signed_zeros=True)
unary("ceil", "ceil", np.ceil, ulps=0, dtypes=ALL_SIGNED, grad=False, signed_zeros=True)
unary("floor", "floor", np.floor, ulps=0, dtypes=ALL_SIGNED, grad=False, signed_zeros=True)
unary("round", "round", np.round, ulps=0, dtypes=ALL_SIGNED, grad=False, signed_zeros=True)
unary("logical_not", "logical_not", np.logical_not, dtypes=FLOATS + SIGNED + ("uint8", "bool"), grad=False)
unary("bitwise_not", "bitwise_not", np.bitwise_not, -9, 9, dtypes=SIGNED + ("uint8", "bool"), grad=False, special=False)
unary("isnan", "isnan", np.isnan, dtypes=FLOATS, grad=False)
unary("isfinite", "isfinite", np.isfinite, dtypes=FLOATS, grad=False)
unary("isinf", "isinf", np.isinf, dtypes=FLOATS, grad=False)
unary("isinf", "isposinf", np.isposinf, dtypes=FLOATS, grad=False, ours=method("isinf", detect_negative=False), label="positive")
unary("isinf", "isneginf", np.isneginf, dtypes=FLOATS, grad=False, ours=method("isinf", detect_positive=False), label="negative")
unary("relu", "relu", lambda x: np.where(x < 0, 0, x), ulps=0, dtypes=FLOATS + ("int32",))
unary("relu6", "relu6", lambda x: np.where(np.isnan(x), x, np.clip(x, 0, 6)), -8, 8, ulps=0)
unary("detach", "detach", lambda x: x, dtypes=ALL, ulps=0, grad=False, signed_zeros=True)
unary("contiguous", "clone", lambda x: x, dtypes=ALL, ulps=0, signed_zeros=True)
unary("contiguous_backward", "clone", lambda x: x, dtypes=ALL, ulps=0, signed_zeros=True)
# Roots, exponentials, logarithms, circular and hyperbolic functions.
unary("sqrt", "sqrt", np.sqrt, 0.1, 4, ulps=1, signed_zeros=True)
unary("rsqrt", "rsqrt", lambda x: 1 / np.sqrt(x), 0.1, 4, ulps=2)
unary("exp", "exp", np.exp)
unary("exp2", "exp2", np.exp2)
unary("log", "log", np.log, 0.1, 4)
unary("log2", "log2", np.log2, 0.1, 4)
unary("log10", "log10", np.log10, 0.1, 4)
unary("sin", "sin", np.sin, special=False)
unary("cos", "cos", np.cos, special=False, absolute=8)
unary("tan", "tan", np.tan, -1.4, 1.4, special=False, ulps=8, absolute=8)
unary("asin", "asin", np.arcsin, -0.95, 0.95, ulps=8, absolute=8)
unary("acos", "acos", np.arccos, -0.95, 0.95, ulps=8, absolute=8)
unary("atan", "atan", np.arctan, ulps=8, absolute=8)
unary("sinh", "sinh", np.sinh, ulps=8, absolute=8)
unary("cosh", "cosh", np.cosh, ulps=8)
unary("tanh", "tanh", np.tanh, ulps=8, absolute=8)
unary("asinh", "asinh", np.arcsinh, ulps=8, absolute=8)
unary("acosh", "acosh", np.arccosh, 1.1, 6, ulps=8, absolute=8)
unary("atanh", "atanh", np.arctanh, -0.95, 0.95, ulps=8, absolute=8)
unary("erf", "erf", np_erf, ulps=8, absolute=8)
# Activations.
unary("sigmoid", "sigmoid", np_sigmoid)
unary("logsigmoid", lambda x: tf.logsigmoid(x), logsig, ulps=8, absolute=8)
unary("hardswish", lambda x: tf.hardswish(x), lambda x: x * np.clip(x + 3, 0, 6) / 6, -5, 5, absolute=8)
unary("hardsigmoid", lambda x: (x / 6 + 0.5).clamp(0, 1), lambda x: np.clip(x / 6 + 0.5, 0, 1), -5, 5, absolute=8)
unary("hardsigmoid", lambda x: (0.25 * x + 0.4).clamp(0, 1), lambda x: np.clip(0.25 * x + 0.4, 0, 1), -5, 5, ours=method("hardsigmoid", alpha=0.25, beta=0.4), label="alpha", absolute=8)
unary("hardtanh", lambda x: tf.hardtanh(x), lambda x: np.clip(x, -1, 1), ulps=0)
unary("hardtanh", lambda x: tf.hardtanh(x, -0.5, 2), lambda x: np.clip(x, -0.5, 2), ulps=0, ours=method("hardtanh", min_val=-0.5, max_val=2), label="bounds")
unary("leaky_relu", lambda x: tf.leaky_relu(x), lambda x: np.where(x > 0, x, 0.01 * x), ulps=2)
unary("leaky_relu", lambda x: tf.leaky_relu(x, 0.25), lambda x: np.where(x > 0, x, 0.25 * x), ulps=2, ours=method("leaky_relu", neg_slope=0.25), label="slope")
unary("quick_gelu", lambda x: x * torch.sigmoid(x * 1.702), lambda x: x * np_sigmoid(1.702 * x), ulps=8, absolute=8)
unary("gelu", lambda x: tf.gelu(x, approximate="tanh"), None, ulps=8, absolute=8)
unary("gelu", lambda x: tf.gelu(x), lambda x: x * (1 + np_erf(x / math.sqrt(2))) / 2, ulps=8, ours=method("gelu", approximate="none"), label="exact", absolute=8)
unary("silu", lambda x: tf.silu(x), lambda x: x * np_sigmoid(x), ulps=8)
unary("swish", lambda x: tf.silu(x), lambda x: x * np_sigmoid(x), ulps=8)
unary("elu", lambda x: tf.elu(x), lambda x: np.where(x > 0, x, np.expm1(x)), ulps=8, absolute=8)
unary("elu", lambda x: tf.elu(x, 0.5), lambda x: np.where(x > 0, x, 0.5 * np.expm1(x)), ulps=8, ours=method("elu", alpha=0.5), label="alpha", absolute=8)
unary("celu", lambda x: tf.celu(x), lambda x: np.where(x > 0, x, np.expm1(x)), ulps=8, absolute=8)
unary("celu", lambda x: tf.celu(x, 0.5), lambda x: np.where(x > 0, x, 0.5 * np.expm1(x / 0.5)), ulps=8, ours=method("celu", alpha=0.5), label="alpha", absolute=8)
SELU = (1.67326, 1.0507)
unary("selu", lambda x: SELU[1] * torch.where(x > 0, x, SELU[0] * torch.expm1(x)), lambda x: SELU[1] * np.where(x > 0, x, SELU[0] * np.expm1(x)), ulps=8, absolute=8)
unary("softplus", lambda x: tf.softplus(x, threshold=1e9), lambda x: np.logaddexp(x, 0), ulps=8, absolute=8)
unary("softplus", lambda x: tf.softplus(x, 2.0, threshold=1e9), lambda x: np.logaddexp(2 * x, 0) / 2, ulps=8, ours=method("softplus", beta=2.0), label="beta", absolute=8)
unary("mish", lambda x: tf.mish(x), lambda x: x * np.tanh(np.logaddexp(x, 0)), ulps=16, absolute=8)
unary("softsign", lambda x: tf.softsign(x), lambda x: x / (1 + np.abs(x)), ulps=4)

# Functions of two.
PAIRS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((3, 4), (3, 4)), ((3, 1), (4,)), ((), (2, 3)), ((0, 3), (1,)), ((2, 1, 3), (2, 1))]
CROSS = np.array([(a, b) for a in SPECIAL for b in (NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 2.5, -3.0, 1e-40)])


def extremes(dtype: str) -> np.ndarray:
  info = np.iinfo(dtype)
  values = [info.min, info.min + 1, -7 if info.min else 7, -2 if info.min else 2, -1 if info.min else 1, 0, 1, 2, 3, 7, info.max // 2, info.max - 1, info.max]
  return np.array(values, dtype)


def binary(name: str, torch_form: Any, numpy_form: Any, low: float = -3.0, high: float = 3.0, *, ours: Callable[..., Any] | None = None, ulps: float = 1.0, grad: bool = True,
           special: bool = True, dtypes: tuple[str, ...] = FLOATS + ("int32", "uint8"), wraps: bool = True, label: str = "", signed_zeros: bool = False, safe: bool = False, absolute: float = 0.0) -> None:
  """Broadcast shapes, the crossed special values, and for integers their extremes crossed (`safe`: without what has no value)."""
  ours = ours or (lambda a, b: getattr(a, name)(b))
  for i, (a, b) in enumerate(PAIRS):
    text = "-".join(filter(None, [label, "x".join(map(str, a)) or "0d", "x".join(map(str, b)) or "0d"]))
    second = (max(low, 1) if safe else low)
    case(name, [Arg(a, low, high), Arg(b, second, high)], ours, text, torch=torch_form, numpy=numpy_form, dtypes=dtypes if i == 0 else dtypes[:1],
         layouts=LAYOUTS if i == 0 else ("plain",), grad=grad and dtypes[0] in FLOATS, ulps=ulps, absolute=absolute)
  text = label + "-" if label else ""
  if special:
    case(name, [V(CROSS[:, 0]), V(CROSS[:, 1])], ours, text + "special", torch=torch_form, numpy=numpy_form, dtypes=("float32", "float64"), ulps=ulps, signed_zeros=signed_zeros)
  if wraps:
    for dtype in ("int8", "int32", "int64", "uint8"):
      x = extremes(dtype)
      a, b = np.repeat(x, len(x)), np.tile(x, len(x))
      keep = (b != 0) & ~((b == -1 if dtype != "uint8" else False) & (a == x[0])) if safe else np.ones(len(a), bool)
      case(name, [V(a[keep], dtype), V(b[keep], dtype)], ours, text + "extremes", torch=torch_form, numpy=numpy_form, dtypes=(dtype,), ulps=ulps)


binary("add", lambda a, b: a + b, np.add, ulps=0.5, signed_zeros=True)
binary("sub", lambda a, b: a - b, np.subtract, ulps=0.5, signed_zeros=True)
binary("mul", lambda a, b: a * b, np.multiply, ulps=0.5, signed_zeros=True)
binary("div", lambda a, b: a / b, lambda a, b: a / b, safe=True, signed_zeros=False)
binary("div", lambda a, b: torch.div(a, b, rounding_mode="trunc"), None, ours=lambda a, b: a.div(b, rounding_mode="trunc"), grad=False, safe=True, label="trunc", low=-9, high=9, ulps=0, special=False)
binary("div", lambda a, b: torch.div(a, b, rounding_mode="floor"), None, ours=lambda a, b: a.div(b, rounding_mode="floor"), grad=False, safe=True, label="floor", low=-9, high=9, ulps=0, special=False)
# x - trunc(x / y) y is rounded at the size of x, up to 9 here.
binary("mod", lambda a, b: torch.remainder(a, b), np.mod, low=-9, high=9, safe=True, special=False, ulps=8, absolute=16)
binary("fmod", lambda a, b: torch.fmod(a, b), np.fmod, low=-9, high=9, safe=True, special=False, ulps=8, absolute=16)
binary("maximum", lambda a, b: torch.maximum(a, b), np.maximum, ulps=0)
binary("minimum", lambda a, b: torch.minimum(a, b), np.minimum, ulps=0)
binary("copysign", lambda a, b: torch.copysign(a, b), np.copysign, ulps=0, dtypes=FLOATS, wraps=False)
binary("logaddexp", lambda a, b: torch.logaddexp(a.double(), b.double()), np.logaddexp, ulps=8, wraps=False, dtypes=FLOATS)
binary("eq", lambda a, b: a == b, np.equal, grad=False)
binary("ne", lambda a, b: a != b, np.not_equal, grad=False)
for _name, _symbol in (("lt", operator.lt), ("le", operator.le), ("gt", operator.gt), ("ge", operator.ge)):
  binary("operators", _symbol, _symbol, ours=_symbol, grad=False, label=_name)
binary("isclose", lambda a, b: torch.isclose(a, b), np.isclose, grad=False, wraps=False, dtypes=FLOATS)
binary("isclose", lambda a, b: torch.isclose(a, b, rtol=0.1, atol=0.5, equal_nan=True), None, ours=lambda a, b: a.isclose(b, rtol=0.1, atol=0.5, equal_nan=True), grad=False, wraps=False,
       dtypes=FLOATS, label="options")
for _name, _np in (("bitwise_and", np.bitwise_and), ("bitwise_or", np.bitwise_or), ("bitwise_xor", np.bitwise_xor)):
  binary(_name, torch_of(_name), _np, grad=False, special=False, dtypes=("int32", "int8", "uint8", "int64", "bool"))
binary("lshift", lambda a, b: a << b, np.left_shift, 0, 6, grad=False, special=False, wraps=False, dtypes=("int32", "uint8", "int64"))
binary("rshift", lambda a, b: a >> b, np.right_shift, 0, 6, grad=False, special=False, wraps=False, dtypes=("int32", "uint8", "int64"))
binary("pow", lambda a, b: torch.pow(a, b), np.power, 0.2, 3, ulps=16, special=False, wraps=False, dtypes=FLOATS)
case("pow", [F(3, 4), F(3, 4)], lambda a, b: a.pow(b), "negative bases", torch=lambda a, b: torch.pow(a, b), dtypes=("float32", "float64"), ulps=16)
case("pow", [V(CROSS[:, 0]), V(CROSS[:, 1])], lambda a, b: a.pow(b), "special", torch=lambda a, b: torch.pow(a, b), numpy=np.power, dtypes=("float32",), ulps=64)
case("pow", [I(4, 5, low=-4, high=4), I(4, 5, low=0, high=5)], lambda a, b: a.pow(b), "integers", torch=lambda a, b: torch.pow(a, b), numpy=np.power, dtypes=("int32",))
for _e in (0, 1, 2, 3, -1, -2, 0.5, -0.5, 2.5, 4, 7):
  case("pow", F(3, 4, low=0.2), lambda x, e=_e: x.pow(e), f"exponent {_e}", torch=lambda x, e=_e: x**e, numpy=lambda x, e=_e: x**e, dtypes=FLOATS, ulps=16, grad=True)
case("pow", F(3, 4), lambda x: x.pow(2.5, reverse=True), "reverse", torch=lambda x: 2.5**x, numpy=lambda x: 2.5**x, ulps=16, grad=True)

# Operators: t op x, x op t, t op= x, with tensors and numbers.
OPERATORS: list[tuple[str, Any, Any]] = [("add", operator.add, operator.iadd), ("sub", operator.sub, operator.isub), ("mul", operator.mul, operator.imul),
                                         ("truediv", operator.truediv, operator.itruediv), ("pow", operator.pow, operator.ipow)]
WHOLE: list[tuple[str, Any, Any]] = [("floordiv", operator.floordiv, operator.ifloordiv), ("mod", operator.mod, operator.imod), ("and", operator.and_, operator.iand),
                                     ("or", operator.or_, operator.ior), ("xor", operator.xor, operator.ixor), ("lshift", operator.lshift, operator.ilshift),
                                     ("rshift", operator.rshift, operator.irshift), ("add", operator.add, operator.iadd), ("sub", operator.sub, operator.isub),
                                     ("mul", operator.mul, operator.imul)]


def changed(f: Any) -> Callable[[Any, Any], Any]:
  """On a copy: inputs stay."""
  return lambda a, b: f(a.clone() if hasattr(a, "clone") else a.copy(), b)


for _name, _f, _i in OPERATORS:
  case("operators", [F(3, 4, low=0.5), F(3, 4, low=0.5)], _f, _name, torch=_f, numpy=_f, dtypes=FLOATS, ulps=8, grad=True)
  case("operators", F(3, 4, low=0.5), lambda a, f=_f: f(a, 1.5), _name + " number", torch=lambda a, f=_f: f(a, 1.5), numpy=lambda a, f=_f: f(a, 1.5), dtypes=FLOATS, ulps=8, grad=True)
  case("operators", F(3, 4, low=0.5), lambda a, f=_f: f(1.5, a), _name + " reflected", torch=lambda a, f=_f: f(1.5, a), numpy=lambda a, f=_f: f(1.5, a), dtypes=FLOATS, ulps=8, grad=True)
  case("operators", [F(3, 4, low=0.5), F(4, low=0.5)], changed(_i), _name + " in place", torch=changed(_i), numpy=changed(_i), dtypes=("float32", "float64"), ulps=8)
for _name, _f, _i in WHOLE:
  _a, _b = I(3, 4, low=-9 if "shift" not in _name else 0), I(3, 4, low=1, high=5)
  case("operators", [_a, _b], _f, _name + " int", torch=_f, numpy=_f, dtypes=("int32",))
  case("operators", _a, lambda a, f=_f: f(a, 3), _name + " int number", torch=lambda a, f=_f: f(a, 3), numpy=lambda a, f=_f: f(a, 3), dtypes=("int32",))
  case("operators", _b, lambda b, f=_f: f(7, b), _name + " int reflected", torch=lambda b, f=_f: f(7, b), numpy=lambda b, f=_f: f(7, b), dtypes=("int32",))
  case("operators", [_a, _b], changed(_i), _name + " int in place", torch=changed(_i), numpy=changed(_i), dtypes=("int32",))
for _a, _b in (("int32", "float32"), ("uint8", "int8"), ("bool", "int64"), ("float16", "bfloat16"), ("int64", "float16"), ("uint8", "uint16"), ("bool", "float32"), ("int16", "uint16")):
  for _name, _f in (("add", operator.add), ("mul", operator.mul)):
    case("operators", [Arg((3, 4), 0, 5, _a), Arg((4,), 0, 5, _b)], _f, f"{_name} {_a} {_b}", numpy=lambda a, b, f=_f: f(a.astype(np.float64), b.astype(np.float64)), ulps=1)
for _name in ("add", "sub", "mul", "div", "mod", "bitwise_and", "bitwise_or", "bitwise_xor", "lshift", "rshift"):
  _np: Any = {"div": lambda a: 7 / a, "mod": lambda a: 7 % a, "sub": lambda a: 7 - a, "add": lambda a: 7 + a, "mul": lambda a: 7 * a, "bitwise_and": lambda a: 7 & a,
              "bitwise_or": lambda a: 7 | a, "bitwise_xor": lambda a: 7 ^ a, "lshift": lambda a: 7 << a, "rshift": lambda a: 7 >> a}[_name]
  case(_name, I(3, 4, low=1, high=5), lambda a, n=_name: getattr(a, n)(7, reverse=True), "reverse", numpy=_np, dtypes=("int32",), ulps=1)

# Functions of three, and choices.
case("where", [B(3, 4), F(3, 4), F(4)], lambda c, a, b: c.where(a, b), torch=lambda c, a, b: torch.where(c, a, b), numpy=np.where, dtypes=FLOATS + ("int32", "bool"), grad=True, layouts=LAYOUTS)
case("where", [B(3, 1), F(4)], lambda c, a: c.where(a, 1.5), "number", torch=lambda c, a: torch.where(c, a, 1.5), numpy=lambda c, a: np.where(c, a, 1.5), grad=True)
case("where", [B(), F(2, 0)], lambda c, a: c.where(a, 0), "empty", torch=lambda c, a: torch.where(c, a, 0), numpy=lambda c, a: np.where(c, a, 0))
case("masked_fill", [F(3, 4), B(3, 4)], lambda x, m: x.masked_fill(m, -1), torch=lambda x, m: x.masked_fill(m, -1), numpy=lambda x, m: np.where(m, -1, x), dtypes=FLOATS + ("int32",), grad=True)
case("masked_fill", [F(3, 4), B(4)], lambda x, m: x.masked_fill(m, -INF), "infinity", torch=lambda x, m: x.masked_fill(m, -INF), numpy=lambda x, m: np.where(m, -INF, x))
for _name in ("clamp", "clip"):
  for _low, _high in ((-1, 1), (None, 0.5), (-0.5, None), (1, -1)):
    case(_name, F(3, 4), lambda x, n=_name, a=_low, b=_high: getattr(x, n)(a, b), f"{_low} {_high}", torch=lambda x, a=_low, b=_high: torch.clamp(x, a, b),
         numpy=lambda x, a=_low, b=_high: np.minimum(np.maximum(x, -INF if a is None else a), INF if b is None else b), dtypes=FLOATS, grad=True)
  case(_name, V(SPECIAL), lambda x, n=_name: getattr(x, n)(-1, 1), "special", torch=lambda x: torch.clamp(x, -1, 1), numpy=lambda x: np.clip(x, -1, 1), dtypes=FLOATS)
  case(_name, I(3, 4, low=-9), lambda x, n=_name: getattr(x, n)(-2, 5), "int", torch=lambda x: torch.clamp(x, -2, 5), numpy=lambda x: np.clip(x, -2, 5), dtypes=("int32",))
  case(_name, [F(3, 4), F(4, low=-1, high=0), F(3, 1, low=0, high=1)], lambda x, a, b, n=_name: getattr(x, n)(a, b), "tensors", torch=lambda x, a, b: torch.clamp(x, a, b), numpy=np.clip, grad=True)
case("lerp", [F(3, 4), F(3, 4), F(4)], lambda a, b, w: a.lerp(b, w), torch=lambda a, b, w: torch.lerp(a, b, w), numpy=lambda a, b, w: a + (b - a) * w, dtypes=FLOATS, norm=4, grad=True)
case("lerp", [F(3, 4), F(3, 4)], lambda a, b: a.lerp(b, 0.25), "number", torch=lambda a, b: torch.lerp(a, b, 0.25), numpy=lambda a, b: a + (b - a) * 0.25, norm=4, grad=True)
case("operators", F(3, 4), lambda x: abs(-x) + +x, "unary", torch=lambda x: abs(-x) + +x, numpy=lambda x: abs(-x) + +x, ulps=1, grad=True)
case("operators", I(3, 4), lambda x: ~x, "invert", torch=lambda x: ~x, numpy=lambda x: ~x, dtypes=("int32",))


def threefry_numpy(counter: np.ndarray, key: np.ndarray) -> np.ndarray:
  """Threefry-2x32 of 20 rounds (Salmon et al., 2011), both words in a uint64, the low one first."""
  mask, out = 0xFFFFFFFF, []
  for c, k in zip(counter.tolist(), key.tolist()):
    x0, x1, ks = c & mask, c >> 32, [k & mask, k >> 32]
    ks.append(ks[0] ^ ks[1] ^ 0x1BD11BDA)
    x0, x1 = (x0 + ks[0]) & mask, (x1 + ks[1]) & mask
    for i in range(5):
      for r in ((13, 15, 26, 6), (17, 29, 16, 24))[i % 2]:
        x0 = (x0 + x1) & mask
        x1 = ((x1 << r) | (x1 >> (32 - r))) & mask
        x1 ^= x0
      x0, x1 = (x0 + ks[(i + 1) % 3]) & mask, (x1 + ks[(i + 2) % 3] + i + 1) & mask
    out.append(x1 << 32 | x0)
  return np.array(out, np.uint64)


case("threefry", [V(np.arange(7, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15), "uint64"), V(np.arange(7, dtype=np.uint64) * np.uint64(0xD1342543DE82EF95), "uint64")], lambda c, k: c.threefry(k), numpy=threefry_numpy,
     dtypes=("uint64",), like_tinygrad=False)

# Conversions. Values that the dtype has: what others become is undefined, in PyTorch too.
for _to in ALL:
  for _from in ("float32", "float64", "float16", "int32", "int64", "uint8", "bool"):
    case("cast", Arg((3, 5), 0, 90, _from), lambda x, d=_to: x.cast(getattr(tg.dtypes, d)), f"{_from} to {_to}", numpy=lambda x, d=_to: x.astype(bool) if d == "bool" else np.trunc(x) if d in INTS else x,
         dtypes=(_from,), interp=_from == "float32", ulps=0.5)
case("cast", V([NAN, INF, -INF, 1e39, -1e39, 65520.0, 1e-46, -0.0]), lambda x: x.cast(tg.dtypes.float32).cast(tg.dtypes.float16), "overflow", numpy=lambda x: x.astype(np.float32).astype(np.float16), dtypes=("float64",))
case("cast", F(3, 4), lambda x: x.cast("float64") * 2, "gradient", torch=lambda x: x.double() * 2, numpy=lambda x: x * 2, grad=True)
for _name, _to in (("float", "float32"), ("half", "float16"), ("int", "int32"), ("bool", "bool"), ("bfloat16", "bfloat16"), ("double", "float64"), ("long", "int64"), ("short", "int16")):
  case(_name, F(3, 4, low=-9, high=9), method(_name), numpy=lambda x, d=_to: x.astype(bool) if d == "bool" else np.trunc(x) if d in INTS else x, dtypes=("float32", "int32"), ulps=0.5)
case("bitcast", F(3, 4), lambda x: x.bitcast(tg.dtypes.int32), numpy=lambda x: x.astype(np.float32).view(np.int32), ulps=0)
case("bitcast", F(3, 4), lambda x: x.bitcast(tg.dtypes.uint8), "narrower", numpy=lambda x: x.astype(np.float32).view(np.uint8))
case("bitcast", I(3, 8, dtype="uint8"), lambda x: x.bitcast(tg.dtypes.uint32), "wider", numpy=lambda x: x.view(np.uint32), dtypes=("uint8",))
