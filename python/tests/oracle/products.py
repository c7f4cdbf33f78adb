"""Products, convolutions, pooling, normalizations, losses, attention, linear algebra and hashes.

A sum of n products has an error of about sqrt(n) epsilons of the largest partial sum; the bounds of this table are some epsilons of the
largest element, which holds for the few dozen terms of these shapes.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from oracle.core import FLOATS, LAYOUTS, Arg, B, F, I, V, case, tg

try:
  import torch
  import torch.nn.functional as tf
except ImportError:
  pass

WIDE = ("float32", "float64")
# Matrix products.
for _a, _b in (((3, 4), (4, 5)), ((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (3, 4, 2)), ((0, 4), (4, 3)), ((3, 0), (0, 2)), ((20, 30), (30, 10))):
  for _name in ("matmul", "dot"):
    case(_name, [Arg(_a), Arg(_b)], lambda a, b, n=_name: getattr(a, n)(b), torch=lambda a, b: a @ b, numpy=lambda a, b: a @ b, dtypes=FLOATS if _a == (3, 4) else WIDE[:1],
         layouts=LAYOUTS if _a == (3, 4) else ("plain",), norm=16, grad=True)
case("matmul", [F(3, 4), F(4, 5)], lambda a, b: b.matmul(a, reverse=True), "reverse", torch=lambda a, b: a @ b, numpy=lambda a, b: a @ b, norm=16, grad=True)
case("matmul", [F(3, 4), F(4, 5)], lambda a, b: a @ b, "operator", torch=lambda a, b: a @ b, numpy=lambda a, b: a @ b, norm=16, grad=True)
case("matmul", [F(3, 4), F(4, 5)], lambda a, b: a.matmul(b, dtype=tg.dtypes.float64), "dtype", torch=lambda a, b: a @ b, numpy=lambda a, b: a @ b, norm=1, dtypes=("float32", "float16"))
case("dot", [F(3, 4), F(4, 5)], lambda a, b: a.dot(b, dtype=tg.dtypes.float64), "dtype", torch=lambda a, b: a @ b, numpy=lambda a, b: a @ b, norm=1)
case("matmul", [I(3, 4, low=-9), I(4, 5, low=-9)], lambda a, b: a.matmul(b), "int", torch=lambda a, b: a @ b, numpy=lambda a, b: a @ b, dtypes=("int32",))
for _formula, _shapes in (("ij,jk->ik", ((3, 4), (4, 2))), ("bij,bjk->bik", ((2, 3, 4), (2, 4, 3))), ("ij->ji", ((3, 4),)), ("ii->i", ((3, 3),)), ("ij->", ((3, 4),)), ("i,j->ij", ((3,), (4,))),
                          ("ij,ij->i", ((3, 4), (3, 4))), ("...ij,...jk->...ik", ((2, 3, 4), (4, 3))), ("ij,jk,kl->il", ((2, 3), (3, 4), (4, 2))), ("ij,jk", ((2, 3), (3, 4))), ("ii", ((3, 3),))):
  case("einsum", [Arg(s) for s in _shapes], lambda *x, f=_formula: tg.Tensor.einsum(f, *x), _formula, torch=lambda *x, f=_formula: torch.einsum(f, *x), numpy=lambda *x, f=_formula: np.einsum(f, *x),
       dtypes=WIDE, norm=16, grad=True)
case("linear", [F(3, 4), F(4, 5), F(5)], lambda x, w, b: x.linear(w, b), torch=lambda x, w, b: x @ w + b, numpy=lambda x, w, b: x @ w + b, dtypes=FLOATS, norm=16, grad=True)
case("linear", [F(3, 4), F(4)], lambda x, w: x.linear(w), "vector", torch=lambda x, w: x * w, numpy=lambda x, w: x * w, norm=16, grad=True)
case("sequential", F(3, 4), lambda x: x.sequential([lambda y: y + 1, lambda y: y.sum(0)]), torch=lambda x: (x + 1).sum(0), numpy=lambda x: (x + 1).sum(0), norm=8, grad=True)

# Convolutions: input, weight, bias, options.
CONVS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
  ((1, 2, 5, 5), (3, 2, 3, 3), {}), ((2, 4, 6, 5), (4, 2, 3, 2), {"groups": 2, "stride": 2, "padding": 1}), ((1, 3, 7, 7), (3, 1, 3, 3), {"groups": 3, "padding": (1, 2)}),
  ((1, 2, 8, 7), (2, 2, 3, 3), {"dilation": 2, "padding": 2}), ((2, 2, 7), (3, 2, 3), {"stride": 2}), ((1, 2, 9), (2, 1, 3), {"groups": 2, "dilation": 2, "padding": 1}),
  ((1, 2, 3, 4, 5), (2, 2, 2, 3, 2), {"padding": 1}), ((1, 2, 4, 4), (2, 2, 1, 1), {"stride": (1, 2)}), ((1, 1, 4, 4, 4), (2, 1, 2, 2, 2), {"stride": (2, 1, 2)}),
]
for _x, _w, _o in CONVS:
  _text = " ".join(f"{k}={v}" for k, v in _o.items()) or "defaults"
  _n = len(_x) - 2
  case("conv2d", [Arg(_x), Arg(_w), Arg((_w[0],))], lambda x, w, b, o=_o: x.conv2d(w, b, **o), f"{_n}d {_text}",
       torch=lambda x, w, b, o=_o, n=_n: getattr(tf, f"conv{n}d")(x, w, b, **o), dtypes=FLOATS if not _o else ("float32",), norm=16, grad=True, layouts=LAYOUTS if not _o else ("plain",))
case("conv2d", [F(1, 2, 5, 5), F(3, 2, 3, 3)], lambda x, w: x.conv2d(w, padding=(1, 0, 2, 1)), "four paddings", torch=lambda x, w: tf.conv2d(tf.pad(x, (1, 0, 2, 1)), w), norm=16, grad=True)
case("conv2d", [F(1, 2, 5, 5), F(3, 2, 3, 3)], lambda x, w: x.conv2d(w, dtype=tg.dtypes.float64), "dtype", torch=lambda x, w: tf.conv2d(x, w), norm=16)
TRANSPOSED: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
  ((1, 2, 4, 4), (2, 3, 3, 3), {}), ((2, 4, 3, 4), (4, 2, 3, 2), {"groups": 2, "stride": 2, "padding": 1}), ((1, 2, 4, 4), (2, 2, 3, 3), {"stride": 2, "output_padding": 1}),
  ((1, 2, 4, 4), (2, 2, 3, 3), {"dilation": 2, "padding": (1, 2)}), ((2, 2, 5), (2, 3, 3), {"stride": 3, "output_padding": 2}), ((1, 2, 2, 3, 2), (2, 2, 2, 2, 3), {"stride": 2, "padding": 1}),
]
for _x, _w, _o in TRANSPOSED:
  _text = " ".join(f"{k}={v}" for k, v in _o.items()) or "defaults"
  _n = len(_x) - 2
  case("conv_transpose2d", [Arg(_x), Arg(_w), Arg((_w[1] * _o.get("groups", 1),))], lambda x, w, b, o=_o: x.conv_transpose2d(w, b, **o), f"{_n}d {_text}",
       torch=lambda x, w, b, o=_o, n=_n: getattr(tf, f"conv_transpose{n}d")(x, w, b, **o), dtypes=FLOATS if not _o else ("float32",), norm=16, grad=True)

# Pooling.
POOLS: list[dict[str, Any]] = [{}, {"kernel_size": 3}, {"kernel_size": (3, 2), "stride": 1}, {"kernel_size": 3, "stride": 2, "padding": 1}, {"kernel_size": 2, "stride": 2, "ceil_mode": True},
                               {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}]
for _o in POOLS:
  _text = " ".join(f"{k}={v}" for k, v in _o.items()) or "defaults"
  _t = {"kernel_size": 2, **_o}
  case("avg_pool2d", F(2, 2, 7, 5), lambda x, o=_o: x.avg_pool2d(**o), _text, torch=lambda x, o=_t: tf.avg_pool2d(x, **o), dtypes=FLOATS if not _o else ("float32",), norm=8, grad=True)
  case("avg_pool2d", F(1, 2, 7, 5), lambda x, o=_o: x.avg_pool2d(**o, count_include_pad=False), _text + " inside", torch=lambda x, o=_t: tf.avg_pool2d(x, **o, count_include_pad=False), norm=8, grad=True)
  case("max_pool2d", F(2, 2, 7, 5, distinct=True), lambda x, o=_o: x.max_pool2d(**o), _text, torch=lambda x, o=_t: tf.max_pool2d(x, **o), dtypes=FLOATS if not _o else ("float32",), grad=True)
  case("max_pool2d", F(2, 2, 7, 5, distinct=True), lambda x, o=_o: x.max_pool2d(**o, return_indices=True), _text + " indices", torch=lambda x, o=_t: tf.max_pool2d(x, **o, return_indices=True), grad=True)
case("max_pool2d", F(1, 2, 8, 7, distinct=True), lambda x: x.max_pool2d(kernel_size=3, stride=1, dilation=2), "dilation", torch=lambda x: tf.max_pool2d(x, 3, 1, 0, 2), grad=True)
case("max_pool2d", I(1, 1, 6, 6, low=-9), lambda x: x.max_pool2d(), "int", torch=lambda x: tf.max_pool2d(x, 2), dtypes=("int32",))
case("max_pool2d", F(1, 2, 4, 6, 4, distinct=True), lambda x: x.max_pool2d(kernel_size=(2, 2, 2)), "3d", torch=lambda x: tf.max_pool3d(x, 2), grad=True)
case("avg_pool2d", F(1, 2, 4, 6, 4), lambda x: x.avg_pool2d(kernel_size=(2, 2, 2)), "3d", torch=lambda x: tf.avg_pool3d(x, 2), norm=8, grad=True)
case("avg_pool2d", F(2, 2, 6), lambda x: x.avg_pool2d(kernel_size=(2,)), "1d", torch=lambda x: tf.avg_pool1d(x, 2), norm=8, grad=True)


def unpooled(o: dict[str, Any], size: Any = None) -> Any:
  def ours(x: Any) -> Any:
    y, i = x.max_pool2d(return_indices=True, **o)
    return y.max_unpool2d(i, **o, output_size=size)

  return ours


for _o, _size in (({"kernel_size": 2}, None), ({"kernel_size": 2, "stride": 2}, (1, 2, 7, 5)), ({"kernel_size": 3, "stride": 3}, None)):
  case("max_unpool2d", F(1, 2, 7 if _size else 6, 5 if _size else 6, distinct=True), unpooled(_o, _size), f"{_o} {_size}",
       torch=lambda x, o=_o, s=_size: tf.max_unpool2d(*tf.max_pool2d(x, **o, return_indices=True), **o, output_size=s), grad=True)

for _mode, _align, _theirs in (("linear", False, "bilinear"), ("linear", True, "bilinear"), ("nearest", False, "nearest"), ("nearest-exact", False, "nearest-exact")):
  for _size in ((4, 7), (2, 3), (5, 4)):
    case("interpolate", F(1, 2, 5, 4), lambda x, m=_mode, a=_align, s=_size: x.interpolate(s, mode=m, align_corners=a), f"{_mode} {_align} {_size}",
         torch=lambda x, m=_theirs, a=_align, s=_size: tf.interpolate(x, s, mode=m, **({"align_corners": a} if m == "bilinear" else {})), norm=16, grad=True)
case("interpolate", F(1, 2, 5), lambda x: x.interpolate((8,)), "1d", torch=lambda x: tf.interpolate(x, 8, mode="linear"), norm=16, grad=True)
case("interpolate", F(1, 1, 3, 4, 2), lambda x: x.interpolate((4, 3, 5)), "3d", torch=lambda x: tf.interpolate(x, (4, 3, 5), mode="trilinear"), norm=16, grad=True)

# Normalizations.
case("layernorm", F(3, 4), lambda x: x.layernorm(), torch=lambda x: tf.layer_norm(x, (4,)), numpy=lambda x: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5), dtypes=FLOATS, norm=32, grad=True,
     grad_norm=128, layouts=LAYOUTS)
case("layernorm", F(2, 3, 4), lambda x: x.layernorm(axis=(1, 2), eps=0.1), "axes eps", torch=lambda x: tf.layer_norm(x, (3, 4), eps=0.1), norm=32, grad=True, grad_norm=128)
case("batchnorm", [F(2, 3, 4), F(3), F(3), F(3), F(3, low=0.5)], lambda x, w, b, m, i: x.batchnorm(w, b, m, i), torch=lambda x, w, b, m, i: (x - m[:, None]) * i[:, None] * w[:, None] + b[:, None],
     numpy=lambda x, w, b, m, i: (x - m[:, None]) * i[:, None] * w[:, None] + b[:, None], dtypes=FLOATS, norm=16, grad=True)
case("batchnorm", [F(2, 3), F(2), F(2, low=0.5)], lambda x, m, i: x.batchnorm(None, None, m, i, axis=0), "axis", torch=lambda x, m, i: (x - m[:, None]) * i[:, None],
     numpy=lambda x, m, i: (x - m[:, None]) * i[:, None], norm=16, grad=True)
for _p, _dim in ((2.0, 1), (1.0, 0), (3.0, -1)):
  case("normalize", F(3, 4), lambda x, p=_p, d=_dim: x.normalize(p, d), f"{_p} {_dim}", torch=lambda x, p=_p, d=_dim: tf.normalize(x, p, d), dtypes=WIDE, norm=32, grad=True, grad_norm=128)
case("normalize", V(np.zeros((2, 3))), lambda x: x.normalize(eps=0.5), "zeros", torch=lambda x: tf.normalize(x, eps=0.5))

# Losses.
REDUCTIONS = ("mean", "sum", "none")
P = F(3, 4, low=0.05, high=0.95)
for _r in REDUCTIONS:
  case("binary_crossentropy", [P, P], lambda x, y, r=_r: x.binary_crossentropy(y, reduction=r), _r, torch=lambda x, y, r=_r: -(y * x.log() + (1 - y) * (1 - x).log()) if r == "none" else getattr(-(y * x.log() + (1 - y) * (1 - x).log()), r)(),
       dtypes=FLOATS if _r == "mean" else ("float32",), norm=32, grad=True)
  case("binary_crossentropy_logits", [F(3, 4), P], lambda x, y, r=_r: x.binary_crossentropy_logits(y, reduction=r), _r, torch=lambda x, y, r=_r: tf.binary_cross_entropy_with_logits(x, y, reduction=r),
       dtypes=FLOATS if _r == "mean" else ("float32",), norm=32, grad=True)
  case("binary_crossentropy_logits", [F(3, 4), P, F(4, low=0.5, grad=False)], lambda x, y, w, r=_r: x.binary_crossentropy_logits(y, reduction=r, pos_weight=w), _r + " pos_weight",
       torch=lambda x, y, w, r=_r: tf.binary_cross_entropy_with_logits(x, y, reduction=r, pos_weight=w), norm=32, grad=True)
  for _s in (0.0, 0.2):
    case("cross_entropy", [F(5, 4), I(5, high=3)], lambda x, y, r=_r, s=_s: x.cross_entropy(y, reduction=r, label_smoothing=s), f"{_r} {_s}",
         torch=lambda x, y, r=_r, s=_s: tf.cross_entropy(x, y.long(), reduction=r, label_smoothing=s), dtypes=FLOATS if _r == "mean" else ("float32",), norm=32, grad=True)
    case("sparse_categorical_crossentropy", [F(5, 4), I(5, high=3)], lambda x, y, r=_r, s=_s: x.sparse_categorical_crossentropy(y, reduction=r, label_smoothing=s), f"{_r} {_s}",
         torch=lambda x, y, r=_r, s=_s: tf.cross_entropy(x, y.long(), reduction=r, label_smoothing=s), norm=32, grad=True)
    case("sparse_categorical_crossentropy", [F(5, 4), V([0, 3, 2, 2, 1], "int32")], lambda x, y, r=_r, s=_s: x.sparse_categorical_crossentropy(y, ignore_index=2, reduction=r, label_smoothing=s), f"{_r} {_s} ignore",
         torch=lambda x, y, r=_r, s=_s: tf.cross_entropy(x, y.long(), reduction=r, label_smoothing=s, ignore_index=2), norm=32, grad=True)
  case("cross_entropy", [F(5, 4), F(5, 4, low=0, high=0.5)], lambda x, y, r=_r: x.cross_entropy(y, reduction=r), f"{_r} probabilities", torch=lambda x, y, r=_r: tf.cross_entropy(x, y, reduction=r), norm=32, grad=True)
  case("cross_entropy", [F(2, 4, 3), I(2, 3, high=3)], lambda x, y, r=_r: x.cross_entropy(y, reduction=r), f"{_r} more axes", torch=lambda x, y, r=_r: tf.cross_entropy(x, y.long(), reduction=r), norm=32, grad=True)
  case("nll_loss", [F(5, 4), I(5, high=3)], lambda x, y, r=_r: x.nll_loss(y, reduction=r), _r, torch=lambda x, y, r=_r: tf.nll_loss(x, y.long(), reduction=r), dtypes=FLOATS if _r == "mean" else ("float32",), norm=16, grad=True)
  case("nll_loss", [F(5, 4), I(5, high=3), F(4, low=0.5, grad=False)], lambda x, y, w, r=_r: x.nll_loss(y, weight=w, ignore_index=1, reduction=r), _r + " weight ignore",
       torch=lambda x, y, w, r=_r: tf.nll_loss(x, y.long(), weight=w, ignore_index=1, reduction=r), norm=16, grad=True)
  case("nll_loss", [F(2, 4, 3), I(2, 3, high=3)], lambda x, y, r=_r: x.nll_loss(y, reduction=r), _r + " more axes", torch=lambda x, y, r=_r: tf.nll_loss(x, y.long(), reduction=r), norm=16, grad=True)

# Attention.
Q = F(2, 2, 3, 4)
case("scaled_dot_product_attention", [Q, F(2, 2, 5, 4), F(2, 2, 5, 4)], lambda q, k, v: q.scaled_dot_product_attention(k, v), torch=lambda q, k, v: tf.scaled_dot_product_attention(q, k, v), dtypes=FLOATS, norm=32, grad=True,
     layouts=LAYOUTS)
case("scaled_dot_product_attention", [Q, Q, Q], lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True), "causal", torch=lambda q, k, v: tf.scaled_dot_product_attention(q, k, v, is_causal=True), norm=32, grad=True)
case("scaled_dot_product_attention", [Q, F(2, 2, 5, 4), F(2, 2, 5, 4), F(3, 5)], lambda q, k, v, m: q.scaled_dot_product_attention(k, v, attn_mask=m), "mask", torch=lambda q, k, v, m: tf.scaled_dot_product_attention(q, k, v, attn_mask=m), norm=32,
     grad=True)
case("scaled_dot_product_attention", [Q, F(2, 2, 3, 4), F(2, 2, 3, 4), V(np.tril(np.ones((3, 3))) > 0, "bool")], lambda q, k, v, m: q.scaled_dot_product_attention(k, v, attn_mask=m), "bool mask",
     torch=lambda q, k, v, m: tf.scaled_dot_product_attention(q, k, v, attn_mask=m), norm=32, grad=True)
case("scaled_dot_product_attention", [F(2, 4, 3, 4), Q, Q], lambda q, k, v: q.scaled_dot_product_attention(k, v, enable_gqa=True), "grouped", torch=lambda q, k, v: tf.scaled_dot_product_attention(q, k, v, enable_gqa=True), norm=32, grad=True)


# Linear algebra: the products of the factors, not the factors, whose signs are free.
def factors(x: Any) -> Any:
  q, r = x.qr()
  return q @ r, q.transpose(-1, -2) @ q, r.tril(-1)


def singular(x: Any, full: bool) -> Any:
  u, s, vt = x.svd(full_matrices=full)
  n = min(x.shape[-2:])
  return (u[..., :, :n] * s.unsqueeze(-2)) @ vt[..., :n, :], s, u.transpose(-1, -2) @ u, vt @ vt.transpose(-1, -2)


def eye_like(x: np.ndarray, n: int) -> np.ndarray:
  return np.broadcast_to(np.eye(n), (*x.shape[:-2], n, n))


for _shape in ((3, 3), (4, 3), (3, 4), (2, 3, 3)):
  _m, _n = _shape[-2:]
  case("qr", Arg(_shape), factors, numpy=lambda x, m=_m, n=_n: (x, eye_like(x, m), np.zeros((*x.shape[:-2], m, n))), dtypes=WIDE, norm=64, absolute=64, like_tinygrad=False)
  for _full in (True, False):
    _k, _l = (_m, _n) if _full else (min(_m, _n), min(_m, _n))
    case("svd", Arg(_shape), lambda x, f=_full: singular(x, f), f"{_shape} {_full}", numpy=lambda x, k=_k, n=_l: (x, np.linalg.svd(x)[1], eye_like(x, k), eye_like(x, n)), dtypes=WIDE, norm=256, absolute=256, interp=False,
         like_tinygrad=False)


def newton_schulz(x: np.ndarray, steps: int, params: tuple[float, ...], eps: float = 1e-7) -> np.ndarray:
  g = x / (np.sqrt((x * x).sum((-2, -1), keepdims=True)) + eps)
  t = x.shape[-2] > x.shape[-1]
  g = np.swapaxes(g, -1, -2) if t else g
  for _ in range(steps):
    a = g @ np.swapaxes(g, -1, -2)
    g = params[0] * g + (params[1] * a + params[2] * a @ a) @ g
  return np.swapaxes(g, -1, -2) if t else g


for _shape in ((3, 4), (4, 3)):
  case("newton_schulz", Arg(_shape), lambda x: x.newton_schulz(steps=3, params=(3.4445, -4.775, 2.0315)), numpy=lambda x: newton_schulz(x, 3, (3.4445, -4.775, 2.0315)), norm=256, dtypes=WIDE, like_tinygrad=False, grad=True)

# Hashes.
for _cfg in ("sha3_224", "sha3_256", "sha3_384", "sha3_512", "shake_128", "shake_256"):
  for _size in (0, 1, 135, 136, 137, 200):
    if _cfg == "sha3_256" or _size == 135:
      case("keccak", Arg((_size,), 0, 255, "uint8"), lambda x, c=_cfg: x.keccak(c), f"{_cfg} {_size}",
           numpy=lambda x, c=_cfg: np.frombuffer(hashlib.new(c, x.tobytes()).digest(*({"shake_128": (16,), "shake_256": (32,)}.get(c, ()))), np.uint8), dtypes=("uint8",), interp=_size == 135, like_tinygrad=False)
case("keccak", Arg((3, 50), 0, 255, "uint8"), lambda x: x.keccak(), "rows", numpy=lambda x: np.stack([np.frombuffer(hashlib.sha3_256(r.tobytes()).digest(), np.uint8) for r in x]), dtypes=("uint8",), like_tinygrad=False)
