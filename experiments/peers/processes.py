"""What a user waits for beyond a table in memory: one event that is pushed, few events, and ``acep run`` as a process.

The command is run on a Parquet file of W2 with 20 letters, and on one of five events, which have one match: what it
costs to start is in both. Peak memory is that of the process, and a process is said to have needed what the one that
started it needed till then; so a small one stands in between.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from acep_approx import compile_query, compile_rules
from acep_approx.api.matcher import Matcher
from acep_approx.api.rule_set import RuleRun
from experiments.peers.workloads import QUADRUPLES, letters
from experiments.speed.rules import THREE, stream

ROOT = Path(__file__).parent.parent.parent
FIVE = pa.table({"ts": np.arange(5), "type": list("ABCDE")})
OUTPUTS = {"points": ("--output", "points"), "listed": ()}

STARTS = """
import json, resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([code, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6]))
"""

ACEP = "from acep_approx.cli.main import main; main()"
"""What the installed command does."""


@dataclass(frozen=True)
class Cost:
    """Of a process: processor time, user and system, in seconds; peak memory in MB; rows that it wrote."""

    cpu: float
    peak: float
    rows: int


def process(events: Path, output: str) -> Cost:
    """``acep run`` on a file, with one of ``OUTPUTS``, to a file beside it."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    out = events.with_name(f"{events.stem}-{output}.parquet")
    command = [sys.executable, "-c", ACEP, "run", QUADRUPLES, str(events), "-q", "-o", str(out), *OUTPUTS[output]]
    starts = [sys.executable, "-S", "-c", STARTS, *command]
    done = subprocess.run(starts, env=environment, capture_output=True, text=True, check=True)
    code, cpu, peak = json.loads(done.stdout)
    if code != 0:
        sys.exit(done.stderr)
    return Cost(cpu, peak, pq.read_metadata(out).num_rows)


class Processes:
    """The files that the command is run on.

    Parameters
    ----------
    folder : Path
        Where they are written.
    events : int
        Of the large one.
    """

    def __init__(self, folder: Path, events: int) -> None:
        self._few, self._many = folder / "five.parquet", folder / "many.parquet"
        stream = letters(events, 20)
        pq.write_table(FIVE, self._few)
        pq.write_table(stream, self._many)
        matches = compile_query(QUADRUPLES).match(stream)
        self._expected = {"points": (1, matches.points().num_rows), "listed": (1, len(matches))}

    def warm(self, output: str) -> None:
        """Write bytecode, and compile what a run needs."""
        process(self._many, output)

    def run(self, output: str) -> tuple[Cost, Cost]:
        """On five events and on many, one right after the other."""
        few, many = process(self._few, output), process(self._many, output)
        assert (few.rows, many.rows) == self._expected[output], f"{output}: {few.rows} and {many.rows} rows"
        return few, many


class Pushes:
    """A matcher, or rules, that get one event at a time, as a list with one dict.

    Parameters
    ----------
    target : Matcher or RuleRun
    events : iterator of dict
    each : int
        Events of one measurement.
    """

    def __init__(self, target: Matcher | RuleRun, events: Iterator[dict[str, Any]], each: int) -> None:
        self._each = each
        self._target = target
        self._events = events

    @classmethod
    def to_matcher(cls, each: int) -> Pushes:
        """W2 with 20 letters."""
        return cls(compile_query(QUADRUPLES).matcher(), _again(letters(10_000, 20)), each)

    @classmethod
    def to_rules(cls, each: int) -> Pushes:
        """Three rules that read and write one table, over a hundred keys."""
        return cls(compile_rules(THREE).start(), _again(stream(10_000, 100)), each)

    def run(self) -> float:
        """Seconds of processor time for one event."""
        events = list(islice(self._events, self._each))
        start = time.process_time()
        for event in events:
            self._target.push([event])
        return (time.process_time() - start) / self._each


def _again(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The events again and again, time goes on."""
    events, later = table.to_pylist(), 0
    while True:
        for event in events:
            yield event | {"ts": event["ts"] + later}
        later += events[-1]["ts"] + 1


class FewEvents:
    """A query that is matched with a thousand events again and again: W2 with 50 letters.

    Parameters
    ----------
    each : int
        Calls of one measurement.
    """

    def __init__(self, each: int) -> None:
        self._each = each
        self._query, self._events = compile_query(QUADRUPLES), letters(1000, 50)

    def run(self) -> float:
        """Seconds of processor time for one call."""
        start = time.process_time()
        for _ in range(self._each):
            self._query.match(self._events).to_arrow()
        return (time.process_time() - start) / self._each
