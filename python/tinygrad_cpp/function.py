from __future__ import annotations

import functools
from typing import Any, Callable, TypeVar, overload

from tinygrad_cpp import _core

F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["function"]


@overload
def function(fxn: F, *, gradient: Callable[..., Any] | None = None) -> F: ...
@overload
def function(fxn: None = None, *, gradient: Callable[..., Any] | None = None, **options: Any) -> Callable[[F], F]: ...
def function(fxn: Any = None, *, gradient: Callable[..., Any] | None = None, **options: Any) -> Any:
  """Decorator: a function of tensors as one piece of the graph. `gradient(gradients, inputs, outputs)`, all tuples of tensors, gives those
  of the inputs, None where there is none; without it the gradient is that of what the function computes. Other options are tinygrad's
  and have no effect: the scheduler finds kernels by itself."""
  if fxn is None:
    return lambda f: function(f, gradient=gradient)
  for f in (fxn, gradient):
    if f is not None and not callable(f):
      raise TypeError(f"function: expects a function, got {f!r}")
  if gradient is None:
    return fxn  # its graph in place means the same
  node = _core.OneNode(getattr(fxn, "__name__", "function"), gradient)

  @functools.wraps(fxn)
  def call(*args: Any, **kwargs: Any) -> Any:
    return node.call(fxn, args, kwargs)

  return call
