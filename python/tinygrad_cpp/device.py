from __future__ import annotations

from collections.abc import Iterator

from tinygrad_cpp import _core

__all__ = ["Device", "canonicalize_device"]


class OpenDevice:
  """A device by its name."""

  def __init__(self, device: str):
    self.device = device

  def synchronize(self) -> None:
    """Waits for everything launched on it."""
    _core.synchronize(self.device)

  def __repr__(self) -> str:
    return f"<Device {self.device}>"


class Devices:
  @property
  def DEFAULT(self) -> str:
    """Where tensors are made: that of the option DEV, else the first that works."""
    return _core.default_device()

  def canonicalize(self, device: str | None) -> str:
    return self.DEFAULT if device is None else _core.canonical_device(device)

  def __getitem__(self, device: str) -> OpenDevice:
    out = OpenDevice(self.canonicalize(device))
    out.synchronize()  # opens it
    return out

  @property
  def default(self) -> OpenDevice:
    return self[self.DEFAULT]

  def get_available_devices(self) -> Iterator[str]:
    return (name for name, works, _ in _core.available_devices() if works and ":" not in name)


Device = Devices()
canonicalize_device = Device.canonicalize
