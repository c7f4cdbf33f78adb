"""The interface of the package onnx to what runs models: `onnx_backend.prepare(model).run([x])`. Importing it needs that package."""

from __future__ import annotations

from typing import Any, Sequence

import onnx
from onnx.backend.base import Backend, BackendRep, namedtupledict

from tinygrad_cpp import Device, Tensor
from tinygrad_cpp.nn.onnx import OnnxRunner

DEVICES = {"CPU": "CPU", "CUDA": "CUDA"}


def _to_numpy(x: Any) -> Any:
  if isinstance(x, list):
    return [_to_numpy(item) for item in x]
  return x.numpy() if isinstance(x, Tensor) else x


class TinygradBackendRep(BackendRep):  # type: ignore[misc]
  def __init__(self, model: onnx.ModelProto):
    self.runner = OnnxRunner(model)
    self.names = list(self.runner.graph_outputs)

  def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
    given = inputs if isinstance(inputs, dict) else dict(zip(self.runner.graph_inputs, inputs if isinstance(inputs, (list, tuple)) else [inputs]))
    outputs = self.runner(given)
    values: tuple[Any, ...] = namedtupledict("Outputs", self.names)(*(_to_numpy(outputs[name]) for name in self.names))
    return values


class TinygradBackend(Backend):  # type: ignore[misc]
  @classmethod
  def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> TinygradBackendRep:
    if not cls.supports_device(device):
      raise ValueError(f"there is no device {device}")
    return TinygradBackendRep(model)

  @classmethod
  def supports_device(cls, device: str) -> bool:
    return device.split(":")[0] == Device.DEFAULT.split(":")[0]


prepare = TinygradBackend.prepare
run_model = TinygradBackend.run_model
supports_device = TinygradBackend.supports_device
