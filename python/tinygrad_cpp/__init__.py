"""tinygrad's API on a C++ core."""

from tinygrad_cpp._core import (
  Cancelled,
  CommError,
  CompileError,
  DataLoader,
  DeviceError,
  DTypeError,
  Error,
  FormatError,
  IndexError as IndexError,
  InternalError,
  IoError,
  JitError,
  Mesh,
  OutOfMemoryError,
  ShapeError,
  UnsupportedError,
  UOp,
  ValueError as ValueError,
  rank,
  world_size,
)
from tinygrad_cpp.tensor import Tensor
from tinygrad_cpp.engine.jit import TinyJit
from tinygrad_cpp.function import function
from tinygrad_cpp.uop import Ops, Variable
from tinygrad_cpp.dtype import dtypes
from tinygrad_cpp.helpers import Context, GlobalCounters, fetch, getenv
from tinygrad_cpp.device import Device
from tinygrad_cpp import nn
from tinygrad_cpp._core import version as __version__

__all__ = [
  "Cancelled", "CommError", "CompileError", "Context", "DTypeError", "DataLoader", "Device", "DeviceError", "Error", "FormatError", "GlobalCounters", "InternalError", "IoError",
  "JitError", "Mesh", "Ops", "OutOfMemoryError", "ShapeError", "Tensor", "TinyJit", "UOp", "UnsupportedError", "Variable", "__version__", "dtypes", "fetch", "function", "getenv", "nn", "rank",
  "world_size",
]
