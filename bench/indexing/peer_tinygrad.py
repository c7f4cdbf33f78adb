"""The programs of indexing.cpp in tinygrad: peer_tinygrad.py [NAME] prints kernels and seconds of a jitted step."""
import json
import sys
import time

from tinygrad import Device, GlobalCounters, Tensor, TinyJit

IMAGE, FILTERS = (8, 32, 32, 32), (64, 32, 3, 3)


def strided(x, w, *_):
    return x.conv2d(w, stride=2, padding=1)


def pooled(x, *_):
    return x.max_pool2d((3, 3), stride=2, padding=1)


def windows(x):
    return x.pad(((0, 0), (0, 0), (1, 1), (1, 1)))._pool((3, 3))


PROGRAMS = {
    "convolution": ([IMAGE, FILTERS], lambda x, w: x.conv2d(w, padding=1)),
    "strided convolution": ([IMAGE, FILTERS], strided),
    "its gradient to the input": ([IMAGE, FILTERS, (8, 64, 16, 16)], lambda x, w, g: strided(x, w).gradient(x, gradient=g)[0]),
    "its gradient to the weights": ([IMAGE, FILTERS, (8, 64, 16, 16)], lambda x, w, g: strided(x, w).gradient(w, gradient=g)[0]),
    "transposed convolution": ([(8, 32, 16, 16), (32, 32, 3, 3)], lambda x, w: x.conv_transpose2d(w, stride=2, padding=1)),
    "patches": ([(8, 3, 128, 128)], lambda x: x.reshape(8, 3, 8, 16, 8, 16).permute(0, 2, 4, 1, 3, 5).reshape(8, 64, 768)),
    "windows as a matrix": ([(4, 16, 32, 32)], lambda x: windows(x).permute(0, 2, 3, 1, 4, 5).reshape(4096, 144)),
    "transpose of a reshape": ([(960, 640)], lambda x: x.T.reshape(480, 1280).T),
    "padded max pool": ([(8, 32, 64, 64)], pooled),
    "its gradient": ([(8, 32, 64, 64), (8, 32, 32, 32)], lambda x, g: pooled(x).gradient(x, gradient=g)[0]),
    "roll": ([(1000, 1200)], lambda x: x.roll((300, 500), (0, 1))),
    "strided slices": ([(200, 120, 100)], lambda x: x[::-2, 1::3, ::-1]),
    "concatenation": ([(500, 300), (700, 300), (100, 300)], lambda x, y, z: x.cat(y, z).flip((0, 1))),
}

for name, (shapes, program) in PROGRAMS.items():
    if len(sys.argv) > 1 and sys.argv[1] != name:
        continue
    inputs = [Tensor.randn(*shape).realize() for shape in shapes]
    step = TinyJit(lambda *t: program(*t).contiguous().realize())
    for _ in range(3):
        step(*inputs)
    times = []
    while len(times) < 5 or (sum(times) < 0.3 and len(times) < 1000):
        GlobalCounters.reset()
        start = time.perf_counter()
        step(*inputs)
        Device[Device.DEFAULT].synchronize()
        times.append(time.perf_counter() - start)
    print(json.dumps({"name": name, "kernels": GlobalCounters.kernel_count, "seconds": round(sorted(times)[len(times) // 2], 6)}))
