"""A convolutional network on MNIST, after tinygrad's own example. It runs under tinygrad too: change the imports' `tinygrad_cpp` to
`tinygrad`. MNIST is downloaded once; STEPS and BS set the length and the size of the batches."""

from typing import Callable

from tinygrad_cpp import Context, GlobalCounters, Tensor, TinyJit, nn
from tinygrad_cpp.helpers import colored, getenv, trange
from tinygrad_cpp.nn.datasets import mnist


class Model:
  def __init__(self) -> None:
    self.layers: list[Callable[[Tensor], Tensor]] = [
      nn.Conv2d(1, 32, 5), Tensor.relu, nn.Conv2d(32, 32, 5), Tensor.relu, nn.BatchNorm(32), Tensor.max_pool2d,
      nn.Conv2d(32, 64, 3), Tensor.relu, nn.Conv2d(64, 64, 3), Tensor.relu, nn.BatchNorm(64), Tensor.max_pool2d,
      lambda x: x.flatten(1), nn.Linear(576, 10),
    ]

  def __call__(self, x: Tensor) -> Tensor:
    return x.sequential(self.layers)


if __name__ == "__main__":
  x_train, y_train, x_test, y_test = mnist()
  Tensor.manual_seed(getenv("SEED", 0))
  model = Model()
  optimizer = nn.optim.Adam(nn.state.get_parameters(model))

  @TinyJit
  @Context(TRAINING=1)
  def step() -> Tensor:
    samples = Tensor.randint(getenv("BS", 128), high=x_train.shape[0])
    optimizer.zero_grad()
    loss = model(x_train[samples].float() / 255).sparse_categorical_crossentropy(y_train[samples]).backward()
    return loss.realize(*optimizer.schedule_step())

  @TinyJit
  def accuracy() -> Tensor:
    return (model(x_test.float() / 255).argmax(axis=1) == y_test).mean() * 100

  percent = float("nan")
  for i in (bar := trange(getenv("STEPS", 70))):
    GlobalCounters.reset()  # so that DEBUG=2 counts each step
    loss = step()
    if i % 10 == 9:
      percent = accuracy().item()
    bar.set_description(f"loss: {loss.item():6.2f} test accuracy: {percent:5.2f}%")
  print(f"test accuracy {percent:.2f}%", colored("trained", "green"))
