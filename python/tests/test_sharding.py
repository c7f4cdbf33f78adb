"""Tensors on several devices, with tinygrad's names."""
import numpy as np
import pytest

from tinygrad_cpp import Context, DeviceError, Tensor, TinyJit, nn

DEVICES = ("CPU", "CPU:1")


def test_devices_are_a_tuple():
  x = Tensor.arange(12).reshape(6, 2)
  assert x.device == "CPU"
  assert x.shard(DEVICES, axis=0).device == DEVICES
  assert x.to(DEVICES).device == DEVICES
  assert x.shard(DEVICES).to("CPU").device == "CPU"
  assert x.shard(DEVICES).to(DEVICES).device == DEVICES
  assert x.shard(("CPU:1",), axis=0).device == "CPU:1"
  assert "axis 0 over 2" in x.shard(DEVICES, axis=0).placement()


def test_values_and_gradients():
  rng = np.random.default_rng(1)
  x, w = rng.integers(-5, 6, (6, 4)).astype(np.float32), rng.integers(-5, 6, (4, 3)).astype(np.float32)
  for axis in (None, 0, 1):
    a, b = Tensor(x).shard(DEVICES, axis), Tensor(w).shard(DEVICES)
    y = (a @ b).relu().sum()
    np.testing.assert_array_equal((a @ b).numpy(), x @ w)
    y.backward()
    mask = (x @ w > 0).astype(np.float32)
    np.testing.assert_array_equal(b.grad.numpy(), x.T @ mask)
    np.testing.assert_array_equal(a.grad.numpy(), mask @ w.T)


def test_made_on_several():
  for make in (Tensor.zeros, Tensor.ones, Tensor.rand, Tensor.randn):
    x = make(3, 5, device=DEVICES)
    assert x.device == DEVICES and x.shape == (3, 5)
    assert x.shard_(DEVICES, 1).realize().numpy().shape == (3, 5)
  assert Tensor([1, 2, 3], device=DEVICES).tolist() == [1, 2, 3]
  x = Tensor.ones(4, 4).shard(DEVICES, 0)
  assert Tensor.full((4, 4), 2.0).shard_like(x).placement() == x.placement()


def test_training_step():
  Tensor.manual_seed(3)
  with Context(TRAINING=1):
    losses = []
    for devices in (None, DEVICES):
      Tensor.manual_seed(3)
      layer = nn.Linear(4, 2)
      x, y = Tensor.rand(8, 4), Tensor.rand(8, 2)
      if devices:
        for t in nn.state.get_parameters(layer):
          t.shard_(devices)
        x, y = x.shard(devices, 0), y.shard(devices, 0)
      opt = nn.optim.SGD(nn.state.get_parameters(layer), lr=0.1)
      for _ in range(3):
        opt.zero_grad()
        loss = (layer(x) - y).square().mean().backward()
        opt.step()
      losses.append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


def test_gradients_go_through_what_was_realized():
  a, w = np.arange(1, 9, dtype=np.float32).reshape(4, 2), np.ones((1, 4), np.float32)
  for axis in (None, 0, 1):
    x = Tensor(a).shard(DEVICES, axis)
    y = x.exp().realize()
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp(a), rtol=1e-5)
  x, b = Tensor(np.ones((3, 11, 6), np.float32)).shard(DEVICES, 2), Tensor(w).shard(DEVICES, 1)
  z = x[:, :, :1].matmul(b).realize()
  (z * z.detach().sin()).sum().backward()
  np.testing.assert_allclose(x.grad.numpy()[:, :, 0], np.full((3, 11), 4 * np.sin(1)), rtol=1e-5)


def test_to_what_only_holds_data(tmp_path):
  a = np.arange(8, dtype=np.float32).reshape(4, 2)
  for axis in (None, 0, 1):
    for x in (Tensor(a).shard(DEVICES, axis), Tensor(a).shard(DEVICES, axis).realize()):
      np.testing.assert_array_equal(x.to(f"DISK:{tmp_path}/a.bin").numpy(), a)
      np.testing.assert_array_equal(np.fromfile(tmp_path / "a.bin", np.float32).reshape(4, 2), a)
      np.testing.assert_array_equal(x.to("NPY").numpy(), a)
      t = Tensor.empty(4, 2, device=f"DISK:{tmp_path}/b.bin")
      t.assign(x + 1).realize()
      np.testing.assert_array_equal(t.numpy(), a + 1)


class Pair:
  def __init__(self, v, w):
    self.v, self.w = v, w


@pytest.mark.parametrize("realized", [False, True])
def test_states_are_loaded_as_the_module_is_divided(realized):
  a = np.arange(8, dtype=np.float32).reshape(4, 2)
  for source in (Tensor(a), Tensor(a).shard(DEVICES, 0), Tensor(a).shard(DEVICES, 1).realize(), Tensor(a).shard(("CPU:1", "CPU"), 1)):
    m = Pair(Tensor.ones(4, 2).contiguous().shard(DEVICES, 0), Tensor.zeros(3))
    if realized: m.v.realize()
    nn.state.load_state_dict(m, {"v": source, "w": Tensor([1.0, 2, 3])}, verbose=False)
    np.testing.assert_array_equal(m.v.numpy(), a)
    assert "axis 0 over 2" in m.v.placement()
  m = Pair(Tensor(a).shard(DEVICES, 0).realize(), (Tensor(a) * 2).shard(DEVICES, 0).realize())
  nn.state.load_state_dict(m, {"v": m.w, "w": m.v}, verbose=False)  # they change places
  np.testing.assert_array_equal(m.v.numpy(), 2 * a)
  np.testing.assert_array_equal(m.w.numpy(), a)


def test_parts_are_read_where_their_memory_has_them():
  devices = ("INTERP", "INTERP:1", "INTERP:2")  # it says so where a kernel reads outside of memory
  a = np.arange(6, dtype=np.float32).reshape(3, 2)
  v = Tensor(a).shard(devices, 0).clone().realize()
  v[2:3, 1] = Tensor([7.0]).shard(devices, 0).realize()
  a[2:3, 1] = 7
  np.testing.assert_array_equal(v.numpy(), a)
  b = np.arange(24, dtype=np.float32).reshape(3, 8)
  v = Tensor(b).shard(devices, 0).clone()
  v[0, 6:7] = Tensor([7.0]).shard(devices).realize()
  b[0, 6:7] = 7
  np.testing.assert_array_equal(v.numpy(), b)
  np.testing.assert_array_equal(v[:, 1].reshape(3).numpy(), b[:, 1])


def test_arrays_and_lists_beside_several_devices():
  a = np.arange(8, dtype=np.float32).reshape(4, 2)
  assert Tensor(a, device=DEVICES).device == DEVICES
  np.testing.assert_array_equal(Tensor(a, device=DEVICES).numpy(), a)
  s = Tensor(a).shard(DEVICES, 0).realize()
  np.testing.assert_array_equal(s[np.array([2, 1])].numpy(), a[[2, 1]])
  np.testing.assert_array_equal(s[np.array([True, False, True, False])].numpy(), a[[0, 2]])
  s[0:2] = np.full((2, 2), 9, np.float32)
  s[3:4] = [[5.0, 6.0]]
  np.testing.assert_array_equal(s.numpy(), [[9, 9], [9, 9], [4, 5], [5, 6]])
  s.assign(np.ones((4, 2), np.float32))
  np.testing.assert_array_equal(s.numpy(), np.ones((4, 2)))
  s.assign([[1.0, 2.0]] * 4)
  np.testing.assert_array_equal(s.numpy(), [[1, 2]] * 4)
  assert "axis 0 over 2" in s.placement()


def test_a_value_from_elsewhere_is_refused_where_it_is_written():
  s = Tensor.arange(8).reshape(4, 2).shard(DEVICES, 0).clone().realize()
  for write in (lambda: s.__setitem__(0, Tensor([1, 2], device="CPU:5")), lambda: s.assign(Tensor.ones(4, 2, dtype=s.dtype, device="CPU:5"))):
    with pytest.raises(DeviceError, match="CPU:5"): write()
  s[1] = Tensor([7, 8], device="CPU:1")  # one of them
  assert s.tolist() == [[0, 1], [7, 8], [4, 5], [6, 7]]


def test_calls_of_several_devices_are_not_saved(tmp_path):
  f = TinyJit(lambda x: x * 2)
  for _ in range(3): f(Tensor.ones(4, 2).shard(DEVICES, 0).realize())
  with pytest.raises(ValueError, match="several devices"): f.save(str(tmp_path / "f.tg"))
