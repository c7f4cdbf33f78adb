from __future__ import annotations

import functools
import pathlib
import tempfile
import types
import weakref
from typing import Any, Callable, Generic, ParamSpec, TypeVar, overload

from tinygrad_cpp import _core
from tinygrad_cpp._core import JitError, LoadedJit

__all__ = ["JitError", "LoadedJit", "TinyJit"]

P = ParamSpec("P")
R = TypeVar("R")


class Capture:
  """What was captured of a function, without the function: the bytes of its file, what must be equal in arguments, and the containers of
  the result."""

  def __init__(self, data: bytes, layout: str, skeleton: Any):
    self.state = (data, layout, skeleton)
    with tempfile.TemporaryDirectory() as folder:
      path = pathlib.Path(folder) / "capture"
      path.write_bytes(data)
      self._jit = LoadedJit(str(path))

  @staticmethod
  def of(jit: _core.Jit) -> tuple[bytes, str, Any]:
    with tempfile.TemporaryDirectory() as folder:
      path = pathlib.Path(folder) / "capture"
      jit.save(str(path))
      return (path.read_bytes(), *jit.saved_form())

  def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return self._jit.call_as(*self.state[1:], args, kwargs)


class Captured:
  """What a function was captured as."""

  def __init__(self, function: JittedFunction[..., Any]):
    self._function = function

  def free_intermediates(self) -> None:
    self._function.free_intermediates()


def unpickled(*state: Any) -> JittedFunction[..., Any]:
  return JittedFunction(None, capture=Capture(*state))


class JittedFunction(Generic[P, R]):
  """A function of tensors whose kernels are captured in an early call and replayed in later ones.

  Arguments are tensors in tuples, lists, dicts and dataclasses, and numbers, strings and objects, which are part of what is captured. A
  method has a capture for each object that it belongs to.

  It is pickled as what was captured last, with the tensors that the function found elsewhere; what is unpickled replays that for arguments
  of the same form, with any objects where there were objects."""

  def __init__(self, fxn: Callable[P, R] | None, prune: bool = False, check: bool = False, jit: _core.Jit | None = None,
               capture: Capture | None = None):
    self._capture = capture
    if capture is not None:
      return
    if not callable(fxn):
      raise TypeError(f"TinyJit: expects a function, got {fxn!r}")
    self.fxn = fxn
    self._options: dict[str, Any] = {"prune": prune, "check": check}
    self._jit = jit or _core.Jit(**self._options)
    self._of_objects: dict[int, _core.Jit] = {}  # by the object's address, while it lives
    functools.update_wrapper(self, fxn)

  def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
    result: R = self._capture.call(args, kwargs) if self._capture is not None else self._jit.call(self.fxn, args, kwargs)
    return result

  def __reduce__(self) -> Any:
    return unpickled, self._capture.state if self._capture is not None else Capture.of(self._jit)

  def _needs_function(self, what: str) -> None:
    if self._capture is not None:
      raise JitError(f"jit: {what} of a function that was unpickled: it has only what was captured")

  def __get__(self, obj: Any, owner: Any = None) -> Any:
    if obj is None:
      return self
    self._needs_function("a method")
    jit = self._of_objects.get(id(obj))
    if jit is None:
      jit = self._of_objects[id(obj)] = _core.Jit(**self._options)
      weakref.finalize(obj, self._of_objects.pop, id(obj), None)
    return JittedFunction(types.MethodType(self.fxn, obj), jit=jit, **self._options)

  def reset(self) -> None:
    """Forgets what was captured."""
    self._needs_function("reset()")
    for jit in (self._jit, *self._of_objects.values()):
      jit.reset()

  def free_intermediates(self) -> None:
    """Gives back the memory between the kernels; the next replay takes some anew."""
    self._needs_function("free_intermediates()")
    self._jit.free_intermediates()

  def save(self, path: str) -> None:
    """Writes what was captured last, with the tensors it reads, to a file for LoadedJit."""
    if self._capture is not None:
      pathlib.Path(path).write_bytes(self._capture.state[0])
    else:
      self._jit.save(path)

  @property
  def captured(self) -> Captured | None:
    """What the next call replays; None if it captures."""
    return Captured(self) if self._capture is not None or self._jit.captured else None


@overload
def TinyJit(fxn: Callable[P, R], *, prune: bool = False, check: bool = False) -> JittedFunction[P, R]: ...
@overload
def TinyJit(fxn: None = None, *, prune: bool = False, check: bool = False) -> Callable[[Callable[P, R]], JittedFunction[P, R]]: ...
def TinyJit(fxn: Any = None, *, prune: bool = False, check: bool = False) -> Any:
  """Decorator. With `prune`, kernels that do not depend on the arguments run once. With `check` every call runs the function, and one that
  does not do what was captured throws JitError."""
  return JittedFunction(fxn, prune, check) if fxn is not None else lambda f: JittedFunction(f, prune, check)
