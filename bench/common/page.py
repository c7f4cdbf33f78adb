"""Pages of docs/benchmarks/ from the rows of bench/kernels, and the index of them, docs/benchmarks.md."""
import json
import os

import goals
import history
import machine

INTRODUCTION = """\
Each side is a process of its own that computes when asked and is stopped while others do; sides take turns (3 where a call takes more than 5 s, and one where that is also 20 times as long as ours). Times are medians in milliseconds; in parentheses the median over rounds of our speed divided by the peer's: more than 1 is faster. A peer that kept less than three quarters of the CPUs busy is marked. Packing of operands is inside what is timed.

A row is judged by the least of its ratios, that beside the best peer of all that ran; "missed" is below its goal by anything. Of products 95 % of the peak reach a goal, too: of multiply-adds in registers, or of what a peer reached if that is more. Of random rows (\\*) the geometric mean has a goal, and each one a lower one where it says so.

The percentage is the part of the roofline: of multiply-adds in registers, or of reading and copying memory of the row's size, measured in our process before and after; of networks of multiply-adds alone. More than 100 % is Winograd's method, which has fewer multiplications than a convolution counts.

The error is the largest difference from float64, computed in our process (at random places of large results), divided by the value or, for smaller ones, by the root mean square of all; of training steps that of the loss after one, divided by how far that moved it. Networks have the same weights and inputs on all sides but tinygrad's, and peers are compared with the same float64 results.

Libraries in Python keep freed memory (MALLOC_MMAP_MAX_=0), which spares them page faults that they have otherwise. "Last runs" are the ratios of earlier runs of this page, the newest last."""


def number(x, digits=3):
    return f"{x:.{digits}g}" if x < 10 ** digits else f"{x:.0f}"


def ratio(x):
    return "" if x is None else f"{x:.2f}"


def milliseconds(seconds):
    return number(seconds * 1e3, 4)


def work_rate(row):
    parts = []
    if row.get("flops"):
        parts.append(f"{number(row['flops'] / row['seconds'] * 1e-9)} GFLOP/s")
    if row.get("bytes"):
        parts.append(f"{number(row['bytes'] / row['seconds'] * 1e-9)} GB/s")
    if row.get("roofline_seconds"):
        parts.append(f"{100 * row['roofline_seconds'] / row['seconds']:.0f} %")
    return ", ".join(parts)


def idle(peer):
    """Says that a peer left CPUs idle: it may be its choice, or the way we started it."""
    busy = peer.get("busy")
    return f", {100 * busy:.0f} % busy" if busy is not None and busy < 0.75 else ""


def apart(peer):
    """How far a peer's result is from the one that both should have."""
    return f", error {number(peer['difference'], 2)}" if "difference" in peer else ""


def plain(text):
    return (text.splitlines() or [""])[0].replace("|", "/")[:80]


def amount(goal, key):
    if goal["of"] == "seconds":
        return f"{number(goal[key] * 1e3)} ms" if goal[key] > 1e-4 else f"{number(goal[key] * 1e6)} us"
    return f"{100 * goal[key]:.0f} %" if goal["of"] == "the peak" else number(goal[key])


def goal_words(row):
    words = [] if row["right"] else ["**wrong**"]
    words += [f"**{name} disagrees**" for name in row["disagree"]]
    if goal := row.get("goal"):
        beside = "" if goal["of"] == "seconds" else f" of {goal['of']}"
        words.append(f"{amount(goal, 'value')}{beside}, goal {amount(goal, 'goal')}{'' if goal['reached'] else ' **missed**'}")
    return "<br>".join(words)


def trend(row, lines):
    """Ratios of the last runs; bold where this one fell."""
    earlier = [] if row["random"] else history.before(lines, history.key_of(row), row["date"])
    words = [ratio(e[0]) for e in earlier]
    lost = history.fell(history.entry(row), earlier)
    return ", ".join(words + ([f"**fell by {100 * lost:.0f} %**"] if lost else []))


def cells(row, lines):
    if "failed" in row:
        return [row["title"], "**failed**", plain(row["failed"]), "", "", "", ""]
    peers = [f"{name} {milliseconds(p['seconds'])} ({number(p['ratio'])}{idle(p)}{apart(p)})" for name, p in row["peers"].items()]
    peers += [f"{name}: {plain(why)}" for name, why in row["missing"].items()]
    error = number(row["error_of_result"], 2) if "error_of_result" in row else ""
    return [title_of(row), milliseconds(row["seconds"]), work_rate(row), "<br>".join(peers), error, goal_words(row), trend(row, lines)]


def title_of(row):
    return row["title"] + (" \\*" if row["random"] else "")


def table(header, body):
    return ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header), *("| " + " | ".join(line) + " |" for line in body), ""]


def missed(result):
    """Lines of what did not reach its goal, by work, the worst first."""
    lines = []
    for work in result["works"]:
        rows = [r for r in result["rows"] if r["work"] == work and goals.is_missed(r)]
        rows.sort(key=lambda r: -1 if goals.is_broken(r) else r["goal"]["value"] / r["goal"]["goal"] if r["goal"]["of"] != "seconds" else 0)
        lines += [f"- {m['work']}: {m['what']} {number(m['value'])}, goal {m['goal']:g}" for m in result["means"] if m["work"] == work and not m["reached"]]
        lines += [f"- {r['group']}: {title_of(r)}: {'failed' if 'failed' in r else goal_words(r)}" for r in rows]
    return lines


def fallen(result, lines):
    out = []
    for row in result["rows"]:
        if not row["random"] and "failed" not in row:
            key = history.key_of(row)
            if lost := history.fell(history.entry(row), history.before(lines, key, row["date"])):
                out.append(f"- {key}: {trend(row, lines)}, now {ratio(goals.ratio_of(row))}")
    return out


def work_lines(works):
    return [[name, str(m["rows"]), ratio(m["fixed"]), ratio(m["random"]), f"{m['worst']}: {ratio(m['worst_ratio'])}" if m["worst"] else "",
             f"{m['missed']} of {m['judged']}"] for name, m in works.items()]


def group_line(rows):
    m = goals.means(rows)
    if m["all"] is None:
        return []
    return [f"Geometric mean {ratio(m['all'])}; worst {m['worst']}: {ratio(m['worst_ratio'])}; {m['missed']} of {m['judged']} goals missed.", ""]


def span(values):
    """The least and the greatest of texts, or the one that all are."""
    low, high = min(values), max(values)
    return low if low == high else f"{low} to {high}"


def summary(result):
    """The line that the index repeats."""
    works = result["works"].values()
    missed_goals, judged = sum(m["missed"] for m in works), sum(m["judged"] for m in works)
    missed_means = sum(not m["reached"] for m in result["means"])
    of_means = f", {missed_means} of {len(result['means'])} of means" if result["means"] else ""
    commits = ", ".join(dict.fromkeys(run["commit"] for run in result["runs"]))
    return (f"Summary: {span([run['date'] for run in result['runs']])} UTC, commit {commits}: {len(result['rows'])} rows, "
            f"{missed_goals} of {judged} goals of rows missed{of_means}.")


def facts_of_machine(run):
    versions = ", ".join(f"{name} {version}" for name, version in sorted(run["versions"].items()))
    without = f"without {', '.join(run['without'])}" if run["without"] else ""
    threads = f"- {run['threads']} threads on as many CPUs, for every side, where a row does not say another number"
    return [f"- {run['machine']}", "; ".join(filter(None, [threads, versions, without]))]


def line_of_run(run):
    return [", ".join(run["groups"]), f"`{run['command']}`", run["date"], run["commit"], str(run["seed"]), str(run["rounds"]),
            f"{run['load'][0]:.1f}, {run['load'][1]:.1f}", f"{run['minutes']:.0f}"]


def head(result):
    runs = result["runs"]
    return [
        f"# Benchmarks: {machine.spoken(result['arch'])}", "",
        "Written by `bench/kernels/run`; do not edit. [How speed is measured](../benchmarking.md).", "",
        summary(result), "",
        *dict.fromkeys(line for run in runs for line in facts_of_machine(run)),
        "- random sizes (\\*) are those of a seed, by default the date: `--seed` repeats them", "",
        *table(["groups", "run", "date (UTC)", "commit", "seed", "rounds", "load average before and behind it", "minutes"], map(line_of_run, runs)),
        *([f"Not run on such a machine yet: {', '.join(result['absent'])}.", ""] if result["absent"] else [])]


def text_of(result, lines):
    """The page; `lines` are those of its record."""
    out = head(result)
    out += ["## Goals missed", "", *(missed(result) or ["None."]), ""]
    if lines:
        out += ["## Fallen since earlier runs", "", *(fallen(result, lines) or ["None."]), ""]
    out += ["## By work", "", *table(["work", "rows", "fixed, geometric mean", "random", "worst", "missed"], work_lines(result["works"]))]
    out += ["## How to read it", "", INTRODUCTION, ""]
    for name in dict.fromkeys(r["group"] for r in result["rows"]):
        rows = [r for r in result["rows"] if r["group"] == name]
        out += [f"## {name}", "", *group_line(rows)]
        out += table(["work", "tg", "rate", "peers", "error", "goal", "last runs"], [cells(r, lines) for r in rows])
    return "\n".join(out)


def write(path, result, lines):
    with open(path, "w") as file:
        file.write(text_of(result, lines))


def whole(run, known):
    """What a page has of a run alone; `known` are the names of all groups."""
    names = list(dict.fromkeys(row["group"] for row in run["rows"]))
    facts = {key: value for key, value in run.items() if key not in ("rows", "arch")}
    return {"arch": run["arch"], "runs": [facts | {"groups": names}], "rows": [row | {"date": run["date"]} for row in run["rows"]],
            "absent": [name for name in known if name not in names]}


def renewed(earlier, now, known):
    """The earlier rows and those of now, which replace those of their groups."""
    new = now["runs"][0]["groups"]
    runs = [run | {"groups": left} for run in earlier["runs"] if (left := [name for name in run["groups"] if name in known and name not in new])]
    rows = [row for row in earlier["rows"] if row["group"] not in new] + now["rows"]
    rows = sorted((row for row in rows if row["group"] in known), key=lambda row: known.index(row["group"]))
    measured = {row["group"] for row in rows}
    return now | {"runs": runs + now["runs"], "rows": rows, "absent": [name for name in known if name not in measured]}


def publish(docs, run, known, works_of):
    """The page of the machine, of whose groups the run's are renewed; its rows, its record with this run, and the index. `works_of(rows)` are
    their means by work and the goals of those."""
    base = os.path.join(docs, "benchmarks", run["arch"])
    os.makedirs(os.path.dirname(base), exist_ok=True)
    result = whole(run, known)
    if os.path.exists(f"{base}.rows.json"):
        with open(f"{base}.rows.json") as file:
            result = renewed(json.load(file), result, known)
    result["works"], result["means"] = works_of(result["rows"])
    write(f"{base}.md", result, history.read(f"{base}.jsonl"))
    with open(f"{base}.rows.json", "w") as file:
        lines = ",\n".join(json.dumps(row) for row in result["rows"])
        file.write(f'{{"runs": {json.dumps(result["runs"], indent=1)},\n"rows": [\n{lines}\n]}}\n')
    history.append(f"{base}.jsonl", history.line_of(run, works_of(run["rows"])[0]))
    write_index(docs)


def entry_of_index(folder, name):
    """The title of a page and its summary, each a line of it."""
    with open(os.path.join(folder, name)) as file:
        lines = file.read().splitlines()
    title = next(line for line in lines if line.startswith("# ")).removeprefix("# Benchmarks: ")
    said = next(line for line in lines if line.startswith("Summary: ")).removeprefix("Summary: ")
    return [f"[{title}](benchmarks/{name})", said]


def write_index(docs):
    folder = os.path.join(docs, "benchmarks")
    pages = [entry_of_index(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".md")]
    lines = ["# Benchmarks", "",
             "Kernels, networks and training steps beside other libraries, a page for each microarchitecture that they were measured on. "
             "[benchmarking.md](benchmarking.md) says how, [benchmarks-cuda.md](benchmarks-cuda.md) has an NVIDIA GPU.", "",
             *table(["processor", "last run"], pages),
             "```sh", "bench/kernels/run --publish              # all of it, hours: this machine's page, its record and this index",
             "bench/kernels/run matmul conv --publish  # these groups of the page",
             "bench/kernels/run matmul --quick         # a part, and no page", "```", "",
             "This page is written by the same program, from the lines that begin with \"Summary:\"."]
    with open(os.path.join(docs, "benchmarks.md"), "w") as file:
        file.write("\n".join(lines) + "\n")
