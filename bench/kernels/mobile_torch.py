"""apps/models/mobile.h in PyTorch."""
import torch.nn.functional as F
from torch import nn

from conv_norm_torch import ConvNorm


class SqueezeExcite(nn.Module):
    def __init__(self, channels, squeezed, silu):
        super().__init__()
        self.narrow, self.widen, self.silu = nn.Conv2d(channels, squeezed, 1), nn.Conv2d(squeezed, channels, 1), silu

    def forward(self, x):
        y = self.narrow(x.mean((2, 3), keepdim=True))
        return x * (self.widen(F.silu(y)).sigmoid() if self.silu else F.hardsigmoid(self.widen(y.relu())))


class Block(nn.Module):
    def __init__(self, fan_in, expanded, out, window, stride, squeezed, activation, eps=1e-5):
        super().__init__()
        self.expand = ConvNorm(fan_in, expanded, 1, 1, eps=eps) if expanded != fan_in else None
        self.depthwise = ConvNorm(expanded, expanded, window, stride, expanded, eps)
        self.squeeze = SqueezeExcite(expanded, squeezed, activation is F.silu) if squeezed else None
        self.project = ConvNorm(expanded, out, 1, 1, eps=eps)
        self.activation, self.adds = activation, stride == 1 and fan_in == out

    def forward(self, x):
        y = self.activation(self.expand(x)) if self.expand else x
        y = self.activation(self.depthwise(y))
        y = self.project(self.squeeze(y) if self.squeeze else y)
        return y + x if self.adds else y


class MobileNetV3(nn.Module):
    def __init__(self, eps=1e-3):
        super().__init__()
        blocks = ((16, 16, 16, 3, 1, 0, F.relu), (16, 64, 24, 3, 2, 0, F.relu), (24, 72, 24, 3, 1, 0, F.relu), (24, 72, 40, 5, 2, 24, F.relu),
                  (40, 120, 40, 5, 1, 32, F.relu), (40, 120, 40, 5, 1, 32, F.relu), (40, 240, 80, 3, 2, 0, F.hardswish),
                  (80, 200, 80, 3, 1, 0, F.hardswish), (80, 184, 80, 3, 1, 0, F.hardswish), (80, 184, 80, 3, 1, 0, F.hardswish),
                  (80, 480, 112, 3, 1, 120, F.hardswish), (112, 672, 112, 3, 1, 168, F.hardswish), (112, 672, 160, 5, 2, 168, F.hardswish),
                  (160, 960, 160, 5, 1, 240, F.hardswish), (160, 960, 160, 5, 1, 240, F.hardswish))
        self.stem, self.blocks = ConvNorm(3, 16, 3, 2, eps=eps), nn.Sequential(*(Block(*b, eps) for b in blocks))
        self.last, self.hidden, self.out = ConvNorm(160, 960, 1, 1, eps=eps), nn.Linear(960, 1280), nn.Linear(1280, 1000)

    def forward(self, images):
        x = self.last(self.blocks(F.hardswish(self.stem(images))))
        return self.out(F.hardswish(self.hidden(F.hardswish(x).mean((2, 3)))))


class EfficientNetB0(nn.Module):
    def __init__(self):
        super().__init__()
        blocks, fan_in = [], 32
        for expansion, window, stride, out, layers in ((1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3),
                                                       (6, 5, 2, 192, 4), (6, 3, 1, 320, 1)):
            for i in range(layers):
                blocks.append(Block(fan_in, fan_in * expansion, out, window, stride if i == 0 else 1, fan_in // 4, F.silu))
                fan_in = out
        self.stem, self.blocks = ConvNorm(3, 32, 3, 2), nn.Sequential(*blocks)
        self.last, self.out = ConvNorm(320, 1280, 1, 1), nn.Linear(1280, 1000)

    def forward(self, images):
        return self.out(F.silu(self.last(self.blocks(F.silu(self.stem(images))))).mean((2, 3)))
