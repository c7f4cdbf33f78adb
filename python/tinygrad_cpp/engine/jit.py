from __future__ import annotations

import functools
import types
import weakref
from typing import Any, Callable, Generic, ParamSpec, TypeVar, overload

from tinygrad_cpp import _core
from tinygrad_cpp._core import JitError, LoadedJit

__all__ = ["JitError", "LoadedJit", "TinyJit"]

P = ParamSpec("P")
R = TypeVar("R")


class JittedFunction(Generic[P, R]):
  """A function of tensors whose kernels are captured in an early call and replayed in later ones.

  Arguments are tensors in tuples, lists, dicts and dataclasses, and numbers, strings and objects, which are part of what is captured. A
  method has a capture for each object that it belongs to."""

  def __init__(self, fxn: Callable[P, R], prune: bool = False, check: bool = False, jit: _core.Jit | None = None):
    if not callable(fxn):
      raise TypeError(f"TinyJit: expects a function, got {fxn!r}")
    self.fxn = fxn
    self._options = {"prune": prune, "check": check}
    self._jit = jit or _core.Jit(**self._options)
    self._of_objects: dict[int, _core.Jit] = {}  # by the object's address, while it lives
    functools.update_wrapper(self, fxn)

  def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
    result: R = self._jit.call(self.fxn, args, kwargs)
    return result

  def __get__(self, obj: Any, owner: Any = None) -> Any:
    if obj is None:
      return self
    jit = self._of_objects.get(id(obj))
    if jit is None:
      jit = self._of_objects[id(obj)] = _core.Jit(**self._options)
      weakref.finalize(obj, self._of_objects.pop, id(obj), None)
    return JittedFunction(types.MethodType(self.fxn, obj), **self._options, jit=jit)

  def reset(self) -> None:
    """Forgets what was captured."""
    for jit in (self._jit, *self._of_objects.values()):
      jit.reset()

  def free_intermediates(self) -> None:
    """Gives back the memory between the kernels; the next replay takes some anew."""
    self._jit.free_intermediates()

  def save(self, path: str) -> None:
    """Writes what was captured last, with the tensors it reads, to a file for LoadedJit."""
    self._jit.save(path)

  @property
  def captured(self) -> bool:
    """Whether the next call replays."""
    return self._jit.captured


@overload
def TinyJit(fxn: Callable[P, R], *, prune: bool = False, check: bool = False) -> JittedFunction[P, R]: ...
@overload
def TinyJit(fxn: None = None, *, prune: bool = False, check: bool = False) -> Callable[[Callable[P, R]], JittedFunction[P, R]]: ...
def TinyJit(fxn: Any = None, *, prune: bool = False, check: bool = False) -> Any:
  """Decorator. With `prune`, kernels that do not depend on the arguments run once. With `check` every call runs the function, and one that
  does not do what was captured throws JitError."""
  return JittedFunction(fxn, prune, check) if fxn is not None else lambda f: JittedFunction(f, prune, check)
