"""What is done to gradients between backward() and step(), under PyTorch's names."""

from tinygrad_cpp._core import clip_grad_norm as clip_grad_norm_
from tinygrad_cpp._core import clip_grad_value as clip_grad_value_

__all__ = ["clip_grad_norm_", "clip_grad_value_"]
