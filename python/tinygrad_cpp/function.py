from __future__ import annotations

import functools
from typing import Any, Callable, TypeVar, overload

from tinygrad_cpp import _core

F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["function"]


@overload
def function(fxn: F, *, precompile: bool = False, precompile_backward: bool = False, allow_implicit: bool = False,
             grad_fxn: Callable[..., Any] | None = None, gradient: Callable[..., Any] | None = None) -> F: ...
@overload
def function(fxn: None = None, *, precompile: bool = False, precompile_backward: bool = False, allow_implicit: bool = False,
             grad_fxn: Callable[..., Any] | None = None, gradient: Callable[..., Any] | None = None) -> Callable[[F], F]: ...
def function(fxn: Any = None, *, precompile: bool = False, precompile_backward: bool = False, allow_implicit: bool = False,
             grad_fxn: Callable[..., Any] | None = None, gradient: Callable[..., Any] | None = None) -> Any:
  """Decorator: a function of tensors as one piece of the graph. `gradient(gradients, inputs, outputs)`, all tuples of tensors, gives those
  of the inputs, None where there is none. `grad_fxn(gradient, call)` is tinygrad's form of it: it gets a UOp for the gradient (several
  outputs: one each, and the call by its name), finds the inputs in `call.src[1:]`, and gives UOps or tensors. Without either the gradient is
  that of what the function computes. The other options are tinygrad's and change no value: the scheduler finds kernels by itself, and
  tensors that a function finds elsewhere are always inputs of it."""
  if fxn is None:
    return lambda f: function(f, grad_fxn=grad_fxn, gradient=gradient)
  for f in (fxn, grad_fxn, gradient):
    if f is not None and not callable(f):
      raise TypeError(f"function: expects a function, got {f!r}")
  if grad_fxn is not None and gradient is not None:
    raise TypeError("function: got gradient and grad_fxn, expects one of them")
  if gradient is None and grad_fxn is None:
    return fxn  # its graph in place means the same
  node = _core.OneNode(getattr(fxn, "__name__", "function"), gradient, grad_fxn)

  @functools.wraps(fxn)
  def call(*args: Any, **kwargs: Any) -> Any:
    return node.call(fxn, args, kwargs)

  return call
