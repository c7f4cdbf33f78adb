"""Our kernels beside the libraries': see bench/kernels/run."""
import argparse
import contextlib
import dataclasses
import datetime
import json
import math
import os
import random
import statistics
import sys
import tempfile
import time

import goals
import history
import machine
import page
import rows
import sides

# Of other works, networks, weights and inputs are shared.
KERNELS = ("matmul", "matvec", "conv", "attention", "softmax", "layernorm", "elementwise", "sum", "transpose", "replay")


def compared(times, ours, peers):
    """Of a row: medians of seconds and of ratios of pairs."""
    row = {"seconds": statistics.median(times[ours]), "peers": {}}
    for peer in peers:
        ratios = [p / o for p, o in zip(times[peer], times[ours])]
        row["peers"][peer.name] = {"seconds": statistics.median(times[peer]), "ratio": statistics.median(ratios), "pairs": len(ratios),
                                   "spread": history.spread(ratios)}
    return row


def once_of(case):
    """Of what is done once a process: the arguments by side, whether the cache is filled, and a title."""
    if case["kernel"] == "compile":
        model = case["size"][0]
        return [model], False, f"schedule, lower and render {model}"
    what = {"step": "MNIST conv net, first training step", "search": "search for a matmul of 1024x1024x1024, BEAM=2"}[case["size"][0]]
    return [f"first-{case['size'][0]}"], not case["cold"], f"{what}, {'empty' if case['cold'] else 'filled'} cache on disk"


def measure_once(case, ours, peers, rounds):
    """Seconds of what is done first in new processes, or is a process."""
    arguments, filled, title = once_of(case)
    times, missing, facts, errors = {side: [] for side in (ours, *peers)}, {}, {}, []
    with tempfile.TemporaryDirectory() as folder:
        def run(side, i):
            done = side.run_once(arguments, os.path.join(folder, f"{side.name}.{0 if filled else i}.db"))
            if "tolerance" in done:
                errors.append(goals.error_in(done))
                facts.update(error_of_result=max(errors), tolerance=done["tolerance"])
            if "own_seconds" in done:
                facts["own_seconds"] = min(done["own_seconds"], facts.get("own_seconds", math.inf))
            return done["seconds"]
        if filled:
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
    return {"case": case, "title": title, "missing": missing} | facts | compared(times, ours, [p for p in peers if p.name not in missing])


def measure_in_turns(case, ours, peers, rounds):
    facts = ours.prepare(case)
    first, able, missing, differences = {ours: facts["seconds"]}, [], {}, {}
    for peer in peers:
        try:
            about = peer.prepare(case)
            first[peer] = about["seconds"]
            facts = {key: about[key] for key in ("flops",) if key in about} | facts
            differences |= {peer.name: about["difference"]} if "difference" in about else {}
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
    for name, difference in differences.items():
        row["peers"][name]["difference"] = difference
    return row


def measure(case, ours, peers, rounds):
    """A row: what the case is, and how long all sides take. Networks are the same on all sides: weights and inputs go by a file."""
    if case["kernel"] in ("first", "compile"):
        return measure_once(case, ours, peers, rounds)
    with tempfile.TemporaryDirectory() as folder:
        shared = {} if case["kernel"] in KERNELS else {"share": os.path.join(folder, "network.safetensors")}
        return measure_in_turns(case | shared, ours, peers, rounds) | {"case": case}


def verdict(row):
    words = [] if row["right"] else ["WRONG"]
    words += [f"{name} DISAGREES" for name in row["disagree"]]
    return " ".join(words + (["below"] if not row.get("goal", {"reached": True})["reached"] else []))


def line_of(row):
    parts = [f"{row['title'] + (' *' if row['random'] else ''):<52} {row['seconds'] * 1e3:>10.4f} ms"]
    if row.get("flops"):
        parts.append(f"{row['flops'] / row['seconds'] * 1e-9:>8.1f} GFLOP/s")
    if row.get("bytes"):
        parts.append(f"{row['bytes'] / row['seconds'] * 1e-9:>6.1f} GB/s")
    if row.get("roofline_seconds"):
        parts.append(f"{100 * row['roofline_seconds'] / row['seconds']:>4.0f} %")
    parts += [f"{name} {p['seconds'] * 1e3:.4f} ms ({p['ratio']:.2f}{page.idle(p)}{page.apart(p)})" for name, p in row["peers"].items()]
    parts += [f"{name}: {why[:60]}" for name, why in row["missing"].items()]
    if "error_of_result" in row:
        parts.append(f"error {row['error_of_result']:.2g}")
    return "  ".join(parts + [verdict(row)])


def summary_line(name, rows):
    m = goals.means(rows)
    if m["all"] is None:
        return f"{name}: no ratios"
    random_mean = f", of random rows {m['random']:.3f}" if m["random"] is not None else ""
    alone = sum("failed" not in r and not r["peers"] for r in rows)
    without = f"; {alone} rows without a peer" if alone else ""
    return f"{name}: geometric mean {m['all']:.3f}{random_mean}; worst {m['worst']} {m['worst_ratio']:.3f}; {m['missed']} of {m['judged']} goals missed{without}"


def try_row(group, case, drawn, ours, peers, rounds, suffix=""):
    try:
        row = measure(case, ours, [peers[name] for name in group.peers if name in peers], rounds)
        row["title"] += "".join(f" {key}={value}" for key, value in group.environment.items()) + suffix
    except sides.Failed as e:
        print(f"{json.dumps(case)}{suffix}: tg: {e}", file=sys.stderr, flush=True)
        row = {"case": case, "title": json.dumps(case) + suffix, "failed": str(e)}
    return row | {"group": group.name, "work": group.work, "random": drawn}


def measure_group(group, ours, peers, generator, options):
    cases = [(case, False) for case in group.cases]
    if group.draw:
        cases += [(group.draw(generator), True) for _ in range(group.drawn if options.random is None else options.random)]
    done = []
    for case, drawn in cases:
        row = try_row(group, case, drawn, ours, peers, options.rounds)
        if "failed" not in row:
            goals.judge(row, group.goal)
            print(line_of(row), flush=True)
        done.append(row)
    return done


def measure_scaling(group, options):
    """Each case with each number of threads, which are sides of their own."""
    cpus = sides.cpus_here()
    by_case = {}
    for count in options.counts or sides.counts_of_threads(len(cpus)):
        with contextlib.ExitStack() as stack:
            some = set(cpus[:count])
            ours = stack.enter_context(contextlib.closing(sides.ours("tg", options.build, some)))
            peers = {name: stack.enter_context(contextlib.closing(side)) for name, side in sides.peers(options.build, some).items()}
            for i, case in enumerate(group.cases):
                row = try_row(group, case, False, ours, peers, options.rounds, f", {count} thread{'s' if count > 1 else ''}")
                by_case.setdefault(i, []).append(row | {"threads": count})
    for rows_of_case in by_case.values():
        goals.judge_scaling(rows_of_case)
        for row in rows_of_case:
            if "failed" not in row:
                print(line_of(row), flush=True)
    return [row for rows_of_case in by_case.values() for row in rows_of_case]


def parse():
    parser = argparse.ArgumentParser(prog="bench/kernels/run", description="Our kernels beside the libraries', in turns.")
    names = [g.name for g in rows.GROUPS]
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"by default all: {', '.join(names)}")
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--before", default=None, metavar="BUILD", help="a peer too, by which no goal is judged: another commit's build, where its own bench/kernels/run has run")
    parser.add_argument("--rounds", type=int, default=None, help="turns of each side, by default 15")
    parser.add_argument("--quick", action="store_true", help="by default 5 turns and one random size a group")
    parser.add_argument("--random", type=int, default=None, help="random sizes a group, by default 30 of float32 products, 20 of others, mostly 5")
    parser.add_argument("--seed", type=int, default=None, help="of the random sizes; by default today's date, as 20261128")
    parser.add_argument("--peers", default=None, help="only these, by commas")
    parser.add_argument("--only", default="", help="only rows whose sizes, joined by x, contain this")
    parser.add_argument("--threads", type=int, default=2, help="of all groups but scaling, by default 2")
    parser.add_argument("--counts", type=lambda text: [int(n) for n in text.split(",")], default=None,
                        help="threads of the group scaling, by commas; by default 1, 2, 4, 8, 16 and all, as far as there are CPUs")
    parser.add_argument("--json", default=None, metavar="FILE", help="write the rows there")
    parser.add_argument("--page", default=None, metavar="FILE", help="write the rows there, as pages of docs/benchmarks/ have them")
    parser.add_argument("--publish", action="store_true",
                        help="renew the groups in the page of this microarchitecture in docs/benchmarks/, add to its record and renew the index; of whole groups only")
    options = parser.parse_args()
    known = sorted({p for g in rows.GROUPS for p in g.peers})
    if unknown := set(options.peers.split(",") if options.peers else []) - {*known, "none"}:
        parser.error(f"unknown peer {', '.join(sorted(unknown))}; known are {', '.join(known)} and none")
    if unknown := set(options.groups) - set(names):
        parser.error(f"unknown group {', '.join(sorted(unknown))}; known are {', '.join(names)}")
    if options.before and not os.path.exists(sides.program(options.before)):
        parser.error(f"--before: {sides.program(options.before)} is not there; run that commit's bench/kernels/run once")
    available = len(os.sched_getaffinity(0))
    for count in (options.threads, *(options.counts or ())):
        if not 1 <= count <= available:
            parser.error(f"{count} threads: this process may use 1 to {available} CPUs")
    if options.publish and (part := selection(options)):
        parser.error(f"--publish: {part} leaves something out of the groups; --page FILE writes any run")
    options.rounds = options.rounds or (5 if options.quick else 15)
    if options.random is None and options.quick:
        options.random = 1
    if options.seed is None:
        options.seed = int(datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%d"))
    return options


def selection(options):
    """The option that leaves something out of the groups of a run, if there is one."""
    parts = {"--only": options.only, "--peers": options.peers, "--quick": options.quick, "--random": options.random is not None,
             "--counts": options.counts, "--threads": options.threads != 2, "--before": options.before,
             "--rounds below 7": options.rounds is not None and options.rounds < 7}
    return next((name for name, given in parts.items() if given), None)


def command(arguments):
    """As it was called, but for where else the rows go."""
    words = list(arguments)
    if "--json" in words:
        del words[words.index("--json"):words.index("--json") + 2]
    return " ".join(["bench/kernels/run", *(w for w in words if not w.startswith("--json="))])


def wanted_peers(options, group):
    return tuple(p for p in group.peers if not options.peers or p in options.peers.split(","))


def selected(options):
    for group in rows.GROUPS:
        if options.groups and group.name not in options.groups:
            continue
        cases = tuple(c for c in group.cases if options.only in "x".join(map(str, c["size"])))
        if cases or not options.only:
            yield dataclasses.replace(group, cases=cases, peers=wanted_peers(options, group), draw=None if options.only else group.draw)


def microarchitecture(options, cpus):
    """As our side tells it."""
    with contextlib.closing(sides.ours("tg", options.build, cpus)) as ours:
        ours.start()
        return ours.about.get("arch")


def run_group(group, cpus, peers, options):
    """Rows of a group."""
    if group.scaling:
        return measure_scaling(group, options)
    # The same sizes for a seed, whatever else is selected.
    generator = random.Random(f"{options.seed} {group.name}")
    if group.name == "compile":
        ours, others = sides.compilers(options.build, cpus)
        return measure_group(group, ours, others, generator, options)
    with contextlib.ExitStack() as stack:
        ours = stack.enter_context(contextlib.closing(sides.ours("tg", options.build, cpus, **group.environment)))
        if options.before:
            before = stack.enter_context(contextlib.closing(sides.ours("before", options.before, cpus, **group.environment)))
            peers, group = peers | {"before": before}, dataclasses.replace(group, peers=("before", *group.peers))
        return measure_group(group, ours, peers, generator, options)


def works_of(done):
    """Means by work, and goals of means."""
    by_name = {g.name: g for g in rows.GROUPS}
    works, goals_of_means = {}, []
    for row in done:
        works.setdefault(row["work"], []).append(row)
    for work, its in works.items():
        goals_of_means += goals.goals_of_means(work, its, by_name[its[0]["group"]].goal)
    return {work: goals.means(its) for work, its in works.items()}, goals_of_means


def main():
    options = parse()
    cpus = set(sides.cpus_here()[:options.threads])
    peers = sides.peers(options.build, cpus)
    print(f"{len(cpus)} threads, {options.rounds} rounds, seed {options.seed} of the random sizes (*); in parentheses our speed / the peer's")
    done, arch, load, start = [], microarchitecture(options, cpus), os.getloadavg()[0], time.monotonic()
    try:
        for group in selected(options):
            its = run_group(group, cpus, peers, options)
            done += its
            print(summary_line(group.name, its), flush=True)
    finally:
        for side in peers.values():
            side.close()
    result = {"command": command(sys.argv[1:]), "seed": options.seed, "rounds": options.rounds, "threads": len(cpus), "arch": machine.name_of(arch),
              "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()), "commit": machine.commit(), "machine": machine.describe(),
              "load": [load, os.getloadavg()[0]], "minutes": (time.monotonic() - start) / 60,
              "versions": {name: peer.version for name, peer in peers.items() if peer.version},
              "without": sorted({name for group in rows.GROUPS for name in group.peers if name not in wanted_peers(options, group)}),
              "rows": done}
    works, of_means = works_of(done)
    for goal in of_means:
        print(f"{goal['work']}: {goal['what']} {goal['value']:.3f}, goal {goal['goal']:g}{'' if goal['reached'] else ' below'}")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(result | {"works": works, "means": of_means}, file, indent=1)
    known = [group.name for group in rows.GROUPS]
    if options.page:
        page.write(options.page, page.whole(result, known) | {"works": works, "means": of_means}, [])
    if options.publish:
        page.publish("docs", result, known, works_of)
    return 1 if any(goals.is_broken(row) or row["disagree"] for row in done) else 0


if __name__ == "__main__":
    sys.exit(main())
