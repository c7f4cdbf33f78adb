"""Pages of docs/benchmarks/ from the rows of bench/kernels, and the index of them, docs/benchmarks.md."""
import os

import goals
import history
import machine

INTRODUCTION = """\
Each side is a process of its own that computes when asked and is stopped while others do; sides take turns, {rounds} rounds (3 where a call takes more than 5 s, and one where that is also 20 times as long as ours). Times are medians in milliseconds; in parentheses the median over rounds of our speed divided by the peer's: more than 1 is faster. A peer that kept less than three quarters of the CPUs busy is marked. Packing of operands is inside what is timed.

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
    earlier = [] if row["random"] else history.before(lines, history.key_of(row))
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
            if lost := history.fell(history.entry(row), history.before(lines, key)):
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


def summary(result):
    """The line that the index repeats."""
    works = result["works"].values()
    missed_goals, judged = sum(m["missed"] for m in works), sum(m["judged"] for m in works)
    missed_means = sum(not m["reached"] for m in result["means"])
    of_means = f", {missed_means} of {len(result['means'])} of means" if result["means"] else ""
    return f"Summary: {result['date']} UTC, commit {result['commit']}: {len(result['rows'])} rows, {missed_goals} of {judged} goals of rows missed{of_means}."


def head(result):
    versions = ", ".join(f"{name} {version}" for name, version in sorted(result["versions"].items()))
    without = f"without {', '.join(result['without'])}" if result["without"] else ""
    return [
        f"# Benchmarks: {machine.spoken(result['arch'])}", "",
        f"Written by `{result['command']}`; do not edit. [How speed is measured](../benchmarking.md).", "",
        summary(result), "",
        f"- {result['machine']}",
        "; ".join(filter(None, [f"- {result['threads']} threads on as many CPUs, for every side, where a row does not say another number", versions, without])),
        f"- load average {result['load'][0]:.1f} before, {result['load'][1]:.1f} behind it; {result['minutes']:.0f} minutes",
        f"- random sizes (\\*) from seed {result['seed']}: `--seed {result['seed']}` repeats them", ""]


def text_of(result, lines):
    """The page; `lines` are those of earlier runs."""
    out = head(result)
    out += ["## Goals missed", "", *(missed(result) or ["None."]), ""]
    if lines:
        out += ["## Fallen since earlier runs", "", *(fallen(result, lines) or ["None."]), ""]
    out += ["## By work", "", *table(["work", "rows", "fixed, geometric mean", "random", "worst", "missed"], work_lines(result["works"]))]
    out += ["## How to read it", "", INTRODUCTION.format(rounds=result["rounds"]), ""]
    for name in dict.fromkeys(r["group"] for r in result["rows"]):
        rows = [r for r in result["rows"] if r["group"] == name]
        out += [f"## {name}", "", *group_line(rows)]
        out += table(["work", "tg", "rate", "peers", "error", "goal", "last runs"], [cells(r, lines) for r in rows])
    return "\n".join(out)


def write(path, result, lines):
    with open(path, "w") as file:
        file.write(text_of(result, lines))


def publish(docs, result):
    """The page of the machine, its record with this run, and the index."""
    folder = os.path.join(docs, "benchmarks")
    os.makedirs(folder, exist_ok=True)
    record = os.path.join(folder, f"{result['arch']}.jsonl")
    write(os.path.join(folder, f"{result['arch']}.md"), result, history.read(record))
    history.append(record, history.line_of(result))
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
             "bench/kernels/run matmul --quick         # a part, and no page", "```", "",
             "This page is written by the same program, from the lines that begin with \"Summary:\"."]
    with open(os.path.join(docs, "benchmarks.md"), "w") as file:
        file.write("\n".join(lines) + "\n")
