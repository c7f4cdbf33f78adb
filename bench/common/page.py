"""docs/benchmarks.md from the rows of bench/kernels."""
import os
import platform
import subprocess
import time


def command_output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def machine():
    facts = {}
    for line in command_output("lscpu").splitlines():
        key, _, value = line.partition(":")
        facts[key.strip()] = value.strip()
    flags = facts.get("Flags", "").split()
    wide = [f for f in ("avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile") if f in flags]
    with open("/proc/meminfo") as file:
        memory = int(file.readline().split()[1]) / 1e6
    caches = ", ".join(f"{key.removesuffix(' cache')} {facts[key]}" for key in ("L1d cache", "L2 cache", "L3 cache") if key in facts)
    name = f"{facts.get('Model name', platform.processor())} (family {facts.get('CPU family', '?')}, model {facts.get('Model', '?')})"
    return f"{name}, {facts.get('CPU(s)', '?')} CPUs, {' '.join(wide) or platform.machine()}; {caches}; {memory:.0f} GB; Linux {platform.release().split('-')[0]}"


def commit():
    name = command_output("git", "rev-parse", "--short=10", "HEAD")
    return name + (" with changes" if command_output("git", "status", "--porcelain", "--untracked-files=no") else "")


def number(x, digits=3):
    return f"{x:.{digits}g}" if x < 10 ** digits else f"{x:.0f}"


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


def goals(row):
    words = [f"{number(g['ratio'])} of {' / '.join(g['peers'])} (goal {number(g['goal'])}){'' if g['reached'] else ' **below**'}"
             for g in row["goals"]]
    if not row["right"]:
        words.append("**wrong**")
    return "<br>".join(words)


def idle(peer):
    """Says that a peer left CPUs idle: it may be its choice, or the way we started it."""
    busy = peer.get("busy")
    return f", {100 * busy:.0f} % busy" if busy is not None and busy < 0.75 else ""


def cells(row):
    if "failed" in row:
        return [str(row["case"]), "**failed**", row["failed"].replace("|", "/"), "", "", ""]
    peers = [f"{name} {milliseconds(p['seconds'])} ({number(p['ratio'])}{idle(p)})" for name, p in row["peers"].items()]
    peers += [f"{name}: {why.splitlines()[0].replace('|', '/')[:80]}" for name, why in row["missing"].items()]
    error = number(row["error_of_result"], 2) if "error_of_result" in row else ""
    return [row["title"] + (" \\*" if row["random"] else ""), milliseconds(row["seconds"]), work_rate(row), "<br>".join(peers), error, goals(row)]


def summary(rows):
    judged = [g for r in rows for g in r.get("goals", [])]
    below = sum(not g["reached"] for g in judged)
    failed = sum("failed" in r for r in rows)
    return f"{len(rows)} rows, {len(judged)} goals, {below} of them below" + (f", {failed} rows failed" if failed else "") + "."


def write(path, result):
    versions = ", ".join(f"{name} {version}" for name, version in sorted(result["versions"].items()))
    without = f"without {', '.join(result['without'])}, with their goals left out" if result["without"] else ""
    lines = [
        "# Benchmarks", "",
        f"Written by `{result['command']}`, a part of `make bench`; do not edit. `bench/kernels/run GROUP` measures a part, `tg bench KERNEL` one kernel.",
        "",
        f"- commit {commit()}, {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC, load average {os.getloadavg()[0]:.1f} at the end",
        f"- {machine()}",
        "; ".join(filter(None, [f"- {result['threads']} threads on as many CPUs, for every side", versions, without])),
        f"- random sizes (\\*) from seed {result['seed']}: `--seed {result['seed']}` repeats them", "",
        f"Each side is a process of its own that computes when asked and is stopped while others do; sides take turns, {result['rounds']} rounds "
        "(3 where a call takes more than 5 s). Times are medians in milliseconds; in parentheses the median over rounds of our speed divided "
        "by the peer's: more than 1 is faster. A peer that kept less than three quarters of the CPUs busy is marked. Packing of operands is "
        "inside what is timed. Within 3 % of a goal counts as reached; a random size is to reach 0.9 of what the fixed ones of its group do. The percentage is the fraction of the roofline: of what multiply-adds in "
        "registers, or reading and copying memory of the row's size, reached in our process, before or after; of networks, of multiply-adds alone. "
        "More than 100 % is Winograd's method, which has fewer multiplications than the convolution counts. The error is the largest difference "
        "from float64, computed in the same process (at random places of large results), divided by the value or, for smaller ones, by the root "
        "mean square of all; of training steps, that of the loss after one, divided by how far that moved it. Libraries in Python keep freed memory (MALLOC_MMAP_MAX_=0), which spares them page faults that they have otherwise.",
        "",
        summary(result["rows"]), ""]
    for name in dict.fromkeys(r["group"] for r in result["rows"]):
        lines += [f"## {name}", "", "| work | tg | rate | peers | error | goals |", "| --- | --- | --- | --- | --- | --- |"]
        lines += ["| " + " | ".join(cells(r)) + " |" for r in result["rows"] if r["group"] == name] + [""]
    with open(path, "w") as file:
        file.write("\n".join(lines))
