"""Twelve networks of plain PyTorch, compiled and eager: what they give, and the gradients of all parameters."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch_models

from tinygrad_cpp.frontend import torch as bridge


# Where a result is about 0, rounding decides which side of a kink it is on, and with that gradients by parts of a hundred, in eager PyTorch
# too: these networks are compared in float64.
KINKED = {"resnet", "mobilenet", "unet", "vae", "yolo"}


def trained(network: str, **how: Any) -> list[Any]:
  """The losses of three steps, the last gradients, and what the network remembers."""
  net, inputs = torch_models.make(network)
  if network in KINKED:
    net, inputs = net.double(), tuple(x[:2].double() for x in inputs)
  model = torch.compile(net, **how) if how else net
  out: list[Any] = []
  for _ in range(3):
    net.zero_grad()
    loss = torch_models.loss_of(model(*inputs))
    loss.backward()
    out.append(loss.detach())
  return out + [p.grad for p in net.parameters()] + [b for b in net.buffers() if b.is_floating_point()]


@pytest.mark.parametrize("network", torch_models.MODELS)
def test_values_and_gradients(network: str) -> None:
  torch._dynamo.reset()
  bridge.reset_fallback_counts()
  expected = trained(network)
  got = trained(network, backend="tinygrad_cpp", fullgraph=True)
  for a, b in zip(got, expected, strict=True):
    # Sums in another order: errors are a part of the largest element.
    bound = 1e-6 if b.dtype == torch.float64 else 1e-3
    torch.testing.assert_close(a, b, rtol=bound, atol=2 * bound * float(b.abs().max()) + 1e-4 * bound)
  assert not bridge.fallback_counts()


@pytest.mark.parametrize("network", ["mixer", "vae"])
def test_inference(network: str) -> None:
  torch._dynamo.reset()
  net, inputs = torch_models.make(network)
  net.eval()
  model = torch.compile(net, backend="tinygrad_cpp", fullgraph=True)
  with torch.no_grad():
    expected = net(*inputs)
    for _ in range(3):
      torch.testing.assert_close(model(*inputs), expected, rtol=1e-3, atol=1e-3 * float(expected.abs().max()))
