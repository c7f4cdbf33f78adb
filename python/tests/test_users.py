"""What users of layers and training meet: the state of random numbers, clipping, labels, loading into captured models, fresh weights."""

import math

import numpy as np
import pytest

import tinygrad_cpp as tg
from tinygrad_cpp import Context, GlobalCounters, Tensor, TinyJit, nn


def test_the_random_sequence_goes_on_where_its_state_was_taken():
  Tensor.manual_seed(11)
  Tensor.rand(5).realize()
  state = Tensor.get_rng_state()
  first = Tensor.randn(6).numpy().copy()
  Tensor.manual_seed(1)
  Tensor.set_rng_state(state)
  np.testing.assert_array_equal(Tensor.randn(6).numpy(), first)
  with pytest.raises(tg.ValueError, match="two uint64"):
    Tensor.set_rng_state(Tensor([1, 2]))


@pytest.mark.parametrize("norm_type, norm", [(2.0, 5.0), (1.0, 7.0), (math.inf, 4.0)])
def test_gradients_are_clipped_together(norm_type, norm):
  a, b, c = Tensor([1.0, 1.0]), Tensor([2.0]), Tensor([3.0])
  a.grad, b.grad = Tensor([3.0, 0.0]), Tensor([4.0])
  total = nn.utils.clip_grad_norm_([a, b, c], norm / 2, norm_type=norm_type)
  assert total.item() == pytest.approx(norm, rel=1e-5)
  assert a.grad.tolist() == pytest.approx([1.5, 0.0], rel=1e-4)
  assert b.grad.tolist() == pytest.approx([2.0], rel=1e-4)
  nn.utils.clip_grad_value_(b, 0.25)
  assert b.grad.tolist() == [0.25]
  a.grad = Tensor([math.nan, 1.0])
  with pytest.raises(tg.ValueError, match="norm of the gradients is nan"):
    nn.utils.clip_grad_norm_([a], 1.0, error_if_nonfinite=True)


def test_labels_that_are_no_class():
  logits = Tensor.zeros(3, 4).contiguous().realize()
  for loss in (lambda y: logits.sparse_categorical_crossentropy(y), lambda y: logits.cross_entropy(y),
               lambda y: logits.log_softmax().nll_loss(y)):
    assert loss(Tensor([1, -100, 3])).item() == pytest.approx(math.log(4))
    for bad in (4, -1, 1000):
      with pytest.raises(IndexError, match=f"the target at 1 is {bad}"):
        loss(Tensor([0, bad, 3]))
      assert math.isnan(loss(Tensor([0, bad, 3]) + 0).item())


def test_loading_into_a_captured_model_captures_nothing_anew():
  net, other, runs = nn.Linear(4, 3), nn.Linear(4, 3), []

  @TinyJit
  def call(x):
    runs.append(1)
    return net(x).realize()

  x = Tensor.rand(2, 4).realize()
  for _ in range(3):
    call(x)
  before, weight = len(runs), net.weight
  nn.state.load_state_dict(net, nn.state.get_state_dict(other), verbose=False)
  np.testing.assert_array_equal(call(x).numpy(), other(x).numpy())
  assert len(runs) == before
  np.testing.assert_array_equal(weight.numpy(), other.weight.numpy())


def test_fresh_weights_are_made_once():
  net = nn.Linear(8, 8)
  call = TinyJit(lambda x: net(x).realize())
  x = Tensor.rand(1, 8).realize()
  for _ in range(3):
    y = call(x)
  GlobalCounters.reset()
  np.testing.assert_array_equal(call(x).numpy(), y.numpy())
  assert GlobalCounters.kernel_count == 1


def test_keccak_of_a_rate_and_a_suffix() -> None:
  import hashlib

  for message in (b"", b"abc", bytes(range(200))):
    x = Tensor(list(message), dtype="uint8") if message else Tensor.empty(0, dtype="uint8")
    assert bytes(x.keccak((136, 6)).tolist()) == bytes(x.keccak().tolist()) == hashlib.sha3_256(message).digest()
    assert bytes(x.keccak(cfg=(144, 6)).tolist()) == hashlib.sha3_224(message).digest()
    assert bytes(x.keccak((168, 31)).tolist()) == hashlib.shake_128(message).digest(16)
  for cfg, error in (((137, 6), "rate"), ((136, 0), "suffix"), ("md5", "md5")):
    with pytest.raises(tg.ValueError, match=error):
      Tensor([1], dtype="uint8").keccak(cfg)


def test_products_by_images() -> None:
  x, w = (Tensor(np.random.default_rng(i).standard_normal(s).astype(np.float32)) for i, s in enumerate(((2, 4, 6, 8), (8, 4, 3, 3))))
  for image in (0, 1):
    with Context(IMAGE=image):
      np.testing.assert_allclose(x.image_conv2d(w, padding=1).numpy(), x.conv2d(w, padding=1).numpy(), rtol=1e-5, atol=1e-5)
      np.testing.assert_allclose(x.image_dot(x.transpose(-1, -2)).numpy(), x.numpy() @ x.numpy().swapaxes(-1, -2), rtol=1e-4, atol=1e-4)


def test_what_a_jit_captured() -> None:
  f = TinyJit(lambda x: (x + 1).contiguous() * 2)
  x = Tensor([1.0, 2.0]).realize()
  assert f.captured is None
  for _ in range(4):
    assert f(x).tolist() == [4, 6]
  assert f.captured is not None and f.captured
  f.captured.free_intermediates()
  assert f(x).tolist() == [4, 6]
  f.reset()
  assert f.captured is None


def test_errors_of_layers_begin_with_their_path():
  class Net:
    def __init__(self):
      self.a, self.blocks = nn.Linear(4, 3), [nn.LayerNorm(3), nn.Linear(3, 2)]

  net = Net()
  with pytest.raises(tg.ShapeError, match=r"^Linear\(4 -> 3\): matmul"):
    net.a(Tensor.ones(2, 5))
  assert sorted(nn.state.get_state_dict(net)) == ["a.bias", "a.weight", "blocks.0.bias", "blocks.0.weight", "blocks.1.bias", "blocks.1.weight"]
  with pytest.raises(tg.ShapeError, match=r"^a: Linear\(4 -> 3\): matmul"):
    net.a(Tensor.ones(2, 5))
  with pytest.raises(tg.ShapeError, match=r"^blocks.1: Linear\(3 -> 2\): matmul"):
    net.blocks[1](Tensor.ones(2, 5))
  assert sorted(nn.state.get_state_dict(net.a, "net.")) == ["net.bias", "net.weight"]
  assert sorted(nn.state.get_state_dict(net.a, "net_")) == ["net_bias", "net_weight"]


def test_the_version():
  assert tg.__version__.count(".") == 2
