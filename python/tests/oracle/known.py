"""What is known to be wrong, by pattern of a check's name: it must fail, so that a repair shows."""

from fnmatch import fnmatchcase

_POLYNOMIAL = "tinygrad's polynomial, good for float32: about 1e-8 off in float64"
_NAN = "a NaN becomes a number, where PyTorch keeps it"
_INFINITE = "an infinity less an infinity, or times zero, on the way: NaN where PyTorch has the limit"
_SQUARE = "the square of a large argument is infinite on the way"

FAILING: list[tuple[str, str]] = [
  *((f"{name}:{shape}:float64*", _POLYNOMIAL) for name in ("asin", "acos", "erf") for shape in ("0d", "3x4", "special")),
  *((f"atan:{shape}:float64*", _POLYNOMIAL) for shape in ("0d", "3x4")),
  *((f"gelu:exact-{shape}:float64*", _POLYNOMIAL) for shape in ("0d", "3x4", "special")),
  ("atan:special:*", _SQUARE),
  ("asinh:special:bfloat16", _SQUARE),
  ("asinh:special:float32*", _SQUARE),
  ("acosh:special:bfloat16", _SQUARE),
  ("acosh:special:float32*", _SQUARE),
  ("acosh:special:float64", _SQUARE),
  *((f"{name}:special:*", _NAN) for name in ("relu", "relu6", "elu", "hardsigmoid")),
  ("elu:alpha-special:*", _NAN),
  ("hardsigmoid:alpha-special:*", _NAN),
  *((f"{name}:special:*", _INFINITE) for name in ("hardswish", "logaddexp", "logsigmoid", "mish", "softplus")),
  ("softplus:beta-special:*", _INFINITE),
]


def reason(check: str) -> str | None:
  return next((text for pattern, text in FAILING if fnmatchcase(check, pattern)), None)
