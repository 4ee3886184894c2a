"""Uneven sets of queries on real streams: templates with hot constants, of which some cost much more than others.

A set of a thousand or ten thousand queries is some templates and three queries by themselves. Constants are drawn from
the values that the past has, those that come most often the most often (Zipf): so many queries wait for the same
events. Weights, where there are any, are uneven: most match points count for 1, some for 10, few for 100.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx import QuerySet
from experiments.shedding.workloads import rising
from experiments.streams import real

EVENTS = 30_000
"""On each side of the middle of a stream."""
ZIPF = 1.2
WEIGHTS, SHARES = (1.0, 10.0, 100.0), (0.80, 0.15, 0.05)
GENERATED = "generated"


@dataclass(frozen=True)
class Template:
    """Queries that differ in constants.

    Attributes
    ----------
    text : str
    share : float
        Of all queries of the set that are of templates.
    hot : mapping of str to str
        By parameter the column whose values are its constants, the most frequent ones first.
    drawn : mapping of str to tuple of float
        By parameter the constants that are drawn from evenly.
    """

    text: str
    share: float
    hot: dict[str, str]
    drawn: dict[str, tuple[float, ...]]


@dataclass(frozen=True)
class Program:
    """What a set is made of: its templates, and queries by themselves."""

    templates: tuple[Template, ...]
    alone: tuple[str, ...]


PROGRAMS: dict[str, Program] = {
    "ticks": Program(
        (
            Template(
                "PATTERN SEQ(SPY a, SPY b, BAC c) WHERE a.key = :venue AND a.size >= :least AND b.price_e4 > a.price_e4"
                " AND b.size > a.size AND c.size > b.size AND c.move = 1 WITHIN :length s",
                0.5,
                {"venue": "key"},
                {"least": (200, 300, 500, 1000, 2000), "length": (1, 3, 10)},
            ),
            Template(
                "PATTERN SEQ(IBM a, AIG b, SPY c) WHERE a.key = :venue AND b.size > a.size"
                " AND c.price_e4 <> a.price_e4 AND c.size >= :times * b.size AND c.move = 1 WITHIN 5 s",
                0.3,
                {"venue": "key"},
                {"times": tuple(range(1, 50))},
            ),
            Template(
                "PATTERN SEQ(BAC a, BAC b, BAC c) WHERE [key] AND a.key = :venue AND a.size >= :least"
                " AND b.size > a.size AND c.size > b.size AND c.price_e4 > a.price_e4 WITHIN 10 s",
                0.2,
                {"venue": "key"},
                {"least": (200, 300, 500, 1000, 2000)},
            ),
        ),
        (
            ("PATTERN SEQ(SPY a, SPY b, BAC c, IBM d) WHERE a.size >= 500 AND b.price_e4 > a.price_e4"
            " AND b.size > a.size AND c.move = 1 AND c.size > b.size AND d.move = 1 AND d.key = a.key WITHIN 60 s"),
            "PATTERN SEQ(IBM a, IBM b, AIG c) WHERE b.size > a.size AND c.size > b.size AND c.move = -1 WITHIN 10 s",
            "PATTERN SEQ(IBM a, AIG b, BAC c) WITHIN 1 s",
        ),
    ),
    "flights": Program(
        (
            Template(
                "PATTERN SEQ(DEP a, DEP b, CXL c) WHERE [origin] AND a.carrier = :carrier AND b.delay_min > a.delay_min"
                " AND b.carrier <> a.carrier AND c.dest = a.dest WITHIN :hours h",
                0.5,
                {"carrier": "carrier"},
                {"hours": (1, 2, 4)},
            ),
            Template(
                "PATTERN SEQ(ARR a, DEP b, DEP c) WHERE [origin] AND a.dest = :dest AND a.delay_min >= :late"
                " AND b.delay_min > a.delay_min AND c.delay_min > b.delay_min + :more AND c.carrier = a.carrier"
                " WITHIN 60 min",
                0.3,
                {"dest": "dest"},
                {"late": (0, 15, 30, 60), "more": (0, 10, 30)},
            ),
            Template(
                "PATTERN SEQ(DEP a, ARR b, DEP c) WHERE [key] AND a.dest = :dest AND b.delay_min > a.delay_min"
                " AND c.delay_min > b.delay_min + :more WITHIN 24 h",
                0.2,
                {"dest": "dest"},
                {"more": (0, 10, 30)},
            ),
        ),
        (
            (f"PATTERN SEQ(DEP a, DEP b, DEP c, CXL d) WHERE [origin] AND {rising('delay_min', 'abc')}"
            " AND a.carrier <> b.carrier AND b.carrier <> c.carrier AND d.dest = a.dest WITHIN 3 h"),
            ("PATTERN SEQ(DEP a, ARR b, DEP c) WHERE [key] AND a.delay_min >= 60 AND c.delay_min >= a.delay_min"
            " WITHIN 24 h"),
            "PATTERN SEQ(CXL a, CXL b) WHERE [origin] WITHIN 1 h",
        ),
    ),
    "zeek": Program(
        (
            Template(
                "PATTERN SEQ(dns a, ssl b, dns c) WHERE [key] AND a.dst = :host AND b.conn > a.conn AND c.conn > b.conn"
                " AND c.rtt > a.rtt WITHIN :length s",
                0.4,
                {"host": "dst"},
                {"length": (1, 5, 20)},
            ),
            Template(
                "PATTERN SEQ(weird a, analyzer b, ssl c) WHERE [key] AND a.port = :port AND b.conn > a.conn + :more"
                " AND c.conn > b.conn AND c.dst = a.dst WITHIN 2 s",
                0.3,
                {"port": "port"},
                {"more": tuple(range(0, 40, 4))},
            ),
            Template(
                "PATTERN SEQ(ssl a, ssl b, rdp c) WHERE a.dst = :host AND b.conn > a.conn AND b.dst <> a.dst"
                " AND c.conn > b.conn WITHIN :length s",
                0.3,
                {"host": "dst"},
                {"length": (1, 3)},
            ),
        ),
        (
            ("PATTERN SEQ(dns a, ssl b, ssl c, dns d) WHERE [key] AND c.dst <> b.dst AND c.conn > b.conn"
            " AND d.dst = a.dst AND d.rtt > a.rtt WITHIN 1 min"),
            "PATTERN SEQ(rdp a, weird b, ssl c) WHERE b.conn > a.conn AND c.conn > b.conn AND c.dst = a.dst WITHIN 1 s",
            "PATTERN SEQ(smtp a, dns b) WHERE [key] WITHIN 10 s",
        ),
    ),
    "bikes": Program(
        (
            Template(
                "PATTERN SEQ(end a, end b, end c) WHERE [region] AND a.station = :station"
                " AND b.from_station = a.station AND b.duration_s > a.duration_s AND c.from_station = b.station"
                " AND c.duration_s > b.duration_s WITHIN :hours h",
                0.5,
                {"station": "station"},
                {"hours": (1, 3, 6)},
            ),
            Template(
                "PATTERN SEQ(start a, end b, end c) WHERE [region] AND a.station = :station AND b.station <> a.station"
                " AND c.duration_s > :times * b.duration_s AND c.station = a.station AND c.subscriber = 0 WITHIN 1 h",
                0.3,
                {"station": "station"},
                {"times": tuple(range(1, 20))},
            ),
            Template(
                "PATTERN SEQ(end a, end b, end c) WHERE [key] AND a.station = :station AND b.duration_s > a.duration_s"
                " AND c.duration_s > b.duration_s + :more WITHIN 12 h",
                0.2,
                {"station": "station"},
                {"more": (0, 60, 300)},
            ),
        ),
        (
            (f"PATTERN SEQ(end a, end b, end c, end d) WHERE [region] AND {rising('duration_s', 'abc')}"
            " AND d.subscriber = 0 AND d.station = a.from_station AND d.duration_s > 3 * c.duration_s WITHIN 3 h"),
            ("PATTERN SEQ(start a, start b, end c) WHERE [station] AND b.trip > a.trip AND c.duration_s >= 3600"
            " WITHIN 30 min"),
            "PATTERN SEQ(start a, end b) WHERE [key] WITHIN 1 h",
        ),
    ),
    "tweets": Program(
        (
            Template(
                "PATTERN SEQ(ANY a, ANY b, ANY c) WHERE [key] AND a.key = :ticker AND a.followers >= :least"
                " AND b.is_rt = 1 AND b.followers > a.followers AND c.kw_mask % 128 >= 16"
                " AND c.followers > b.followers WITHIN :days d",
                0.5,
                {"ticker": "key"},
                {"least": (100, 1_000, 5_000), "days": (3, 10, 30)},
            ),
            Template(
                "PATTERN SEQ(e a, ANY b, b c) WHERE [key] AND a.key = :ticker AND b.n_words > a.n_words"
                " AND c.n_words > b.n_words + :more WITHIN 20 d",
                0.3,
                {"ticker": "key"},
                {"more": tuple(range(5))},
            ),
            Template(
                "PATTERN SEQ(opt a, e b, e c) WHERE a.key = :ticker AND b.followers > a.followers"
                " AND c.followers > b.followers AND c.key = a.key WITHIN :days d",
                0.2,
                {"ticker": "key"},
                {"days": (1, 3)},
            ),
        ),
        (
            ("PATTERN SEQ(ANY a, ANY b, ANY c, ANY d) WHERE [key] AND b.is_rt = 1 AND c.kw_mask % 16 > 0"
            f" AND d.kw_mask % 128 >= 16 AND {rising('followers', 'abcd')} WITHIN 20 d"),
            "PATTERN SEQ(deal a, e b, b c) WHERE b.followers > a.followers AND c.followers > b.followers WITHIN 10 d",
            "PATTERN SEQ(div a, deal b) WHERE [key] WITHIN 10 d",
        ),
    ),
    GENERATED: Program(
        (
            Template(
                "PATTERN SEQ(A a, B b, C c) WHERE a.k = :k AND b.x > a.x AND c.x > b.x + :more WITHIN :length",
                0.5,
                {"k": "k"},
                {"more": (20, 50, 80), "length": (100, 200, 500)},
            ),
            Template(
                "PATTERN SEQ(B a, C b, D c) WHERE a.k = :k AND b.x <> a.x AND c.x = :times * (a.x + b.x) WITHIN 300",
                0.3,
                {"k": "k"},
                {"times": (1, 2, 3)},
            ),
            Template(
                "PATTERN SEQ(C a, D b, A c) WHERE [k] AND a.k = :k AND b.x > a.x AND c.x = b.x WITHIN :length",
                0.2,
                {"k": "k"},
                {"length": (500, 2000)},
            ),
        ),
        (
            "PATTERN SEQ(A a, B b, C c, D d) WHERE a.k = b.k AND c.x > a.x + b.x AND d.x = a.x WITHIN 300",
            "PATTERN SEQ(D a, D b, A c) WHERE b.x > a.x AND c.x = a.x AND c.k = b.k WITHIN 200",
            "PATTERN SEQ(A a, D b) WHERE [k] WITHIN 50",
        ),
    ),
}
"""By stream. The last query of each set by itself is answered by the cells, or sheds nothing."""


def generated(events: int, seed: int = 1) -> pa.Table:
    """A stream whose keys are hot: ``ts``, ``type`` (A to D), ``k`` (1 to 50, Zipf), ``x`` (0 to 99)."""
    dice = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": np.arange(events),
            "type": np.array(list("ABCD"))[dice.integers(0, 4, events)],
            "k": 1 + _zipf(dice, events, 50),
            "x": dice.integers(0, 100, events),
        }
    )


@dataclass(frozen=True)
class SetWorkload:
    """A set, events to learn from, and later events that it is measured on."""

    name: str
    program: Program
    past: pa.Table
    now: pa.Table
    unit: str | None

    def filled(self, desk: Any, queries: int, *, is_weighted: bool, seed: int = 1) -> Any:
        """Add so many queries of the templates to a set, and those by themselves; gives the set.

        The first of those by themselves counts for ten times as much, where there are weights.
        """
        dice = np.random.default_rng(seed)
        for number, template in enumerate(self.program.templates):
            rows = round(template.share * queries)
            columns = {name: _hot(self.past.column(column), rows, dice) for name, column in template.hot.items()}
            columns |= {name: dice.choice(of, rows).tolist() for name, of in template.drawn.items()}
            weights = dice.choice(WEIGHTS, rows, p=SHARES)
            table = pa.table(columns | {"weight": weights if is_weighted else np.ones(rows)})
            desk.add_many(template.text, table, id=f"t{number}", weight="weight")
        for number, text in enumerate(self.program.alone):
            desk.add(text, id=f"alone{number}", weight=10.0 if is_weighted and number == 0 else 1.0)
        return desk

    def desk(self, made: Callable[..., Any] = QuerySet) -> Any:
        """A set without queries that reads the events of this stream."""
        return made(output="points", **({"unit": self.unit} if self.unit else {}))


def _hot(column: pa.ChunkedArray, rows: int, dice: np.random.Generator) -> list[Any]:
    """Values of a column, those that are frequent there the most often."""
    counted = sorted(pc.value_counts(column).to_pylist(), key=lambda one: (-one["counts"], str(one["values"])))
    values = [one["values"] for one in counted]
    return [values[place] for place in _zipf(dice, rows, len(values))]


def _zipf(dice: np.random.Generator, count: int, values: int) -> Any:
    share = 1 / np.arange(1, values + 1) ** ZIPF
    return dice.choice(values, count, p=share / share.sum())


def load_set(name: str, events: int = EVENTS) -> SetWorkload:
    """A workload: a key of ``PROGRAMS``, with so many events on each side of the middle of its stream."""
    stream = generated(2 * events) if name == GENERATED else real.load(name)
    half = len(stream) // 2
    events = min(events, half)
    unit = None if name == GENERATED else "us"
    return SetWorkload(name, PROGRAMS[name], stream.slice(half - events, events), stream.slice(half, events), unit)
