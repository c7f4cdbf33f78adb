"""The checker of pages finds what is wrong. The folder of the build is in TG_BUILD_DIR; without it no C++ is compiled."""

import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest
import unittest.mock

CHECKER = pathlib.Path(__file__).parent / "check_page.py"
BUILD = os.environ.get("TG_BUILD_DIR")


class Checker(unittest.TestCase):
  def setUp(self) -> None:
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.folder = pathlib.Path(folder.name)
    self.write("README.md", "[a page](page.md)\n```cpp\n#include <cstdio>\n```\n")

  def write(self, name: str, text: str) -> None:
    (self.folder / name).write_text(textwrap.dedent(text), encoding="utf-8")

  def check(self, text: str, name: str = "page.md", build: str = "/nowhere") -> list[str]:
    """Lines of what the checker says of a page; the first numbers are those of lines."""
    self.write(name, text)
    done = subprocess.run([sys.executable, CHECKER, self.folder / name, "--build", build, "--work", self.folder / "work", "--python", sys.executable,
                           "--max-words", "5"], stderr=subprocess.PIPE, encoding="utf-8", check=False)
    lines = done.stderr.replace(f"{self.folder / name}:", "").splitlines()
    self.assertEqual(done.returncode, 1 if lines else 0)
    return lines

  def test_a_good_page(self) -> None:
    self.assertEqual(self.check("""\
      # One `title` (of two)
      Few words [here](#one-title-of-two), [there](README.md).
      - one two three
      - four five six
      ```python
      x = 1
      print("time 3.5 s")
      ```
      ```output
      time ... s
      ```
      ```python
      print(x + 1, 1, sep="\\n")
      ```
      ```output
      2
      ...
      ```
      ```python
      # module.py
      y = 5
      ```
      ```console
      $ echo 1; echo \\
        2 >&2
      1
      2
      $ python -c 'import module; print(module.y)'
      5
      ```
      """), [])

  def test_links(self) -> None:
    self.assertEqual(self.check("[a](none.md)\n[b](#none)\n\n[c](README.md#none)\n`[d](none.md)`\n"), [
      "1: a link to none.md, which is not there",
      "2: a link to #none: page.md has no heading #none",
      "4: a link to README.md#none: README.md has no heading #none",
    ])

  def test_paragraphs(self) -> None:
    self.assertEqual(self.check("one two\n\none two three\nfour five six\n\n| a | b | c | d | e | f |\n"),
                     ["3: a paragraph of 6 words, expects at most 5"])

  def test_an_index(self) -> None:
    self.write("page.md", "")
    self.assertEqual(self.check("[a page](https://example.org/page.md)\n", "README.md"), ["1: no link to page.md"])

  def test_blocks(self) -> None:
    self.assertEqual(self.check("```fortran\n```\n"), ["1: a block of fortran, expects one of cmake, console, cpp, mermaid, output, python, sh, text"])
    self.assertEqual(self.check("```output\n```\n"), ["1: an output that follows no block of a program"])
    self.assertEqual(self.check("text\n```sh\n"), ["2: a block that does not end"])
    self.assertEqual(self.check("```python\n# docs/page.py\n```\n"),
                     ["2: docs/page.py is there already, or lies outside of the folder that snippets run in"])

  def test_a_wrong_output(self) -> None:
    self.assertEqual(self.check("```python\nprint(1)\n```\n```output\n1\n```\n\n```python\nprint(2)\n```\n```output\n3\n```\n"),
                     ["12: expected", "    3", "got", "    2"])
    self.assertEqual(self.check("```console\n$ echo a\na\n$ echo b\nc\n```\n"), ["5: expected", "    c", "got", "    b"])
    self.assertEqual(self.check("```console\n$ echo a; echo b; echo d\na\n...\nc\n```\n")[0], "5: expected")

  def test_a_program_that_fails(self) -> None:
    lines = self.check("```python\nprint(1)\n```\n\n```python\nx = 1\nx.y\n```\n")
    self.assertEqual(lines[0], "6: the program ended here with status 1")
    self.assertIn('page.md", line 7', "\n".join(lines))
    self.assertEqual(self.check("```console\n$ echo 1; exit 3\n1\n```\n"), ["2: status 3 of `echo 1; exit 3`", "    1"])

  def test_outputs_written_anew(self) -> None:
    with unittest.mock.patch.dict(os.environ, TG_UPDATE_DOCS="1"):
      lines = self.check("```console\n$ echo a; echo b\nc\n$ echo d\n...\ne\n```\n\n```console\n$ echo f\ng\nh\n```\n")
    self.assertEqual(lines, ["6: expected", "    ...", "    e", "got", "    d"])
    self.assertEqual((self.folder / "page.md").read_text(encoding="utf-8"),
                     "```console\n$ echo a; echo b\na\nb\n$ echo d\n...\ne\n```\n\n```console\n$ echo f\nf\n```\n")

  @unittest.skipUnless(BUILD, "no TG_BUILD_DIR")
  def test_programs_of_cpp(self) -> None:
    page = """\
      ```cpp
      const int x = 1;
      std::printf("%d\\n", x);
      ```
      ```output
      2
      ```
      ```cpp
      #include <stdexcept>
      throw std::runtime_error("no");
      ```
      """
    lines = self.check(page, build=BUILD or "")
    self.assertEqual(lines[:5], ["6: expected", "    2", "got", "    1", "9: the program ended here with status -6"])
    self.assertIn("no", lines[-1])
    self.assertIn(" 3:13: error: format", "\n".join(self.check(page.replace("%d", "%s"), build=BUILD or "")))


if __name__ == "__main__":
  unittest.main()
