"""Templates on real streams for ``cayuga``; the constants are quantiles of what the streams hold."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from experiments.cayuga.sets import Asked
from experiments.report import Row
from experiments.speed.many_workload import FIRST, Constants, check, desk_of, seconds_alone, timed
from experiments.streams.real import is_here, load

CHECKED = 10_000


@dataclass(frozen=True)
class Source:
    """A constant of each query: a value of a column of the events of a type, or a quantile between two, or a number."""

    column: str | None = None
    kind: str | None = None
    least: float | None = None
    most: float = 1.0

    def drawn(self, events: pa.Table, count: int, dice: np.random.Generator) -> np.ndarray:
        """Values for some queries."""
        if self.column is None:
            return dice.integers(int(self.least or 0), int(self.most), count)
        mine = events.filter(pc.equal(events.column("type"), self.kind)).column(self.column)
        if self.least is None:
            return np.array(mine.take(pa.array(dice.integers(0, len(mine), count))).to_pylist())
        values = np.quantile(mine.to_numpy(), dice.uniform(self.least, self.most, count))
        return np.asarray(values, np.int64)


@dataclass(frozen=True)
class Real:
    """A template on a stream: what it looks for, and where its constants come from."""

    name: str
    text: str
    constants: dict[str, Source]


REAL = (
    Real(
        "ticks",
        "PATTERN SEQ(SPY a, SPY b, SPY c) WHERE [key] AND a.key = :venue AND a.size > :size"
        " AND b.price_e4 > a.price_e4 + :up AND c.size > :last WITHIN :length s",
        {
            "venue": Source("key", "SPY"),
            "size": Source("size", "SPY", 0.99, 0.9999),
            "up": Source(None, None, 100, 500),
            "last": Source("size", "SPY", 0.99, 0.9999),
            "length": Source(None, None, 10, 60),
        },
    ),
    Real(
        "flights",
        "PATTERN SEQ(DEP a, ARR b, DEP c) WHERE [key] AND a.dest = :dest AND a.carrier = :carrier"
        " AND a.delay_min > :delay AND b.delay_min > a.delay_min + :more AND c.delay_min > :later WITHIN :length h",
        {
            "dest": Source("dest", "DEP"),
            "carrier": Source("carrier", "DEP"),
            "delay": Source("delay_min", "DEP", 0.5, 0.95),
            "more": Source(None, None, -10, 20),
            "later": Source("delay_min", "DEP", 0.5, 0.95),
            "length": Source(None, None, 6, 24),
        },
    ),
    Real(
        "soccer",
        "PATTERN SEQ(Pass a, Pass b, Shot c) WHERE [key] AND [team] AND a.player = :player AND a.x > :x"
        " AND b.x > a.x + :ahead WITHIN :length s",
        {
            "player": Source("player", "Pass"),
            "x": Source("x", "Pass", 0.3, 0.9),
            "ahead": Source(None, None, 5, 30),
            "length": Source(None, None, 5, 20),
        },
    ),
)


def real_constants(one: Real, events: pa.Table, count: int) -> Constants:
    """Constants for some queries."""
    dice = np.random.default_rng(12)
    columns = {name: source.drawn(events, count, dice) for name, source in one.constants.items()}
    return pa.table(columns).to_pylist()  # type: ignore[no-any-return]


def loaded(folder: Path, name: str, events: int) -> pa.Table:
    """The first events of a stream, their time as a time."""
    whole = load(name, folder).slice(0, events)
    return whole.set_column(0, "ts", whole.column("ts").cast(pa.timestamp("us")))


def real(asked: Asked) -> list[Row]:
    """The rates of a few and of many queries on each stream."""
    rows: list[Row] = []
    for one in REAL:
        events = loaded(asked.data, one.name, asked.events)
        for count in (size for size in asked.sizes if asked.some // 100 <= size <= asked.some):
            table = real_constants(one, events, count)
            check(one.text, table, events.slice(0, CHECKED))
            rate, points = timed(lambda one=one, table=table: desk_of(one.text, table), events, asked.rounds)
            alone = seconds_alone(one.text, table, events) * count
            name = one.name if is_here(one.name, asked.data) else f"{one.name} (generated)"
            row = {"stream": name, "queries": count, "rate": rate, "points": points}
            rows.append(row | {"gain": rate * alone / max(events.num_rows - FIRST, 1)})
    return rows
