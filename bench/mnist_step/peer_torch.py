"""The step of mnist_step.cpp in PyTorch: seconds of a step as one JSON object."""
import json
import os
import sys
import time

import torch
from torch import nn

torch.set_num_threads(len(os.sched_getaffinity(0)))
net = nn.Sequential(nn.Conv2d(1, 32, 5), nn.ReLU(), nn.Conv2d(32, 32, 5), nn.ReLU(), nn.BatchNorm2d(32), nn.MaxPool2d(2),
                    nn.Conv2d(32, 64, 3), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(), nn.BatchNorm2d(64), nn.MaxPool2d(2),
                    nn.Flatten(), nn.Linear(576, 10))
optimizer = torch.optim.Adam(net.parameters())
pixels, labels = torch.randint(0, 256, (512, 1, 28, 28), dtype=torch.uint8), torch.randint(0, 10, (512,))


def step():
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(pixels.float() / 255), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


for _ in range(2):
    step()
times, count = [], int(sys.argv[1]) if len(sys.argv) > 1 else 5
for _ in range(count):
    start = time.perf_counter()
    step()
    times.append(time.perf_counter() - start)
print(json.dumps({"seconds": round(sorted(times)[count // 2], 4)}))
