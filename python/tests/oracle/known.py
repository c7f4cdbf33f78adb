"""What is known to be wrong, by pattern of a check's name: it must fail, so that a repair shows."""

from fnmatch import fnmatchcase

_POLYNOMIAL = "tinygrad's polynomial, good for float32: about 1e-8 off in float64"
_LOG1P = "the logarithm of one and a small number has lost the small one"

FAILING: list[tuple[str, str]] = [
  *((f"{name}:{shape}:float64*", _POLYNOMIAL) for name in ("asin", "acos", "atan", "erf") for shape in ("0d", "3x4", "special")),
  *((f"gelu:exact-{shape}:float64*", _POLYNOMIAL) for shape in ("0d", "3x4", "special")),
  *((f"logaddexp:special:{dtype}", _LOG1P) for dtype in ("float32*", "float64")),
]


def reason(check: str) -> str | None:
  return next((text for pattern, text in FAILING if fnmatchcase(check, pattern)), None)
