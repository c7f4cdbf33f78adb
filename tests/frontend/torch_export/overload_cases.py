"""Calls of single overloads of ATen and prims, those of backward graphs above all, which functions of torch do not name."""
import itertools
import torch

aten, prims = torch.ops.aten, torch.ops.prims


def r(*shape, dtype=torch.float32): return torch.randn(*shape).to(dtype)


def cases():
  out = []
  def add(op, *args, tag="", **kwargs):
    name = f"{op.namespace}.{op._opname}.{op._overloadname}" if hasattr(op, "_opname") else str(op)
    out.append((f"{name}{'-' + tag if tag else ''}-{len(out)}", op, args, kwargs))

  floats = (torch.float32, torch.bfloat16)
  for d in floats:
    x, g = r(2, 4, 5, dtype=d), r(2, 4, 5, dtype=d)
    add(aten.gelu_backward.default, g, x); add(aten.gelu_backward.default, g, x, approximate="tanh")
    add(aten.threshold_backward.default, g, x, 0); add(aten.hardtanh_backward.default, g, x, -1, 1)
    add(aten.sigmoid_backward.default, g, x.sigmoid()); add(aten.tanh_backward.default, g, x.tanh()); add(aten.silu_backward.default, g, x)
    add(aten.leaky_relu_backward.default, g, x, 0.1, False); add(aten.hardswish_backward.default, g, x * 4); add(aten.hardsigmoid_backward.default, g, x * 4)
    add(aten.softplus_backward.default, g, x * 10, 2, 5); add(aten.mish_backward.default, g, x)
    add(aten.elu_backward.default, g, 1.5, 1.2, 0.7, False, x); add(aten.elu_backward.default, g, 1.5, 1.2, 0.7, True, aten.elu(x, 1.5, 1.2, 0.7))
    add(aten.log_sigmoid_backward.default, g, x, torch.exp(-x.abs())); add(aten.glu_backward.default, g[:, :2], x, 1)
    add(aten._softmax_backward_data.default, g, x.softmax(1), 1, d); add(aten._log_softmax_backward_data.default, g, x.log_softmax(-1), -1, d)
    add(aten._softmax.default, x, 1, False); add(aten._log_softmax.default, x, -1, False)
    add(aten.softshrink_backward.default, g, x, 0.5); add(aten.hardshrink_backward.default, g, x, 0.5)
    w, b = r(5, dtype=d), r(5, dtype=d)
    y, m, s = aten.native_layer_norm(x, [5], w, b, 1e-5)
    add(aten.native_layer_norm.default, x, [5], w, b, 1e-5); add(aten.native_layer_norm.default, x, [4, 5], None, None, 1e-5)
    add(aten.native_layer_norm_backward.default, g, x, [5], m, s, w, b, [True, True, True])
    add(aten.native_layer_norm_backward.default, g, x, [5], m, s, w, b, [True, False, True])
    w, b = r(4, dtype=d), r(4, dtype=d)
    y, m, s = aten.native_group_norm(x, w, b, 2, 4, 5, 2, 1e-5)
    add(aten.native_group_norm.default, x, w, b, 2, 4, 5, 2, 1e-5)
    add(aten.native_group_norm_backward.default, g, x, m, s, w, 2, 4, 5, 2, [True, True, True])
    rm, rv = r(4, dtype=d), r(4, dtype=d).abs() + 0.5
    y, m, s = aten._native_batch_norm_legit_functional(x, w, b, rm, rv, True, 0.1, 1e-5)[:3]
    for t in (True, False): add(aten._native_batch_norm_legit_functional.default, x, w, b, rm, rv, t, 0.1, 1e-5)
    add(aten._native_batch_norm_legit_no_training.default, x, w, b, rm, rv, 0.1, 1e-5)
    add(aten._native_batch_norm_legit.no_stats, x, w, b, True, 0.1, 1e-5)
    for t in (True, False): add(aten.native_batch_norm_backward.default, g, x, w, rm, rv, m, s, t, 1e-5, [True, True, True])
    image, kernel = r(2, 4, 9, 8, dtype=d), r(6, 2, 3, 3, dtype=d)
    for stride, pad, dil in (([1, 1], [1, 1], [1, 1]), ([2, 1], [0, 2], [1, 2])):
      o = aten.convolution(image, kernel, None, stride, pad, dil, False, [0, 0], 2)
      add(aten.convolution.default, image, kernel, r(6, dtype=d), stride, pad, dil, False, [0, 0], 2)
      add(aten.convolution_backward.default, torch.randn_like(o), image, kernel, [6], stride, pad, dil, False, [0, 0], 2, [True, True, True])
    o = aten.convolution(image, r(4, 3, 3, 3, dtype=d), None, [2, 2], [1, 1], [1, 1], True, [1, 0], 2)
    add(aten.convolution.default, image, r(4, 3, 3, 3, dtype=d), r(6, dtype=d), [2, 2], [1, 1], [1, 1], True, [1, 0], 2)
    add(aten.convolution_backward.default, torch.randn_like(o), image, r(4, 3, 3, 3, dtype=d), [6], [2, 2], [1, 1], [1, 1], True, [1, 0], 2, [True, True, True])
    for k, st, p, dl, ceil in (([2, 2], [], [0, 0], [1, 1], False), ([3, 3], [2, 2], [1, 1], [1, 1], True), ([3, 2], [1, 2], [1, 1], [2, 1], False)):
      v, i = aten.max_pool2d_with_indices(image, k, st, p, dl, ceil)
      add(aten.max_pool2d_with_indices.default, image, k, st, p, dl, ceil)
      add(aten.max_pool2d_with_indices_backward.default, torch.randn_like(v), image, k, st, p, dl, ceil, i)
    for ceil, include, divisor in itertools.product((False, True), (False, True), (None, 5)):
      o = aten.avg_pool2d(image, [3, 2], [2, 3], [1, 1], ceil, include, divisor)
      add(aten.avg_pool2d.default, image, [3, 2], [2, 3], [1, 1], ceil, include, divisor)
      add(aten.avg_pool2d_backward.default, torch.randn_like(o), image, [3, 2], [2, 3], [1, 1], ceil, include, divisor)
    for size in ([1, 1], [3, 4], [4, 5]):
      add(aten._adaptive_avg_pool2d.default, image, size); add(aten._adaptive_avg_pool2d_backward.default, r(2, 4, *size, dtype=d), image)
    add(aten.upsample_nearest2d_backward.default, r(2, 4, 18, 12, dtype=d), [18, 12], [2, 4, 9, 8])
    for corners in (False, True): add(aten.upsample_bilinear2d_backward.default, r(2, 4, 13, 12, dtype=d), [13, 12], [2, 4, 9, 8], corners)
    q, k, v = r(2, 3, 6, 4, dtype=d), r(2, 3, 7, 4, dtype=d), r(2, 3, 7, 4, dtype=d)
    for causal, mask in ((False, None), (True, None), (False, r(6, 7, dtype=d))):
      o, lse = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal, attn_mask=mask)
      add(aten._scaled_dot_product_flash_attention_for_cpu.default, q, k, v, 0.0, causal, attn_mask=mask)
      add(aten._scaled_dot_product_flash_attention_for_cpu_backward.default, torch.randn_like(o), q, k, v, o, lse, 0.0, causal, attn_mask=mask)
    add(aten.embedding_dense_backward.default, r(3, 4, 5, dtype=d), torch.randint(0, 7, (3, 4)), 7, -1, False)
    add(aten.embedding_dense_backward.default, r(3, 4, 5, dtype=d), torch.randint(0, 7, (3, 4)), 7, 2, True)
    add(aten.slice_backward.default, r(2, 3, dtype=d), [2, 9], 1, 1, 9, 3); add(aten.select_backward.default, r(2, 5, dtype=d), [2, 4, 5], 1, -1)
    add(aten.mse_loss_backward.default, torch.tensor(1.5, dtype=d), x, g, 1); add(aten.smooth_l1_loss_backward.default, torch.tensor(1.5, dtype=d), x, g, 1, 0.8)
    add(aten.native_dropout.default, x, 0.4, False)
    add(aten.native_dropout_backward.default, g, x > 0, 1.5)
    add(aten.constant_pad_nd.default, x, [1, -1, 0, 2], 1.5); add(aten.reflection_pad2d_backward.default, r(2, 8, 9, dtype=d), x, [2, 2, 1, 3])
    logs, target = r(6, 5, dtype=d).log_softmax(1), torch.tensor([0, 4, -100, 2, 1, 3])
    for reduction in (0, 1, 2):
      o, total = aten.nll_loss_forward(logs, target, None, reduction, -100)
      add(aten.nll_loss_forward.default, logs, target, None, reduction, -100)
      add(aten.nll_loss_backward.default, torch.ones_like(o), logs, target, None, reduction, -100, total)
    add(aten.masked_scatter.default, x, x > 0, r(40, dtype=d)); add(aten.scatter_reduce.two, r(5, dtype=d), 0, torch.tensor([0, 1, 1, 3]), r(4, dtype=d), "sum")
  # Numbers beside tensors of every dtype.
  for d in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64):
    x = (torch.randn(7) * 9).to(d); zero = torch.tensor(3).to(d)
    others = [torch.tensor([1, 2, 3, 4, 5, 6, 7]).to(e) for e in (torch.bool, torch.uint8, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64)]
    for y in others + [torch.tensor(2.5, dtype=torch.float64), torch.tensor(2), zero, 2, 2.5, True]:
      for op in (aten.add.Tensor, aten.mul.Tensor, aten.div.Tensor, aten.eq.Tensor, aten.lt.Tensor, aten.maximum.default, aten.where.self, aten.pow.Tensor_Tensor,
                 aten.remainder.Tensor, aten.sub.Tensor, aten.atan2.default):
        if not isinstance(y, torch.Tensor) and op in (aten.maximum.default, aten.pow.Tensor_Tensor, aten.atan2.default): continue
        args = (torch.tensor([True, False] * 3 + [True]), x, y) if op is aten.where.self else (x, y)
        if op is aten.where.self and not isinstance(y, torch.Tensor): op = aten.where.ScalarOther
        try: op(*args)
        except Exception: continue
        add(op, *args, tag=str(d)[6:])
  # Signs, zeros and infinities.
  a = torch.tensor([7., -7., 7., -7., 0., -0., float("inf"), 1., float("nan"), 1e6, -3.]); b = torch.tensor([2., 2., -2., -2., 3., 3., 2., float("inf"), 1., 1e-3, float("-inf")])
  i, j = torch.tensor([7, -7, 7, -7, 0, 5, -128]), torch.tensor([2, 2, -2, -2, 3, -3, 127])
  for mode in (None, "trunc", "floor"):
    add(aten.div.Tensor_mode, a, b, rounding_mode=mode); add(aten.div.Tensor_mode, i, j, rounding_mode=mode); add(aten.div.Scalar_mode, i, -3, rounding_mode=mode)
    add(aten.div.Tensor_mode, i.to(torch.int8), j.to(torch.int8), rounding_mode=mode)
  for op in (aten.remainder.Tensor, aten.fmod.Tensor): add(op, a, b); add(op, i, j); add(op, i.to(torch.int8), j.to(torch.int8))
  add(aten.pow.Scalar, 2, i.abs()); add(aten.pow.Tensor_Scalar, i, 3); add(aten.pow.Tensor_Scalar, a, 0.5); add(aten.pow.Scalar, 2.5, a)
  for alpha in (1, 3): add(aten.add.Tensor, i, j, alpha=alpha); add(aten.sub.Tensor, a, b, alpha=alpha); add(aten.rsub.Scalar, i, 5, alpha)
  add(aten.add.Tensor, r(5, dtype=torch.bfloat16), r(5, dtype=torch.bfloat16), alpha=0.3)
  add(aten.clamp.default, i.to(torch.int32), 0.5, 3); add(aten.clamp.default, a, None, 2); add(aten.clamp.Tensor, a, b, None)
  for d in (torch.int8, torch.int64, torch.uint8): add(aten._to_copy.default, a[:6] * 30 if d != torch.uint8 else a[:6].abs() * 30, dtype=d)
  x = r(3, 4, 5)
  add(prims.convert_element_type.default, x, torch.float16); add(prims.broadcast_in_dim.default, r(3, 5), [2, 3, 4, 5], [1, 3]); add(prims.sum.default, x, [0, 2])
  add(prims.iota.default, 5, start=2, step=3, dtype=torch.int32, device=torch.device("cpu"), requires_grad=False)
  add(prims.div.default, i, j); add(prims.var.default, x, [1], 1.0); add(prims.collapse.default, x, 0, 1); add(prims.transpose.default, x, [2, 0, 1])
  add(aten.index.Tensor, x, [None, torch.tensor([0, 3]), torch.tensor([1, -1])]); add(aten.index.Tensor, x, [torch.tensor([[0], [2]]), None, torch.tensor([1, 4])])
  for acc in (False, True):
    add(aten.index_put.default, x, [torch.tensor([0, 2, 0] if acc else [0, 2, 1])], r(3, 4, 5), acc); add(aten.index_put.default, x, [None, torch.tensor([1, 3])], r(1, 5), acc)
    add(aten.index_put.default, x, [torch.tensor([0, 2]), None, torch.tensor([1, 4])], r(2, 4), acc); add(aten.index_put.default, x, [x > 0], torch.tensor(2.), acc)
  add(aten.slice_scatter.default, x, r(3, 2, 5), 1, 1, 4, 2); add(aten.select_scatter.default, x, r(3, 5), 1, -2); add(aten.diagonal_scatter.default, x, r(5, 3), 0, 0, 1)
  add(aten.as_strided.default, x, [2, 3], [5, 2], 1)
  for mode in (1, 2): add(aten._embedding_bag.default, r(7, 3), torch.tensor([1, 2, 4, 5, 4]), torch.tensor([0, 2, 2]), False, mode)
  for p in (0., 1., 2., 3., float("inf")): add(aten._cdist_forward.default, r(4, 3), r(5, 3), p, None); add(aten._pdist_forward.default, r(4, 3), p)
  for mode, padding, corners in itertools.product((0, 1, 2), (0, 1, 2), (False, True)): add(aten.grid_sampler_2d.default, r(2, 3, 5, 6), r(2, 4, 3, 2), mode, padding, corners)
  add(aten.col2im.default, r(2, 12, 12), [5, 6], [2, 2], [1, 1], [0, 1], [1, 2]) ; add(aten.im2col.default, r(2, 3, 5, 6), [2, 2], [1, 1], [0, 1], [1, 2])
  for name in ("sum", "prod", "mean", "amax", "amin"):
    for own in (True, False): add(aten.scatter_reduce.two, r(4, 5), 1, torch.randint(0, 5, (3, 4)), r(3, 4), name, include_self=own)
  add(aten.randperm.default, 6); add(aten.rand.default, [3, 4]); add(aten.randn.default, [3, 4], dtype=torch.float64)
  add(aten.topk.default, r(4, 9), 3, -1, False); add(aten.sort.default, torch.tensor([[3., float("nan"), 1.], [2., 2., -1.]]), 1, True)
  return out
