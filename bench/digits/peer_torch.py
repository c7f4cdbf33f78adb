"""The training of apps/digits/digits.cpp in PyTorch: prints its seconds and the test accuracy as one JSON object."""
import csv
import gzip
import json
import os
import sys
import time

import torch
from torch import nn

torch.manual_seed(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
torch.set_num_threads(len(os.sched_getaffinity(0)))
rows = [[int(v) for v in row] for row in csv.reader(gzip.open(sys.argv[1], "rt"))]
pixels = torch.tensor([r[:64] for r in rows], dtype=torch.uint8).reshape(-1, 1, 8, 8)
labels = torch.tensor([r[64] for r in rows])
test = torch.arange(len(rows)) % 5 == 0
train_x, train_y = nn.functional.pad(pixels[~test], (1, 1, 1, 1)).flatten(), labels[~test]

net = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
    nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Dropout(0.3), nn.Linear(32 * 4 * 4, 10))
optimizer = torch.optim.Adam(net.parameters())
window = torch.arange(8).reshape(8, 1) * 10 + torch.arange(8)
epochs, batch = 30, 64
batches = len(train_y) // batch
steps = epochs * batches

start, step = time.perf_counter(), 0
net.train()
for epoch in range(epochs):
    order = torch.randperm(len(train_y))
    right = 0
    for b in range(batches):
        chosen = order[b * batch:(b + 1) * batch]
        corners = chosen * 100 + torch.randint(0, 3, (batch,)) * 10 + torch.randint(0, 3, (batch,))
        x = train_x[corners.reshape(-1, 1, 1, 1) + window].float() / 16
        for group in optimizer.param_groups:
            group["lr"] = 4e-3 * (steps - step) / steps
        optimizer.zero_grad()
        scores = net(x)
        loss = nn.functional.cross_entropy(scores, train_y[chosen])
        loss.backward()
        optimizer.step()
        loss.item()
        right += (scores.argmax(1) == train_y[chosen]).sum().item()
        step += 1
seconds = time.perf_counter() - start
net.eval()
with torch.no_grad():
    accuracy = (net(pixels[test].float() / 16).argmax(1) == labels[test]).float().mean().item()
print(json.dumps({"seconds": round(seconds, 3), "test_accuracy": round(accuracy, 4)}))
