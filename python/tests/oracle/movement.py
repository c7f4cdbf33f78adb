"""Views, joins and indices: values move, none changes."""

from __future__ import annotations

from typing import Any

import numpy as np
from oracle.core import ALL, FLOATS, LAYOUTS, Arg, B, F, I, V, case, tg

try:
  import torch
  import torch.nn.functional as tf
except ImportError:
  pass

SOME = ("float32", "int64", "bool", "float16")


def move(name: str, shape: tuple[int, ...], ours: Any, torch_form: Any, numpy_form: Any = None, label: str = "", **more: Any) -> None:
  more = {"dtypes": SOME, "layouts": LAYOUTS, "grad": True, "signed_zeros": True, **more}
  case(name, Arg(shape, -9, 9), ours, label, torch=torch_form, numpy=numpy_form, **more)


for _shape, _to in (((3, 4), (4, 3)), ((2, 3, 4), (-1,)), ((), (1, 1)), ((0, 3), (3, 0)), ((6,), (2, -1))):
  for _name in ("reshape", "view"):
    move(_name, _shape, lambda x, n=_name, t=_to: getattr(x, n)(*t), lambda x, t=_to: x.reshape(t), lambda x, t=_to: x.reshape(t), f"{_shape} {_to}")
move("reshape", (2, 3, 4), lambda x: x.reshape(None, 12), lambda x: x.reshape(2, 12), lambda x: x.reshape(2, 12), "kept")
for _shape, _to in (((3, 1), (3, 4)), ((1, 3), (2, 3)), ((), (2, 2)), ((2, 1), (3, 2, 5)), ((1, 2), (-1, 2)), ((0, 1), (0, 4))):
  move("expand", _shape, lambda x, t=_to: x.expand(*t), lambda x, t=_to: x.expand(t), label=f"{_shape} {_to}")
for _order in ((1, 0, 2), (2, 1, 0), (-1, 0, 1)):
  move("permute", (2, 3, 4), lambda x, o=_order: x.permute(*o), lambda x, o=_order: x.permute(o), lambda x, o=_order: x.transpose(o), str(_order))
for _axes in ((0,), (1, -1), (0, 1, 2)):
  move("flip", (2, 3, 4), lambda x, a=_axes: x.flip(a), lambda x, a=_axes: x.flip(a), lambda x, a=_axes: np.flip(x, a), str(_axes))
move("shrink", (4, 5), lambda x: x.shrink(((1, 3), (0, 4))), lambda x: x[1:3, 0:4], lambda x: x[1:3, 0:4])
move("shrink", (4, 5), lambda x: x.shrink((None, (2, 2))), lambda x: x[:, 2:2], lambda x: x[:, 2:2], "none")
move("shrink_to", (4, 5), lambda x: x.shrink_to(2, 3), lambda x: x[:2, :3], lambda x: x[:2, :3])
move("pad_to", (2, 3), lambda x: x.pad_to(4, 5), lambda x: tf.pad(x, (0, 2, 0, 2)), lambda x: np.pad(x, ((0, 2), (0, 2))), dtypes=("float32", "int64"))
move("pad_to", (2, 3), lambda x: x.pad_to((3, 3), value=2), lambda x: tf.pad(x, (0, 0, 0, 1), value=2), lambda x: np.pad(x, ((0, 1), (0, 0)), constant_values=2), "value", dtypes=("float32", "int64"))
move("pad", (2, 3), lambda x: x.pad(((1, 2), (0, 1))), lambda x: tf.pad(x, (0, 1, 1, 2)), lambda x: np.pad(x, ((1, 2), (0, 1))), dtypes=("float32", "int64"))
move("pad", (2, 3), lambda x: x.pad((1, 2)), lambda x: tf.pad(x, (1, 2)), lambda x: np.pad(x, ((0, 0), (1, 2))), "flat", dtypes=("float32", "int64"))
move("pad", (2, 3), lambda x: x.pad((1, 1, 2, 0), value=-1.5), lambda x: tf.pad(x, (1, 1, 2, 0), value=-1.5), lambda x: np.pad(x, ((2, 0), (1, 1)), constant_values=-1.5), "value", dtypes=("float32",))
move("pad", (3, 4), lambda x: x.pad((-1, 2, 1, -1)), lambda x: tf.pad(x, (-1, 2, 1, -1)), label="negative", dtypes=("float32",))
for _mode, _np in (("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")):
  move("pad", (1, 3, 4), lambda x, m=_mode: x.pad((2, 1), mode=m), lambda x, m=_mode: tf.pad(x, (2, 1), mode=m), lambda x, m=_np: np.pad(x, ((0, 0), (0, 0), (2, 1)), mode=m), _mode, dtypes=("float32",))
  move("pad", (1, 2, 3, 4), lambda x, m=_mode: x.pad((2, 1, 1, 2), mode=m), lambda x, m=_mode: tf.pad(x, (2, 1, 1, 2), mode=m), lambda x, m=_np: np.pad(x, ((0, 0), (0, 0), (1, 2), (2, 1)), mode=m), _mode + " two axes", dtypes=("float32",))
for _dim in (None, 0, 1, -1):
  move("squeeze", (1, 2, 1), lambda x, d=_dim: x.squeeze(d), lambda x, d=_dim: x.squeeze() if d is None else x.squeeze(d), label=str(_dim))
for _dim in (0, 1, -1):
  move("unsqueeze", (2, 3), lambda x, d=_dim: x.unsqueeze(d), lambda x, d=_dim: x.unsqueeze(d), lambda x, d=_dim: np.expand_dims(x, d), str(_dim))
move("T", (2, 3), lambda x: x.T, lambda x: x.T, lambda x: x.T)
move("transpose", (2, 3, 4), lambda x: x.transpose(), lambda x: x.transpose(1, 0), label="defaults")
move("transpose", (2, 3, 4), lambda x: x.transpose(0, -1), lambda x: x.transpose(0, -1), lambda x: x.swapaxes(0, -1))
for _a, _b in ((0, -1), (1, 2), (0, 1)):
  move("flatten", (2, 3, 4), lambda x, a=_a, b=_b: x.flatten(a, b), lambda x, a=_a, b=_b: x.flatten(a, b), label=f"{_a} {_b}")
move("flatten", (), lambda x: x.flatten(), lambda x: x.flatten(), lambda x: x.reshape(1), "0d")
move("unflatten", (2, 6), lambda x: x.unflatten(1, (2, -1)), lambda x: x.unflatten(1, (2, -1)), lambda x: x.reshape(2, 2, 3))
move("rearrange", (2, 3, 4), lambda x: x.rearrange("a b c -> c (a b)"), lambda x: x.permute(2, 0, 1).reshape(4, 6), lambda x: x.transpose(2, 0, 1).reshape(4, 6))
move("rearrange", (2, 6), lambda x: x.rearrange("a (b c) -> a c b 1", b=2), lambda x: x.reshape(2, 2, 3).permute(0, 2, 1).unsqueeze(-1), lambda x: x.reshape(2, 2, 3).transpose(0, 2, 1)[..., None], "sizes")
move("rearrange", (2, 3, 4), lambda x: x.rearrange("a ... -> ... a"), lambda x: x.permute(1, 2, 0), lambda x: x.transpose(1, 2, 0), "ellipsis")
move("split", (7, 3), lambda x: x.split(3), lambda x: x.split(3), lambda x: np.split(x, [3, 6]))
move("split", (7, 3), lambda x: x.split((2, 4, 1)), lambda x: x.split((2, 4, 1)), lambda x: np.split(x, [2, 6]), "sizes")
move("split", (2, 5), lambda x: x.split(2, dim=1), lambda x: x.split(2, 1), lambda x: np.split(x, [2, 4], 1), "dim")
move("chunk", (7, 3), lambda x: x.chunk(3), lambda x: x.chunk(3))
move("chunk", (2, 6), lambda x: x.chunk(2, dim=-1), lambda x: x.chunk(2, -1), lambda x: np.split(x, 2, -1), "dim")
move("diag", (4,), lambda x: x.diag(), lambda x: torch.diag(x), np.diag, dtypes=("float32", "int64"))
for _o in (0, 1, -2):
  move("diagonal", (3, 4), lambda x, o=_o: x.diagonal(offset=o), lambda x, o=_o: x.diagonal(o), lambda x, o=_o: np.diagonal(x, o), str(_o))
move("diagonal", (2, 3, 4), lambda x: x.diagonal(dim1=-1, dim2=0), lambda x: x.diagonal(0, -1, 0), lambda x: np.diagonal(x, 0, -1, 0), "dims")
for _s, _d in ((1, None), (2, 0), (-1, 1), ((1, 2), (0, 1)), (7, 1)):
  move("roll", (3, 4), lambda x, s=_s, d=_d: x.roll(s, d), lambda x, s=_s, d=_d: torch.roll(x, s, d), lambda x, s=_s, d=_d: np.roll(x, s, d), f"{_s} {_d}")
for _d in (None, 0, -1):
  move("repeat_interleave", (2, 3), lambda x, d=_d: x.repeat_interleave(2, d), lambda x, d=_d: x.repeat_interleave(2, d), lambda x, d=_d: np.repeat(x, 2, d), str(_d))
for _r in ((2, 3), (2, 1, 2), (0, 1)):
  move("repeat", (2, 3), lambda x, r=_r: x.repeat(*r), lambda x, r=_r: x.repeat(r), lambda x, r=_r: np.tile(x, r), str(_r))
for _d, _size, _step in ((0, 3, 1), (-1, 2, 2), (1, 4, 3)):
  move("unfold", (5, 6), lambda x, a=(_d, _size, _step): x.unfold(*a), lambda x, a=(_d, _size, _step): x.unfold(*a), label=f"{_d} {_size} {_step}")
for _k in (0, 1, -2):
  for _name in ("triu", "tril"):
    move(_name, (3, 4), lambda x, n=_name, k=_k: getattr(x, n)(k), lambda x, n=_name, k=_k: getattr(torch, n)(x, k), lambda x, n=_name, k=_k: getattr(np, n)(x, k), str(_k), signed_zeros=False)
move("tril", (2, 3, 3), lambda x: x.tril(diagonal=1), lambda x: torch.tril(x, 1), lambda x: np.tril(x, 1), "batch", signed_zeros=False)
for _dim in (0, 1, -1):
  case("stack", [F(2, 3), F(2, 3), F(2, 3)], lambda *x, d=_dim: tg.Tensor.stack(*x, dim=d), str(_dim), torch=lambda *x, d=_dim: torch.stack(x, d), numpy=lambda *x, d=_dim: np.stack(x, d), dtypes=SOME, grad=True, layouts=LAYOUTS)
  case("cat", [F(2, 3), F(2, 3)], lambda *x, d=_dim: tg.Tensor.cat(*x, dim=d), str(_dim), torch=lambda *x, d=_dim: torch.cat(x, d), numpy=lambda *x, d=_dim: np.concatenate(x, d), dtypes=SOME, grad=True, layouts=LAYOUTS)
case("cat", [F(2, 3), F(0, 3), F(4, 3)], lambda a, b, c: a.cat(b, c), "sizes", torch=lambda *x: torch.cat(x), numpy=lambda *x: np.concatenate(x), grad=True)
case("stack", [F(), F()], lambda a, b: a.stack(b), "0d", torch=lambda *x: torch.stack(x), numpy=lambda *x: np.stack(x), grad=True)
for _indexing in ("ij", "xy"):
  case("meshgrid", [F(3), F(4)], lambda a, b, i=_indexing: a.meshgrid(b, indexing=i), _indexing, torch=lambda a, b, i=_indexing: torch.meshgrid(a, b, indexing=i), numpy=lambda a, b, i=_indexing: np.meshgrid(a, b, indexing=i), grad=True)
case("size", F(2, 3), lambda x: (tg.Tensor([*x.size(), x.size(1), x.ndim, x.numel(), x.nbytes(), x.element_size()]),), numpy=lambda x: np.array([2, 3, 3, 2, 6, 24, 4]), like_tinygrad=False)

# Indexing.
INDICES: list[tuple[str, Any]] = [
  ("int", 1), ("negative", -1), ("ints", (1, -2, 0)), ("slice", slice(1, 3)), ("step", (slice(None), slice(0, 4, 2))), ("reversed", (slice(None, None, -1), slice(3, 0, -2))), ("new axis", (None, 1, ..., None)),
  ("ellipsis", (..., 1)), ("empty", (slice(2, 1),)), ("everything", ...), ("mixed", (1, slice(1, None), None, -1)), ("out of range slice", (slice(-9, 9),)),
]
for _label, _index in INDICES:
  case("indexing", F(3, 4, 2), lambda x, i=_index: x[i], _label, numpy=lambda x, i=_index: x[i], torch=(lambda x, i=_index: x[i]) if "reversed" != _label else None, dtypes=SOME, grad=True, layouts=LAYOUTS)
J, K = V([2, 0, -1], "int32"), V([[1], [3]], "int64")
for _label, _f in (("one", lambda x, j, k: x[j]), ("two", lambda x, j, k: x[j, k]), ("after a slice", lambda x, j, k: x[:, k]), ("apart", lambda x, j, k: x[k % 3, :, 1]), ("with an int", lambda x, j, k: x[1, k]),
                   ("with None", lambda x, j, k: x[j, None]), ("with an ellipsis", lambda x, j, k: x[..., j % 2]), ("with a step", lambda x, j, k: x[::2, k, ...])):
  def _wide(f: Any) -> Any:
    return lambda x, j, k: f(x, j.long() if hasattr(j, "long") else j, k)

  case("indexing", [F(3, 4, 2), J, K], _f, "tensor " + _label, torch=_wide(_f), numpy=_f, dtypes=("float32", "int64"), grad=True, like_tinygrad=False)
case("indexing", [F(3, 4), B(3, 4)], lambda x, m: x[m], "mask", torch=lambda x, m: x[m], numpy=lambda x, m: x[m], grad=True, like_tinygrad=False)
case("indexing", [F(3, 4), V([True, False, True], "bool")], lambda x, m: x[m], "mask of rows", torch=lambda x, m: x[m], numpy=lambda x, m: x[m], grad=True, like_tinygrad=False)
case("indexing", F(3, 4), lambda x: x[[2, 0], [1, 3]], "lists", torch=lambda x: x[[2, 0], [1, 3]], numpy=lambda x: x[[2, 0], [1, 3]], grad=True)


# Assignment through an index, on a copy.
def assigned(index: Any, value: Any = None) -> Any:
  def change(x: Any, *rest: Any) -> Any:
    y = x.clone() if hasattr(x, "clone") else x.copy()
    i = index(*rest[1:]) if callable(index) else index
    y[i] = rest[0] if value is None else value
    return y

  return change


for _label, _index in INDICES:
  _shape = np.zeros((3, 4, 2))[_index].shape
  case("assignment", [F(3, 4, 2), Arg(_shape)], assigned(_index), _label, numpy=assigned(_index), torch=assigned(_index) if _label != "reversed" else None, dtypes=SOME, like_tinygrad=False)
  case("assignment", F(3, 4, 2), assigned(_index, 5), _label + " number", numpy=assigned(_index, 5), dtypes=("float32", "int64"), like_tinygrad=False)
case("assignment", [F(3, 4), F(4), V([2, 0], "int64")], assigned(lambda j: j), "tensor", numpy=assigned(lambda j: j), torch=assigned(lambda j: j), like_tinygrad=False)
case("assignment", [F(3, 4), F(2), V([2, 0], "int64"), V([1, 3], "int64")], assigned(lambda j, k: (j, k)), "two tensors", numpy=assigned(lambda j, k: (j, k)), torch=assigned(lambda j, k: (j, k)), like_tinygrad=False)
case("assignment", [F(3, 4), F(), B(3, 4)], assigned(lambda m: m), "mask", numpy=assigned(lambda m: m), torch=assigned(lambda m: m), like_tinygrad=False)
case("assignment", F(3, 4), assigned(([0, 2], [1, 1]), -1), "lists", numpy=assigned(([0, 2], [1, 1]), -1), like_tinygrad=False)
case("assignment", [F(3, 4), V([1, 2], "int64")], lambda x, j: assigned((slice(None), j), 7)(x), "slice and tensor", numpy=lambda x, j: assigned((slice(None), j), 7)(x), like_tinygrad=False)

# Gathering and scattering.
for _dim, _shape in ((0, (2, 4)), (1, (3, 5)), (-1, (2, 2))):
  _last = (3, 4)[_dim] - 1
  case("gather", [F(3, 4), I(*_shape, high=_last, dtype="int64")], lambda x, i, d=_dim: x.gather(d, i), f"{_dim} {_shape}", torch=lambda x, i, d=_dim: torch.gather(x, d, i), dtypes=SOME, grad=True)
UNIQUE = V([[2, 0, 1, 2], [0, 1, 2, 0]], "int64")
for _dim in (0, 1):
  _index = UNIQUE if _dim == 0 else V([[2, 0], [1, 3]], "int64")
  _src = (2, 4) if _dim == 0 else (2, 2)
  case("scatter", [F(3, 4), _index, Arg(_src)], lambda x, i, s, d=_dim: x.scatter(d, i, s), f"{_dim}", torch=lambda x, i, s, d=_dim: x.scatter(d, i, s), dtypes=("float32", "int64"), grad=True)
  case("scatter", [F(3, 4), _index], lambda x, i, d=_dim: x.scatter(d, i, 2.5), f"{_dim} number", torch=lambda x, i, d=_dim: x.scatter(d, i, 2.5), grad=True)
  for _reduce in ("add", "multiply"):
    case("scatter", [F(3, 4), _index, Arg(_src)], lambda x, i, s, d=_dim, r=_reduce: x.scatter(d, i, s, reduce=r), f"{_dim} {_reduce}", torch=lambda x, i, s, d=_dim, r=_reduce: x.scatter(d, i, s, reduce=r), norm=4)
MANY = V([[0, 0, 1, 2], [0, 1, 1, 0], [2, 0, 1, 0]], "int64")
for _reduce in ("sum", "prod", "mean", "amax", "amin"):
  for _self in (True, False):
    case("scatter_reduce", [F(3, 4, distinct=True), MANY, F(3, 4, distinct=True, low=-1.5, high=3)], lambda x, i, s, r=_reduce, b=_self: x.scatter_reduce(0, i, s, reduce=r, include_self=b), f"{_reduce} {_self}",
         torch=lambda x, i, s, r=_reduce, b=_self: x.scatter_reduce(0, i, s, reduce=r, include_self=b), norm=8, grad=True)
case("masked_select", [F(3, 4), B(3, 4)], lambda x, m: x.masked_select(m), torch=lambda x, m: x.masked_select(m), numpy=lambda x, m: x[m], dtypes=SOME, grad=True, like_tinygrad=False)
case("masked_select", [F(2, 2), V([[True, False], [False, True]], "bool")], lambda x, m: x.masked_select(m, size=3, fill_value=-1), "size", numpy=lambda x, m: np.append(x[m], -1))
case("nonzero", I(3, 4, low=-1, high=1), lambda x: x.nonzero(), torch=lambda x: x.nonzero(), numpy=lambda x: np.argwhere(x), dtypes=("int32",), like_tinygrad=False)
case("nonzero", V([0, 2, 0, 3], "int32"), lambda x: x.nonzero(size=3, fill_value=9), "size", numpy=lambda x: np.array([[1], [3], [9]]), dtypes=("int32",))
case("one_hot", I(3, 2, high=4), lambda x: x.one_hot(5), torch=lambda x: tf.one_hot(x.long(), 5), numpy=lambda x: np.eye(5)[x], dtypes=("int32", "int64"))

# Creation.
for _name, _value in (("zeros", 0), ("ones", 1)):
  for _shape in ((2, 3), (), (0, 2)):
    case(_name, [], lambda n=_name, s=_shape: getattr(tg.Tensor, n)(*s), str(_shape), numpy=lambda v=_value, s=_shape: np.full(s, v))
  case(_name, [], lambda n=_name: getattr(tg.Tensor, n)((2, 2), dtype=tg.dtypes.int8), "dtype", numpy=lambda v=_value: np.full((2, 2), v))
  case(_name + "_like", F(2, 3), lambda x, n=_name: getattr(x, n + "_like")(), numpy=lambda x, v=_value: np.full((2, 3), v), dtypes=ALL)
for _value in (2.5, 7, True, float("inf")):
  case("full", [], lambda v=_value: tg.Tensor.full((2, 3), v), str(_value), numpy=lambda v=_value: np.full((2, 3), v))
  case("full_like", F(2, 3), lambda x, v=_value: x.full_like(v), str(_value), numpy=lambda x, v=_value: np.full((2, 3), v))
  case("const_like", F(2, 3), lambda x, v=_value: x.const_like(v), str(_value), numpy=lambda x, v=_value: np.full((2, 3), v), like_tinygrad=False)
  case("const", [], lambda v=_value: tg.Tensor.const(v), str(_value), numpy=lambda v=_value: np.array(v), like_tinygrad=False)
case("full", [], lambda: tg.Tensor.full((2,), 3, dtype=tg.dtypes.float64), "dtype", numpy=lambda: np.full(2, 3.0))
for _name in ("empty", "invalids"):
  case(_name, [], lambda n=_name: getattr(tg.Tensor, n)(2, 3).shape, numpy=lambda: np.array([2, 3]) if False else (2, 3), like_tinygrad=False)
case("empty_like", F(2, 3), lambda x: x.empty_like().shape, numpy=lambda x: (2, 3), like_tinygrad=False)
for _args in ((5,), (2, 7), (7, 2, -2), (0,), (1.5, 4.0, 0.5), (3, 3), (-5, 5, 3)):
  case("arange", [], lambda a=_args: tg.Tensor.arange(*a), str(_args), numpy=lambda a=_args: np.arange(*a), ulps=2)
case("arange", [], lambda: tg.Tensor.arange(4, dtype=tg.dtypes.float64), "dtype", numpy=lambda: np.arange(4.0))
for _args in ((0, 1, 5), (-2, 3, 4), (1, 1, 3), (5, 0, 1), (0, 10, 11)):
  case("linspace", [], lambda a=_args: tg.Tensor.linspace(*a), str(_args), numpy=lambda a=_args: np.linspace(*a), norm=2)
for _args in ((3,), (2, 4), (0,)):
  case("eye", [], lambda a=_args: tg.Tensor.eye(*a), str(_args), numpy=lambda a=_args: np.eye(*a))
