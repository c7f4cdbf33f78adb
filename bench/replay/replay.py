"""replay.cpp from Python, by module: tinygrad_cpp and tinygrad replay a jitted chain, PyTorch computes it op by op."""
import importlib
import json
import statistics
import sys
import time

module = importlib.import_module(sys.argv[1])


def chain_of(kernels):
    if module.__name__ == "torch":
        x = module.rand(16)

        def run():
            y = x
            for _ in range(kernels):
                y = y + 1
    else:

        @module.TinyJit
        def replayed(y):
            for _ in range(kernels):
                y = (y * 0.5 + 1).realize()
            return y

        x = module.Tensor.rand(16).realize()

        def run():
            replayed(x)
    return run


def microseconds(kernels):
    run = chain_of(kernels)
    times = []
    for _ in range(500):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e6)
    return statistics.median(times)


hundred, one = microseconds(100), microseconds(1)
print(json.dumps({"kernel": round(hundred / 100, 4), "call": round(one, 4)}))
