"""What bench/kernels draws, how it judges, what it keeps of a run and what its pages say."""
from __future__ import annotations

import json
import pathlib
import random
import sys
from typing import Any

import pytest

BENCH = pathlib.Path(__file__).parents[2] / "bench"
sys.path[:0] = [str(BENCH / "common"), str(BENCH / "kernels")]

import goals  # noqa: E402
import history  # noqa: E402
import kernels  # noqa: E402
import machine  # noqa: E402
import page  # noqa: E402
import rows  # noqa: E402
import sides  # noqa: E402


def make_row(title: str = "a", ratio: float = 1.0, others: dict[str, float] | None = None, **facts: Any) -> dict[str, Any]:
  """Of one second, with a peer "best" at a ratio and others."""
  peers = {name: {"seconds": r, "ratio": r} for name, r in {"best": ratio, **(others or {})}.items()}
  return {"case": {"kernel": "matmul", "size": [1]}, "title": title, "group": "g", "work": "w", "random": False, "seconds": 1.0, "peers": peers,
          "missing": {}, "error_of_result": 0.0, "tolerance": 1e-3} | facts


def judged(row: dict[str, Any], goal: goals.Goal) -> dict[str, Any]:
  goals.judge(row, goal)
  return row


def test_a_row_is_judged_by_the_best_of_all_peers() -> None:
  row = judged(make_row(ratio=0.99, others={"slow": 5.0}), goals.Goal(least=1.0))
  assert row["goal"] == {"of": "best", "value": 0.99, "goal": 1.0, "reached": False}
  assert goals.is_missed(row)
  assert not goals.is_missed(judged(make_row(ratio=1.0), goals.Goal(least=1.0)))


def test_another_build_of_ours_is_no_peer() -> None:
  assert goals.best_peer(make_row(ratio=1.2, others={"before": 0.5})) == "best"


def test_random_rows_have_their_own_goal_and_the_mean_has_one() -> None:
  goal = goals.Goal(least=1.0, random_mean=1.0, random_least=0.85)
  drawn = [judged(make_row(ratio=r, random=True), goal) for r in (0.84, 0.86, 1.3)]
  assert [r["goal"]["reached"] for r in drawn] == [False, True, True]
  fixed = judged(make_row(ratio=0.9), goal)
  assert not fixed["goal"]["reached"]
  (mean,) = goals.goals_of_means("w", [*drawn, fixed], goal)
  assert mean["value"] == pytest.approx((0.84 * 0.86 * 1.3) ** (1 / 3)) and not mean["reached"]


def test_the_peak_counts_for_fixed_products_only() -> None:
  goal = goals.Goal(least=1.0, of_peak=0.95, random_least=0.85)
  facts = {"flops": 96e9, "peak_gflops": 100.0}
  assert judged(make_row(ratio=0.99, **facts), goal)["goal"]["of"] == "the peak"
  assert not judged(make_row(ratio=0.8, random=True, **facts), goal)["goal"]["reached"]


def test_a_peer_above_the_measured_peak_is_the_peak() -> None:
  row = judged(make_row(ratio=0.1, flops=96e9, peak_gflops=100.0), goals.Goal(least=1.0, of_peak=0.95))
  assert goals.part_of_peak(row) == pytest.approx(0.1)
  assert not row["goal"]["reached"]


def test_limits_of_seconds() -> None:
  assert judged(make_row(each=4), goals.Goal(seconds=0.25))["goal"]["reached"]
  warm = goals.Goal(seconds=0.04, beyond_own=True)
  assert judged(make_row(own_seconds=0.97), warm)["goal"]["reached"]
  assert not judged(make_row(own_seconds=0.95), warm)["goal"]["reached"]


def test_a_case_may_have_its_own_goal() -> None:
  row = make_row(ratio=70)
  row["case"]["least"] = 80
  assert not judged(row, goals.Goal(least=60))["goal"]["reached"]


def test_wrong_and_failed_rows_are_missed_and_differing_peers_are_named() -> None:
  wrong = judged(make_row(ratio=9, error_of_result=None), goals.Goal(least=1.0))
  assert goals.is_missed(wrong) and not wrong["right"]
  row = make_row(ratio=9)
  row["peers"]["best"]["difference"] = 0.5
  assert judged(row, goals.Goal(least=1.0))["disagree"] == ["best"]
  row["peers"]["best"]["difference"] = float("nan")
  assert judged(row, goals.Goal(least=1.0))["disagree"] == ["best"]
  failed = {"case": {}, "title": "f", "group": "g", "work": "w", "random": False, "failed": "no memory"}
  assert goals.means([failed, wrong])["missed"] == 2


def test_means_name_the_worst_row() -> None:
  its = [judged(make_row("a", 2.0), goals.Goal(least=1.0)), judged(make_row("b", 0.5), goals.Goal(least=1.0))]
  m = goals.means(its)
  assert (m["all"], m["random"], m["worst"], m["worst_ratio"], m["missed"], m["judged"]) == (pytest.approx(1.0), None, "b", 0.5, 1, 2)


def scaled(seconds: list[float], peer: list[float]) -> list[bool]:
  its = [make_row(seconds=s, peers={"p": {"seconds": t, "ratio": t / s}}) for s, t in zip(seconds, peer)]
  goals.judge_scaling(its)
  assert "goal" not in its[0]
  return [r["goal"]["reached"] for r in its[1:]]


def test_scaling_is_beside_the_best_peers_and_never_slower() -> None:
  assert scaled([8, 4, 2], [8, 4, 2.1]) == [True, True]
  assert scaled([8, 5, 2], [8, 4, 2]) == [False, True]
  assert scaled([8, 4, 4.1], [8, 4.5, 9]) == [True, False]


def test_counts_of_threads_and_the_order_of_cpus() -> None:
  assert sides.counts_of_threads(1) == [1]
  assert sides.counts_of_threads(2) == [1, 2]
  assert sides.counts_of_threads(12) == [1, 2, 4, 8, 12]
  assert sides.counts_of_threads(64) == [1, 2, 4, 8, 16, 64]
  assert sides.in_order({0, 1, 2, 3}, lambda cpu: str(cpu // 2)) == [0, 2, 1, 3]


def test_drawn_products_are_bounded_and_repeat() -> None:
  its = [rows.drawn_matmul(random.Random(f"{seed}")) for seed in range(200)]
  assert all(2 * c["size"][0] * c["size"][1] * c["size"][2] <= 2e11 and all(1 <= s <= 5000 for s in c["size"]) for c in its)
  assert its[7] == rows.drawn_matmul(random.Random("7"))
  assert min(min(c["size"]) for c in its) < 10 and max(max(c["size"]) for c in its) > 4500


@pytest.mark.parametrize("group", [g for g in rows.GROUPS if g.draw], ids=lambda g: g.name)
def test_drawn_cases_are_some_that_sides_take(group: Any) -> None:
  for seed in range(50):
    c = group.draw(random.Random(seed))
    assert all(isinstance(s, int) and s >= 1 for s in c["size"])
    json.dumps(c)
    assert c.get("order") != [0, 1, 2, 3]
    if c["kernel"] == "attention":
      assert c["size"][0] % c.get("kv_heads", 1) == 0
    if c["kernel"] == "conv":
      assert c["size"][0] % c.get("groups", 1) == 0 == c["size"][1] % c.get("groups", 1)


def test_groups_of_one_work_have_one_goal() -> None:
  by_work: dict[str, set[Any]] = {}
  for g in rows.GROUPS:
    if g.name not in ("first-step-cold", "first-step-warm"):
      by_work.setdefault(g.work, set()).add(g.goal)
  assert all(len(its) == 1 for its in by_work.values())
  drawn = {g.name: g.drawn for g in rows.GROUPS if g.draw}
  assert (drawn["matmul"], drawn["bf16"], drawn["int8"]) == (30, 20, 20) and min(drawn[n] for n in ("sum", "softmax", "layernorm", "transpose")) >= 5


def test_every_product_is_compared_with_the_onednn_of_pytorch() -> None:
  assert all("torch.oneDNN" in g.peers and "oneDNN" in g.peers for g in rows.GROUPS if "products" in g.work)


def test_pages_are_named_by_the_microarchitecture() -> None:
  assert [machine.name_of(a) for a in ("znver3", "sapphirerapids", "x86-64-v3", None)] == ["zen3", "sapphire-rapids", "x86-64-v3", "unknown"]
  assert machine.spoken("sapphire-rapids") == "Sapphire Rapids" and machine.spoken("zen3") == "AMD Zen 3"


def entry(ratio: float, noise: float = 0.0) -> list[Any]:
  return [ratio, None, 1.0, noise]


def test_what_fell_fell_by_more_than_noise() -> None:
  assert history.fell(entry(0.9), [entry(1.0)]) == pytest.approx(0.1)
  assert history.fell(entry(0.98), [entry(1.0)]) is None
  assert history.fell(entry(0.9, noise=0.06), [entry(1.0)]) is None
  assert history.fell(entry(0.9), [entry(1.0, 0.06), entry(1.0, 0.07)]) is None
  assert history.fell(entry(0.9), []) is None
  assert history.fell(entry(1.5), [entry(1.0)]) is None


def test_the_spread_is_half_of_what_the_quartiles_are_apart() -> None:
  assert history.spread([1.0, 2.0]) == 0
  assert history.spread([1.0, 1.0, 1.0, 1.0]) == 0
  assert 0 < history.spread([0.9, 1.0, 1.0, 1.1]) < 0.1


def works_of(its: list[dict[str, Any]]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
  return {"w": goals.means(its)}, goals.goals_of_means("w", its, goals.Goal(mean=1.3))


def run_of(its: list[dict[str, Any]], date: str = "2026-11-28 10:00") -> dict[str, Any]:
  return {"command": "bench/kernels/run", "seed": 20261128, "rounds": 15, "threads": 2, "arch": "zen3", "date": date, "commit": f"c{date[8:10]}",
          "machine": "a machine", "load": [0.1, 1.9], "minutes": 60.0, "versions": {"best": "1"}, "without": [], "rows": its}


def published(folder: pathlib.Path, run: dict[str, Any]) -> str:
  page.publish(str(folder), run, ["h", "g"], works_of)
  return (folder / "benchmarks" / "zen3.md").read_text()


def test_a_page_lists_what_is_missed_first_and_marks_what_fell(tmp_path: pathlib.Path) -> None:
  good, bad = judged(make_row("good", 1.5), goals.Goal(least=1.0)), judged(make_row("bad", 0.5), goals.Goal(least=1.0))
  failed = {"case": {}, "title": "broken", "group": "g", "work": "w", "random": False, "failed": "no | memory"}
  published(tmp_path, run_of([good, bad, failed]))
  text = published(tmp_path, run_of([judged(make_row("good", 1.1), goals.Goal(least=1.0)), bad, failed], "2026-11-29 10:00"))
  top = text[text.index("## Goals missed"):text.index("## Fallen")]
  assert "bad" in top and "broken" in top and "good" not in top and "geometric mean of all rows" in top
  assert "fell by 27 %" in text[text.index("## Fallen"):text.index("## By work")]
  assert "worst bad: 0.50; 2 of 3 goals missed" in text
  assert "no / memory" in text
  lines = history.read(str(tmp_path / "benchmarks" / "zen3.jsonl"))
  assert [line["rows"]["g: good"][0] for line in lines] == [1.5, 1.1]
  index = (tmp_path / "benchmarks.md").read_text()
  assert "[AMD Zen 3](benchmarks/zen3.md)" in index and "2 of 3 goals of rows missed" in index


def test_a_run_of_some_groups_renews_these_in_the_page(tmp_path: pathlib.Path) -> None:
  def row(title: str, ratio: float, group: str) -> dict[str, Any]:
    return judged(make_row(title, ratio, group=group), goals.Goal(least=1.0))
  text = published(tmp_path, run_of([row("a", 0.5, "g")]))
  assert "Not run on such a machine yet: h." in text
  text = published(tmp_path, run_of([row("b", 0.7, "h")], "2026-11-29 10:00"))
  assert "2026-11-28 10:00 to 2026-11-29 10:00 UTC, commit c28, c29: 2 rows, 2 of 2 goals of rows missed" in text
  assert text.index("## h") < text.index("## g") and "Not run" not in text
  text = published(tmp_path, run_of([row("a", 1.5, "g")], "2026-11-30 10:00"))
  assert "c28" not in text and "0.50" in text and "1 of 2 goals of rows missed" in text


def test_random_rows_are_not_kept_one_by_one() -> None:
  its = [judged(make_row("fixed", 1.5), goals.Goal()), judged(make_row("drawn", 2.0, random=True), goals.Goal())]
  line = history.line_of(run_of(its), works_of(its)[0])
  assert list(line["rows"]) == ["g: fixed"]
  assert line["works"]["w"] == [2.0, 1.5, 0]


def options_of(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Any:
  monkeypatch.setattr(sys, "argv", ["run", *arguments])
  return kernels.parse()


def test_only_whole_groups_are_published(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(kernels.os, "sched_getaffinity", lambda pid: {0, 1})
  assert options_of(monkeypatch, "--publish").publish
  assert options_of(monkeypatch, "matmul", "--publish").publish
  for part in (["--quick"], ["--only", "1024"], ["--peers", "torch"], ["--random", "1"], ["--rounds", "3"], ["--threads", "1"]):
    with pytest.raises(SystemExit):
      options_of(monkeypatch, "--publish", *part)


def test_the_seed_is_the_date_unless_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(kernels.os, "sched_getaffinity", lambda pid: {0, 1})
  assert 20260101 < options_of(monkeypatch).seed < 99991231
  assert options_of(monkeypatch, "--seed", "7").seed == 7


class Clock:
  """A side that answers how long a call takes, and counts how often it was asked."""

  def __init__(self, seconds: float) -> None:
    self.each, self.asked = seconds, 0

  def seconds(self, calls: int) -> float:
    self.asked += 1
    return self.each


def test_slow_sides_have_fewer_turns() -> None:
  ours, slow, hopeless = Clock(0.5), Clock(6.0), Clock(60.0)
  times = sides.time_in_turns([ours, slow, hopeless], {s: s.each for s in (ours, slow, hopeless)}, 5)
  assert [len(times[s]) for s in (ours, slow, hopeless)] == [5, 3, 1]
