"""apps/models/conv_norm.h in PyTorch."""
from torch import nn


class ConvNorm(nn.Module):
    def __init__(self, fan_in, out, size, stride, groups=1, eps=1e-5):
        super().__init__()
        self.conv = nn.Conv2d(fan_in, out, size, stride, size // 2, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(out, eps=eps)

    def forward(self, x):
        return self.norm(self.conv(x))
