"""Twelve networks in plain PyTorch, small enough that a training step takes tenths of a second: MODELS gives by its name a function that makes
the network and its inputs."""

from __future__ import annotations

import math
from typing import Any, Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def conv(c_in: int, c_out: int, k: int = 3, stride: int = 1, groups: int = 1, act: type[nn.Module] | None = nn.ReLU) -> nn.Sequential:
  layers: list[nn.Module] = [nn.Conv2d(c_in, c_out, k, stride, k // 2, groups=groups, bias=False), nn.BatchNorm2d(c_out)]
  return nn.Sequential(*layers, *([act()] if act else []))


class BasicBlock(nn.Module):
  def __init__(self, c_in: int, c_out: int, stride: int):
    super().__init__()
    self.body = nn.Sequential(conv(c_in, c_out, 3, stride), conv(c_out, c_out, act=None))
    self.skip = nn.Identity() if stride == 1 and c_in == c_out else conv(c_in, c_out, 1, stride, act=None)

  def forward(self, x: Tensor) -> Tensor:
    return F.relu(self.body(x) + self.skip(x))


class ResNet(nn.Module):
  """ResNet-18."""

  def __init__(self) -> None:
    super().__init__()
    self.stem = nn.Sequential(conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1))
    widths = [64, 64, 128, 256, 512]
    self.blocks = nn.Sequential(*(BasicBlock(widths[i] if k == 0 else widths[i + 1], widths[i + 1], 2 if i and k == 0 else 1)
                                  for i in range(4) for k in range(2)))
    self.head = nn.Linear(512, 100)

  def forward(self, x: Tensor) -> Tensor:
    return self.head(F.adaptive_avg_pool2d(self.blocks(self.stem(x)), 1).flatten(1))


class InvertedResidual(nn.Module):
  def __init__(self, c_in: int, c_out: int, stride: int):
    super().__init__()
    wide = 4 * c_in
    self.body = nn.Sequential(conv(c_in, wide, 1, act=nn.ReLU6), conv(wide, wide, 3, stride, wide, act=nn.ReLU6), conv(wide, c_out, 1, act=None))
    self.adds = stride == 1 and c_in == c_out
    self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(c_out, c_out // 4, 1), nn.Hardswish(), nn.Conv2d(c_out // 4, c_out, 1), nn.Hardsigmoid())

  def forward(self, x: Tensor) -> Tensor:
    out = self.body(x)
    out = out * self.gate(out)
    return x + out if self.adds else out


class MobileNet(nn.Module):
  def __init__(self) -> None:
    super().__init__()
    plan = [(16, 24, 2), (24, 24, 1), (24, 40, 2), (40, 40, 1), (40, 80, 2), (80, 80, 1)]
    self.body = nn.Sequential(conv(3, 16, 3, 2, act=nn.Hardswish), *(InvertedResidual(*p) for p in plan), conv(80, 320, 1, act=nn.Hardswish))
    self.head = nn.Linear(320, 100)

  def forward(self, x: Tensor) -> Tensor:
    return self.head(self.body(x).mean((2, 3)))


class Attention(nn.Module):
  def __init__(self, dim: int, heads: int, causal: bool = False):
    super().__init__()
    self.heads, self.causal = heads, causal
    self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

  def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
    b, t, c = x.shape
    q, k, v = self.qkv(x).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=self.causal)
    return self.out(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
  """A layer of a transformer, normalized before or after."""

  def __init__(self, dim: int, heads: int, causal: bool = False, first: bool = True):
    super().__init__()
    self.first = first
    self.attention, self.norm1, self.norm2 = Attention(dim, heads, causal), nn.LayerNorm(dim), nn.LayerNorm(dim)
    self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(approximate="tanh" if causal else "none"), nn.Linear(4 * dim, dim))

  def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
    if self.first:
      x = x + self.attention(self.norm1(x), mask)
      return x + self.mlp(self.norm2(x))
    x = self.norm1(x + self.attention(x, mask))
    return self.norm2(x + self.mlp(x))


class ViT(nn.Module):
  def __init__(self, dim: int = 192, depth: int = 4):
    super().__init__()
    self.patches = nn.Conv2d(3, dim, 8, 8)
    self.token, self.places = nn.Parameter(torch.zeros(1, 1, dim)), nn.Parameter(torch.randn(1, 65, dim) * 0.02)
    self.blocks, self.norm, self.head = nn.ModuleList(Block(dim, 3) for _ in range(depth)), nn.LayerNorm(dim), nn.Linear(dim, 100)

  def forward(self, x: Tensor) -> Tensor:
    x = self.patches(x).flatten(2).transpose(1, 2)
    x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
    for block in self.blocks:
      x = block(x)
    return self.head(self.norm(x)[:, 0])


class GPT2(nn.Module):
  def __init__(self, dim: int = 256, depth: int = 4, words: int = 2000):
    super().__init__()
    self.words, self.places = nn.Embedding(words, dim), nn.Embedding(128, dim)
    self.blocks, self.norm = nn.ModuleList(Block(dim, 4, causal=True) for _ in range(depth)), nn.LayerNorm(dim)
    self.head = nn.Linear(dim, words, bias=False)
    nn.init.normal_(self.words.weight, std=0.02)
    self.head.weight = self.words.weight

  def forward(self, tokens: Tensor) -> Tensor:
    x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
    for block in self.blocks:
      x = block(x)
    logits = self.head(self.norm(x))
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


class BERT(nn.Module):
  def __init__(self, dim: int = 192, depth: int = 4, words: int = 2000):
    super().__init__()
    self.words, self.places, self.kinds, self.norm = nn.Embedding(words, dim, padding_idx=0), nn.Embedding(128, dim), nn.Embedding(2, dim), nn.LayerNorm(dim)
    self.blocks = nn.ModuleList(Block(dim, 3, first=False) for _ in range(depth))
    self.pool, self.head = nn.Linear(dim, dim), nn.Linear(dim, 3)

  def forward(self, tokens: Tensor, kinds: Tensor) -> Tensor:
    x = self.norm(self.words(tokens) + self.places.weight[: tokens.shape[1]] + self.kinds(kinds))
    mask = (tokens != 0)[:, None, None, :]
    mask = torch.zeros_like(mask, dtype=x.dtype).masked_fill(~mask, -1e9).expand(-1, 1, tokens.shape[1], -1)
    for block in self.blocks:
      x = block(x, mask)
    return self.head(torch.tanh(self.pool(x[:, 0])))


class LSTM(nn.Module):
  """Two layers, step by step."""

  def __init__(self, words: int = 500, dim: int = 128):
    super().__init__()
    self.words = nn.Embedding(words, dim)
    self.cells = nn.ModuleList(nn.Linear(2 * dim, 4 * dim) for _ in range(2))
    self.head = nn.Linear(dim, words)

  def forward(self, tokens: Tensor) -> Tensor:
    x = self.words(tokens).unbind(1)
    for cell in self.cells:
      h = c = torch.zeros_like(x[0])
      out = []
      for step in x:
        i, f, g, o = cell(torch.cat([step, h], 1)).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        out.append(h)
      x = tuple(out)
    return self.head(torch.stack(x, 1))


class UNet(nn.Module):
  def __init__(self, w: int = 16) -> None:
    super().__init__()
    def double(a: int, b: int) -> nn.Sequential:
      return nn.Sequential(conv(a, b), conv(b, b))
    self.down = nn.ModuleList([double(3, w), double(w, 2 * w), double(2 * w, 4 * w)])
    self.up = nn.ModuleList([nn.ConvTranspose2d(4 * w, 2 * w, 2, 2), nn.ConvTranspose2d(2 * w, w, 2, 2)])
    self.merge = nn.ModuleList([double(4 * w, 2 * w), double(2 * w, w)])
    self.head = nn.Conv2d(w, 2, 1)

  def forward(self, x: Tensor) -> Tensor:
    a = self.down[0](x)
    b = self.down[1](F.max_pool2d(a, 2))
    c = self.down[2](F.max_pool2d(b, 2))
    y = self.merge[0](torch.cat([self.up[0](c), b], 1))
    return self.head(self.merge[1](torch.cat([self.up[1](y), a], 1)))


class VAE(nn.Module):
  def __init__(self, z: int = 32) -> None:
    super().__init__()
    self.encoder = nn.Sequential(nn.Conv2d(1, 32, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(32, 64, 4, 2, 1), nn.LeakyReLU(0.2), nn.Flatten())
    self.mean, self.spread = nn.Linear(64 * 64, z), nn.Linear(64 * 64, z)
    self.decoder = nn.Sequential(nn.Linear(z, 64 * 64), nn.Unflatten(1, (64, 8, 8)), nn.ELU(), nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.ELU(),
                                 nn.ConvTranspose2d(32, 1, 4, 2, 1))

  def forward(self, x: Tensor, noise: Tensor) -> Tensor:
    h = self.encoder(x)
    mean, spread = self.mean(h), self.spread(h)
    out = self.decoder(mean + noise * torch.exp(0.5 * spread))
    divergence = -0.5 * torch.sum(1 + spread - mean.pow(2) - spread.exp(), 1)
    return F.binary_cross_entropy_with_logits(out, x, reduction="none").sum((1, 2, 3)) + divergence


class CSP(nn.Module):
  def __init__(self, c: int):
    super().__init__()
    self.first, self.last = conv(c, c, 1, act=nn.SiLU), conv(c * 3 // 2, c, 1, act=nn.SiLU)
    self.inner = nn.Sequential(conv(c // 2, c // 2, act=nn.SiLU), conv(c // 2, c // 2, act=nn.SiLU))

  def forward(self, x: Tensor) -> Tensor:
    a, b = self.first(x).chunk(2, 1)
    return self.last(torch.cat([a, b, b + self.inner(b)], 1))


class YOLO(nn.Module):
  def __init__(self, w: int = 16) -> None:
    super().__init__()
    self.stem = nn.Sequential(conv(3, w, 3, 2, act=nn.SiLU), conv(w, 2 * w, 3, 2, act=nn.SiLU), CSP(2 * w))
    self.middle = nn.Sequential(conv(2 * w, 4 * w, 3, 2, act=nn.SiLU), CSP(4 * w))
    self.deep = nn.Sequential(conv(4 * w, 8 * w, 3, 2, act=nn.SiLU), CSP(8 * w))
    self.pooled = conv(4 * 8 * w, 8 * w, 1, act=nn.SiLU)
    self.merge = nn.Sequential(conv(12 * w, 4 * w, 1, act=nn.SiLU), CSP(4 * w))
    self.heads = nn.ModuleList([nn.Conv2d(4 * w, 3 * 25, 1), nn.Conv2d(8 * w, 3 * 25, 1)])

  def forward(self, x: Tensor) -> tuple[Tensor, ...]:
    b = self.middle(self.stem(x))
    c = self.deep(b)
    pools = [c]
    for _ in range(3):
      pools.append(F.max_pool2d(pools[-1], 5, 1, 2))
    c = self.pooled(torch.cat(pools, 1))
    b = self.merge(torch.cat([F.interpolate(c, scale_factor=2, mode="nearest"), b], 1))
    out = []
    for head, y in zip(self.heads, (b, c)):
      n, _, h, wide = y.shape
      z = head(y).view(n, 3, 25, h, wide).permute(0, 1, 3, 4, 2)
      grid = torch.stack(torch.meshgrid(torch.arange(h), torch.arange(wide), indexing="ij"), -1).to(z.dtype)
      out.append(torch.cat([(z[..., :2].sigmoid() * 2 - 0.5 + grid), (z[..., 2:4].sigmoid() * 2) ** 2, z[..., 4:].sigmoid()], -1).reshape(n, -1, 25))
    return tuple(out)


class Mixer(nn.Module):
  def __init__(self, dim: int = 128, tokens: int = 64, depth: int = 4):
    super().__init__()
    def mlp(a: int, b: int) -> nn.Sequential:
      return nn.Sequential(nn.Linear(a, b), nn.GELU(), nn.Linear(b, a))
    self.patches = nn.Conv2d(3, dim, 8, 8)
    self.rows, self.columns = nn.ModuleList(mlp(tokens, 128) for _ in range(depth)), nn.ModuleList(mlp(dim, 512) for _ in range(depth))
    self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(2 * depth))
    self.head = nn.Linear(dim, 100)

  def forward(self, x: Tensor) -> Tensor:
    x = self.patches(x).flatten(2).transpose(1, 2)
    for i, (row, column) in enumerate(zip(self.rows, self.columns)):
      x = x + row(self.norms[2 * i](x).transpose(1, 2)).transpose(1, 2)
      x = x + column(self.norms[2 * i + 1](x))
    return self.head(x.mean(1))


class SSM(nn.Module):
  """Two selective state space layers, their scans over chunks by cumulative sums."""

  def __init__(self, dim: int = 64, state: int = 8, depth: int = 2):
    super().__init__()
    self.state = state
    self.into = nn.ModuleList(nn.Linear(dim, 4 * dim) for _ in range(depth))
    self.mix = nn.ModuleList(nn.Conv1d(2 * dim, 2 * dim, 4, padding=3, groups=2 * dim) for _ in range(depth))
    self.select = nn.ModuleList(nn.Linear(2 * dim, 2 * state + 2 * dim) for _ in range(depth))
    self.decay = nn.ParameterList(nn.Parameter(torch.log(torch.arange(1, state + 1).float()).repeat(2 * dim, 1) - 3) for _ in range(depth))
    self.norms = nn.ModuleList(nn.RMSNorm(dim) for _ in range(depth))
    self.out = nn.ModuleList(nn.Linear(2 * dim, dim) for _ in range(depth))

  def forward(self, x: Tensor) -> Tensor:
    for norm, into, mix, select, decay, out in zip(self.norms, self.into, self.mix, self.select, self.decay, self.out):
      u, gate = into(norm(x)).chunk(2, -1)
      u = F.silu(mix(u.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
      b, c, step = select(u).split([self.state, self.state, u.shape[-1]], -1)
      step = F.softplus(step)
      rate = -torch.exp(decay) * step.unsqueeze(-1)
      total = rate.cumsum(1).clamp(min=-20)
      added = (step * u).unsqueeze(-1) * b.unsqueeze(2)
      hidden = torch.exp(total) * torch.cumsum(added * torch.exp(-total), 1)
      x = x + out((hidden * c.unsqueeze(2)).sum(-1) * F.silu(gate))
    return x


class Diffusion(nn.Module):
  """One block of a diffusion network: residual convolutions with a time embedding, and attention to a text."""

  def __init__(self, c: int = 64, text: int = 96):
    super().__init__()
    self.norm1, self.norm2, self.norm3 = nn.GroupNorm(8, c), nn.GroupNorm(8, c), nn.LayerNorm(c)
    self.conv1, self.conv2 = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1)
    self.time = nn.Sequential(nn.Linear(c, 4 * c), nn.SiLU(), nn.Linear(4 * c, 2 * c))
    self.q, self.k, self.v, self.o = nn.Linear(c, c), nn.Linear(text, c), nn.Linear(text, c), nn.Linear(c, c)
    self.wide, self.narrow = nn.Linear(c, 8 * c), nn.Linear(4 * c, c)

  def forward(self, x: Tensor, time: Tensor, text: Tensor) -> Tensor:
    n, c, h, w = x.shape
    waves = torch.exp(torch.arange(c // 2) * (-math.log(10000.0) / (c // 2)))
    angles = time[:, None] * waves[None]
    scale, shift = self.time(torch.cat([angles.sin(), angles.cos()], 1))[:, :, None, None].chunk(2, 1)
    y = self.conv1(F.silu(self.norm1(x)))
    y = x + self.conv2(F.silu(self.norm2(y) * (1 + scale) + shift))
    tokens = y.flatten(2).transpose(1, 2)
    q, k, v = (z.unflatten(-1, (4, -1)).transpose(1, 2) for z in (self.q(self.norm3(tokens)), self.k(text), self.v(text)))
    tokens = tokens + self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
    a, b = self.wide(tokens).chunk(2, -1)
    tokens = tokens + self.narrow(a * F.gelu(b))
    return tokens.transpose(1, 2).unflatten(2, (h, w))


def tokens(*shape: int, words: int = 2000) -> Tensor:
  return torch.randint(1, words, shape)


MODELS: dict[str, Callable[[], tuple[nn.Module, tuple[Any, ...]]]] = {
  "resnet": lambda: (ResNet(), (torch.randn(4, 3, 64, 64),)),
  "mobilenet": lambda: (MobileNet(), (torch.randn(8, 3, 64, 64),)),
  "vit": lambda: (ViT(), (torch.randn(4, 3, 64, 64),)),
  "gpt2": lambda: (GPT2(), (tokens(2, 128),)),
  "bert": lambda: (BERT(), (torch.cat([tokens(4, 48), torch.zeros(4, 16, dtype=torch.long)], 1), torch.randint(0, 2, (4, 64)))),
  "lstm": lambda: (LSTM(), (tokens(8, 16, words=500),)),
  "unet": lambda: (UNet(), (torch.randn(2, 3, 64, 64),)),
  "vae": lambda: (VAE(), (torch.rand(8, 1, 32, 32), torch.randn(8, 32))),
  "yolo": lambda: (YOLO(), (torch.randn(2, 3, 128, 128),)),
  "mixer": lambda: (Mixer(), (torch.randn(4, 3, 64, 64),)),
  "ssm": lambda: (SSM(), (torch.randn(2, 64, 64),)),
  "diffusion": lambda: (Diffusion(), (torch.randn(2, 64, 16, 16), torch.rand(2) * 1000, torch.randn(2, 20, 96))),
}


def make(name: str) -> tuple[nn.Module, tuple[Any, ...]]:
  torch.manual_seed(0)
  return MODELS[name]()


def loss_of(out: Any) -> Tensor:
  """One number of whatever a network gives, in which every element has its own weight."""
  total = torch.zeros(())
  for x in out if isinstance(out, tuple) else (out,):
    x = x if x.dtype == torch.float64 else x.float()
    total = total + (x * torch.linspace(0.5, 1.5, x.numel(), dtype=x.dtype).reshape(x.shape)).mean() + x.square().mean()
  return total
