"""What programs for several devices do with tinygrad's names: each beside the same one on one device."""
import itertools

import numpy as np
import pytest

from tinygrad_cpp import Context, Tensor, TinyJit, Variable, dtypes, nn

D = [f"CPU:{i}" for i in range(1, 5)]
TWO, THREE, FOUR = tuple(D[:2]), tuple(D[:3]), tuple(D)
AXES = (None, 0, 1)


def numbers(*shape: int, modulus: int = 11) -> np.ndarray:
  return ((np.arange(int(np.prod(shape))) * 7 + 3) % modulus - modulus // 2).reshape(shape).astype(np.float32)


def axis_of(t: Tensor) -> str:
  line = t.placement().split("\n")[0]
  return line.split("shards, ")[1] if "shards, " in line else ""


@pytest.mark.parametrize("x,w", list(itertools.product(AXES, AXES)))
def test_products(x, w):
  a, b = numbers(12, 20), numbers(20, 8, modulus=7)
  c = numbers(8, 8, modulus=5)
  for devices in (TWO, THREE):
    s = Tensor(a).shard(devices, x) @ Tensor(b).shard(devices, w)
    np.testing.assert_array_equal(s.numpy(), a @ b)
    np.testing.assert_array_equal((s @ Tensor(c).shard(devices, w)).numpy(), (a @ b) @ c)


def test_shrinks_of_what_is_divided():
  x = Tensor.arange(4).shard(TWO, 0).realize()
  assert x.shrink(((2, 4),)).tolist() == [2, 3] and x.shrink(((0, 2),)).tolist() == [0, 1]
  n = np.arange(64).reshape(8, 8)
  t = Tensor(n).shard(FOUR, 0)
  for i in range(4):
    a, b = t.shrink(((2 * i, 2 * i + 2), None)), n[2 * i:2 * i + 2]
    np.testing.assert_array_equal(a.numpy(), b)
    np.testing.assert_array_equal((a + a).sum(0).numpy(), (b + b).sum(0))
    np.testing.assert_array_equal(a.pad(((2 * i, 6 - 2 * i), None)).numpy(), np.pad(b, ((2 * i, 6 - 2 * i), (0, 0))))
    np.testing.assert_array_equal(a.reshape(2, 2, 4).permute(2, 0, 1).flip(0).numpy(), np.flip(b.reshape(2, 2, 4).transpose(2, 0, 1), 0))
  np.testing.assert_array_equal((t[2:4] + t[6:8]).numpy(), n[2:4] + n[6:8])
  np.testing.assert_array_equal(t[0:3].cat(t[5:]).numpy(), np.concatenate([n[0:3], n[5:]]))
  added = [t[2 * i:2 * i + 2] + (Tensor.ones(2, 8, dtype=dtypes.int) * i).shard(FOUR) for i in range(4)]
  np.testing.assert_array_equal(added[0].cat(*added[1:]).numpy(), n + np.repeat(np.arange(4), 2)[:, None])


def test_reshapes_keep_an_axis_where_they_can():
  n = numbers(26, 15, 7)
  t = Tensor(n).shard(THREE, 1)
  for shape, axis in [((26, 3, 5, 7), 1), ((26, 3, 35), 1), ((26, 105), 1), ((26, 1, 105), 2), ((2, 13, 3, 5, 7), 2), ((13, 2, 3, 7, 5), 2),
                      ((1, 13, 2, 3, 1, 7, 5), 3), ((26 * 15, 7), None)]:
    r = t.reshape(shape)
    assert axis_of(r) == ("copies" if axis is None else f"axis {axis} over 3"), shape
    np.testing.assert_array_equal(r.numpy(), n.reshape(shape))


@pytest.mark.parametrize("axis", AXES)
def test_like(axis):
  t = Tensor.empty(16, 16).shard(TWO, axis)
  for like in (t.rand_like(), t.full_like(1.0), t.zeros_like(), t.ones_like(), Tensor.zeros(16, 16).shard_like(t), t.clone(), t.contiguous(),
               (t + t).rand_like(), (t + Tensor.empty(16, 16).shard(TWO)).rand_like(), t.randn_like()):
    assert like.device == t.device and like.shape == t.shape and axis_of(like) == axis_of(t)
    like.realize()
  assert t.rand_like(dtype=dtypes.float64).dtype == dtypes.float64
  single = Tensor.ones(16)
  assert Tensor.zeros(16).shard_like(single).device == single.device
  assert axis_of(Tensor.ones(16, 16).shard(TWO).shard_like(t)) == axis_of(t)  # it is divided anew


def test_dropout():
  with Context(TRAINING=1):
    for x in (Tensor.ones(512).to(TWO), Tensor.ones(512).shard(TWO, 0)):
      values, counts = np.unique(x.dropout(0.5).numpy(), return_counts=True)
      assert set(values) == {0, 2} and 192 < counts[0] < 320


def test_uneven_shards():
  for n, devices in itertools.product((1, 2, 5, 7), (TWO, THREE, FOUR)):
    x = numbers(n, 3)
    s = Tensor(x).shard(devices, 0)
    np.testing.assert_array_equal((s * 2 + 1).numpy(), x * 2 + 1)
    np.testing.assert_array_equal(s.sum(0).numpy(), x.sum(0))
    np.testing.assert_array_equal((s - 9).max(0).numpy(), (x - 9).max(0))
    np.testing.assert_array_equal(s.softmax(0).argmax(0).numpy(), x.argmax(0))


@pytest.mark.parametrize("bias", (False, True))
def test_convolutions(bias):
  conv = nn.Conv2d(3, 16, 3, bias=bias)
  x = Tensor.rand(2, 3, 16, 16)
  with Context(TRAINING=1):
    expected = conv(x).relu()
    expected.mean().backward()
    grads = {k: v.grad.numpy() for k, v in nn.state.get_state_dict(conv).items()}
    for devices, axis in ((TWO, 0), (TWO, None), (TWO, 1), (THREE, 2), (TWO, 3)):
      for p in nn.state.get_parameters(conv):
        p.replace(Tensor(p.numpy()).shard(devices))
        p.grad = None
      y = conv(x.shard(devices, axis)).relu()
      np.testing.assert_allclose(y.numpy(), expected.numpy(), atol=1e-5)
      y.mean().backward()
      for k, v in nn.state.get_state_dict(conv).items():
        np.testing.assert_allclose(v.grad.numpy(), grads[k], atol=1e-5)


def test_training_steps_of_layers():
  with Context(TRAINING=1):
    for make in (nn.optim.SGD, nn.optim.Adam, nn.optim.AdamW, nn.optim.LAMB, nn.optim.LARS):
      after = []
      for devices in (None, TWO):
        Tensor.manual_seed(2)
        net = [nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8)]
        x = Tensor.rand(4, 3, 8, 8)
        if devices:
          for p in nn.state.get_parameters(net):
            p.shard_(devices)
          x = x.shard(devices, 0)
        optim = make(nn.state.get_parameters(net), lr=0.01)
        for _ in range(2):
          out = net[1](net[0](x)).relu()
          optim.zero_grad()
          (out * out).mean().backward()
          optim.step()
        after.append({k: v.numpy() for k, v in nn.state.get_state_dict(net).items()})
      for k in after[0]:
        np.testing.assert_allclose(after[1][k], after[0][k], rtol=2e-4, atol=1e-5, err_msg=f"{make.__name__} {k}")


def test_optimizer_on_another_device():
  with Context(TRAINING=1):
    after = []
    for device in (None, "CPU"):
      Tensor.manual_seed(4)
      layer = nn.Linear(6, 4)
      for p in nn.state.get_parameters(layer):
        p.shard_(TWO)
      optim = nn.optim.Adam(nn.state.get_parameters(layer), lr=0.1, device=device)
      for _ in range(2):
        optim.zero_grad()
        layer(Tensor(numbers(4, 6)).shard(TWO, 0)).square().mean().backward()
        optim.step()
      assert all(p.device == TWO for p in nn.state.get_parameters(layer))
      after.append(layer.weight.numpy())
    np.testing.assert_allclose(after[0], after[1], rtol=1e-5)


@pytest.mark.parametrize("axis", AXES)
def test_embedding(axis):
  layer, x = nn.Embedding(28, 20), Tensor(np.arange(40).reshape(4, 10).astype(np.int32) % 28)
  z = layer(x)
  z.square().sum().backward()
  sharded = nn.Embedding(28, 20)
  sharded.weight.replace(Tensor(layer.weight.numpy()).shard(TWO, axis)).realize()
  for x_axis in (None, 0):
    s = sharded(x.shard(TWO, x_axis))
    np.testing.assert_allclose(s.numpy(), z.numpy(), atol=1e-6)
    sharded.weight.grad = None
    s.square().sum().backward()
    np.testing.assert_allclose(sharded.weight.grad.numpy(), layer.weight.grad.numpy(), atol=1e-5)


@pytest.mark.parametrize("axis", (None, 0, 1, 2))
def test_norms(axis):
  x = Tensor.rand(4, 10, 20)
  for norm in (nn.RMSNorm(20), nn.LayerNorm(20), nn.GroupNorm(2, 10), nn.InstanceNorm(10)):
    y = norm(x).numpy()
    for p in nn.state.get_parameters(norm):
      p.shard_(TWO).realize()
    np.testing.assert_allclose(norm(x.shard(TWO, axis)).numpy(), y, atol=1e-5)


@pytest.mark.parametrize("axis", (None, 0, 1, 2, 3))
def test_attention(axis):
  q, k, v = (Tensor.rand(4, 2, 10, 16).realize() for _ in range(3))
  for causal in (False, True):
    expected = q.scaled_dot_product_attention(k, v, is_causal=causal).numpy()
    got = q.shard(TWO, axis).scaled_dot_product_attention(k.shard(TWO, axis), v.shard(TWO, axis), is_causal=causal)
    np.testing.assert_allclose(got.numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("axis", (None, 0))
def test_jit(axis):
  @TinyJit
  def f(a, arr, b):
    return (a + arr[0] + b).realize(), a.sum(0).realize()

  for i in range(5):
    a, b = Tensor.full((4, 4), float(i)).contiguous().shard(TWO, axis).realize(), Tensor.ones(4, 4).contiguous().shard(TWO).realize()
    out, total = f(a, [b], a * 2 if axis is None else Tensor.full((4, 4), 2.0 * i).contiguous().shard(TWO, axis).realize())
    np.testing.assert_array_equal(out.numpy(), np.full((4, 4), 3 * i + 1))
    np.testing.assert_array_equal(total.numpy(), np.full(4, 4 * i))
  assert f.captured is not None

  @TinyJit
  def g():
    a, b = Tensor.ones(256).contiguous().realize(), Tensor.ones(256).contiguous().realize()
    return (a.shard_(TWO) + b.shard_(TWO, axis)).realize()

  for _ in range(5):
    np.testing.assert_array_equal(g().numpy(), np.full(256, 2))


@pytest.mark.parametrize("axis", (None, 0))
def test_assign(axis):
  for realized in (True, False):
    def zeros(*shape):
      t = Tensor.zeros(*shape).contiguous().realize().shard(TWO, axis)
      return t.realize() if realized else t
    out = zeros(4)
    assert out.assign(Tensor.ones(4).shard(TWO, axis)).realize().tolist() == [1] * 4
    assert out.assign(Tensor.full((4,), 7.0).shard(TWO)).realize().tolist() == [7] * 4
    out = zeros(4, 4)
    out[:, 2:3].assign(Tensor.ones(4, 1).shard(TWO, axis)).realize()
    assert out.tolist() == [[0, 0, 1, 0]] * 4
    i = Variable("i", 0, 3).bind(1)
    out[:, i:i + 1].assign(Tensor.full((4, 1), 5.0).shard(TWO, axis)).realize()
    assert out.tolist() == [[0, 5, 1, 0]] * 4


@pytest.mark.parametrize("axis", (None, 0))
def test_assign_at_a_variable_in_a_jit(axis):
  out, ones = Tensor.zeros(4, 6).contiguous().shard(TWO, axis).realize(), Tensor.ones(4, 1).shard(TWO, axis).contiguous().realize()

  @TinyJit
  def f(out, i):
    out[:, i:i + 1].assign(ones).realize()
    ones.assign(ones + 1).realize()

  v = Variable("i", 0, 5)
  for i in range(1, 5):
    f(out, v.bind(i))
  assert out.tolist() == [[0, 1, 2, 3, 4, 0]] * 4


@pytest.mark.parametrize("axis", (None, 0))
def test_set_item(axis):
  for index, value in ((1, 99), (slice(2, 6), 99), (slice(None), 42), (slice(None, None, 4), 0), (13, 99), (slice(2, 6), [90, 91, 92, 93])):
    t, n = Tensor.arange(16).clone().realize().shard(FOUR, axis), np.arange(16)
    n[index] = value
    t[index] = Tensor(value).shard(FOUR) if isinstance(value, list) else value
    assert t.tolist() == n.tolist()
    t[index] = Tensor(value).shard(FOUR, 0) if isinstance(value, list) else value
    assert t.tolist() == n.tolist()


def test_other_ops():
  for shape in ((4, 16, 16), (4, 24, 24)):
    x = Tensor.randn(shape).realize()
    np.testing.assert_allclose(x.shard(TWO, 0).interpolate((19, 19)).numpy(), x.interpolate((19, 19)).numpy(), atol=1e-5)
  x = Tensor.randn(256).realize()
  np.testing.assert_array_equal(x.shard(TWO, 0).bitcast(dtypes.int).numpy(), x.bitcast(dtypes.int).numpy())
  s = Tensor([1.0, 2, 3, 4]).shard(TWO, 0)
  np.testing.assert_array_equal((s + 1.0).numpy(), [2, 3, 4, 5])
  np.testing.assert_array_equal(Tensor(np.arange(100, dtype=np.uint32)).shard(TWO, 0).add(1).numpy(), np.arange(100) + 1)
  for axis in (0, 1):
    x = Tensor(numbers(6, 9)).realize()
    t = x.shard(THREE, axis)
    np.testing.assert_array_equal(t.sort(1)[0].numpy(), np.sort(numbers(6, 9), 1))
    np.testing.assert_array_equal(t.cumsum(0).numpy(), numbers(6, 9).cumsum(0))
    np.testing.assert_array_equal(t.topk(2)[0].numpy(), -np.sort(-numbers(6, 9), 1)[:, :2])
    index = Tensor(np.array([[0, 2], [1, 8], [3, 3], [4, 5], [6, 7], [8, 0]]))
    np.testing.assert_array_equal(t.gather(1, index.shard(THREE)).numpy(), np.take_along_axis(numbers(6, 9), index.numpy(), 1))
    np.testing.assert_array_equal(t[Tensor([3, 1]).shard(THREE)].numpy(), numbers(6, 9)[[3, 1]])
    np.testing.assert_array_equal(Tensor.einsum("ij,kj->ik", t, t).numpy(), numbers(6, 9) @ numbers(6, 9).T)


def test_kernels_are_the_same_for_all():
  x = Tensor.empty(16, 8, 12, 12).shard(FOUR, 0)
  bn = nn.BatchNorm2d(8)
  for p in nn.state.get_parameters(bn):
    p.shard_(FOUR).realize()
  calls = [c for c in bn(x).schedule_linear().src if str(c.src[0].op).endswith("SINK")]
  assert len(calls) % 4 == 0 and len({id(c.src[0]) for c in calls}) <= len(calls) // 4 + 1
