"""What is known to be wrong, by pattern of a check's name: it must fail, so that a repair shows; and what differs from tinygrad on purpose."""

from fnmatch import fnmatchcase

FAILING: list[tuple[str, str]] = []


def reason(check: str) -> str | None:
  return next((text for pattern, text in FAILING if fnmatchcase(check, pattern)), None)


# Shapes and dtypes of results that must differ from tinygrad's, so that it shows when they do not.
DIFFERENT: dict[str, str] = {
  "round": "a whole number rounds to itself and keeps its dtype, as PyTorch has it",
  "argmax": "keepdim without an axis keeps all, as PyTorch has it",
  "argmin": "keepdim without an axis keeps all, as PyTorch has it",
  **dict.fromkeys(("sum", "prod", "cumsum", "cumprod"), "of integers and bools they are int64, as PyTorch has it: they do not wrap"),
}
# Forms of calls that differ.
FORMS: dict[str, str] = {
  "UOp.placeholder(addrspace=LOCAL)": "an error: the library itself shares a kernel among the items of work-groups, and chooses which",
  "KernelInfo(opts_to_apply=...)": "an error unless it is None or (): the library chooses opts",
  "custom_kernel of UOp.sink()": "an error: a kernel that stores nothing; UOp.sink() itself can be made",
  "UOp's movement, reductions and functions beyond those of kernels": "are Tensor's: a UOp is a node to look at, or part of a kernel that is written by hand",
  "TinyJit.cnt, captured.linear": "not there: captured is None or what frees the memory between kernels",
  "torch_load": "one dict, whatever was saved: tensors of what it holds are named by their paths, \"model.layer.weight\"",
  "Tensor.decode_hevc_frame": "not there: it is of one vendor's decoder",
  "image_dot, image_conv2d": "the same as dot and conv2d: whether kernels read images is the option IMAGE's to say",
}
