"""Tensors of PyTorch as ours and back, without a copy."""

from __future__ import annotations

from typing import Any, Sequence

import torch

from tinygrad_cpp import Tensor, _core
from tinygrad_cpp.dtype import dtypes

DTYPES: dict[torch.dtype, Any] = {
  torch.bool: dtypes.bool, torch.int8: dtypes.int8, torch.int16: dtypes.int16, torch.int32: dtypes.int32, torch.int64: dtypes.int64,
  torch.uint8: dtypes.uint8, torch.uint16: dtypes.uint16, torch.uint32: dtypes.uint32, torch.uint64: dtypes.uint64,
  torch.float16: dtypes.float16, torch.bfloat16: dtypes.bfloat16, torch.float32: dtypes.float32, torch.float64: dtypes.float64,
  torch.float8_e4m3fn: dtypes.fp8e4m3, torch.float8_e5m2: dtypes.fp8e5m2, torch.float8_e4m3fnuz: dtypes.fp8e4m3fnuz,
  torch.float8_e5m2fnuz: dtypes.fp8e5m2fnuz,
}


def _axes(shape: Sequence[int], strides: Sequence[int]) -> list[int]:
  """Those that move in memory, the slowest first."""
  return sorted((i for i, n in enumerate(shape) if n > 1 and strides[i] != 0), key=lambda i: -strides[i])


def is_view_of_memory(shape: Sequence[int], strides: Sequence[int]) -> bool:
  """Whether movement ops on a vector show an array of these strides: each axis steps over all of the faster ones."""
  inner = 1
  for i in reversed(_axes(shape, strides)):
    if strides[i] < inner:
      return False
    inner = strides[i] * shape[i]
  return True


def whole(shape: Sequence[int], strides: Sequence[int]) -> int:
  """How long a vector is that the axes cut up without a rest."""
  axes = _axes(shape, strides)
  return strides[axes[0]] * shape[axes[0]] if axes else 1


def is_whole_view(shape: Sequence[int], strides: Sequence[int]) -> bool:
  """Whether the last element ends the vector that the axes cut up, so that nothing is to be added and the view can be written to."""
  return is_view_of_memory(shape, strides) and whole(shape, strides) == span(shape, strides) and all(n == 1 or s != 0 for n, s in zip(shape, strides))


def span(shape: Sequence[int], strides: Sequence[int]) -> int:
  return 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, strides))


def view_of_memory(memory: Tensor, shape: Sequence[int], strides: Sequence[int]) -> Tensor:
  """The elements of a vector as an array with these strides. A vector that ends with the last of them may be shorter than the axes together:
  what is missing is added, and the array is none that can be written to."""
  axes = _axes(shape, strides)
  sizes: list[int] = []
  out, length = memory, memory.shape[0]
  for i in axes:
    needed = shape[i] * strides[i]
    if needed > length:
      out = out.pad(tuple((0, 0) for _ in sizes) + ((0, needed - length),))
    elif needed < length:
      out = out.shrink(tuple((0, n) for n in sizes) + ((0, needed),))
    sizes.append(shape[i])
    length = strides[i]
    out = out.reshape(*sizes, length)
  out = out.shrink(tuple((0, n) for n in sizes) + ((0, 1),)).reshape(*sizes) if length > 1 or out.ndim != len(sizes) else out
  order = sorted(axes)
  out = out.permute(*[axes.index(i) for i in order]) if len(axes) > 1 else out
  return out.reshape(*[n if i in order else 1 for i, n in enumerate(shape)]).expand(*shape)


def from_torch(x: torch.Tensor) -> Tensor:
  """A tensor on the memory of PyTorch's: what is written to one is seen in the other. Copied are tensors whose elements overlap, that are
  not aligned to their elements, that PyTorch negates lazily, and parts of rows where the memory ends within the last row (the last columns of
  a matrix). Gradients do not go from one to the other."""
  if not isinstance(x, torch.Tensor):
    raise TypeError(f"from_torch: expects a torch.Tensor, got {type(x)}")
  if x.layout is not torch.strided or x.dtype not in DTYPES:
    raise TypeError(f"from_torch: no tensor has the elements of {x.layout} {x.dtype}")
  if x.device.type != "cpu":
    raise _core.DeviceError(f"from_torch: the tensor is on {x.device}; copy it with .cpu() first")
  x = x.detach().resolve_neg()
  if x.numel() == 0:
    return Tensor.empty(*x.shape, dtype=DTYPES[x.dtype], device="CPU")
  there = x.untyped_storage().nbytes() // x.element_size() - x.storage_offset()
  if not is_view_of_memory(x.shape, x.stride()) or x.data_ptr() % x.element_size() or whole(x.shape, x.stride()) > there:
    x = x.clone(memory_format=torch.contiguous_format)
  return view_of_memory(_core.dlpack_memory(x, whole(x.shape, x.stride())), x.shape, x.stride())


def to_torch(x: Tensor) -> torch.Tensor:
  """PyTorch's tensor on the memory of a tensor, which is computed. Only a view whose elements do not follow one another is copied."""
  if not isinstance(x, Tensor):
    raise TypeError(f"to_torch: expects a Tensor, got {type(x)}")
  out: torch.Tensor = _core.dlpack_object(torch.Tensor, x)
  return out
