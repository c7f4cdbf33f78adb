"""What a first hour with tensors needs, after tinygrad's quick-start guide. It runs under tinygrad too: change the imports' `tinygrad_cpp`
to `tinygrad`."""

import os
import tempfile

import numpy as np

from tinygrad_cpp import Context, Tensor, TinyJit, dtypes
from tinygrad_cpp.helpers import Timing
from tinygrad_cpp.nn.datasets import mnist
from tinygrad_cpp.nn.optim import SGD
from tinygrad_cpp.nn.state import get_parameters, get_state_dict, load_state_dict, safe_load, safe_save

# Tensors are made of Python's and NumPy's data, or filled.
t1 = Tensor([1, 2, 3, 4, 5])
t2 = Tensor(np.array([1, 2, 3, 4, 5]))
full = Tensor.full(shape=(2, 3), fill_value=5)
assert (t1 == t2).all().item() and full.tolist() == [[5, 5, 5], [5, 5, 5]]
assert Tensor.full_like(full, fill_value=2).shape == Tensor.zeros(2, 3).shape == Tensor.ones_like(full).shape == (2, 3)
assert Tensor.eye(3).numpy().tolist() == np.eye(3).tolist() and Tensor.arange(start=0, stop=10, step=1).shape == (10,)
uniform = Tensor.uniform(2, 3, low=0, high=10).numpy()
assert (0 <= uniform).all() and (uniform < 10).all()
assert Tensor([1, 2, 3], dtype=dtypes.float16).dtype == dtypes.half

# Operations are lazy: nothing runs before a value is asked for.
t6 = (((t1 + 1) * 2) * t1).relu().log_softmax()
print(t6.numpy())


class Linear:
  def __init__(self, in_features: int, out_features: int, bias: bool = True, initialization: str = "kaiming_uniform"):
    self.weight = getattr(Tensor, initialization)(out_features, in_features)
    self.bias = Tensor.zeros(out_features) if bias else None

  def __call__(self, x: Tensor) -> Tensor:
    return x.linear(self.weight.transpose(), self.bias)


class TinyNet:
  def __init__(self) -> None:
    self.l1 = Linear(784, 128, bias=False)
    self.l2 = Linear(128, 10, bias=False)

  def __call__(self, x: Tensor) -> Tensor:
    return self.l2(self.l1(x).leaky_relu())


def crossentropy(out: Tensor, labels: Tensor) -> Tensor:
  """Of logits against classes, of nothing but elementwise operations and sums."""
  classes = Tensor.arange(out.shape[-1], dtype=dtypes.int32).unsqueeze(0).expand(labels.numel(), out.shape[-1])
  wanted = (classes == labels.flatten().reshape(-1, 1)).where(-1.0, 0).reshape(*labels.shape, out.shape[-1])
  return out.log_softmax().mul(wanted).sum() / labels.numel()


Tensor.manual_seed(1)
net = TinyNet()
optimizer = SGD([net.l1.weight, net.l2.weight], lr=0.05, momentum=0.9)
assert len(get_parameters(net)) == 2
x_train, y_train, x_test, y_test = (t.numpy() for t in mnist())
x_train, x_test = (x.reshape(-1, 784).astype(np.float32) / 255 for x in (x_train, x_test))
rng = np.random.default_rng(0)

with Context(TRAINING=1):
  for step in range(200):
    picked = rng.integers(0, len(x_train), size=64)
    batch, labels = Tensor(x_train[picked]), Tensor(y_train[picked])
    loss = crossentropy(net(batch), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
      print(f"step {step} loss {loss.numpy():.4f}")


@TinyJit
def evaluate(x: Tensor) -> Tensor:
  return net(x).realize()


with Timing("evaluation: "):
  right = 0
  for start in range(0, len(x_test) // 64 * 64, 64):
    prediction = evaluate(Tensor(x_test[start:start + 64])).argmax(axis=-1).numpy()
    right += (prediction == y_test[start:start + 64]).sum()
print(f"test accuracy {100 * right / (len(x_test) // 64 * 64):.2f}%")

with tempfile.TemporaryDirectory() as folder:
  path = os.path.join(folder, "model.safetensors")
  safe_save(get_state_dict(net), path)
  other = TinyNet()
  load_state_dict(other, safe_load(path), verbose=False)
  np.testing.assert_array_equal(other.l1.weight.numpy(), net.l1.weight.numpy())
