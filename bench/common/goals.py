"""How rows of bench/kernels are judged. Each one is compared by itself with the best peer of all that ran; nothing is averaged away and
nothing is forgiven for being near."""
import dataclasses
import math
import statistics


@dataclasses.dataclass(frozen=True)
class Goal:
    """What a row must reach, and what means of rows must. A ratio is our speed divided by that of the best peer. None: no such goal."""
    least: float | None = None         # the ratio of each row, unless random_least is for random ones
    of_peak: float | None = None       # or, of a fixed row, this fraction of the machine's peak
    random_least: float | None = None
    random_mean: float | None = None   # geometric mean of the ratios of random rows
    mean: float | None = None          # geometric mean of the ratios of all rows
    seconds: float | None = None       # the row itself takes at most so long
    beyond_own: bool = False           # more than the row's own_seconds
    scaling: bool = False              # more threads make it as many times faster as the best peer, and never slower


def best_peer(row):
    """The name of the peer beside which our ratio is the least; None without one. Another build of ours is none."""
    return min((name for name in row["peers"] if name != "before"), key=lambda name: row["peers"][name]["ratio"], default=None)


def ratio_of(row):
    name = best_peer(row)
    return None if name is None else row["peers"][name]["ratio"]


def part_of_peak(row):
    """Of what multiply-adds in registers reached, or of a peer that was faster than that: then the peak was measured too low."""
    if not row.get("flops") or not row.get("peak_gflops"):
        return None
    fastest = min([row["flops"] / row["peak_gflops"] * 1e-9, *(p["seconds"] for p in row["peers"].values())])
    return fastest / row["seconds"]


def error_in(facts):
    """JSON has null for what is infinite or not a number."""
    return math.inf if facts["error_of_result"] is None else facts["error_of_result"]


def check(row):
    """Adds whether the result is right, and the peers whose results are others."""
    if "error_of_result" in row:
        row["error_of_result"] = error_in(row)
    row["right"] = row.get("error_of_result", 0) <= row.get("tolerance", 0)
    row["disagree"] = [name for name, p in row["peers"].items() if "difference" in p and not p["difference"] <= row["tolerance"]]


def judge(row, goal):
    """Adds the row's "goal": what is judged, the figure, what it should be, and whether that is reached; nothing where nothing can be judged."""
    check(row)
    row.pop("goal", None)
    ratio, least = ratio_of(row), row["case"].get("least", goal.least)
    if row["random"] and goal.random_least is not None:
        least = goal.random_least
    if goal.seconds is not None:
        limit = goal.seconds + (row["own_seconds"] if goal.beyond_own else 0)
        took = row["seconds"] / row.get("each", 1)
        row["goal"] = {"of": "seconds", "value": took, "goal": limit, "reached": took <= limit}
    elif ratio is not None and least is not None and not goal.scaling:
        row["goal"] = {"of": best_peer(row), "value": ratio, "goal": least, "reached": ratio >= least}
        peak = part_of_peak(row)
        if goal.of_peak is not None and not row["random"] and ratio < least and peak is not None and peak >= goal.of_peak:
            row["goal"] = {"of": "the peak", "value": peak, "goal": goal.of_peak, "reached": True}


def judge_scaling(rows):
    """Of rows of one case with more and more threads: each after the first is to be as many times faster than the first as the peer that is
    fastest there, and not slower than the one before."""
    rows = [r for r in rows if "failed" not in r]
    for row in rows:
        check(row)
    for before, row in zip(rows, rows[1:]):
        first = rows[0]
        ours = first["seconds"] / row["seconds"]
        known = [name for name in row["peers"] if name in first["peers"] and name != "before"]
        peer = min(known, key=lambda name: row["peers"][name]["seconds"], default=None)
        theirs = first["peers"][peer]["seconds"] / row["peers"][peer]["seconds"] if peer else 1.0
        row["goal"] = {"of": f"scaling of {peer}" if peer else "one thread", "value": ours, "goal": theirs,
                       "reached": ours >= theirs and row["seconds"] <= before["seconds"]}


def geometric_mean(ratios):
    return math.exp(statistics.fmean(math.log(r) for r in ratios)) if ratios else None


def means(rows):
    """Of the rows of a group or a work: means of the ratios of fixed and of random rows, the worst row, and how many goals are missed."""
    judged = [r for r in rows if "failed" not in r and ratio_of(r) is not None]
    ratios = {kind: [ratio_of(r) for r in judged if r["random"] == kind] for kind in (False, True)}
    worst = min(judged, key=ratio_of, default=None)
    return {"rows": len(rows), "fixed": geometric_mean(ratios[False]), "random": geometric_mean(ratios[True]),
            "all": geometric_mean(ratios[False] + ratios[True]), "worst": worst and worst["title"], "worst_ratio": worst and ratio_of(worst),
            "judged": sum("goal" in r or is_broken(r) for r in rows), "missed": sum(is_missed(r) for r in rows)}


def is_broken(row):
    return "failed" in row or not row["right"]


def is_missed(row):
    return is_broken(row) or not row.get("goal", {"reached": True})["reached"]


def goals_of_means(work, rows, goal):
    """Those of a work's means: what, the figure, what it should be, whether that is reached."""
    found, out = means(rows), []
    for what, key, least in (("geometric mean of random rows", "random", goal.random_mean), ("geometric mean of all rows", "all", goal.mean)):
        if least is not None and found[key] is not None:
            out.append({"work": work, "what": what, "value": found[key], "goal": least, "reached": found[key] >= least})
    return out
