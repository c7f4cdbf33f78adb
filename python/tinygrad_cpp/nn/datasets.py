from tinygrad_cpp._core import cifar, mnist

__all__ = ["cifar", "mnist"]
