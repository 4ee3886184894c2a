"""Workloads for load shedding: patterns on real streams, and on generated ones.

DS1 and DS2 are the generators of Yu, Shi,
Weidlich and Zhao, *SHARP* (arXiv 2507.04872, 2025), section 6.1. The paper's queries Q3 and Q4 compare values of two
events with a third one, Q1 and Q2 sum up a repetition; ours are of these kinds, with windows and factors of our own,
so that an exact run has tens of run-steps an event after merging and few of many runs make a match. Those with more
load are in ``shedding.heavy``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa

from experiments.streams import real

EVENTS = 40_000
"""Of a generated stream."""


@dataclass(frozen=True)
class Workload:
    """A query, events to learn from, and later events of the same stream to be measured on.

    Attributes
    ----------
    name : str
        A key of ``QUERIES``.
    query : str
    train, test : pyarrow.Table
        First and second half of the stream, by rows.
    unit : str or None
        Unit of the time column, as ``Matcher`` takes it.
    """

    name: str
    query: str
    train: pa.Table
    test: pa.Table
    unit: str | None


def rising(attribute: str, variables: str) -> str:
    """The condition that an attribute rises from variable to variable."""
    return " AND ".join(f"{v}.{attribute} < {w}.{attribute}" for v, w in pairwise(variables))


REAL: dict[str, tuple[str, str]] = {
    "T7": (
        "ticks",
        (
            "PATTERN SEQ(IBM a, IBM b, IBM c, IBM d) WHERE d.move = 1 AND d.size >= 500 AND d.price_e4 > a.price_e4"
            " AND d.price_e4 > b.price_e4 AND d.price_e4 > c.price_e4 WITHIN 100 ms"
        ),
    ),
    "T6": (
        "ticks",
        (
            "PATTERN SEQ(IBM a, AIG b, BAC c, SPY d) WHERE c.size > a.size AND d.move = 1 AND d.size >= 2000"
            " AND d.size > c.size AND d.key = a.key WITHIN 500 ms"
        ),
    ),
    "W5": (
        "tweets",  # bits of the mask: b d w r, then g e u
        (
            "PATTERN SEQ(ANY a, ANY b, ANY c, ANY d) WHERE [key] AND b.is_rt = 1 AND c.kw_mask % 16 > 0"
            f" AND d.kw_mask % 128 >= 16 AND {rising('followers', 'abcd')} WITHIN 24 h"
        ),
    ),
    "S4": (
        "soccer",
        "PATTERN SEQ(Pass a, Pass b, Pass c, Pass d, Shot g) WHERE [key] AND [team] AND g.goal = 1 WITHIN 25 s",
    ),
    "F4": (
        "flights",
        (
            f"PATTERN SEQ(DEP a, DEP b, DEP c, CXL d) WHERE [origin] AND {rising('delay_min', 'abc')}"
            " AND a.carrier <> b.carrier AND b.carrier <> c.carrier AND d.dest = a.dest WITHIN 30 min"
        ),
    ),
    "B3": (
        "bikes",
        "PATTERN SEQ(start a, start b, start c, start d, end e) WHERE [station] AND e.subscriber = 0 WITHIN 8 min",
    ),
}
"""Name: stream and query."""


def ds1(events: int, seed: int) -> pa.Table:
    """The first generated stream: independent uniform attributes.

    Parameters
    ----------
    events : int
    seed : int

    Returns
    -------
    pyarrow.Table
        ``ts`` (0, 1, 2, ...), ``type`` (A to J), ``id`` (1 to 10), ``x`` in [-90, 90), ``y`` in [-180, 180), ``v`` (1
        to 3,000,000).
    """
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": np.arange(events),
            "type": np.array(list("ABCDEFGHIJ"))[rng.integers(0, 10, events)],
            "id": rng.integers(1, 11, events),
            "x": rng.uniform(-90, 90, events),
            "y": rng.uniform(-180, 180, events),
            "v": rng.integers(1, 3_000_001, events),
        }
    )


def ds2(events: int, seed: int) -> pa.Table:
    """The second generated stream: ``ts``, ``type`` (A to F), ``id`` (1 to 25), ``x`` (1 to 100), all uniform."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": np.arange(events),
            "type": np.array(list("ABCDEF"))[rng.integers(0, 6, events)],
            "id": rng.integers(1, 26, events),
            "x": rng.integers(1, 101, events),
        }
    )


GENERATED: dict[str, tuple[Callable[[int, int], pa.Table], str]] = {
    "DS1-sum": (
        ds1,
        "PATTERN SEQ(A a, B b, C c, D d) WHERE a.id = b.id AND b.id = c.id AND (a.v + b.v) * 8 < d.v WITHIN 800",
    ),
    "DS1-near": (
        ds1,
        (
            "PATTERN SEQ(A a, B b, C c, F f) WHERE a.id = b.id AND b.id = c.id AND b.v + c.v < f.v"
            " AND ((a.x - f.x) * (a.x - f.x) + (a.y - f.y) * (a.y - f.y)) * 1000 <= f.v WITHIN 600"
        ),
    ),
    "DS2-sum": (ds2, "PATTERN SEQ(A a, B+ b[], C c) WHERE [id] AND a.x + sum(b[].x) < c.x WITHIN 600"),
}
"""Name: generator and query."""

QUERIES = {name: query for name, (_, query) in (*REAL.items(), *GENERATED.items())}
"""Name: query text, of all workloads."""


def load(name: str, seed: int = 1, events: int = EVENTS) -> Workload:
    """One workload.

    Parameters
    ----------
    name : str
        A key of ``QUERIES``.
    seed, events : int
        Of a generated stream; real ones are what they are.
    """
    if name in REAL:
        file, query = REAL[name]
        return _halves(name, query, real.load(file), "us")
    make, query = GENERATED[name]
    return _halves(name, query, make(events, seed), None)


def _halves(name: str, query: str, stream: pa.Table, unit: str | None) -> Workload:
    half = len(stream) // 2
    return Workload(name, query, stream.slice(0, half), stream.slice(half), unit)


Load = Callable[[int], Workload]
"""Loads a workload; takes the seed of a generated stream."""


def workloads(names: Iterable[str] = tuple(QUERIES)) -> list[Load]:
    """Functions that take a seed and return a workload, each to be called when it is its turn: streams are large."""
    return [partial(load, name) for name in names]
