"""What PyTorch computes itself, counted by operator."""

from __future__ import annotations

import collections
import threading
import warnings

_lock = threading.Lock()
_counts: collections.Counter[str] = collections.Counter()
_warned: set[str] = set()


class FallbackWarning(UserWarning):
  """An operator runs in eager PyTorch."""


def fallback_counts() -> dict[str, int]:
  """How often each operator ran in eager PyTorch instead of here, since the start or reset_fallback_counts()."""
  with _lock:
    return dict(_counts)


def reset_fallback_counts() -> None:
  with _lock:
    _counts.clear()
    _warned.clear()


def count(name: str, reason: str) -> None:
  with _lock:
    _counts[name] += 1
    is_new = name not in _warned
    _warned.add(name)
  if is_new:
    warnings.warn(f"tinygrad_cpp: {name} runs in eager PyTorch: {reason}", FallbackWarning, stacklevel=3)
