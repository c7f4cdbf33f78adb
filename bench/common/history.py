"""The record of runs of bench/kernels on one microarchitecture, a line of JSON each, and what fell since.

A line has the date, the commit, the machine, the seed, rounds and threads, and by rows of fixed sizes ("group: title") [ratio beside the
best peer, GFLOP/s or null, milliseconds, noise]; by works the geometric mean of random rows, the worst ratio and how many goals are missed."""
import json
import os
import statistics

import goals

LEAST_NOISE = 0.03  # what repeated runs differ by on a quiet machine
COMPARED = 5        # runs that a new one is compared with


def key_of(row):
    return f"{row['group']}: {row['title']}"


def spread(ratios):
    """Half of the distance between the quartiles, divided by the median."""
    if len(ratios) < 4:
        return 0.0
    low, middle, high = statistics.quantiles(ratios, n=4)
    return (high - low) / 2 / middle


def rounded(x, digits=4):
    return None if x is None else float(f"{x:.{digits}g}")


def entry(row):
    """None of a row without a ratio."""
    ratio = goals.ratio_of(row)
    if ratio is None:
        return None
    gflops = row["flops"] / row["seconds"] * 1e-9 if row.get("flops") else None
    noise = row["peers"][goals.best_peer(row)].get("spread", 0.0)
    return [rounded(ratio), rounded(gflops), rounded(row["seconds"] * 1e3), rounded(noise, 2)]


def line_of(run, works):
    """The line of a run; `works` are its means by work."""
    rows = {key_of(r): entry(r) for r in run["rows"] if not r["random"] and "failed" not in r}
    works = {name: [rounded(m["random"]), rounded(m["worst_ratio"]), m["missed"]] for name, m in works.items()}
    return {key: run[key] for key in ("date", "commit", "machine", "seed", "rounds", "threads")} | {
        "rows": {key: e for key, e in rows.items() if e}, "works": works}


def read(path):
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return [json.loads(line) for line in file if line.strip()]


def append(path, line):
    with open(path, "a") as file:
        file.write(json.dumps(line, separators=(",", ":")) + "\n")


def before(lines, key, date):
    """Entries of a row in the last runs that have it and are older than a date, the newest last."""
    return [line["rows"][key] for line in lines if key in line["rows"] and line["date"] < date][-COMPARED:]


def fell(now, earlier):
    """How much of its ratio a row lost against the median of earlier entries, where that is more than noise; None otherwise."""
    if not earlier or now is None:
        return None
    usual = statistics.median(e[0] for e in earlier)
    noise = max(LEAST_NOISE, 2 * now[3], 2 * statistics.median(e[3] for e in earlier))
    return 1 - now[0] / usual if now[0] < usual * (1 - noise) else None
