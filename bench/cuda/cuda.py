"""Our kernels on an NVIDIA GPU beside cuBLAS, PyTorch and copies: see bench/cuda/run."""
import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import time

import machine
import page
import sides

EQUAL = 0.97  # closer than this is equal


@dataclasses.dataclass(frozen=True)
class Row:
    title: str
    case: dict
    beside: str  # what the goal is a fraction of: "cuBLAS", "copy", or "PyTorch", which has no goal
    goal: float | None
    moved: int = 0  # bytes read and written, where the goal is of copies
    environment: dict = dataclasses.field(default_factory=dict)
    tolerance: float | None = None  # where products are rounded more than the dtype has it

    def arguments(self):
        """Of tg bench."""
        case = self.case
        words = [case["kernel"], "--size", ",".join(map(str, case["size"])), "--dtype", case["dtype"]]
        return words + (["--op", case["op"]] if "op" in case else [])


def case(kernel, *size, dtype="float32", **more):
    return {"kernel": kernel, "size": list(size), "dtype": dtype} | more


MIB = 1 << 20
ROWS = (
    Row("matmul 8192x8192x8192 bfloat16", case("matmul", 8192, 8192, 8192, dtype="bfloat16"), "cuBLAS", 0.8),
    Row("matmul 4096x4096x4096 float32", case("matmul", 4096, 4096, 4096), "cuBLAS", 0.8),
    # Factors have 10 bits behind the point.
    Row("matmul 4096x4096x4096 tf32", case("matmul", 4096, 4096, 4096, tf32=True), "cuBLAS", 0.8, environment={"ALLOW_TF32": "1"},
        tolerance=1e-2),
    Row("softmax 4096x4096 float32", case("softmax", 4096, 4096), "copy", 0.9, moved=2 * 4 * 16 * MIB),
    Row("layernorm 4096x4096 float32", case("layernorm", 4096, 4096), "copy", 0.9, moved=2 * 4 * 16 * MIB),
    Row("relu(a * b + c) of 64M float32", case("elementwise", 64 * MIB, op="relu_fma"), "copy", 0.9, moved=4 * 4 * 64 * MIB),
    Row("attention 8x1024x64 float32", case("attention", 8, 1024, 64), "PyTorch", None),
)


class Missing(Exception):
    """Something that the measurement needs is not here."""


def gpu():
    """The GPU and its driver, as nvidia-smi has them."""
    try:
        ran = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader", "--id=0"],
                             capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "a GPU that nvidia-smi does not tell of"
    name, driver, memory = (part.strip() for part in ran.stdout.splitlines()[0].split(","))
    return f"{name}, {memory}, driver {driver}"


def check_ours(tg, device):
    if not os.access(tg, os.X_OK):
        raise Missing(f"{tg}: not built; `cmake --preset release && ninja -C build/release bin/tg` does so")
    ran = subprocess.run([tg, "devices", "--json"], capture_output=True, text=True, check=True)
    reasons = {d["device"]: d["reason"] for d in map(json.loads, ran.stdout.splitlines())}
    if device not in reasons:
        raise Missing(f"{device}: no such device; `tg devices` lists them")
    if reasons[device]:
        raise Missing(f"{device}: {reasons[device]}")


def peer_side(cpus):
    here = os.path.dirname(os.path.abspath(__file__))
    reasons = []
    for arguments in ([], ["cublas"]):
        side = sides.Side("peer", [sys.executable, os.path.join(here, "peer.py"), *arguments], cpus=cpus)
        try:
            side.start()
            return side
        except sides.Failed as e:
            side.close()
            reasons.append(str(e))
    raise Missing("no peer: install PyTorch for CUDA (`pip install torch`), or libcublas and libcudart of NVIDIA's toolkit")


def ours(tg, row, device, budget):
    """What `tg bench` says of a row, by itself."""
    ran = subprocess.run([tg, "bench", *row.arguments(), "--budget", str(budget), "--json"], capture_output=True, text=True,
                         env=os.environ | {"DEV": device} | row.environment)
    if not ran.stdout.strip():
        raise sides.Failed((ran.stderr.strip().splitlines() or ["ended"])[-1])
    return json.loads(ran.stdout.splitlines()[-1])


def calls_for(seconds):
    return max(1, min(2000, int(0.05 / max(seconds, 1e-9))))


def measure(row, options, peer, tg):
    """Medians over rounds, in each of which we, the peer and the copy had their turns."""
    result = {"title": row.title, "beside": row.beside, "goal": row.goal, "ms": [], "peer_ms": [], "copy_gb_s": [], "error": 0.0}
    tolerance = row.tolerance
    for _ in range(options.rounds):
        done = ours(tg, row, options.device, options.budget)
        result["ms"].append(done["ms"])
        result["error"] = max(result["error"], done["error"])
        tolerance = tolerance or done["tolerance"]
        try:
            result["peer_ms"].append(1e3 * peer.seconds(calls_for(peer.prepare(row.case)["seconds"])))
        except sides.Failed as e:
            result["peer_missing"] = str(e)
        if row.beside == "copy":
            rough = peer.prepare({"kernel": "copy", "size": [row.moved // 2]})["seconds"]
            result["copy_gb_s"].append(row.moved / peer.seconds(calls_for(rough)) * 1e-9)
    return judge(result, row, tolerance)


def judge(result, row, tolerance):
    result["right"] = result["error"] <= tolerance
    if row.beside == "copy":
        result["gb_s"] = row.moved / statistics.median(result["ms"]) * 1e-6
        result["ratio"] = statistics.median(row.moved / ms * 1e-6 / copy for ms, copy in zip(result["ms"], result["copy_gb_s"]))
    elif result["peer_ms"]:
        result["ratio"] = statistics.median(peer / ms for ms, peer in zip(result["ms"], result["peer_ms"]))
    result["reached"] = row.goal is None or ("ratio" in result and result["ratio"] >= row.goal * EQUAL)
    return result


def cells(r):
    if "failed" in r:
        return [r["title"], "**failed**", r["failed"].replace("|", "/"), "", "", ""]
    peer = page.number(statistics.median(r["peer_ms"]), 4) if r["peer_ms"] else r.get("peer_missing", "").replace("|", "/")
    copy = f"{page.number(r['gb_s'], 4)} of {page.number(statistics.median(r['copy_gb_s']), 4)}" if "gb_s" in r else ""
    words = f"{page.number(r['ratio'])} of {r['beside']}" if "ratio" in r else f"nothing to compare with {r['beside']}"
    words += f" (goal {r['goal']})" if r["goal"] else ""
    words += ("" if r["reached"] else " **below**") + ("" if r["right"] else " **wrong**")
    return [r["title"], page.number(statistics.median(r["ms"]), 4), peer, copy, page.number(r["error"], 2), words]


def write(path, results, options, peer):
    judged = [r for r in results if r.get("goal")]
    below = sum(not r["reached"] for r in judged)
    lines = [
        "# Benchmarks on an NVIDIA GPU", "",
        f"Written by `{' '.join(['bench/cuda/run', *sys.argv[1:]])}`; do not edit.", "",
        f"- commit {machine.commit()}, {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC",
        f"- {gpu()}",
        f"- {machine.describe()}",
        f"- device {options.device}; beside {peer.version}", "",
        f"In each of {options.rounds} rounds `tg bench`, the peer and, for what only moves memory, a copy of as many bytes on the device have their turns. Times are medians of what a call takes, in "
        "milliseconds, of calls that follow each other with one wait at the end. A ratio is the median over rounds: the peer's time by ours, or the "
        "bytes that a work must read and write a second by those that the copy reads and writes. Within 3 % of a goal counts as "
        "reached. The error is the largest difference from float64, as `tg bench` has it.", "",
        f"{len(results)} rows, {len(judged)} goals, {below} of them below.", "",
        "| work | tg ms | peer ms | GB/s, of the copy's | error | ratio |", "| --- | --- | --- | --- | --- | --- |"]
    lines += ["| " + " | ".join(cells(r)) + " |" for r in results]
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")


def parse():
    parser = argparse.ArgumentParser(prog="bench/cuda/run", description="Our kernels on an NVIDIA GPU beside the libraries', in turns.")
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--device", default="CUDA", choices=("CUDA", "CUDA:PTX"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=2, help="seconds that `tg bench` may time in a round")
    parser.add_argument("--only", default="", help="only rows whose titles contain this; then no page is written")
    parser.add_argument("--page", default="docs/benchmarks-cuda.md", metavar="FILE")
    return parser.parse_args()


def measure_all(options, peer, tg):
    results = []
    for row in ROWS:
        if options.only not in row.title:
            continue
        try:
            results.append(measure(row, options, peer, tg))
        except sides.Failed as e:
            results.append({"title": row.title, "goal": row.goal, "reached": False, "failed": str(e)})
        print("  ".join(cells(results[-1])), flush=True)
    return results


def main():
    options = parse()
    tg = os.path.join(options.build, "bin", "tg")
    try:
        check_ours(tg, options.device)
        peer = peer_side(os.sched_getaffinity(0))
    except Missing as e:
        print(f"bench/cuda/run: {e}", file=sys.stderr)
        return 2
    try:
        results = measure_all(options, peer, tg)
    finally:
        peer.close()
    if not options.only:
        write(options.page, results, options, peer)
    return 0 if all(r.get("right", False) for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
