"""PyTorch beside this library: `torch.compile(model, backend="tinygrad_cpp")`, and tensors of one as those of the other."""

try:
  import torch
except ImportError as e:
  raise ImportError("tinygrad_cpp.frontend.torch needs PyTorch: pip install torch") from e
if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
  raise ImportError(f"tinygrad_cpp.frontend.torch needs PyTorch 2.10 or newer, this is {torch.__version__}")

from torch._dynamo import register_backend

from tinygrad_cpp.frontend.torch.arrays import from_torch, to_torch
from tinygrad_cpp.frontend.torch.backend import backend
from tinygrad_cpp.frontend.torch.fallback import FallbackWarning, fallback_counts, reset_fallback_counts
from tinygrad_cpp.frontend.torch.program import Refused

register_backend(backend, "tinygrad_cpp")

__all__ = ["FallbackWarning", "Refused", "backend", "fallback_counts", "from_torch", "reset_fallback_counts", "to_torch"]
