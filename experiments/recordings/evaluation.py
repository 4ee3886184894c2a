"""What every kind of run prints, writes and returns: recorded for a tree of sources, and compared.

    python -m experiments.recordings record FOLDER [--tree TREE] [--only PATTERN] [--spark]
    python -m experiments.recordings compare OLD NEW [--expected FILE]

``record`` plays about 1,700 command lines and Python calls, in a few minutes, and writes a file for each. ``--tree`` is
the tree whose package runs, by default this one; the cases are always those of this tree. ``compare`` prints the cases
that differ, and ends with 1 if there are any; ``--expected`` names a file with names of cases that may differ, with
``*``. Both recordings must be made by the same recorder.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from experiments.recordings.case import Case
from experiments.recordings.commands import all_commands
from experiments.recordings.comparing import compare
from experiments.recordings.recording import ROOT, record


def all_cases(*, spark: bool) -> list[Case]:
    """Command lines and calls; these know the package, which processes that play take from another tree."""
    from experiments.recordings.calls import all_calls

    return [*all_commands(with_spark=spark), *all_calls()]


def main(arguments: Sequence[str] | None = None) -> None:
    """Record, or compare."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = options.add_subparsers(dest="verb", required=True)
    recording = verbs.add_parser("record", help="play all cases, and write what came of them")
    recording.add_argument("folder", type=Path)
    recording.add_argument("--tree", type=Path, default=ROOT, help="whose package runs (default: this tree)")
    recording.add_argument(
        "--only", action="append", metavar="PATTERN", help="cases with such names, e.g. 'late/*'; others of FOLDER stay"
    )
    recording.add_argument("--spark", action="store_true", help="also those that start Spark")
    recording.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    recording.add_argument("--slowest", type=int, default=0, metavar="N", help="say which cases took longest")
    comparing = verbs.add_parser("compare", help="print what differs")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    comparing.add_argument("--expected", type=Path, help="names of cases that may differ, one a line")
    given = options.parse_args(arguments)
    if given.verb == "compare":
        sys.exit(1 if compare(given.old, given.new, given.expected) else 0)
    patterns = given.only or ["*"]
    cases = [one for one in all_cases(spark=given.spark) if any(fnmatch.fnmatchcase(one.name, p) for p in patterns)]
    if given.folder.exists() and any(given.folder.iterdir()):
        if not (given.folder / "recording.json").exists():
            options.error(f"{given.folder} is there, and no recording")
        if not given.only:
            shutil.rmtree(given.folder)
    started = time.perf_counter()
    given.folder.mkdir(parents=True, exist_ok=True)
    seconds = record(given.folder, given.tree, cases, given.processes)
    print(f"{len(cases):,} cases of {given.tree} recorded in {time.perf_counter() - started:.0f} s: {given.folder}")
    for name in sorted(seconds, key=lambda name: -seconds[name])[: given.slowest]:
        print(f"  {seconds[name]:6.2f} s  {name}")
