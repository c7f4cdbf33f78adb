#!/usr/bin/env python3
"""Makes docs/api-coverage.md of what full runs of the oracle found: coverage_page.py RESULTS.json... > docs/api-coverage.md"""

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from oracle.known import DIFFERENT, FORMS  # noqa: E402
from oracle.names import GRADIENTS_ABSENT, REASONS, SECTIONS  # noqa: E402


def cell(found: list[dict[str, Any]]) -> str:
  passed = sum(f["outcome"] == "passed" for f in found)
  known = sum(f["outcome"] == "xfailed" for f in found)
  failed = len(found) - passed - known
  return " ".join([str(passed)] + [f"({known} known to fail)"] * (known > 0) + [f"**({failed} fail)**"] * (failed > 0))


def main(paths: list[str]) -> None:
  results: dict[str, list[dict[str, Any]]] = defaultdict(list)
  for path in paths:
    for found in json.loads(Path(path).read_text()):
      results[found["name"]].append(found)
  print("# What the oracle checks\n\nMade by `make oracle-full`: how many checks of every function passed, forward and of its gradient, against PyTorch, NumPy or")
  print("finite differences; with which dtypes, on which devices. `-` stands for a function without a gradient.")
  gaps = []
  for section, names in SECTIONS.items():
    rows = []
    for name in names:
      found = results.get(name, [])
      if not found:
        gaps.append((name, section, REASONS.get(name, "no check yet")))
        continue
      forward, gradient = ([f for f in found if f["kind"] == kind] for kind in ("forward", "gradient"))
      if not gradient and name not in GRADIENTS_ABSENT:
        gaps.append((name, section, "gradient: " + REASONS.get(name, "no check yet")))
      dtypes = ", ".join(sorted({f["dtype"] for f in found}))
      rows.append(f"| `{name}` | {cell(forward)} | {cell(gradient) if gradient else '-'} | {dtypes} | {', '.join(sorted({f['backend'] for f in found}))} |")
    if rows:
      print(f"\n## {section}\n\n| function | forward | gradient | dtypes | devices |\n| --- | --- | --- | --- | --- |")
      print("\n".join(rows))
  others = sorted(set(results) - {n for names in SECTIONS.values() for n in names})
  if others:
    print("\n## Python's forms\n\n| what | forward | gradient |\n| --- | --- | --- |")
    for name in others:
      forward, gradient = ([f for f in results[name] if f["kind"] == kind] for kind in ("forward", "gradient"))
      print(f"| {name} | {cell(forward)} | {cell(gradient) if gradient else '-'} |")
  print("\n## Gaps\n\n| function | section | reason |\n| --- | --- | --- |")
  print("\n".join(f"| `{name}` | {section} | {reason} |" for name, section, reason in gaps))
  print("\n## What differs from tinygrad\n\nShapes and dtypes of all other results are compared with tinygrad's where it is installed (`test_oracle_dtypes.py`).\n")
  print("| what | how and why |\n| --- | --- |")
  print("\n".join(f"| `{name}` | {text} |" for name, text in {**DIFFERENT, **FORMS}.items()))
  known = sorted({(f["name"], f["id"]) for found in results.values() for f in found if f["outcome"] == "xfailed"})
  if known:
    from oracle.known import reason

    reasons = defaultdict(list)
    for name, check in known:
      reasons[reason(check)].append(check)
    print("\n## Known to be wrong\n")
    for text, checks in reasons.items():
      print(f"- {text}: {len(checks)} checks, of {', '.join('`' + n + '`' for n in sorted({c.split(':')[0] for c in checks}))}")


main(sys.argv[1:])
