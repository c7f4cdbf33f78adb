"""Dtypes under tinygrad's names."""

from __future__ import annotations

from typing import Union

from tinygrad_cpp import _core
from tinygrad_cpp._core import DType, can_lossless_cast, least_upper_dtype, least_upper_float, sum_acc_dtype

__all__ = [
  "AddrSpace", "DType", "DTypeLike", "PyConst", "can_lossless_cast", "dtypes", "least_upper_dtype", "least_upper_float", "sum_acc_dtype", "to_dtype",
]

DTypeLike = Union[str, DType]
PyConst = Union[float, int, bool]
_named = _core.all_dtypes


def to_dtype(dtype: DTypeLike) -> DType:
  return _core.dtype(dtype)


class DTypes:
  """Every dtype, its aliases, and questions about them."""

  void: DType = _named["void"]
  index: DType = _named["index"]
  int8: DType = _named["int8"]
  uint8: DType = _named["uint8"]
  int16: DType = _named["int16"]
  uint16: DType = _named["uint16"]
  int32: DType = _named["int32"]
  uint32: DType = _named["uint32"]
  int64: DType = _named["int64"]
  uint64: DType = _named["uint64"]
  fp8e4m3: DType = _named["fp8e4m3"]
  fp8e5m2: DType = _named["fp8e5m2"]
  fp8e4m3fnuz: DType = _named["fp8e4m3fnuz"]
  fp8e5m2fnuz: DType = _named["fp8e5m2fnuz"]
  float16: DType = _named["float16"]
  bfloat16: DType = _named["bfloat16"]
  float32: DType = _named["float32"]
  float64: DType = _named["float64"]
  half: DType = float16
  double: DType = float64
  uchar: DType = uint8
  ushort: DType = uint16
  uint: DType = uint32
  ulong: DType = uint64
  char: DType = int8
  short: DType = int16
  long: DType = int64

  fp8_ocp: tuple[DType, ...] = (fp8e4m3, fp8e5m2)
  fp8_fnuz: tuple[DType, ...] = (fp8e4m3fnuz, fp8e5m2fnuz)
  fp8s: tuple[DType, ...] = fp8_ocp + fp8_fnuz
  floats: tuple[DType, ...] = fp8s + (float16, bfloat16, float32, float64)
  uints: tuple[DType, ...] = (uint8, uint16, uint32, uint64)
  sints: tuple[DType, ...] = (int8, int16, int32, int64)
  ints: tuple[DType, ...] = uints + sints

  def is_float(self, x: DType) -> _core_bool:
    return _core.is_float(x)

  def is_int(self, x: DType) -> _core_bool:
    return _core.is_int(x)

  def is_unsigned(self, x: DType) -> _core_bool:
    return _core.is_unsigned(x)

  def is_bool(self, x: DType) -> _core_bool:
    return _core.is_bool(x)

  def min(self, x: DType) -> PyConst:
    value: PyConst = x.min
    return value

  def max(self, x: DType) -> PyConst:
    value: PyConst = x.max
    return value

  def finfo(self, dtype: DType) -> tuple[_core_int, _core_int]:
    """Bits of exponent and mantissa."""
    return _core.finfo(dtype)

  @property
  def default_float(self) -> DType:
    return to_dtype(_core.get_option("DEFAULT_FLOAT"))

  @property
  def default_int(self) -> DType:
    return to_dtype(_core.get_option("DEFAULT_INT"))

  def fields(self) -> dict[str, DType]:
    return {name: dtype for name, dtype in _named.items() if name not in ("void", "index")}

  # These names are Python's own: last, so that the annotations above mean Python's.
  bool: DType = _named["bool"]
  int: DType = int32
  float: DType = float32
  all: tuple[DType, ...] = floats + ints + (bool,)

  def from_py(self, x: object) -> DType:
    """The dtype that a tensor of this number or list has."""
    from tinygrad_cpp._core import Tensor

    return Tensor(x).dtype


class AddrSpace:
  """Where a placeholder of a kernel is."""

  GLOBAL = "GLOBAL"
  LOCAL = "LOCAL"  # which the library alone gives out: a placeholder there is an error
  REG = "REG"


_core_bool = bool
_core_int = int
dtypes = DTypes()
