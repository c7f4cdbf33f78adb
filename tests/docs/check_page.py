#!/usr/bin/env python3
"""Checks a page of Markdown: its links, the length of its paragraphs, and that its snippets do what it says.

    tests/docs/check_page.py docs/guide/tensors.md --build build/release --max-words 90

What is run is told by the language behind the fence:

- ```cpp      All of a page are one program: the prologue (the cpp block of the README.md beside the page), then the blocks in their order,
              in one main().
- ```python   All of a page are one program, too.
- ```console  Each line that begins with "$ " is a command, run by bash in a folder that looks like the clone, with build/release in it.
              What stands below a command is what it prints.
- ```output   What the block before it printed.
- A block whose first line is a comment with a file's name (`// hello.cpp`, `# CMakeLists.txt`) is written to that file before anything
  runs, and is no part of a program.
- ```cmake, ```sh and ```text are not run.

In an output "..." stands for anything within a line, and a line "..." for any lines. A block or a command without an output may print what it
likes, but none may fail. Programs run with DEV=CPU, no other option of the library, and a disk cache of their own."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LANGUAGES = {"cpp", "python", "console", "output", "cmake", "sh", "text", "mermaid"}
MARK = "\x1e"  # printed behind each block
SECONDS = 240  # for one program or command


@dataclasses.dataclass
class Block:
  """A fenced block; `line` is that of its first line of text."""

  language: str
  line: int
  text: str
  expected: Block | None = None  # the output that follows

  @property
  def file(self) -> str | None:
    first = re.match(r"(?://|#) ([\w./-]+\.\w+)$", self.text.split("\n", 1)[0])
    return first[1] if first and self.language not in ("console", "output", "text") else None


@dataclasses.dataclass
class Problem:
  page: pathlib.Path
  line: int
  text: str

  def __str__(self) -> str:
    page = self.page.relative_to(ROOT) if self.page.is_relative_to(ROOT) else self.page
    return f"{page}:{self.line}: {self.text}"


class Page:
  """A page's lines, its blocks, and what was found wrong."""

  def __init__(self, path: pathlib.Path):
    self.path = path.resolve()
    self.lines = path.read_text(encoding="utf-8").split("\n")
    self.problems: list[Problem] = []
    self.new_outputs: list[tuple[int, int, list[str]]] = []  # first line, lines that are there, lines to write
    self.blocks: list[Block] = []
    self.prose = list(self.lines)  # with blank lines where blocks are
    self._find_blocks()

  def fail(self, line: int, text: str) -> None:
    self.problems.append(Problem(self.path, line, text))

  def _find_blocks(self) -> None:
    start, language = 0, None
    for number, line in enumerate(self.lines, 1):
      fence = re.match(r"```(\S*)\s*$", line)
      if language is None and fence:
        start, language = number, fence[1]
        if language not in LANGUAGES:
          self.fail(number, f"a block of {language or 'no language'}, expects one of {', '.join(sorted(LANGUAGES))}")
      elif language is not None and line == "```":
        block = Block(language, start + 1, "\n".join(self.lines[start:number - 1]))
        if language == "output":
          before = self.blocks[-1] if self.blocks else None
          if before and before.language in ("cpp", "python") and not before.file and not before.expected:
            before.expected = block
          else:
            self.fail(start, "an output that follows no block of a program")
        else:
          self.blocks.append(block)
        language = None
        self.prose[number - 1] = ""
        continue
      if language is not None:
        self.prose[number - 1] = ""
    if language is not None:
      self.fail(start, "a block that does not end")

  def of(self, language: str) -> list[Block]:
    return [b for b in self.blocks if b.language == language and not b.file]

  def write_outputs(self) -> None:
    for line, count, lines in sorted(self.new_outputs, reverse=True):
      self.lines[line - 1:line - 1 + count] = lines
    if self.new_outputs:
      self.path.write_text("\n".join(self.lines), encoding="utf-8")


# Text.

@functools.cache
def anchors(path: pathlib.Path) -> frozenset[str]:
  """Of the headings of a page, as GitHub names them."""
  found: list[str] = []
  for line in Page(path).prose:
    if heading := re.match(r"#+\s+(.*)", line):
      text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).strip().lower()
      slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
      count = sum(re.fullmatch(rf"{re.escape(slug)}(-\d+)?", f) is not None for f in found)
      found.append(f"{slug}-{count}" if count else slug)
  return frozenset(found)


def links(page: Page) -> list[tuple[int, str]]:
  """The targets of links, with the lines that they are in."""
  found = []
  for number, line in enumerate(page.prose, 1):
    plain = re.sub(r"`[^`]*`", "", line)
    found += [(number, target) for target in re.findall(r"\]\(([^)\s]+)\)", plain)]
  return found


def check_links(page: Page) -> None:
  for number, target in links(page):
    if re.match(r"[a-z]+:", target):
      continue
    name, _, anchor = target.partition("#")
    file = (page.path.parent / name).resolve() if name else page.path
    if not file.exists():
      page.fail(number, f"a link to {target}, which is not there")
    elif anchor and file.suffix == ".md" and anchor not in anchors(file):
      page.fail(number, f"a link to {target}: {file.name} has no heading #{anchor}")


def paragraphs(page: Page) -> list[tuple[int, str]]:
  """With the lines that they begin in. Each item of a list is one; headings and tables are none."""
  found: list[tuple[int, str]] = []
  inside = False
  for number, line in enumerate(page.prose, 1):
    text = line.strip()
    if not text or text.startswith(("#", "|", "```")):
      inside = False
    elif inside and not re.match(r"([-*]|\d+\.) ", text):
      found[-1] = (found[-1][0], f"{found[-1][1]} {text}")
    else:
      found.append((number, text))
      inside = True
  return found


def check_paragraphs(page: Page, limit: int) -> None:
  for number, text in paragraphs(page):
    words = len(re.sub(r"\]\([^)]*\)", "]", text).split())
    if words > limit:
      page.fail(number, f"a paragraph of {words} words, expects at most {limit}")


def check_index(page: Page) -> None:
  """A README.md links to all pages beside it."""
  linked = {target for _, target in links(page)}
  for other in sorted(page.path.parent.glob("*.md")):
    if other != page.path and other.name not in linked:
      page.fail(1, f"no link to {other.name}")


# Outputs.

def tidy(text: str) -> list[str]:
  """Lines without what cannot be seen at their ends."""
  return [line.rstrip() for line in text.rstrip().split("\n")]


def matches(expected: list[str], got: list[str]) -> bool:
  """Whether lines are as expected, where "..." stands for anything."""
  if not expected:
    return not got
  if expected[0].strip() == "...":
    return any(matches(expected[1:], got[n:]) for n in range(len(got) + 1))
  pattern = ".*".join(re.escape(part) for part in expected[0].split("..."))
  return bool(got) and re.fullmatch(pattern, got[0]) is not None and matches(expected[1:], got[1:])


def compare(page: Page, line: int, expected: str, got: str) -> None:
  """Fails at the first line of the expected ones, which begin at `line`, that is not there."""
  wanted, lines = tidy(expected), tidy(got)
  if not matches(wanted, lines):
    good = max(n for n in range(len(wanted)) if matches(wanted[:n] + ["..."], lines))
    page.fail(line + good, "expected\n" + indented(expected) + "\ngot\n" + indented(got))


def indented(text: str) -> str:
  return "\n".join("    " + line for line in tidy(text))


def compare_blocks(page: Page, blocks: list[Block], done: subprocess.CompletedProcess[str]) -> None:
  """Of a program that prints MARK behind each block."""
  *parts, rest = done.stdout.split(MARK + "\n")
  for block, part in zip(blocks, parts):
    if block.expected:
      compare(page, block.expected.line, block.expected.text, part)
  if len(parts) < len(blocks):
    page.fail(blocks[len(parts)].line, f"the program ended here with status {done.returncode}\n" + indented(rest + done.stderr))
  elif done.returncode:
    page.fail(blocks[-1].line, f"the program ended with status {done.returncode}\n" + indented(done.stderr))


# Programs.

@dataclasses.dataclass
class Runner:
  """Runs the snippets of a page in a folder that looks like the clone."""

  build: pathlib.Path
  work: pathlib.Path
  cxx: str
  python: str | None

  def environment(self) -> dict[str, str]:
    options = re.findall(r'TG_OPTION\([^"]*"(\w+)"', (ROOT / "include/tinygrad/options.def").read_text())
    env = {name: value for name, value in os.environ.items() if name not in options}
    env |= {"DEV": "CPU", "NO_COLOR": "1", "XDG_CACHE_HOME": str(self.work / "cache"), "PYTHONPATH": str(self.build / "python")}
    if self.python:
      env["PATH"] = f"{pathlib.Path(self.python).parent}:{env['PATH']}"
    return env

  def prepare(self, page: Page) -> None:
    shutil.rmtree(self.work, ignore_errors=True)
    (self.work / "build").mkdir(parents=True)
    (self.work / "build/release").symlink_to(self.build)
    for entry in ROOT.iterdir():
      if entry.name != "build" and not entry.name.startswith("."):
        (self.work / entry.name).symlink_to(entry)
    for block in page.blocks:
      if not block.file:
        continue
      file = self.work / block.file
      if file.exists() or not file.parent.resolve().is_relative_to(self.work):
        page.fail(block.line, f"{block.file} is there already, or lies outside of the folder that snippets run in")
        continue
      file.parent.mkdir(parents=True, exist_ok=True)
      file.write_text(block.text + "\n", encoding="utf-8")

  def run(self, command: list[str], merged: bool = False) -> subprocess.CompletedProcess[str]:
    try:
      return subprocess.run(command, cwd=self.work, env=self.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT if merged else subprocess.PIPE, encoding="utf-8", errors="replace", timeout=SECONDS)
    except subprocess.TimeoutExpired:
      message = f"not done after {SECONDS} s"
      return subprocess.CompletedProcess(command, -1, message if merged else "", message)

  def run_cpp(self, page: Page) -> None:
    blocks = page.of("cpp")
    if not blocks or page.path.name == "README.md":
      return
    source = self.work / "cache" / "page.cpp"
    source.parent.mkdir(exist_ok=True)
    source.write_text(cpp_program(page.path, blocks), encoding="utf-8")
    program = source.with_suffix("")
    compiled = self.run([self.cxx, "-std=c++20", "-O0", "-Wall", "-Wextra", "-Werror", "-Wno-unused", f"-I{ROOT}/include", str(source),
                         f"-L{self.build}/lib", "-ltinygrad", "-pthread", f"-Wl,-rpath,{self.build}/lib", "-o", str(program)], merged=True)
    if compiled.returncode:
      page.fail(blocks[0].line, "the page's program does not compile\n" + indented(compiled.stdout))
      return
    compare_blocks(page, blocks, self.run([str(program)]))

  def run_python(self, page: Page) -> None:
    blocks = page.of("python")
    if not blocks or not self.python:
      return
    code = [[b.line, b.text] for b in blocks]
    program = self.work / "cache" / "page.py"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"""import json
scope = {{"__name__": "__main__"}}
for line, text in json.loads({json.dumps(code)!r}):
  exec(compile("\\n" * (line - 1) + text, {str(page.path)!r}, "exec"), scope)
  print({MARK!r}, flush=True)
""", encoding="utf-8")
    compare_blocks(page, blocks, self.run([self.python, str(program)]))

  def run_console(self, page: Page) -> None:
    for line, command, expected in (c for b in page.of("console") for c in commands(b)):
      if not self.python and re.search(r"\bpython\b", command):
        continue
      done = self.run(["bash", "-c", command], merged=True)
      if done.returncode:
        page.fail(line, f"status {done.returncode} of `{command}`\n" + indented(done.stdout))
      elif expected is not None:
        first = line + command.count("\n") + 1
        if os.environ.get("TG_UPDATE_DOCS") and "..." not in expected:
          page.new_outputs.append((first, expected.count("\n") + 1, tidy(done.stdout)))
        else:
          compare(page, first, expected, done.stdout)


def commands(block: Block) -> list[tuple[int, str, str | None]]:
  """The commands of a console block: line, text, what is expected."""
  found: list[tuple[int, str, list[str]]] = []
  more = False
  for number, line in enumerate(block.text.split("\n"), block.line):
    if line.startswith("$ "):
      found.append((number, line[2:], []))
    elif more:
      found[-1] = (found[-1][0], f"{found[-1][1]}\n{line}", [])
    elif found:
      found[-1][2].append(line)
    more = bool(found) and line.endswith("\\") and (line.startswith("$ ") or more)
  return [(number, text, "\n".join(lines) if lines else None) for number, text, lines in found]


def cpp_program(page: pathlib.Path, blocks: list[Block]) -> str:
  prologue = Page(page.parent / "README.md").of("cpp")
  includes, body = [], []
  for block in blocks:
    rest = []
    for line in block.text.split("\n"):
      is_include = line.startswith("#include")
      includes += [line] if is_include else []
      rest.append("" if is_include else line)
    body += [f'#line {block.line} "{page}"', *rest, f'std::puts("{MARK}"), std::fflush(stdout);']
  head = [line for b in prologue for line in (f'#line {b.line} "{page.parent}/README.md"', b.text)]
  return "\n".join([*includes, *head, "int main() {", *body, "}", ""])


def check(path: pathlib.Path, args: argparse.Namespace) -> list[Problem]:
  page = Page(path)
  check_links(page)
  if args.max_words:
    check_paragraphs(page, args.max_words)
  if args.build:
    if page.path.name == "README.md":
      check_index(page)
    build = args.build.resolve()
    work = (args.work or build / "guide" / page.path.stem).resolve()
    runner = Runner(build, work, args.cxx, args.python)
    runner.prepare(page)
    runner.run_cpp(page)
    runner.run_python(page)
    runner.run_console(page)
    page.write_outputs()
  return page.problems


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("pages", type=pathlib.Path, nargs="+")
  parser.add_argument("--max-words", type=int, help="words of a paragraph")
  parser.add_argument("--build", type=pathlib.Path, help="folder with lib, bin and python; without it no snippet is run")
  parser.add_argument("--work", type=pathlib.Path, help="folder to run in, made anew; by default in the build folder")
  parser.add_argument("--cxx", default="g++", help="compiler of C++ snippets")
  parser.add_argument("--python", help="interpreter of Python snippets; without it they are not run")
  args = parser.parse_args()
  problems = [problem for path in args.pages for problem in check(path, args)]
  for problem in problems:
    print(problem, file=sys.stderr)
  return 1 if problems else 0


if __name__ == "__main__":
  sys.exit(main())
