"""The step of mnist_step.cpp in tinygrad, jitted: seconds, kernels and bytes of a step as one JSON object."""
import json
import sys
import time

from tinygrad import Context, GlobalCounters, Tensor, TinyJit, dtypes, nn

from models_tinygrad import MnistNet

net = MnistNet()
optimizer = nn.optim.Adam(nn.state.get_parameters(net))
pixels = Tensor.randint(512, 1, 28, 28, low=0, high=256, dtype=dtypes.uint8).realize()
labels = Tensor.randint(512, low=0, high=10, dtype=dtypes.uint8).realize()


@TinyJit
@Context(TRAINING=1)
def step(x, y):
    optimizer.zero_grad()
    loss = net(x).sparse_categorical_crossentropy(y).backward()
    return loss.realize(*optimizer.schedule_step())


for _ in range(3):
    step(pixels, labels).item()
times, count = [], int(sys.argv[1]) if len(sys.argv) > 1 else 5
GlobalCounters.reset()
for _ in range(count):
    start = time.perf_counter()
    step(pixels, labels).item()
    times.append(time.perf_counter() - start)
print(json.dumps({"seconds": round(sorted(times)[count // 2], 4), "kernels": GlobalCounters.kernel_count // count,
                  "megabytes": round(GlobalCounters.global_mem / count / 1e6, 1)}))
