"""Runs a worker for each backend and has them work in turns; prints a row for each network: compare.py [NETWORK...]"""

from __future__ import annotations

import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from typing import Any

ROUNDS = int(os.environ.get("ROUNDS", "7"))
THREADS = os.environ.get("THREADS", "2")
BACKENDS = ("tinygrad_cpp", "inductor")


class Worker:
  """One process with empty caches on disk."""

  def __init__(self, backend: str, network: str, folder: str):
    env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor", "CACHEDB": f"{folder}/cache.db", "OMP_NUM_THREADS": THREADS, "NUM_CPU_THREADS": THREADS}
    self.process = subprocess.Popen([sys.executable, str(pathlib.Path(__file__).with_name("worker.py")), backend, network], env=env,
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

  def ask(self, what: str) -> Any:
    assert self.process.stdin and self.process.stdout
    print(what, file=self.process.stdin, flush=True)
    line = self.process.stdout.readline()
    if not line:
      raise RuntimeError(f"a worker ended: {self.process.args}")
    return json.loads(line)

  def end(self) -> None:
    assert self.process.stdin
    self.process.stdin.close()
    self.process.wait()


def compare(network: str) -> tuple[float, float]:
  with tempfile.TemporaryDirectory() as folder:
    workers = {b: Worker(b, network, folder) for b in BACKENDS}
    first = {b: w.ask("first") for b, w in workers.items()}
    for w in workers.values():
      w.ask("steps")
    times: dict[str, list[float]] = {b: [] for b in BACKENDS}
    for _ in range(ROUNDS):
      for b, w in workers.items():
        times[b].append(w.ask("steps"))
    fallbacks = workers["tinygrad_cpp"].ask("fallbacks")
    for w in workers.values():
      w.end()
  ours, theirs = (statistics.median(times[b]) for b in BACKENDS)
  own, their = (first[b]["backend"] for b in BACKENDS)
  print(f"{network:10} step {ours * 1e3:8.2f} ms, inductor {theirs * 1e3:8.2f} ms, ratio {theirs / ours:5.2f}; first call {first['tinygrad_cpp']['all']:6.2f} s "
        f"of which backend {own:6.2f}, inductor {first['inductor']['all']:6.2f} of which {their:6.2f}, share {own / their:5.3f}; "
        f"fallbacks {json.dumps(fallbacks)}", flush=True)
  return theirs / ours, own / their


def main() -> None:
  import torch_models

  rows = [compare(n) for n in sys.argv[1:] or torch_models.MODELS]
  mean = math.exp(statistics.fmean(math.log(r) for r, _ in rows))
  print(f"geometric mean of the ratios {mean:.2f}, worst share of a first call {max(s for _, s in rows):.3f}")


main()
