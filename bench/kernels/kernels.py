"""Our kernels beside the libraries': see bench/kernels/run."""
import argparse
import contextlib
import json
import math
import os
import random
import statistics
import sys
import tempfile

import page
import rows
import sides

EQUAL = 0.97  # closer than this is equal


def compared(times, ours, peers):
    """Of a row: medians of seconds and of ratios of pairs."""
    row = {"seconds": statistics.median(times[ours]), "peers": {}}
    for peer in peers:
        pairs = list(zip(times[peer], times[ours]))
        row["peers"][peer.name] = {"seconds": statistics.median(times[peer]), "ratio": statistics.median(p / o for p, o in pairs),
                                   "pairs": len(pairs)}
    return row


def error_in(facts):
    """JSON has null for what is infinite or not a number."""
    return math.inf if facts["error_of_result"] is None else facts["error_of_result"]


def measure_first(case, ours, peers, rounds):
    """Seconds of what is done first in new processes, with an empty or a filled cache on disk."""
    times, missing, facts, errors = {side: [] for side in (ours, *peers)}, {}, {}, []
    with tempfile.TemporaryDirectory() as folder:
        def run(side, i):
            done = side.run_once(case["size"][0], os.path.join(folder, f"{side.name}.{i if case['cold'] else 0}.db"))
            if "tolerance" in done:
                errors.append(error_in(done))
                facts.update(error_of_result=max(errors), tolerance=done["tolerance"])
            return done["seconds"]
        if not case["cold"]:
            for side in [*times]:
                try:
                    run(side, 0)
                except sides.Failed as e:
                    missing[side.name] = str(e)
        for i in range(rounds):
            for side in [s for s in times if s.name not in missing]:
                if i >= 3 and times[side][0] > 5:
                    continue
                try:
                    times[side].append(run(side, i))
                except sides.Failed as e:
                    missing[side.name] = str(e)
    if ours.name in missing:
        raise sides.Failed(missing[ours.name])
    what = {"step": "MNIST conv net, first training step", "search": "search for a matmul of 1024x1024x1024, BEAM=2"}[case["size"][0]]
    title = f"{what}, {'empty' if case['cold'] else 'filled'} cache on disk"
    return {"case": case, "title": title, "missing": missing} | facts | compared(times, ours, [p for p in peers if p.name not in missing])


def measure(case, ours, peers, rounds):
    """A row: what the case is, and how long all sides take."""
    if case["kernel"] == "first":
        return measure_first(case, ours, peers, rounds)
    facts = ours.prepare(case)
    first, able, missing = {ours: facts["seconds"]}, [], {}
    for peer in peers:
        try:
            about = peer.prepare(case)
            first[peer] = about["seconds"]
            facts = {key: about[key] for key in ("flops",) if key in about} | facts
            able.append(peer)
        except sides.Failed as e:
            missing[peer.name] = str(e)
    times = sides.time_in_turns([ours, *able], first, rounds)
    facts |= ours.release()
    for peer in able:
        peer.release()
    if "flops" in facts and "peak_gflops" in facts:
        facts.setdefault("roofline_seconds", facts["flops"] / facts["peak_gflops"] * 1e-9)
    row = {"case": case, "missing": missing} | facts | compared(times, ours, able)
    for peer in able:
        row["peers"][peer.name]["busy"] = peer.share_of_cpus_busy()
    return row


def ratio_to(row, names):
    """Our speed beside the fastest of these peers that did the work; None without one."""
    done = [row["peers"][name] for name in names if name in row["peers"]]
    return min(done, key=lambda p: p["seconds"])["ratio"] if done else None


def judge(row, group, fixed):
    """Adds the row's goals: (peers, ratio, goal, reached). A random size is to reach 0.9 of what the fixed rows reach."""
    row["goals"] = []
    if group.limit:
        ratio = group.limit / (row["seconds"] / row.get("each", 1))
        row["goals"].append({"peers": [f"{group.limit * 1e6:g} us"], "ratio": ratio, "goal": 1.0, "reached": ratio >= 1})
    for goal in group.goals:
        ratio, least = ratio_to(row, goal.peers), goal.ratio
        if row["random"]:
            before = [r for r in (ratio_to(f, goal.peers) for f in fixed) if r is not None]
            least = 0.9 * statistics.median(before) if before else None
        if ratio is not None and least is not None:
            row["goals"].append({"peers": [name for name in goal.peers if name in row["peers"]], "ratio": ratio, "goal": least, "reached": ratio >= least * EQUAL})
    row["error_of_result"] = error_in(row)
    row["right"] = row["error_of_result"] <= row["tolerance"]


def verdict(row):
    words = [] if row["right"] else ["wrong"]
    return " ".join(words + (["below"] if not all(g["reached"] for g in row["goals"]) else []))


def line_of(row):
    parts = [f"{row['title'] + (' *' if row['random'] else ''):<52} {row['seconds'] * 1e3:>10.4f} ms"]
    if row.get("flops"):
        parts.append(f"{row['flops'] / row['seconds'] * 1e-9:>8.1f} GFLOP/s")
    if row.get("bytes"):
        parts.append(f"{row['bytes'] / row['seconds'] * 1e-9:>6.1f} GB/s")
    if row.get("roofline_seconds"):
        parts.append(f"{100 * row['roofline_seconds'] / row['seconds']:>4.0f} %")
    parts += [f"{name} {p['seconds'] * 1e3:.4f} ms ({p['ratio']:.2f}{page.idle(p)})" for name, p in row["peers"].items()]
    return "  ".join(parts + [verdict(row)])


def measure_group(group, ours, peers, generator, options):
    cases = [(case, False) for case in group.cases]
    if group.draw:
        cases += [(group.draw(generator), True) for _ in range(options.random)]
    done = []
    for case, drawn in cases:
        try:
            row = measure(case, ours, [peers[name] for name in group.peers], options.rounds) | {"group": group.name, "random": drawn}
        except sides.Failed as e:
            print(f"{json.dumps(case)}: tg: {e}", file=sys.stderr, flush=True)
            row = {"case": case, "group": group.name, "random": drawn, "failed": str(e)}
        else:
            row["title"] += "".join(f" {key}={value}" for key, value in group.environment.items())
            judge(row, group, [r for r in done if not r["random"] and "failed" not in r])
            print(line_of(row), flush=True)
        done.append(row)
    return done


def parse():
    parser = argparse.ArgumentParser(prog="bench/kernels/run", description="Our kernels beside the libraries', in turns.")
    names = [g.name for g in rows.GROUPS]
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"by default all: {', '.join(names)}")
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--before", default=None, metavar="BUILD", help="a peer too: another commit's build, where its own bench/kernels/run has run")
    parser.add_argument("--rounds", type=int, default=None, help="turns of each side, by default 15")
    parser.add_argument("--quick", action="store_true", help="by default 5 turns and no random sizes")
    parser.add_argument("--random", type=int, default=None, help="random sizes a group, by default 3")
    parser.add_argument("--seed", type=int, default=None, help="of the random sizes; by default another one each run")
    parser.add_argument("--peers", default=None, help="only these, by commas")
    parser.add_argument("--only", default="", help="only rows whose sizes, joined by x, contain this")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", default=None, metavar="FILE", help="write the rows there")
    parser.add_argument("--page", default=None, metavar="FILE", help="write the rows there, as docs/benchmarks.md has them")
    options = parser.parse_args()
    if unknown := set(options.peers.split(",") if options.peers else []) - {p for g in rows.GROUPS for p in g.peers} - {"none"}:
        parser.error(f"unknown peer {', '.join(sorted(unknown))}; known are {', '.join(sorted({p for g in rows.GROUPS for p in g.peers}))} and none")
    if unknown := set(options.groups) - set(names):
        parser.error(f"unknown group {', '.join(sorted(unknown))}; known are {', '.join(names)}")
    if options.before and not os.path.exists(sides.program(options.before)):
        parser.error(f"--before: {sides.program(options.before)} is not there; run that commit's bench/kernels/run once")
    options.rounds = options.rounds or (5 if options.quick else 15)
    if options.random is None:
        options.random = 0 if options.quick else 3
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 31)
    return options


def command(arguments):
    """As it was called, but for where else the rows go."""
    words = list(arguments)
    if "--json" in words:
        del words[words.index("--json"):words.index("--json") + 2]
    return " ".join(["bench/kernels/run", *(w for w in words if not w.startswith("--json="))])


def wanted_peers(options, group):
    before = ("before",) if options.before else ()
    return before + tuple(p for p in group.peers if not options.peers or p in options.peers.split(","))


def selected(options):
    for group in rows.GROUPS:
        if options.groups and group.name not in options.groups:
            continue
        cases = tuple(c for c in group.cases if options.only in "x".join(map(str, c["size"])))
        yield rows.dataclasses.replace(group, cases=cases, peers=wanted_peers(options, group), draw=None if options.only else group.draw)


def main():
    options = parse()
    cpus = set(sorted(os.sched_getaffinity(0))[:options.threads])
    peers = sides.peers(options.build, cpus)
    print(f"{len(cpus)} threads, {options.rounds} rounds, seed {options.seed} of the random sizes (*); in parentheses our speed / the peer's")
    done = []
    try:
        for group in selected(options):
            # The same sizes for a seed, whatever else is selected.
            generator = random.Random(f"{options.seed} {group.name}")
            with contextlib.ExitStack() as stack:
                ours = stack.enter_context(contextlib.closing(sides.ours("tg", options.build, cpus, **group.environment)))
                if options.before:
                    peers["before"] = stack.enter_context(contextlib.closing(sides.ours("before", options.before, cpus, **group.environment)))
                done += measure_group(group, ours, peers, generator, options)
    finally:
        for side in peers.values():
            side.close()
    result = {"command": command(sys.argv[1:]), "seed": options.seed, "rounds": options.rounds, "threads": len(cpus),
              "versions": {name: peer.version for name, peer in peers.items() if peer.version},
              "without": sorted({name for group in rows.GROUPS for name in group.peers if name not in wanted_peers(options, group)}), "rows": done}
    if options.json:
        with open(options.json, "w") as file:
            json.dump(result, file, indent=1)
    if options.page:
        page.write(options.page, result)
    return 1 if any("failed" in row or not row["right"] for row in done) else 0


if __name__ == "__main__":
    sys.exit(main())
