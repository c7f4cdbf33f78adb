from __future__ import annotations

from typing import Any, Callable, TypeVar, overload

F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["function"]


@overload
def function(fxn: F) -> F: ...
@overload
def function(fxn: None = None, **options: Any) -> Callable[[F], F]: ...
def function(fxn: Any = None, **options: Any) -> Any:
  """tinygrad's decorator for a function of tensors that is to be one node of the graph. The graph that it builds means the same, and the
  scheduler finds its kernels by itself: it stays as it is."""
  return fxn if fxn is not None else lambda f: f
