"""Twelve workloads for a load budget under real load: from 30 to 4,500 run-steps per event of the exact run.

Chosen by load alone, and written down before any policy was measured on them: two patterns on each of three real
streams, one on each of three more, and the generators DS1 and DS2 of *SHARP* (see ``shedding.workloads``) with windows
that are several times as wide. The load is that of listing matches after lossless merging, on the half that is
measured; the docstring of ``HEAVY`` has it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from experiments.shedding.workloads import EVENTS, Load, Workload, ds1, ds2, rising
from experiments.streams import real

HEAVY_REAL: dict[str, tuple[str, int, str]] = {
    "ticks-book": (
        "ticks",
        100_000,
        (
            "PATTERN SEQ(SPY a, SPY b, SPY c, SPY d) WHERE [key] AND a.size >= 300 AND b.price_e4 > a.price_e4"
            " AND b.size >= 300 AND c.price_e4 < b.price_e4 AND c.size > a.size AND d.price_e4 > b.price_e4"
            " AND d.size > c.size + b.size AND d.move = 1 WITHIN 30 s"
        ),
    ),
    "ticks-lead": (
        "ticks",
        150_000,
        (
            "PATTERN SEQ(SPY a, SPY b, BAC c, IBM d) WHERE a.size >= 500 AND b.price_e4 > a.price_e4"
            " AND b.size > a.size AND c.move = 1 AND c.size > b.size AND d.move = 1 AND d.key = a.key WITHIN 5 min"
        ),
    ),
    "flights-wave": (
        "flights",
        60_000,
        (
            f"PATTERN SEQ(DEP a, DEP b, DEP c, CXL d) WHERE [origin] AND {rising('delay_min', 'abc')}"
            " AND a.carrier <> b.carrier AND b.carrier <> c.carrier AND d.dest = a.dest WITHIN 3 h"
        ),
    ),
    "flights-turn": (
        "flights",
        60_000,
        (
            "PATTERN SEQ(ARR a, DEP b, ARR c, DEP d) WHERE [origin] AND b.delay_min > a.delay_min"
            " AND c.delay_min > b.delay_min AND d.delay_min > c.delay_min + 60 AND d.carrier <> a.carrier"
            " AND d.distance < b.distance WITHIN 8 h"
        ),
    ),
    "soccer-press": (
        "soccer",
        120_000,
        (
            f"PATTERN SEQ(Duel a, Duel b, Pass c, Pass d, Shot e) WHERE [key] AND {rising('x', 'abcd')}"
            " AND c.team = b.team AND d.team = c.team AND e.team = d.team WITHIN 10 min"
        ),
    ),
    "soccer-goal": (
        "soccer",
        120_000,
        (
            f"PATTERN SEQ(Pass a, Pass b, Pass c, Pass d, Shot g) WHERE [key] AND [team] AND {rising('x', 'abcd')}"
            " AND g.goal = 1 WITHIN 10 min"
        ),
    ),
    "zeek-dns": (
        "zeek",
        39_000,
        (
            "PATTERN SEQ(dns a, ssl b, ssl c, dns d) WHERE [key] AND c.dst <> b.dst AND c.conn > b.conn"
            " AND d.dst = a.dst AND d.rtt > a.rtt WITHIN 5 min"
        ),
    ),
    "tweets-spread": (
        "tweets",
        35_892,
        (
            "PATTERN SEQ(ANY a, ANY b, ANY c, ANY d) WHERE [key] AND b.is_rt = 1 AND c.kw_mask % 16 > 0"
            f" AND d.kw_mask % 128 >= 16 AND {rising('followers', 'abcd')} WITHIN 30 d"
        ),
    ),
    "bikes-surge": (
        "bikes",
        60_000,
        (
            f"PATTERN SEQ(end a, end b, end c, end d) WHERE [region] AND {rising('duration_s', 'abc')}"
            " AND d.subscriber = 0 AND d.station = a.from_station AND d.duration_s > 3 * c.duration_s WITHIN 6 h"
        ),
    ),
}
"""Name: stream, events on each side of its middle, query."""

HEAVY_GENERATED = {
    "DS1-near-wide": (
        ds1,
        (
            "PATTERN SEQ(A a, B b, C c, F f) WHERE a.id = b.id AND b.id = c.id AND b.v + c.v < f.v"
            " AND ((a.x - f.x) * (a.x - f.x) + (a.y - f.y) * (a.y - f.y)) * 2000 <= f.v WITHIN 3000"
        ),
    ),
    "DS1-sum-wide": (
        ds1,
        "PATTERN SEQ(A a, B b, C c, D d) WHERE a.id = b.id AND b.id = c.id AND (a.v + b.v) * 8 < d.v WITHIN 4000",
    ),
    "DS2-sum-wide": (ds2, "PATTERN SEQ(A a, B+ b[], C c) WHERE [id] AND a.x + sum(b[].x) < c.x WITHIN 1200"),
}
"""Name: generator and query."""

HEAVY = {name: query for name, (*_, query) in (*HEAVY_REAL.items(), *HEAVY_GENERATED.items())}
"""Name: query text. Run-steps per event on the half that is measured: 107, 349, 264, 2,999, 31, 47, 1,044, 60, 2,634;
4,496, 807, 437."""


def load_heavy(name: str, seed: int = 1) -> Workload:
    """One workload; ``seed`` is that of a generated stream."""
    if name in HEAVY_REAL:
        file, events, query = HEAVY_REAL[name]
        stream = real.load(file)
        half = len(stream) // 2
        return Workload(name, query, stream.slice(half - events, events), stream.slice(half, events), "us")
    make, query = HEAVY_GENERATED[name]
    stream = make(EVENTS, seed)
    return Workload(name, query, stream.slice(0, EVENTS // 2), stream.slice(EVENTS // 2), None)


def heavy_workloads(names: Iterable[str] = tuple(HEAVY)) -> list[Load]:
    """As ``workloads.workloads``."""
    return [partial(load_heavy, name) for name in names]
