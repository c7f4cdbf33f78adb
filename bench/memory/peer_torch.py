"""The training steps of memory.cpp in PyTorch: how much more memory the process held at its peak than before, in MB."""
import json
import os

import torch
from torch import nn

torch.set_num_threads(len(os.sched_getaffinity(0)))


def conv_norm(fan_in, out, size, stride):
    return nn.Sequential(nn.Conv2d(fan_in, out, size, stride, size // 2, bias=False), nn.BatchNorm2d(out))


class Block(nn.Module):
    def __init__(self, fan_in, out, stride):
        super().__init__()
        self.first, self.second = conv_norm(fan_in, out, 3, stride), conv_norm(out, out, 3, 1)
        self.shortcut = conv_norm(fan_in, out, 1, stride) if stride != 1 or fan_in != out else nn.Identity()

    def forward(self, x):
        return (self.second(self.first(x).relu()) + self.shortcut(x)).relu()


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        widths = [64, 64, 64, 128, 128, 256, 256, 512, 512]
        self.stem, self.pool = conv_norm(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)
        self.blocks = nn.Sequential(*(Block(a, b, 2 if a != b else 1) for a, b in zip(widths, widths[1:])))
        self.out = nn.Linear(512, 1000)

    def forward(self, images):
        return self.out(self.blocks(self.pool(self.stem(images).relu())).mean((2, 3)))


def status(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1e3 for line in file if line.startswith(name + ":"))


images, classes = torch.randn(32, 3, 64, 64), torch.randint(0, 1000, (32,))
before = status("VmRSS")
net = ResNet18()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
for _ in range(3):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(images), classes)
    loss.backward()
    optimizer.step()
    value = loss.item()
print(json.dumps({"megabytes": round(status("VmHWM") - before, 1), "before": round(before, 1), "loss": round(value, 3)}))
