"""Patterns that people would ask for, on real streams: for ``speed.runs``."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from itertools import combinations, pairwise
from typing import Any

import pyarrow as pa

from acep_approx import Matcher, compile_query
from acep_approx.engines.runs.runs import Runs
from acep_approx.events.source import BATCH_ROWS
from acep_approx.planning.planner import MERGING
from experiments.report import Row
from experiments.streams.real import is_here, load

PUSH = 1 << 12
"""Events that are pushed first; the time is looked at after each push, and pushes grow while they are short."""
SHORT = 0.2
"""Seconds of a short push."""


@dataclass(frozen=True)
class Stream:
    """A pattern on a stream: name, file, query, matches per event if they are known."""

    name: str
    file: str
    query: str
    known: float | None


def _different(attribute: str, variables: str) -> str:
    return " AND ".join(f"{v}.{attribute} <> {w}.{attribute}" for v, w in combinations(variables, 2))


def _rising(attribute: str, variables: str) -> str:
    return " AND ".join(f"{v}.{attribute} < {w}.{attribute}" for v, w in pairwise(variables))


def _chain(last: str, first: str, variables: str) -> str:
    return " AND ".join(f"{w}.{first} = {v}.{last}" for v, w in pairwise(variables))


def _each(condition: str, variables: str) -> str:
    return " AND ".join(f"{v}.{condition}" for v in variables)


STREAMS = (
    Stream(
        "T1 ticks",
        "ticks",
        f"PATTERN SEQ(SPY a, BAC b, AIG c, IBM d) WHERE {_each('move = 1', 'abcd')} WITHIN 3 s",
        0.046,
    ),
    Stream(
        "B2 bikes",
        "bikes",
        f"PATTERN SEQ(end a, end b, end c, end d) WHERE {_chain('station', 'from_station', 'abcd')}"
        f" AND {_different('key', 'abcd')} AND {_rising('duration_s', 'abcd')} WITHIN 20 min",
        0.0052,
    ),
    Stream(
        "W1 tweets",
        "tweets",
        "PATTERN SEQ(ANY a, ANY b, ANY c, ANY d) WHERE [key]"  # bits of the mask: b d w r, then g e u
        f" AND {_each('kw_mask % 16 > 0', 'ab')} AND {_each('kw_mask % 128 >= 16', 'cd')} WITHIN 2 d",
        0.033,
    ),
    Stream(
        "S3 soccer",
        "soccer",
        "PATTERN SEQ(Pass a, Pass b, Pass c, Pass d, Shot s) WHERE [key] AND [team]"
        f" AND {_each('accurate = 1', 'abcd')} AND {_different('player', 'abcd')} AND {_rising('x', 'abcd')}"
        " WITHIN 25 s",
        0.031,
    ),
    Stream(
        "Z5 zeek",
        "zeek",
        "PATTERN SEQ(dns a, ssl b, dns c, ssl d) WHERE [key] AND a.ok = 1 AND c.ok = 1"
        " AND b.name = a.name AND c.name <> a.name AND d.name = c.name WITHIN 100 ms",
        0.013,
    ),
    Stream(
        "F4 flights",
        "flights",
        "PATTERN SEQ(DEP a, DEP b, DEP c, CXL d) WHERE [origin]"
        f" AND {_rising('delay_min', 'abc')} AND a.carrier <> b.carrier AND b.carrier <> c.carrier"
        " AND d.dest = a.dest WITHIN 30 min",
        0.0021,
    ),
    Stream(
        "S4 soccer 60 s",
        "soccer",
        "PATTERN SEQ(Pass a, Pass b, Pass c, Pass d, Shot g) WHERE [key] AND [team] AND g.goal = 1 WITHIN 60 s",
        None,
    ),
)


class Pass:
    """One engine on its way through a stream.

    Parameters
    ----------
    stream : Stream
    events : pyarrow.Table
    engine : {"auto", "runs"}
    merge : str
        Mergings of the runs engine.

    Attributes
    ----------
    rows, matches : int
        Events done, matches listed.
    seconds, inside : float
        CPU time in all, and of the kernel of the runs engine.
    """

    def __init__(self, stream: Stream, events: pa.Table, engine: str, merge: str) -> None:
        self.stream, self.events = stream, events
        self.matcher = Matcher(compile_query(stream.query, engine=engine).plan, unit="us", merge=merge)
        self.engine = self.matcher.bind(events.schema).engine
        self.rows = self.matches = 0
        self.push = PUSH
        self.seconds = self.inside = 0.0
        if isinstance(self.engine, Runs):
            self.engine.advance = partial(self._clocked, self.engine.advance)  # type: ignore[method-assign]

    def _clocked(self, advance: Any, *given: Any) -> bool:
        start = time.thread_time()
        done = advance(*given)
        self.inside += time.thread_time() - start
        return bool(done)

    def go_on(self, seconds: float, rows: int) -> None:
        """Push events until so many ``seconds`` in all are spent or so many ``rows`` in all are done."""
        while self.rows < rows and self.seconds < seconds:
            part = self.events.slice(self.rows, min(self.push, rows - self.rows))
            start = time.thread_time()
            self.matches += self.matcher.push(part).num_rows
            spent = time.thread_time() - start
            self.seconds += spent
            self.rows += len(part)
            if spent < SHORT:
                self.push = min(2 * self.push, BATCH_ROWS)

    def row(self) -> Row:
        """What it has seen and done so far."""
        work = self.matcher.progress
        is_runs = isinstance(self.engine, Runs)
        return {
            "rows": self.rows,
            "rate": self.rows / self.seconds,
            "kernel": 100 * self.inside / self.seconds if is_runs else None,
            "steps": work.steps / self.rows if is_runs else None,
            "peak": work.peak if is_runs else None,
            "matches": self.matches,
            "per_event": self.matches / self.rows,
            "known": self.stream.known if self.rows == len(self.events) and is_here(self.stream.file) else None,
        }


def measure(stream: Stream, seconds: float) -> list[Row]:
    """Without merging, with merging on the same events and as far as it gets, and the cells where they can answer.

    Parameters
    ----------
    stream : Stream
    seconds : float
        CPU time for each.
    """
    events = load(stream.file)
    everything = ",".join(MERGING)
    for engine, merge in (("runs", "none"), ("runs", everything), ("auto", everything)):
        Pass(stream, events.slice(0, 256), engine, merge).go_on(seconds, 256)  # compiles kernels
    basic = Pass(stream, events, "runs", "none")
    basic.go_on(seconds, len(events))
    found = [{"stream": stream.name, "engine": "none", **basic.row()}]
    merged = Pass(stream, events, "runs", everything)
    merged.go_on(float("inf"), basic.rows)
    assert merged.matches == basic.matches, f"{stream.name}: merging changes the number of matches"
    found.append({"stream": stream.name, "engine": "all", **merged.row()})
    cells = Pass(stream, events, "auto", everything)
    if not isinstance(cells.engine, Runs):
        cells.go_on(float("inf"), basic.rows)
        assert cells.matches == basic.matches, f"{stream.name}: the cells find another number of matches"
        found.append({"stream": stream.name, "engine": "cells", **cells.row()})
    if merged.rows < len(events) and merged.seconds < seconds:
        merged.go_on(seconds, len(events))
        found.append({"stream": stream.name, "engine": "all+", **merged.row()})
    return found
