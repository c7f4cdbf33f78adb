from tinygrad_cpp._core import Tensor

__all__ = ["Tensor"]
