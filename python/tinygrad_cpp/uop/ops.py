from tinygrad_cpp.uop import Ops, UOp, Variable

__all__ = ["Ops", "UOp", "Variable"]
