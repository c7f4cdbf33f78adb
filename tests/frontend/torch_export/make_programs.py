"""Writes programs of torch.export with inputs and expected results, for tests/frontend/oracle/torch_export_test.cpp.

usage: make_programs.py FOLDER [operators|overloads|models] [PATTERN]

Each NAME.pt2 stands beside NAME.pt: {"in": [tensors], "out": [tensors], "loose": 1 where only shapes and dtypes are the
same, "refused": 1 where an error may come, "after": inputs that the program changes, "again": results of three further calls}.
"""
import fnmatch, pathlib, sys, warnings, zlib
import torch
from torch.utils import _pytree as pytree

sys.path.insert(0, str(pathlib.Path(__file__).parent))
warnings.filterwarnings("ignore")
torch.manual_seed(0)


class Call(torch.nn.Module):
  """A function of the tensors among its arguments."""
  def __init__(self, function, args, kwargs):
    super().__init__()
    self.function = function
    leaves, self.spec = pytree.tree_flatten((args, kwargs))
    self.leaves = [None if isinstance(x, torch.Tensor) else x for x in leaves]
    self.tensors = [x for x in leaves if isinstance(x, torch.Tensor)]
    self.is_tensor = [isinstance(x, torch.Tensor) for x in leaves]

  def forward(self, *tensors):
    left = list(tensors)
    leaves = [left.pop(0) if t else x for x, t in zip(self.leaves, self.is_tensor)]
    args, kwargs = pytree.tree_unflatten(leaves, self.spec)
    out = [x for x in pytree.tree_leaves(self.function(*args, **kwargs)) if x is not None]
    return tuple(out)


def plain(x): return x.detach().clone() if isinstance(x, torch.Tensor) else torch.tensor(x)


# What PyTorch computes and we refuse by an error that says so.
REFUSED = ["addmv-int64-*", "baddbmm-int64-*", "nn.functional.avg_pool?d-int64-*", "nn.functional.local_response_norm-int64-*", "nn.functional.batch_norm-float32-1",
           "nn.functional.instance_norm-*", "linalg.*-core", "model-tied", "nn.functional.grid_sample-float32-3", "tensor_split-float32-0-core",
           "nn.functional.interpolate.*-uint8-*", "nn.functional.upsample_bilinear-uint8-*", "nn.functional.pad.reflect-float32-1"]
# Of which only shapes and dtypes are compared: PyTorch rounds places in pictures to 16 bits, and draws what is dropped from other numbers.
LOOSE = ["grid_sampler_2d-*float16-*", "nn.functional.grid_sample-*float16-*", "nn.functional.dropout-float32-*"]


def write(folder, name, module, inputs, *, decompose=False, dynamic=None, loose=False, seeds=True):
  """The program and what the module gives; None, or why there is none."""
  inputs = [plain(x) for x in inputs]
  try:
    program = torch.export.export(module, tuple(x.clone() for x in inputs), dynamic_shapes=dynamic, strict=False)
    if decompose: program = program.run_decompositions()
    targets = {n.target for n in program.graph.nodes if n.op == "call_function"}
    loose = loose or any(torch.Tag.nondeterministic_seeded in getattr(t, "tags", ()) and "dropout" not in str(t) for t in targets)
    loose = loose or any("empty" in str(t) for t in targets) or any(fnmatch.fnmatch(name, pattern) for pattern in LOOSE)
    torch.export.save(program, folder / f"{name}.pt2")  # before it runs, which may change its buffers
    given = [x.clone() for x in inputs]
    runs = program.module()
    expected = [plain(x) for x in pytree.tree_leaves(runs(*given)) if x is not None]
    if any(x.is_complex() or x.layout != torch.strided for x in expected): raise ValueError("a result of complex or sparse numbers")
    after = [x.detach() for x in given]
    # Networks remember: their later calls are compared, too.
    again = [[plain(x) for x in pytree.tree_leaves(runs(*(x.clone() for x in inputs))) if x is not None] for _ in range(3)] if name.startswith("model-") else []
  except Exception as error:  # not every sample can be exported
    (folder / f"{name}.pt2").unlink(missing_ok=True)
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
  changed = {str(i): a for i, (a, b) in enumerate(zip(after, inputs)) if not torch.equal(a.nan_to_num() if a.is_floating_point() else a, b.nan_to_num() if b.is_floating_point() else b)}
  refused = any(fnmatch.fnmatch(name, pattern) for pattern in REFUSED)
  torch.save({"in": inputs, "refused": torch.tensor(int(refused)), "out": expected, "after": changed, "again": again, "loose": torch.tensor(int(loose))}, folder / f"{name}.pt")
  return None


DTYPES = {torch.float32: 4, torch.int64: 2, torch.bool: 1, torch.bfloat16: 1, torch.uint8: 1, torch.float16: 1, torch.float64: 1, torch.int32: 1}


def operators(folder, pattern):
  """The samples that PyTorch tests its own functions with."""
  from torch.testing._internal.common_methods_invocations import op_db
  skipped = {}
  for op in op_db:
    title = f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name
    if not fnmatch.fnmatch(title, pattern): continue
    for dtype, most in DTYPES.items():
      if not op.supports_dtype(dtype, "cpu"): continue
      if title in ("topk", "kthvalue", "sort", "argsort") and dtype not in (torch.float32, torch.float64): continue  # which of equal elements is taken is not defined
      torch.manual_seed(zlib.crc32(title.encode()))
      try: samples = list(op.sample_inputs("cpu", dtype, requires_grad=False))
      except Exception: continue
      step = max(1, len(samples) // most)
      for i, sample in enumerate(samples[::step][:most]):
        call = Call(op.op, (sample.input, *sample.args), sample.kwargs)
        if any(x.is_complex() or x.layout != torch.strided for x in call.tensors): continue
        for decompose in ((False, True) if dtype == torch.float32 and i == 0 else (False,)):
          name = f"{title}-{str(dtype)[6:]}-{i}{'-core' if decompose else ''}"
          if why := write(folder, name, call, call.tensors, decompose=decompose): skipped[name] = why
  for name, why in skipped.items(): print(f"not exported: {name}: {why}", file=sys.stderr)


def overloads(folder, pattern):
  import overload_cases
  for name, op, args, kwargs in overload_cases.cases():
    if not fnmatch.fnmatch(name, pattern): continue
    call = Call(op, args, kwargs)
    if why := write(folder, "overload-" + name, call, call.tensors): print(f"not exported: {name}: {why}", file=sys.stderr)


def models(folder, pattern):
  import model_cases
  for name, module, inputs, options in model_cases.cases():
    if not fnmatch.fnmatch(name, pattern): continue
    for decompose in (False, True):
      torch.manual_seed(0)
      title = f"model-{name}{'-core' if decompose else ''}"
      if why := write(folder, title, module, inputs, decompose=decompose, **options): print(f"not exported: {title}: {why}", file=sys.stderr)


if __name__ == "__main__":
  folder = pathlib.Path(sys.argv[1])
  folder.mkdir(parents=True, exist_ok=True)
  kinds = {"operators": operators, "overloads": overloads, "models": models}
  for kind in [sys.argv[2]] if len(sys.argv) > 2 else kinds: kinds[kind](folder, sys.argv[3] if len(sys.argv) > 3 else "*")
