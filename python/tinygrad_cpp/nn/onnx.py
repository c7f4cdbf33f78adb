"""ONNX models as functions of tensors: `OnnxRunner("model.onnx")({"x": x})["y"]`."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any, Mapping

from tinygrad_cpp import _core
from tinygrad_cpp._core import DType, Tensor, UnsupportedError

if TYPE_CHECKING:
  import numpy as np

__all__ = ["OnnxRunner", "OnnxValue", "UnsupportedError"]


@dataclasses.dataclass(frozen=True)
class OnnxValue:
  """What a model says of an input or output: sizes are integers, names, or None where nothing is said; `dtype` is None for texts."""
  shape: tuple[int | str | None, ...]
  dtype: DType | None
  is_optional: bool
  is_sequence: bool
  type: str


def _values(infos: list[Any]) -> dict[str, OnnxValue]:
  return {name: OnnxValue(shape if shape is not None else (), dtype, "optional" in text, "sequence" in text, text)
          for name, dtype, text, shape in infos}


def _texts(array: "np.ndarray[Any, Any]") -> tuple[tuple[int, ...], list[str]]:
  return array.shape, [x.decode() if isinstance(x, bytes) else str(x) for x in array.ravel().tolist()]


def _to_library(x: Any, info: OnnxValue | None) -> Any:
  if x is None or isinstance(x, (Tensor, dict)):
    return x
  if isinstance(x, (list, tuple)) and info is not None and info.is_sequence:
    return [_to_library(item, dataclasses.replace(info, is_sequence=False)) for item in x]
  if info is not None and info.dtype is None and not info.is_sequence and "string" in info.type:
    import numpy as np
    return _texts(np.asarray(x, dtype=object))
  if type(x).__module__ == "numpy" and hasattr(x, "dtype"):
    if x.dtype.kind in "OSU":
      return _texts(x)
    return Tensor(x)
  return Tensor(x, dtype=info.dtype) if info is not None and info.dtype is not None else Tensor(x)


def _from_library(x: Any) -> Any:
  if isinstance(x, tuple):
    import numpy as np
    return np.array(x[1], dtype=object).reshape(x[0])
  return [_from_library(item) for item in x] if isinstance(x, list) else x


class OnnxRunner:
  """A model of a file, of its bytes (as bytes or as a tensor of uint8), or of an `onnx.ModelProto`.

  Called with a dict of inputs, it gives the outputs by name as lazy tensors, which are differentiable and can be part of a function under
  `TinyJit`. Inputs are tensors, or what makes them; texts are arrays of NumPy with strings, sequences are lists. `run` realizes the outputs
  and captures the call when it sees inputs of the same sizes for the second time, or once for any size; with `each_size` it captures each
  size for itself, whose kernels may be faster.

  Raises UnsupportedError, which lists all operators that the library lacks, and FormatError for what is no model."""

  def __init__(self, model: str | os.PathLike[str] | bytes | Tensor | Any, follow_links: bool = False, each_size: bool = False):
    if hasattr(model, "SerializeToString"):
      model = model.SerializeToString()
    if isinstance(model, (bytes, bytearray)):
      model = Tensor(bytes(model), dtype="uint8")
    self.model = _core.onnx_load(model, follow_links, each_size)
    self.graph_inputs = _values(self.model.inputs)
    self.graph_outputs = _values(self.model.outputs)

  @property
  def metadata(self) -> dict[str, str]: return self.model.metadata

  @property
  def operators(self) -> dict[str, int]:
    """How many nodes of each operator there are."""
    return self.model.operators

  @property
  def parameters(self) -> dict[str, Tensor]:
    """The weights by name: tensors of the model, which may be assigned to and trained."""
    return self.model.parameters

  def _inputs(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _to_library(x, self.graph_inputs.get(name)) for name, x in inputs.items()}

  def __call__(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _from_library(x) for name, x in self.model(self._inputs(inputs)).items()}

  def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _from_library(x) for name, x in self.model.run(self._inputs(inputs)).items()}

  def get_empty_input_data(self, device: str | None = None) -> dict[str, Tensor]:
    """Tensors of the sizes that the model declares, 1 where it leaves them open; of no values in particular."""
    return {name: Tensor.empty(*(s if isinstance(s, int) else 1 for s in v.shape), dtype=v.dtype, device=device)
            for name, v in self.graph_inputs.items() if v.dtype is not None and not v.is_sequence}
