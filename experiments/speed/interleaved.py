"""Benchmarks of two trees in turns: the median of each row before and after, and their ratio.

    python -m experiments.speed.interleaved BEFORE AFTER MODULE... [--rounds 5] [-- WORDS]

``MODULE`` is e.g. ``experiments.peers``, ``experiments.speed.cells``, ``.runs``, ``.many``, ``.rules``, ``.revisions``;
``WORDS`` are handed on to it. Each round runs it once in each tree, in a process of its own, with the package and the
benchmark of that tree; the tree that begins alternates. Rows are read from what is printed, as a user sees it: a row is
known by its table and its first words, and each number of it by its column.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path

from rich.console import Console

from experiments.report import of_texts

NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?")
Rows = dict[tuple[str, str], float]
"""A number by its row and its column."""
WIDTH = 240
"""Columns of the terminal that benchmarks think they have: nothing is wrapped."""


def rows_of(text: str) -> Rows:
    """The numbers that a benchmark has printed: of tables with borders, and of lines with a name and numbers."""
    found: Rows = {}
    title, headings = "", list[str]()
    lines = text.splitlines()
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if below.startswith("┏"):
            title = line.strip()
        elif line.startswith("┃"):
            headings = _cells(line)
        elif line.startswith("│"):
            cells = _cells(line)
            words = _words(cells)
            _take(
                found, ": ".join(filter(None, (title, ", ".join(words)))), headings[len(words) :], cells[len(words) :]
            )
        elif (parts := re.split(r" {2,}", line.strip(), maxsplit=1))[1:] or (parts := line.split(": ", 1))[1:]:
            numbers = NUMBER.findall(parts[1])
            _take(found, parts[0], [f"number {n + 1}" for n in range(len(numbers))], numbers)
    return found


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split("[│┃]", line)[1:-1]]


def _words(cells: Sequence[str]) -> list[str]:
    """Those at the beginning that are no numbers: they name the row."""
    return list(takewhile(lambda cell: not NUMBER.match(cell), cells))


def _take(found: Rows, row: str, headings: Sequence[str], cells: Sequence[str]) -> None:
    """Keep the first number of each cell; one with a spread begins with its median."""
    for heading, cell in zip(headings, cells, strict=False):
        if number := NUMBER.search(cell):
            name = (row, heading)
            while name in found:
                name = (row, f"{name[1]}'")
            found[name] = float(number[0].replace(",", ""))


def run(tree: Path, module: str, words: Sequence[str]) -> Rows:
    """Run a benchmark of a tree; its rows."""
    settings = {**os.environ, "PYTHONPATH": str(tree), "ACEP_JIT": "1", "COLUMNS": str(WIDTH), "NO_COLOR": "1"}
    command = [sys.executable, "-c", _AS_WIDE, module, *words]
    done = subprocess.run(command, cwd=tree, env=settings, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{module} of {tree} ended with {done.returncode}\n{done.stderr[-2000:]}")
    return rows_of(done.stdout)


_AS_WIDE = f"""
import functools, runpy, sys
import rich.console
sys.path[0] = ""
made = rich.console.Console.__init__
def wide(self, *args, **more):
    made(self, *args, **more | dict(width={WIDTH}))
rich.console.Console.__init__ = wide
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
"""Tables that are made for narrow terminals wrap their names, and then rows are not known again."""


def measured(trees: Sequence[Path], modules: Sequence[str], words: Sequence[str], rounds: int) -> Iterator[list[str]]:
    """Rows of the table: what is measured, both medians, and their ratio."""
    for module in modules:
        taken: list[list[Rows]] = [[], []]
        for number in range(rounds):
            order = (0, 1) if number % 2 == 0 else (1, 0)
            for which in order:
                taken[which].append(run(trees[which], module, words))
            print(f"{module}: round {number + 1} of {rounds}", file=sys.stderr)
        for name in taken[0][0]:
            before, after = ([one[name] for one in some if name in one] for some in taken)
            if before and after:
                yield [module, *name, *_compared(before, after)]


def _compared(before: Sequence[float], after: Sequence[float]) -> list[str]:
    old, new = statistics.median(before), statistics.median(after)
    pairs = [b / a for a, b in zip(before, after, strict=False) if a]
    return [f"{old:,.6g}", f"{new:,.6g}", f"{statistics.median(pairs):.3f}" if pairs else "-"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a table."""
    given_words = list(sys.argv[1:] if arguments is None else arguments)
    handed_on = given_words[given_words.index("--") + 1 :] if "--" in given_words else []
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("before", type=Path, help="a tree of sources")
    options.add_argument("after", type=Path, help="another one")
    options.add_argument("modules", nargs="+", help="benchmarks")
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args(given_words[: given_words.index("--")] if "--" in given_words else given_words)
    trees = [given.before.resolve(), given.after.resolve()]
    headings = ("module", "row", "column", "before", "after", "after/before")
    rows = list(measured(trees, given.modules, handed_on, given.rounds))
    Console(width=160).print(of_texts("in turns", headings, rows, {"module", "row", "column"}))


if __name__ == "__main__":
    main()
