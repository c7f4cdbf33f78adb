"""Milliseconds from the import to a first result, then microseconds that Python takes for one operation on a small tensor, by module:
tinygrad_cpp and tinygrad build a graph, PyTorch computes."""
import importlib
import json
import sys
import time

module = sys.argv[1]
start = time.perf_counter()
Tensor = importlib.import_module(module).Tensor if module != "torch" else importlib.import_module("torch").tensor
a, b = Tensor([1.0, 2.0, 3.0, 4.0]), Tensor([[1.0], [2.0]])
first_result = (a + 1).tolist()
milliseconds = (time.perf_counter() - start) * 1e3

# What is done, and how many operations it is.
CHAINS = {
    "addition": (lambda x: x + a, 1),
    "relu": (lambda x: x.relu(), 1),
    "broadcast addition, indexing": (lambda x: (x + b)[0], 2),
    "sum and views": (lambda x: x.reshape(2, 2).sum(0).reshape(2, 1).expand(2, 2).reshape(4), 5),
}


def seconds(step, count=200, rounds=15):
    best = float("inf")
    for r in range(rounds):
        x = a + float(r)  # no graph is built twice
        start = time.perf_counter()
        for _ in range(count):
            x = step(x)
        best = min(best, time.perf_counter() - start)
    return best / count


print(json.dumps({"first result": round(milliseconds, 1)} | {name: round(seconds(step) / count * 1e6, 2) for name, (step, count) in CHAINS.items()}))
